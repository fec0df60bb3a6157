//! Canonical JSON and the digests over it.
//!
//! In: `Json`. Out: the RFC 8785 text of values whose numbers are whole and
//! safe, and digests under named suites. Digests of different suites are
//! never equal, whatever their bytes.

#[cfg(test)]
mod tests;

use std::fmt;

use crate::wire::digest::Digest;
use crate::wire::json::{Json, pointer_token};

/// The largest integer every JSON reader holds exactly: 2^53 - 1.
pub const SAFE_INTEGER_MAX: i64 = (1 << 53) - 1;

/// How a digest over a JSON value was made.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Suite {
    /// Members that are null, `[]` or `{}` are removed from the inside out,
    /// then RFC 8785, then SHA-256.
    JcsN,
}

impl Suite {
    /// Its name beside a digest.
    pub fn name(self) -> &'static str {
        match self {
            Self::JcsN => "jcs-n",
        }
    }

    /// The digest of a value.
    pub fn digest(self, value: &Json) -> Result<SuiteDigest, Error> {
        self.digest_without(value, &[])
    }

    /// The digest of an object without some of its own members.
    pub fn digest_without(self, value: &Json, names: &[&str]) -> Result<SuiteDigest, Error> {
        let drops_absent = match self {
            Self::JcsN => true,
        };
        let text = Text { drops_absent }.of(value, names)?;
        Ok(SuiteDigest { suite: self, digest: Digest::of(text.as_bytes()) })
    }
}

/// A digest and the suite that made it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SuiteDigest {
    suite: Suite,
    digest: Digest,
}

impl SuiteDigest {
    /// The suite.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The 64 hex digits, without the suite.
    pub fn hex(&self) -> String {
        self.digest.to_string()
    }
}

impl fmt::Display for SuiteDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.suite.name(), self.digest)
    }
}

/// Whether a value is as good as absent to `jcs-n`.
pub fn is_absent(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::Bool(_) | Json::Number(_) | Json::Text(_) => false,
    }
}

/// Whether nothing is left of a value once `jcs-n` has removed what is absent.
pub fn vanishes(value: &Json) -> bool {
    match value {
        Json::Object(members) => members.iter().all(|(_, value)| vanishes(value)),
        other => is_absent(other),
    }
}

/// Removes members that are null, `[]` or `{}`, from the inside out. Elements
/// of arrays stay, whatever becomes of them.
pub fn normalise(value: Json) -> Json {
    match value {
        Json::Array(items) => Json::Array(items.into_iter().map(normalise).collect()),
        Json::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| !vanishes(value));
            Json::Object(kept.map(|(name, value)| (name, normalise(value))).collect())
        }
        other => other,
    }
}

/// The RFC 8785 text of a value whose numbers are whole and safe.
pub fn canonical(value: &Json) -> Result<String, Error> {
    Text { drops_absent: false }.of(value, &[])
}

/// How a canonical text is written.
#[derive(Clone, Copy)]
struct Text {
    drops_absent: bool,
}

impl Text {
    /// Nothing is copied on the way: identities are computed for every record.
    fn of(self, value: &Json, names: &[&str]) -> Result<String, Error> {
        let mut out = String::new();
        let Json::Object(members) = value else {
            unsafe_numbers(value).into_iter().next().map_or(Ok(()), Err)?;
            self.write(&mut out, value);
            return Ok(out);
        };
        let kept = || members.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        let refused = kept().find_map(|(name, value)| refused_in(name, value).into_iter().next());
        refused.map_or(Ok(()), Err)?;
        self.write_members(&mut out, kept());
        Ok(out)
    }

    fn write(self, out: &mut String, value: &Json) {
        match value {
            Json::Null => out.push_str("null"),
            Json::Bool(true) => out.push_str("true"),
            Json::Bool(false) => out.push_str("false"),
            Json::Number(token) => out.push_str(token),
            Json::Text(text) => write_text(out, text),
            Json::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    self.write(out, item);
                }
                out.push(']');
            }
            Json::Object(members) => self.write_members(out, members.iter()),
        }
    }

    fn write_members<'a>(
        self,
        out: &mut String,
        members: impl Iterator<Item = &'a (String, Json)>,
    ) {
        let mut sorted: Vec<&(String, Json)> =
            members.filter(|(_, value)| !(self.drops_absent && vanishes(value))).collect();
        sorted.sort_unstable_by(|(a, _), (b, _)| by_utf16(a, b));
        out.push('{');
        for (i, (name, value)) in sorted.into_iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_text(out, name);
            out.push(':');
            self.write(out, value);
        }
        out.push('}');
    }
}

fn by_utf16(a: &str, b: &str) -> std::cmp::Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a.cmp(b);
    }
    a.encode_utf16().cmp(b.encode_utf16())
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    if !text.bytes().any(|b| b < b' ' || b == b'"' || b == b'\\') {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Every number that has no canonical form here, in document order.
pub fn unsafe_numbers(value: &Json) -> Vec<Error> {
    match value {
        Json::Number(token) => refuse(token).into_iter().collect(),
        Json::Array(items) => {
            let steps = items.iter().enumerate();
            steps.flat_map(|(i, item)| within(item, || format!("/{i}"))).collect()
        }
        Json::Object(members) => {
            members.iter().flat_map(|(name, value)| refused_in(name, value)).collect()
        }
        Json::Null | Json::Bool(_) | Json::Text(_) => Vec::new(),
    }
}

fn refused_in(name: &str, value: &Json) -> Vec<Error> {
    within(value, || pointer_token(name))
}

/// Pointers grow on the way out, so that a good value costs no allocation.
fn within(value: &Json, step: impl Fn() -> String) -> Vec<Error> {
    let mut found = unsafe_numbers(value);
    for error in &mut found {
        let (Error::NotInteger { pointer, .. } | Error::UnsafeInteger { pointer, .. }) = error;
        pointer.insert_str(0, &step());
    }
    found
}

fn refuse(token: &str) -> Option<Error> {
    let refused = || (token.to_owned(), String::new());
    if token == "-0" || token.contains(['.', 'e', 'E']) {
        let (token, pointer) = refused();
        return Some(Error::NotInteger { token, pointer });
    }
    let safe = -SAFE_INTEGER_MAX..=SAFE_INTEGER_MAX;
    let is_safe = token.parse::<i64>().is_ok_and(|n| safe.contains(&n));
    let (token, pointer) = if is_safe { return None } else { refused() };
    Some(Error::UnsafeInteger { token, pointer })
}

/// Why a value has no canonical form.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A fraction, an exponent or a negative zero.
    #[error("{token} at {pointer:?} is not a plain integer")]
    NotInteger {
        /// The number as written.
        token: String,
        /// Where it stands.
        pointer: String,
    },
    /// An integer that not every reader holds exactly.
    #[error("{token} at {pointer:?} is beyond 2^53 - 1")]
    UnsafeInteger {
        /// The number as written.
        token: String,
        /// Where it stands.
        pointer: String,
    },
}

impl Error {
    /// A stable word.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotInteger { .. } => "jcs-not-integer",
            Self::UnsafeInteger { .. } => "jcs-unsafe-integer",
        }
    }

    /// Where the number stands.
    pub fn pointer(&self) -> &str {
        match self {
            Self::NotInteger { pointer, .. } | Self::UnsafeInteger { pointer, .. } => pointer,
        }
    }
}
