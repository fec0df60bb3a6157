//! Converts what the draft's authors write to the form the draft demands.
//!
//! The draft's own example has ULIDs for identities; its reference
//! implementation writes numbers of up to 128 bits, and payloads as arrays of
//! bytes. Anything else is left unchanged, for the reader to refuse.

use super::tuple::CausalId;
use crate::profile::finding::{Finding, Severity};
use crate::wire::json::Json;
use crate::wire::text;

/// Converts in place, with a finding for each conversion.
pub(super) fn convert(json: &mut Json) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Json::Object(members) = json else { return findings };
    for (name, value) in members {
        match (name.as_str(), value) {
            ("id", value) => findings.extend(id(value, "/id".to_owned())),
            ("predecessors", Json::Array(items)) => {
                let numbered = items.iter_mut().enumerate();
                findings.extend(numbered.filter_map(|(n, v)| id(v, format!("/predecessors/{n}"))));
            }
            ("payload", value) => findings.extend(payload(value)),
            _ => {}
        }
    }
    findings
}

fn id(value: &mut Json, at: String) -> Option<Finding> {
    let (id, code, what) = match &*value {
        Json::Text(text) => (from_ulid(text)?, "pacr-id-ulid-converted", "a ULID"),
        Json::Number(token) => (token.parse().ok()?, "pacr-id-number-converted", "a number"),
        _ => return None,
    };
    let id = CausalId::from_bytes(&id.to_be_bytes())?;
    *value = Json::Text(id.to_string());
    Some(Finding::new(Severity::Info, code, at, format!("{what}, read as {id}")))
}

fn payload(value: &mut Json) -> Option<Finding> {
    let byte = |item: &Json| item.int().and_then(|n| u8::try_from(n).ok());
    let bytes: Vec<u8> = value.array()?.iter().map(byte).collect::<Option<_>>()?;
    *value = Json::Text(text::base64(&bytes));
    let (code, detail) = ("pacr-payload-converted", "an array of bytes, read as a payload");
    Some(Finding::new(Severity::Info, code, "/payload", detail))
}

/// A ULID: 26 uppercase characters of Crockford's alphabet, the first of which
/// holds three bits.
pub(super) fn from_ulid(ulid: &str) -> Option<u128> {
    const ALPHABET: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    if ulid.len() != 26 || !ulid.starts_with(|first| ('0'..='7').contains(&first)) {
        return None;
    }
    ulid.chars().try_fold(0_u128, |number, c| {
        let digit = u128::try_from(ALPHABET.find(c)?).ok()?;
        Some(number << 5 | digit)
    })
}
