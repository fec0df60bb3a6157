//! What a statement's Capsule shows, once it is known who signed it and
//! whether it was logged.

use std::collections::BTreeMap;

use super::report::{Check, Outcome, Report};
use crate::envelope::SignedStatement;
use crate::profile::capsule::{
    AttestationMode, BINDING, CapsuleRecord, Class1, Class2, Evidence, Format, Known, Manifest,
    class2,
};
use crate::profile::{Finding, Record, Severity, read_payload};

/// A Capsule, judged with the statement around it.
#[derive(Clone, Debug, PartialEq)]
pub struct CapsuleReport {
    /// The Capsule as it was read.
    pub record: Box<CapsuleRecord>,
    /// Class 1 with what was verified: attestation is `anchored` only after
    /// the receipt was, ledger only after those of the whole chain were.
    pub class1: Class1,
    /// How the header claims and the payload disagree, and whatever else we
    /// noticed. Not part of `ok`.
    pub noticed: Vec<Finding>,
    /// Class 2, if a manifest was given.
    pub class2: Option<Class2>,
}

/// Adds what the payload says to the report about its statement. `chain` are
/// the statements beside it that were verified to be in a log before it.
pub(super) fn add(
    report: &mut Report,
    statement: &SignedStatement,
    detached: Option<&[u8]>,
    chain: &[&SignedStatement],
) {
    let Some(payload) = statement.payload().or(detached) else { return };
    let read = read_payload(statement.header(), payload);
    let Some((record, findings)) = read.into_record::<CapsuleRecord>() else { return };
    let attestation = attestation(report);
    let chain_is_logged = attestation == AttestationMode::Anchored && leads_back(&record, chain);
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

/// Anchored is what was shown, never what was claimed: a receipt verified
/// under a trusted key, over a statement whose signature is not wrong.
fn attestation(report: &Report) -> AttestationMode {
    if report.has("logged", Outcome::Yes) && !report.has("signed", Outcome::No) {
        AttestationMode::Anchored
    } else {
        AttestationMode::SelfAttested
    }
}

/// Whether the chain leads from a Capsule, parent by parent, to one that has
/// none. Each id is recomputed, so a link holds or is not there.
fn leads_back(record: &CapsuleRecord, chain: &[&SignedStatement]) -> bool {
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
        // Taken out, so that a cycle ends.
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

/// Whether the header speaks of the action in the payload. It can be compared
/// where the payload says who did what; a format nobody here reads, or one that
/// conceals those members, says nothing.
fn bound(record: &CapsuleRecord, noticed: &[Finding]) -> Check {
    if let Some(f) = noticed.iter().find(|f| BINDING.contains(&f.code)) {
        return Check::no("bound", f.code, format!("{}: {}", f.at, f.detail));
    }
    let said = record.summary();
    if said.developer.is_some() && said.operator.is_some() && said.action_id.is_some() {
        return Check::yes("bound", "the header claims say what the payload says".to_owned());
    }
    let detail = "the payload does not show developer, operator and action id".to_owned();
    Check::cannot_tell("bound", "binding-not-shown", detail)
}

impl Report {
    /// The same with Class 2: constraint records against a manifest and the
    /// evidence they bind. Nothing else changes.
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
                let detail = format!("{} constraints as manifest {name:?} says", result.checked);
                Check::yes("evidence", detail)
            }
        };
        self.checks.push(check);
        capsule.class2 = Some(result);
        self
    }
}
