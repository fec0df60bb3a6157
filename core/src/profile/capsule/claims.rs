//! The header claims of a capsule statement (3.1), and whether they say what
//! the payload says.
//!
//! The draft never demands that they agree; without it a policy that reads
//! headers decides about another action than the one recorded. A mismatch is
//! an error of the statement, apart from the Capsule's own `ok`.

use super::payload::Payload;
use crate::envelope::Header;
use crate::profile::finding::{Finding, Severity};
use crate::wire::json::Json;

pub(super) const STATEMENT_TYPE: &str = "capsule_statement_type";
pub(super) const ACTION_TYPE: &str = "capsule_action_type";
pub(super) const DECISION_ID: &str = "capsule_decision_id";

/// The `capsule_*` set; the profile closes it.
const CLOSED_SET: [&str; 3] = [STATEMENT_TYPE, ACTION_TYPE, DECISION_ID];

/// The codes of a header that does not belong to its payload. All are errors.
pub const BINDING: [&str; 7] = [
    "action_type_mismatch",
    "claim_not_text",
    "decision_id_mismatch",
    "issuer_not_developer",
    "statement_type_mismatch",
    "statement_type_missing",
    "subject_mismatch",
];

/// What every subject of the profile starts with.
pub const SUBJECT_PREFIX: &str = "urn:agent-action-capsule:";

/// The subject of an action. Neither part is escaped, so two pairs may share
/// a subject: compare it, never split it.
pub fn subject(operator: &str, action_id: &str) -> String {
    format!("{SUBJECT_PREFIX}{operator}:{action_id}")
}

/// The decision a statement belongs to, as its header says.
pub(super) fn decision_id(header: &Header) -> Option<&str> {
    header.claims.named(DECISION_ID)
}

fn error(code: &'static str, at: &str, detail: String) -> Finding {
    Finding::new(Severity::Error, code, at, detail)
}

/// The claims by themselves: `expected` is the statement type that goes with
/// the content type.
pub(super) fn header(header: &Header, expected: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    match header.claims.named(STATEMENT_TYPE) {
        Some(found) if found == expected => {}
        Some(found) => {
            let detail = format!("{found:?}, where the content type calls for {expected:?} (3.1)");
            findings.push(error("statement_type_mismatch", STATEMENT_TYPE, detail));
        }
        None => {
            let detail = format!("the claim is required; {expected:?} is meant (3.1)");
            findings.push(error("statement_type_missing", STATEMENT_TYPE, detail));
        }
    }
    for (name, text) in header.claims.named.iter().filter(|(n, _)| n.starts_with("capsule_")) {
        if !CLOSED_SET.contains(&name.as_str()) {
            let detail = "the set of capsule_ claims is closed (3.1)".to_owned();
            findings.push(Finding::new(Severity::Info, "unknown_capsule_claim", name, detail));
        } else if text.is_none() && name != STATEMENT_TYPE {
            findings.push(error("claim_not_text", name, "the claim is not text".to_owned()));
        }
    }
    findings
}

/// The claims against the payload.
pub(super) fn binding(header: &Header, payload: &Payload<'_>) -> Vec<Finding> {
    let field = |name| payload.get(name).and_then(Json::text);
    let claims = &header.claims;
    let mut findings = Vec::new();
    if let (Some(issuer), Some(developer)) = (&claims.issuer, field("developer"))
        && issuer != developer
    {
        let detail = format!("{issuer:?} signed what {developer:?} is said to have done (3.1)");
        findings.push(error("issuer_not_developer", "iss", detail));
    }
    if let (Some(found), Some(operator), Some(action)) =
        (&claims.subject, field("operator"), field("action_id"))
    {
        let expected = subject(operator, action);
        if *found != expected {
            let detail = format!("{found:?}, but the payload is about {expected:?} (3.1)");
            findings.push(error("subject_mismatch", "sub", detail));
        }
    }
    if let (Some(claimed), Some(recorded)) = (claims.named(ACTION_TYPE), field("action_type"))
        && claimed != recorded
    {
        let detail = format!("{claimed:?}, but the payload says {recorded:?} (3.1)");
        findings.push(error("action_type_mismatch", ACTION_TYPE, detail));
    }
    findings.extend(decision(header, payload));
    findings
}

/// The payload has no place of its own for the decision id. Where one is
/// given it must agree; otherwise the action id is what producers use, but
/// several actions may belong to one decision.
fn decision(header: &Header, payload: &Payload<'_>) -> Option<Finding> {
    let claimed = decision_id(header)?;
    if let Some(recorded) = payload.decision_id() {
        let detail = format!("{claimed:?}, but the payload says {recorded:?} (3.1)");
        return (claimed != recorded).then(|| error("decision_id_mismatch", DECISION_ID, detail));
    }
    let action = payload.get("action_id").and_then(Json::text)?;
    let detail = format!("{claimed:?} is not the action id {action:?}");
    (claimed != action)
        .then(|| Finding::new(Severity::Info, "decision_id_not_action_id", DECISION_ID, detail))
}
