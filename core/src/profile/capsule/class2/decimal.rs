//! Exact decimals, compared without floating point.

use std::cmp::Ordering;

use crate::wire::json::Json;

/// A decimal number of any length.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Decimal {
    is_negative: bool,
    whole: String,
    fraction: String,
}

impl Decimal {
    /// `-12.50` and the like; no exponent.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let whole = whole.trim_start_matches('0').to_owned();
        let fraction = fraction.trim_end_matches('0').to_owned();
        let is_zero = whole.is_empty() && fraction.is_empty();
        Some(Self { is_negative: is_negative && !is_zero, whole, fraction })
    }

    /// A JSON integer, or a decimal in a string.
    pub(super) fn of(value: &Json) -> Option<Self> {
        match value {
            Json::Number(text) | Json::Text(text) => Self::parse(text),
            _ => None,
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |a: &Self, b: &Self| {
            (a.whole.len(), &a.whole, &a.fraction).cmp(&(b.whole.len(), &b.whole, &b.fraction))
        };
        match (self.is_negative, other.is_negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
