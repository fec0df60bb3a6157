//! The grammar of CRA's identifiers, in code instead of patterns: what is
//! hashed must not depend on a pattern library.

use crate::wire::time::UnixSeconds;

/// The version of a lowercase, hyphenated UUID. Any version is accepted,
/// because upstream's own examples have versions unknown to RFC 9562.
pub fn uuid_version(text: &str) -> Option<u8> {
    let fits = text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => is_lower_hex(b),
        });
    let digit = text.chars().nth(14).filter(|_| fits)?;
    digit.to_digit(16).and_then(|version| u8::try_from(version).ok())
}

fn is_lower_hex(b: u8) -> bool {
    b.is_ascii_digit() || (b'a'..=b'f').contains(&b)
}

/// 64 lowercase hex digits.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(is_lower_hex)
}

/// A whole number without sign and leading zeros.
pub(super) fn sequence(token: &str) -> Option<u64> {
    let is_plain = token.bytes().all(|b| b.is_ascii_digit());
    let has_zeros = token.len() > 1 && token.starts_with('0');
    token.parse().ok().filter(|_| is_plain && !has_zeros)
}

/// `^[a-z]+(\.[a-z_]+)+$`
pub(super) fn is_event_type(text: &str) -> bool {
    let mut parts = text.split('.');
    let lower = |b: u8| b.is_ascii_lowercase();
    let head = parts.next().is_some_and(|part| !part.is_empty() && part.bytes().all(lower));
    let mut rest = parts.peekable();
    let has_rest = rest.peek().is_some();
    head && has_rest
        && rest.all(|part| !part.is_empty() && part.bytes().all(|b| lower(b) || b == b'_'))
}

/// An RFC 3339 time with four digits of year, `T`, seconds, and `Z` or an
/// offset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stamp {
    /// Digits after the second.
    pub(super) fraction: usize,
    /// Whether it ends in `Z`.
    pub(super) is_utc: bool,
    /// The instant; none before 1970.
    pub(super) time: Option<UnixSeconds>,
}

impl Stamp {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date_time, rest) = text.split_at_checked(19)?;
        if !matches_shape(date_time, "dddd-dd-ddTdd:dd:dd") {
            return None;
        }
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let fraction = rest.strip_prefix('.').map(digits);
        if fraction.is_some_and(|count| !(1..=9).contains(&count)) {
            return None;
        }
        let zone = rest.get(fraction.map_or(0, |count| count + 1)..)?;
        let is_utc = zone == "Z";
        if !is_utc && !matches_shape(zone, "+dd:dd") && !matches_shape(zone, "-dd:dd") {
            return None;
        }
        // The shape does not exclude the 31st of June.
        text.parse::<jiff::Timestamp>().ok()?;
        let time = UnixSeconds::from_rfc3339(text);
        Some(Self { fraction: fraction.unwrap_or(0), is_utc, time })
    }

    /// As Capstan writes times: exactly six digits and `Z`.
    pub(super) fn is_exact(&self) -> bool {
        self.fraction == 6 && self.is_utc
    }
}

fn matches_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(b, form)| match form {
            b'd' => b.is_ascii_digit(),
            other => b == other,
        })
}

/// A version of Semantic Versioning 2.0.0.
pub(super) fn is_semver(text: &str) -> bool {
    let (text, build) = split_off(text, '+');
    let (core, pre) = split_off(text, '-');
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|part| is_number(part))
        && pre.is_none_or(|pre| pre.split('.').all(is_prerelease))
        && build.is_none_or(|build| build.split('.').all(is_identifier))
}

fn split_off(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(head, tail)| (head, Some(tail)))
}

fn is_number(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn is_prerelease(text: &str) -> bool {
    is_identifier(text) && (!text.bytes().all(|b| b.is_ascii_digit()) || is_number(text))
}

/// A range of versions: alternatives by `||`, each `a - b` or comparators
/// (`^ ~ > >= < <= =`) by spaces or commas; parts may be missing or `*`, `x`.
/// The specification only says "semver-range"; this is what package managers
/// have in common.
pub(super) fn is_semver_range(text: &str) -> bool {
    text.split("||").all(|one| {
        let one = one.trim();
        if let Some((low, high)) = one.split_once(" - ") {
            return is_partial(low.trim()) && is_partial(high.trim());
        }
        let mut comparators = one.split([' ', ',']).filter(|part| !part.is_empty()).peekable();
        comparators.peek().is_some() && comparators.all(is_comparator)
    })
}

fn is_comparator(text: &str) -> bool {
    const OPERATORS: [&str; 7] = [">=", "<=", "^", "~", ">", "<", "="];
    let version = OPERATORS.iter().find_map(|op| text.strip_prefix(op));
    is_partial(version.unwrap_or(text))
}

/// `1`, `1.2`, `1.x`, `*`, or a whole version.
fn is_partial(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_wild = |part: &&&str| ["*", "x", "X"].contains(*part);
    let numbers = parts.iter().take_while(|part| is_number(part)).count();
    let wild = parts.iter().skip(numbers).take_while(is_wild).count();
    is_semver(text) || (parts.len() <= 3 && numbers + wild == parts.len())
}
