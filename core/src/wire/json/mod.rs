//! Strict JSON (RFC 8259): one reader for every profile.
//!
//! In: bytes. Out: `Json`, numbers as the text they were, members in the
//! order they came. Refused: other encodings than UTF-8, a byte order mark,
//! duplicate names, lone surrogates, depth and size beyond the limits, and
//! anything after the value. Every refusal names its byte and JSON pointer.

mod error;
mod reader;
#[cfg(test)]
mod tests;

pub use error::{CODES, Error, Fault};

/// A JSON value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// The token as written: `1`, `-0`, `1e3`.
    Number(String),
    /// A string, unescaped.
    Text(String),
    /// An array.
    Array(Vec<Self>),
    /// An object; names are unique.
    Object(Vec<(String, Self)>),
}

impl Json {
    /// Reads one JSON text.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        reader::read(bytes)
    }

    /// An object of these members, for values we make ourselves.
    pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// The member with this name.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.members()?.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The value at a JSON pointer (RFC 6901); the whole for `""`.
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        let mut tokens = pointer.split('/');
        tokens.next().filter(|before| before.is_empty())?;
        tokens.try_fold(self, |value, token| match value {
            Self::Object(_) => value.get(&token.replace("~1", "/").replace("~0", "~")),
            Self::Array(items) => {
                let is_index = token == "0" || !token.starts_with('0');
                let digits = token.bytes().all(|b| b.is_ascii_digit());
                (is_index && digits).then(|| items.get(token.parse::<usize>().ok()?)).flatten()
            }
            _ => None,
        })
    }

    /// The members of an object.
    pub fn members(&self) -> Option<&[(String, Self)]> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The elements of an array.
    pub fn array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// `true` or `false`.
    pub fn bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// A whole number without fraction or exponent.
    pub fn int(&self) -> Option<i64> {
        let Self::Number(token) = self else { return None };
        token.parse().ok().filter(|_| token != "-0")
    }

    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Self {
        Self::Number(number.to_string())
    }
}

impl From<Vec<Self>> for Json {
    fn from(items: Vec<Self>) -> Self {
        Self::Array(items)
    }
}

/// One step of a JSON pointer, escaped.
pub fn pointer_token(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
