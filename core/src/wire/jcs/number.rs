//! JSON numbers in the different canonical forms.
//!
//! In: a number token. Out: its canonical text, or an error.

use super::{Error, SAFE_INTEGER_MAX};

/// `0.DIGITS` times ten to the power of `point`; no digits for zero. Digits
/// neither begin nor end with a zero, so equal numbers are equal.
#[derive(Debug, Eq, PartialEq)]
struct Decimal {
    negative: bool,
    digits: String,
    point: i64,
}

impl Decimal {
    /// None when the exponent is too large.
    fn of(token: &str) -> Option<Self> {
        let (negative, rest) = token.strip_prefix('-').map_or((false, token), |rest| (true, rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole, fraction].concat();
        let significant = all.trim_start_matches('0');
        let digits = significant.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, point: 0 });
        }
        let leading = i64::try_from(all.len() - significant.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?;
        let point = i64::try_from(whole.len()).ok()?.checked_sub(leading)?.checked_add(exponent)?;
        Some(Self { negative, digits, point })
    }

    /// The shortest decimal that reads back as the double nearest to a token;
    /// of two equally near ones the even one, as in ECMAScript and Python. The
    /// standard library differs in some cases.
    fn shortest(token: &str) -> Option<Self> {
        let double = token.parse::<f64>().ok().filter(|double| double.is_finite())?;
        Self::of(&serde_json::to_string(&double).ok()?)
    }

    fn count(&self) -> i64 {
        i64::try_from(self.digits.len()).unwrap_or(i64::MAX)
    }

    fn is_whole(&self) -> bool {
        self.count() <= self.point
    }

    /// Without an exponent: `120`, `1.2`, `0.012`.
    fn plain(&self) -> String {
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        let at = usize::try_from(self.point).unwrap_or(0);
        match self.digits.split_at_checked(at) {
            Some(("", fraction)) => format!("0.{}{fraction}", zeros(-self.point)),
            Some((whole, fraction)) if !fraction.is_empty() => format!("{whole}.{fraction}"),
            _ => format!("{}{}", self.digits, zeros(self.point - self.count())),
        }
    }

    /// With one: `1.2e`, to be followed by the exponent.
    fn scientific(&self) -> String {
        match self.digits.split_at_checked(1) {
            Some((first, "")) => format!("{first}e"),
            Some((first, rest)) => format!("{first}.{rest}e"),
            None => String::new(),
        }
    }

    fn signed(&self, text: &str) -> String {
        format!("{}{text}", if self.negative { "-" } else { "" })
    }
}

/// As in RFC 8785 and ECMAScript.
pub(super) fn ecma(token: &str) -> String {
    let Some(decimal) = Decimal::shortest(token) else { return token.to_owned() };
    let exponent = decimal.point - 1;
    let text = match decimal.point {
        _ if decimal.digits.is_empty() => "0".to_owned(),
        -5..=21 => decimal.plain(),
        _ => format!("{}{exponent:+}", decimal.scientific()),
    };
    decimal.signed(&text)
}

/// As PCA's Python writes numbers: integers unchanged, floats as `repr`, and
/// any zero as `0`.
pub fn python(token: &str) -> String {
    if !token.contains(['.', 'e', 'E']) {
        return if token == "-0" { "0".to_owned() } else { token.to_owned() };
    }
    let Some(decimal) = Decimal::shortest(token) else { return token.to_owned() };
    let exponent = decimal.point - 1;
    let text = match decimal.point {
        _ if decimal.digits.is_empty() => "0".to_owned(),
        -3..=16 if decimal.is_whole() => format!("{}.0", decimal.plain()),
        -3..=16 => decimal.plain(),
        _ => format!("{}{exponent:+03}", decimal.scientific()),
    };
    decimal.signed(&text)
}

/// A safe integer, written as one.
pub(super) fn refused_integer(token: &str) -> Option<Error> {
    if token == "-0" || token.contains(['.', 'e', 'E']) {
        return Some(Error::NotInteger { token: token.to_owned(), pointer: String::new() });
    }
    let safe = -SAFE_INTEGER_MAX..=SAFE_INTEGER_MAX;
    let is_safe = token.parse::<i64>().is_ok_and(|n| safe.contains(&n));
    (!is_safe).then(|| unsafe_integer(token))
}

/// Exactly a double, and a safe integer if it is one: different numbers never
/// have the same text.
pub(super) fn refused_ecma(token: &str) -> Option<Error> {
    let Some(written) = Decimal::of(token) else { return Some(inexact(token)) };
    if written.is_whole() && !written.digits.is_empty() {
        let is_safe = written.point <= 16
            && written.plain().parse::<i64>().is_ok_and(|n| n <= SAFE_INTEGER_MAX);
        return (!is_safe).then(|| unsafe_integer(token));
    }
    (Decimal::shortest(token) != Some(written)).then(|| inexact(token))
}

/// Anything finite.
pub(super) fn refused_python(token: &str) -> Option<Error> {
    let is_float = token.contains(['.', 'e', 'E']);
    (is_float && Decimal::shortest(token).is_none()).then(|| inexact(token))
}

fn inexact(token: &str) -> Error {
    Error::Inexact { token: token.to_owned(), pointer: String::new() }
}

fn unsafe_integer(token: &str) -> Error {
    Error::UnsafeInteger { token: token.to_owned(), pointer: String::new() }
}
