//! The Capsule of a statement, evaluated after its signature and receipts.

use std::collections::BTreeMap;

use super::report::{Check, Outcome, Report};
use crate::envelope::SignedStatement;
use crate::profile::capsule::{
    AttestationMode, BINDING, CapsuleRecord, Class1, Class2, Evidence, Format, Known, Manifest,
    class2,
};
use crate::profile::{Finding, Record, Severity, read_payload};

/// A Capsule, evaluated together with its statement.
#[derive(Clone, Debug, PartialEq)]
pub struct CapsuleReport {
    /// The parsed Capsule.
    pub record: Box<CapsuleRecord>,
    /// Class 1 with what was verified here: attestation is `anchored` only if
    /// the receipt verified, ledger only if those of the whole chain did.
    pub class1: Class1,
    /// Disagreements of header claims and payload, and other findings that do
    /// not affect `ok`.
    pub noticed: Vec<Finding>,
    /// Class 2, if a manifest was given.
    pub class2: Option<Class2>,
}

/// Adds a Capsule to the report about its statement. `chain` are the
/// statements that were verified to be in the log before it.
pub(super) fn add(
    report: &mut Report,
    record: Box<CapsuleRecord>,
    findings: Vec<Finding>,
    chain: &[&SignedStatement],
) {
    let attestation = attestation(report);
    let chain_is_logged = attestation == AttestationMode::Anchored && is_complete(&record, chain);
    let known = Known { parents: None, attestation, chain_is_logged };
    let class1 = record.class1_knowing(&known);
    let alone = &record.class1().findings;
    let noticed: Vec<Finding> =
        findings.into_iter().filter(|finding| !alone.contains(finding)).collect();
    report.checks.push(capsule(&record, &class1));
    report.checks.push(bound(&record, &noticed));
    let overclaims = class1.findings.iter().filter(|f| f.code == "assurance_overclaim");
    report.warnings.extend(overclaims.map(|f| format!("{}: {}", f.at, f.detail)));
    let others = class1.findings.iter().chain(&noticed);
    let warned = others.filter(|f| f.severity == Severity::Warning);
    report.warnings.extend(warned.map(|f| format!("{} at {}: {}", f.code, f.at, f.detail)));
    report.capsule = Some(CapsuleReport { record, class1, noticed, class2: None });
}

/// Anchored means that a receipt verified under a trusted key and the signature
/// is not wrong, whatever the payload claims.
fn attestation(report: &Report) -> AttestationMode {
    if report.has("logged", Outcome::Yes) && !report.has("signed", Outcome::No) {
        AttestationMode::Anchored
    } else {
        AttestationMode::SelfAttested
    }
}

/// Whether the chain leads from a Capsule, parent by parent, to one without a
/// parent. Ids are recomputed from the payloads, not taken from them.
fn is_complete(record: &CapsuleRecord, chain: &[&SignedStatement]) -> bool {
    let of = |statement: &&SignedStatement| {
        let read = read_payload(statement.header(), statement.payload()?);
        let is_sound = read.get::<CapsuleRecord>().is_some() && read.summary.ok == Some(true);
        is_sound.then_some(())?;
        let summary = read.summary;
        Some((summary.record_id?, summary.parent.map(|parent| parent.record_id)))
    };
    let mut parents: BTreeMap<String, Option<String>> = chain.iter().filter_map(of).collect();
    let mut next = record.summary().parent.map(|parent| parent.record_id);
    if next.is_none() {
        return false;
    }
    while let Some(id) = next {
        // Removed, so that a cycle ends.
        match parents.remove(&id) {
            None => return false,
            Some(parent) => next = parent,
        }
    }
    true
}

fn capsule(record: &CapsuleRecord, class1: &Class1) -> Check {
    let first = class1.findings.iter().find(|f| f.gating).or(class1.findings.first());
    let because = first.map_or(String::new(), |f| f.detail.clone());
    let code = first.map_or("ok", |f| f.code);
    let unread = |code| Check {
        name: "capsule",
        outcome: Outcome::NotChecked,
        code,
        detail: because.clone(),
        counts: true,
    };
    match class1.ok {
        None => unread("concealed_not_evaluated"),
        Some(_) if matches!(record.format(), Format::Unsupported(_)) => {
            unread("unsupported_format_version")
        }
        Some(false) => Check::no("capsule", code, because),
        Some(true) => Check::yes("capsule", describe(record, class1)),
    }
}

/// `executed, by policy, effect confirmed (gate_executed); attestation anchored, ledger chained`
fn describe(record: &CapsuleRecord, class1: &Class1) -> String {
    let text = |block, member| record.text(block, member);
    let verdict = text("disposition", "verdict_class").or(text("disposition", "decision"));
    let human = record.payload().pointer("/disposition/human_disposed").and_then(|v| v.bool());
    let who = match (human, text("disposition", "approver")) {
        (Some(true), _) => ", a human acted",
        (_, Some("human")) => ", for a human to decide",
        (_, Some(_)) => ", by policy",
        (_, None) => "",
    };
    let modes = class1.derived.map_or(String::new(), |derived| {
        let vouches = text("effect", "effect_attestation");
        let vouches = vouches.map_or(String::new(), |grade| format!(" ({grade})"));
        format!(
            ", effect {}{vouches}; attestation {}, ledger {}",
            derived.effect.name(),
            derived.attestation.name(),
            derived.ledger.name()
        )
    });
    format!("{}{who}{modes}", verdict.unwrap_or("for information"))
}

/// Whether header and payload describe the same action. They can be compared
/// only if the payload shows developer, operator and action id, which an
/// unsupported or concealing format does not.
fn bound(record: &CapsuleRecord, noticed: &[Finding]) -> Check {
    if let Some(f) = noticed.iter().find(|f| BINDING.contains(&f.code)) {
        return Check::no("bound", f.code, format!("{}: {}", f.at, f.detail));
    }
    let summary = record.summary();
    if summary.developer.is_some() && summary.operator.is_some() && summary.action_id.is_some() {
        return Check::yes("bound", "the header claims match the payload".to_owned());
    }
    let detail = "the payload does not show developer, operator and action id".to_owned();
    Check::cannot_tell("bound", "binding-not-shown", detail)
}

impl Report {
    /// The same report with Class 2: constraint records checked against a
    /// manifest and the evidence they bind.
    pub fn with_manifest(mut self, manifest: &Manifest, evidence: &[Evidence]) -> Self {
        let Some(capsule) = &mut self.capsule else { return self };
        let result = class2(&capsule.record, manifest, evidence);
        let worst = result.findings.iter().max_by_key(|f| f.severity);
        let check = match worst {
            Some(f) if f.severity == Severity::Error => {
                Check::no("evidence", f.code, format!("{}: {}", f.at, f.detail))
            }
            Some(f) => Check::cannot_tell("evidence", f.code, format!("{}: {}", f.at, f.detail)),
            None if result.checked == 0 => {
                Check::not_checked("evidence", "no constraint of the Capsule binds evidence")
            }
            None => {
                let name = manifest.name();
                let detail = format!("{} constraints match manifest {name:?}", result.checked);
                Check::yes("evidence", detail)
            }
        };
        self.checks.push(check);
        capsule.class2 = Some(result);
        self
    }
}
