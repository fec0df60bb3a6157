//! Canonical JSON and the digests over it.
//!
//! In: `Json`. Out: the RFC 8785 text of values whose numbers are safe
//! integers, and digests under named suites. Digests of different suites are
//! never equal.

mod number;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::wire::digest::Digest;
use crate::wire::json::{Json, pointer_token};

pub use number::python;

/// The largest integer every JSON reader represents exactly: 2^53 - 1.
pub const SAFE_INTEGER_MAX: i64 = (1 << 53) - 1;

/// How a digest over a JSON value was made.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, strum::IntoStaticStr)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum Suite {
    /// Members that are null, `[]` or `{}` are removed bottom up, then
    /// RFC 8785, then SHA-256.
    JcsN,
    /// As Python's `json.dumps` with sorted names writes it, which released
    /// producers of PCA certificates use. Tried only second.
    PcaPython,
    /// RFC 8785 with fractions, `-0` as `0`, a label and `:` in front, then
    /// SHA-256.
    PcaV1,
}

impl Suite {
    /// Its name beside a digest.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The digest of a value.
    pub fn digest(self, value: &Json) -> Result<SuiteDigest, Error> {
        self.digest_without(value, &[])
    }

    /// The digest of an object without some of its own members.
    pub fn digest_without(self, value: &Json, names: &[&str]) -> Result<SuiteDigest, Error> {
        let text = self.text().of(value, names)?;
        Ok(SuiteDigest { suite: self, digest: Digest::of(text.as_bytes()) })
    }

    /// The digest of a label, a colon and an object without some of its own
    /// members. The label separates the domains.
    pub fn labelled(self, label: &str, value: &Json, names: &[&str]) -> Result<SuiteDigest, Error> {
        let text = self.text().of(value, names)?;
        let digest = Digest::of_parts(&[label.as_bytes(), b":", text.as_bytes()]);
        Ok(SuiteDigest { suite: self, digest })
    }

    /// The text that the suite hashes.
    pub fn canonical(self, value: &Json) -> Result<String, Error> {
        self.text().of(value, &[])
    }

    /// Every number without a form in this suite, in document order.
    pub fn refused(self, value: &Json) -> Vec<Error> {
        self.text().refused(value)
    }

    fn text(self) -> Text {
        let style = match self {
            Self::JcsN => Style::Integers,
            Self::PcaPython => Style::Python,
            Self::PcaV1 => Style::Ecma,
        };
        Text { drops_absent: self == Self::JcsN, style }
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

/// Whether `jcs-n` treats a value as absent.
pub fn is_absent(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::Bool(_) | Json::Number(_) | Json::Text(_) => false,
    }
}

/// Whether nothing is left of a value after `jcs-n` removed absent members.
pub fn vanishes(value: &Json) -> bool {
    match value {
        Json::Object(members) => members.iter().all(|(_, value)| vanishes(value)),
        other => is_absent(other),
    }
}

/// Removes members that are null, `[]` or `{}`, bottom up. Elements of arrays
/// stay even if they become empty.
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

/// The RFC 8785 text of a value whose numbers are safe integers.
pub fn canonical(value: &Json) -> Result<String, Error> {
    Text { drops_absent: false, style: Style::Integers }.of(value, &[])
}

/// How numbers are written; strings and member order differ as well.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Style {
    /// Safe integers only, unchanged.
    Integers,
    /// RFC 8785.
    Ecma,
    /// Python: everything beyond ASCII escaped, names by code point.
    Python,
}

/// How a canonical text is written.
#[derive(Clone, Copy)]
struct Text {
    drops_absent: bool,
    style: Style,
}

impl Text {
    /// Copies nothing, since identifiers are computed for every record.
    fn of(self, value: &Json, names: &[&str]) -> Result<String, Error> {
        let mut out = String::new();
        let Json::Object(members) = value else {
            self.refused(value).into_iter().next().map_or(Ok(()), Err)?;
            self.write(&mut out, value);
            return Ok(out);
        };
        let kept = || members.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        let refused =
            kept().find_map(|(name, value)| self.refused_in(name, value).into_iter().next());
        refused.map_or(Ok(()), Err)?;
        self.write_members(&mut out, kept());
        Ok(out)
    }

