//! Bytes as text: hex, base64url, base64, and short forms for people.

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

/// Unpadded base64url, as SCRAPI spells a kid in a path.
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

/// `7f3c9d21…04a1`: enough to recognise, never enough to compare.
pub fn short(hex: &str) -> String {
    match (hex.get(..8), hex.len().checked_sub(4).and_then(|at| hex.get(at..))) {
        (Some(head), Some(tail)) if hex.len() > 16 => format!("{head}…{tail}"),
        _ => hex.to_owned(),
    }
}

/// A whole number with thin groups, `1 280`, for people.
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

/// What is wrong with a TOML document, and where, on one line.
pub fn toml_mistake(error: &toml::de::Error, document: &str) -> String {
    let before = error.span().and_then(|span| document.get(..span.start));
    let line = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1));
    line.unwrap_or_default() + error.message()
}

/// What to suggest for a misspelt word: the nearest of `known`, if near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|k| (edit_distance(word, k), k))
        .filter(|(distance, k)| *distance <= 1 + k.len() / 4)
        .min()
        .map(|(_, k)| k)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for (cb, (above, above_right)) in b.iter().zip(row.iter().zip(row.iter().skip(1))) {
            let left = next.last().copied().unwrap_or(0);
            let change = above + usize::from(ca != *cb);
            next.push(change.min(left + 1).min(above_right + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
