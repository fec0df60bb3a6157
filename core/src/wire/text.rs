//! Bytes as text: hex, base64url, base64, and short forms for display.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// Lowercase hex.
pub fn hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}

/// Bytes from hex in either case; `None` when it is not hex.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    base16ct::mixed::decode_vec(text).ok()
}

/// Unpadded base64url, as SCRAPI writes a kid in a path.
pub fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Bytes from unpadded base64url.
pub fn from_base64url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Padded base64, as signed notes and PEM use it.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Bytes from padded base64.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// `7f3c9d21…04a1`, for display only.
pub fn short(hex: &str) -> String {
    match (hex.get(..8), hex.len().checked_sub(4).and_then(|at| hex.get(at..))) {
        (Some(head), Some(tail)) if hex.len() > 16 => format!("{head}…{tail}"),
        _ => hex.to_owned(),
    }
}

/// A number with digit groups, `1 280`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

/// A pattern of policies and trust files: `*` matches any run of characters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pattern(pub String);

impl Pattern {
    /// Whether the whole of `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        matches_pattern(&self.0, text)
    }
}

/// Whether the whole of `text` matches a pattern. No backtracking is needed:
/// after a `*` the earliest match of the next piece suffices.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    let mut rest = rest;
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A TOML error with its line number, on one line.
pub fn toml_mistake(error: &toml::de::Error, document: &str) -> String {
    let before = error.span().and_then(|span| document.get(..span.start));
    let line = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1));
    line.unwrap_or_default() + error.message()
}

/// A suggestion for a misspelt word: the closest of `known`, if close enough.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|k| (strsim::levenshtein(word, k), k))
        .filter(|(distance, k)| *distance <= 1 + k.len() / 4)
        .min()
        .map(|(_, k)| k)
}