    fn write(self, out: &mut String, value: &Json) {
        match value {
            Json::Null => out.push_str("null"),
            Json::Bool(true) => out.push_str("true"),
            Json::Bool(false) => out.push_str("false"),
            Json::Number(token) => match self.style {
                Style::Integers => out.push_str(token),
                Style::Ecma => out.push_str(&number::ecma(token)),
                Style::Python => out.push_str(&number::python(token)),
            },
            Json::Text(text) => self.write_text(out, text),
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
        sorted.sort_unstable_by(|(a, _), (b, _)| match self.style {
            Style::Python => a.cmp(b),
            Style::Integers | Style::Ecma => by_utf16(a, b),
        });
        out.push('{');
        for (i, (name, value)) in sorted.into_iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            self.write_text(out, name);
            out.push(':');
            self.write(out, value);
        }
        out.push('}');
    }

    fn write_text(self, out: &mut String, text: &str) {
        if self.style == Style::Python && !text.is_ascii() {
            return write_ascii(out, text);
        }
        write_text(out, text);
    }

    fn refused(self, value: &Json) -> Vec<Error> {
        match value {
            Json::Number(token) => self.refuse(token).into_iter().collect(),
            Json::Array(items) => {
                let steps = items.iter().enumerate();
                steps.flat_map(|(i, item)| self.within(item, || format!("/{i}"))).collect()
            }
            Json::Object(members) => {
                members.iter().flat_map(|(name, value)| self.refused_in(name, value)).collect()
            }
            Json::Null | Json::Bool(_) | Json::Text(_) => Vec::new(),
        }
    }

    fn refused_in(self, name: &str, value: &Json) -> Vec<Error> {
        self.within(value, || pointer_token(name))
    }

    /// Pointers are built while returning, so that success allocates nothing.
    fn within(self, value: &Json, step: impl Fn() -> String) -> Vec<Error> {
        let mut found = self.refused(value);
        for error in &mut found {
            error.pointer_mut().insert_str(0, &step());
        }
        found
    }

    fn refuse(self, token: &str) -> Option<Error> {
        match self.style {
            Style::Integers => number::refused_integer(token),
            Style::Ecma => number::refused_ecma(token),
            Style::Python => number::refused_python(token),
        }
    }
}

fn by_utf16(a: &str, b: &str) -> std::cmp::Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a.cmp(b);
    }
    a.encode_utf16().cmp(b.encode_utf16())
}

/// A string as RFC 8785 writes it, and serde_json too.
pub fn write_text(out: &mut String, text: &str) {
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

/// A string as Python writes it: the short escapes of RFC 8785, and UTF-16 in
/// hex for everything outside printable ASCII.
pub fn write_ascii(out: &mut String, text: &str) {
    let mut escaped = String::new();
    write_text(&mut escaped, text);
    let mut units = [0; 2];
    for c in escaped.chars() {
        if (' '..='~').contains(&c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
}

/// Every number that has no canonical form here, in document order.
pub fn unsafe_numbers(value: &Json) -> Vec<Error> {
    Text { drops_absent: false, style: Style::Integers }.refused(value)
}

/// Why a value has no canonical form.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "jcs-")]
pub enum Error {
    /// The number is not exactly a double.
    #[error("{token} at {pointer:?} is not exactly representable as a double")]
    #[strum(serialize = "inexact-number")]
    Inexact {
        /// The number as written.
        token: String,
        /// Its JSON pointer.
        pointer: String,
    },
    /// A fraction, an exponent or a negative zero.
    #[error("{token} at {pointer:?} is not a plain integer")]
    NotInteger {
        /// The number as written.
        token: String,
        /// Its JSON pointer.
        pointer: String,
    },
    /// An integer that not every reader represents exactly.
    #[error("{token} at {pointer:?} is beyond 2^53 - 1")]
    UnsafeInteger {
        /// The number as written.
        token: String,
        /// Its JSON pointer.
        pointer: String,
    },
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// The JSON pointer of the number.
    pub fn pointer(&self) -> &str {
        match self {
            Self::Inexact { pointer, .. }
            | Self::NotInteger { pointer, .. }
            | Self::UnsafeInteger { pointer, .. } => pointer,
        }
    }

    fn pointer_mut(&mut self) -> &mut String {
        match self {
            Self::Inexact { pointer, .. }
            | Self::NotInteger { pointer, .. }
            | Self::UnsafeInteger { pointer, .. } => pointer,
        }
    }
}
