//! The record of a statement. Capsules have checks of their own.

use super::capsule;
use super::report::{Check, Outcome, Report};
use crate::envelope::SignedStatement;
use crate::profile::capsule::{BINDING, CapsuleRecord};
use crate::profile::{Finding, Read, Role, Severity, Summary, read_payload};

/// A record, evaluated together with its statement.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordReport {
    /// Its profile.
    pub profile: &'static str,
    /// Its summary.
    pub summary: Summary,
    /// The findings of its profile.
    pub findings: Vec<Finding>,
    /// Whether a receipt of the statement verified.
    pub is_anchored: bool,
}

/// Adds the record in the payload to the report about its statement. `chain`
/// are the statements that were verified to be in the log before it.
pub(super) fn add(
    report: &mut Report,
    statement: &SignedStatement,
    detached: Option<&[u8]>,
    chain: &[&SignedStatement],
) {
    let Some(payload) = statement.payload().or(detached) else { return };
    let read = read_payload(statement.header(), payload);
    if read.get::<CapsuleRecord>().is_some() {
        let Some((record, findings)) = read.into_record() else { return };
        return capsule::add(report, record, findings, chain);
    }
    if read.kind.role != Role::Record {
        return;
    }
    let Read { kind, findings, summary, .. } = read;
    let profile = kind.name;
    let is_anchored = report.has("logged", Outcome::Yes) && !report.has("signed", Outcome::No);
    report.checks.push(check(profile, &summary, &findings, is_anchored));
    if summary.is_outcome {
        report.checks.push(bound(&findings));
    }
    let noted = findings.iter().filter(|f| f.severity == Severity::Warning);
    report.warnings.extend(noted.map(|f| format!("{} at {}: {}", f.code, f.at, f.detail)));
    report.record = Some(RecordReport { profile, summary, findings, is_anchored });
}

fn check(
    profile: &'static str,
    summary: &Summary,
    findings: &[Finding],
    is_anchored: bool,
) -> Check {
    let against = findings.iter().find(|f| f.severity == Severity::Error);
    match (summary.ok, against) {
        (Some(false), Some(finding)) => {
            let at = if finding.at.is_empty() { "" } else { " at " };
            Check::no("record", finding.code, format!("{}{at}{}", finding.detail, finding.at))
        }
        (Some(false), None) => {
            Check::no("record", "record-unsound", "the checks of its profile fail".into())
        }
        _ => Check::yes("record", describe(profile, summary, is_anchored)),
    }
}

/// Only the header of an outcome names its action.
fn bound(findings: &[Finding]) -> Check {
    let is_unbound = |f: &&Finding| BINDING.contains(&f.code) || f.code == "subject_not_action";
    match findings.iter().find(is_unbound) {
        None => Check::yes("bound", "the header claims are those of an outcome".to_owned()),
        Some(f) => Check::no("bound", f.code, format!("{}: {}", f.at, f.detail)),
    }
}

/// `pacr 0190…, do-digital; anchored`
fn describe(profile: &str, summary: &Summary, is_anchored: bool) -> String {
    let mut parts = vec![profile.to_owned()];
    parts.extend(summary.record_id.as_ref().map(|id| format!("record {id}")));
    parts.extend(
        summary.session.as_ref().map(|span| {
            format!("session {}, events {} to {}", span.session, span.first, span.last)
        }),
    );
    parts.extend(summary.verdict.clone());
    parts.extend(summary.intervention.as_deref().map(|kind| match kind {
        "counterfactual" => "COUNTERFACTUAL: it did not happen".to_owned(),
        kind => format!("intervention {kind}"),
    }));
    let mode = if is_anchored { "anchored" } else { "self-attested" };
    format!("{}; {mode}", parts.join(", "))
}
