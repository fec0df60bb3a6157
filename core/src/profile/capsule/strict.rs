//! What the draft demands outside its check list, and what else a reader
//! should know. Additional to Class 1 and never part of `ok`: the reference
//! lets all of it through, so a policy decides.

mod effect;
mod names;
mod records;

use super::payload::Payload;
use crate::profile::finding::{Finding, Severity};
use crate::wire::jcs;
use crate::wire::json::{Json, pointer_token};

/// Every observation about a normalised payload, in a fixed order; `absent`
/// is the first member that was not there any more.
pub(super) fn findings(absent: Option<String>, payload: &Payload<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = absent.map(not_normal).into_iter().collect();
    parties(payload, &mut findings);
    effect::observe(payload, &mut findings);
    records::observe(payload, &mut findings);
    names::observe(payload, &mut findings);
    self_parent(payload, &mut findings);
    findings
}

fn error(code: &'static str, at: impl Into<String>, detail: impl Into<String>) -> Finding {
    Finding::new(Severity::Error, code, at, detail)
}

fn warning(code: &'static str, at: impl Into<String>, detail: impl Into<String>) -> Finding {
    Finding::new(Severity::Warning, code, at, detail)
}

fn info(code: &'static str, at: impl Into<String>, detail: impl Into<String>) -> Finding {
    Finding::new(Severity::Info, code, at, detail)
}

/// The same id commits to the payload with and without these members.
fn not_normal(first: String) -> Finding {
    let detail = "null, [] and {} are the same as absent to the capsule id and were read so (2)";
    info("non_normalised_payload", first, detail)
}

/// The first member that normalisation removes.
pub(super) fn first_absent(value: &Json) -> Option<String> {
    match value {
        Json::Object(members) => members.iter().find_map(|(name, value)| {
            if jcs::vanishes(value) {
                return Some(pointer_token(name));
            }
            first_absent(value).map(|rest| pointer_token(name) + &rest)
        }),
        Json::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(i, item)| first_absent(item).map(|rest| format!("/{i}{rest}"))),
        _ => None,
    }
}

/// Who, when, and the blocks every Capsule carries.
fn parties(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    for name in ["action_id", "operator", "developer"] {
        if payload.get(name).and_then(Json::text) == Some("") {
            findings.push(warning("field_empty", pointer_token(name), "names nobody (5.1)"));
        }
    }
    let timestamp = payload.get("timestamp").and_then(Json::text);
    if timestamp.is_some_and(|at| !is_utc(at)) {
        let detail = "not an RFC 3339 time ending in \"Z\" (5.1)";
        findings.push(warning("timestamp_not_utc", "/timestamp", detail));
    }
    if payload.get("assurance").is_none() {
        let detail = "every Capsule carries its assurance (5.3)";
        findings.push(warning("assurance_missing", "/assurance", detail));
    }
    let decides = payload.get("action_type").and_then(Json::text) == Some("decide");
    if decides && payload.get("disposition").is_none() {
        let detail = "an action that was decided says how (5.4)";
        findings.push(warning("disposition_missing", "/disposition", detail));
    }
}

/// `2026-06-13T00:00:00Z`, fractions allowed.
fn is_utc(text: &str) -> bool {
    let shape = text.get(10..11) == Some("T") && text.ends_with('Z');
    shape && crate::wire::time::UnixSeconds::from_rfc3339(text).is_some()
}

/// The chain is outside the id, so a Capsule can name itself as its parent.
fn self_parent(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    let own = payload.get("capsule_id").and_then(Json::text);
    if own.is_some() && own == payload.text("chain", "parent_capsule_id") {
        let detail = "a Capsule cannot follow itself (5.4.4)";
        let at = "/chain/parent_capsule_id";
        findings.push(error("chain_self_reference", at, detail));
    }
}
