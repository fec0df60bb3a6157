//! Verdict, effect and assurance, beyond checks 3 to 5 and 7.

use super::{error, info, warning};
use crate::profile::capsule::assurance::{AttestationMode, EffectMode, LedgerMode};
use crate::profile::capsule::payload::{Payload, is_digest};
use crate::profile::capsule::vocabulary::{EFFECT_STATUSES, is_known_verdict};
use crate::profile::finding::Finding;
use crate::wire::json::Json;

pub(super) fn observe(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    modes(payload, findings);
    effect_mode(payload, findings);
    verdict(payload, findings);
    if payload.block("effect").is_some() {
        status(payload, findings);
        digests(payload, findings);
    }
}

/// The assurance modes are closed sets (5.3).
fn modes(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    if payload.block("assurance").is_none() {
        return;
    }
    let claim = |name| payload.text("assurance", name).unwrap_or_default();
    let known = [
        ("attestation_mode", claim("attestation_mode").parse::<AttestationMode>().is_ok()),
        ("effect_mode", claim("effect_mode").parse::<EffectMode>().is_ok()),
        ("ledger_mode", claim("ledger_mode").parse::<LedgerMode>().is_ok()),
    ];
    for (name, _) in known.into_iter().filter(|(_, is_known)| !is_known) {
        let at = format!("/assurance/{name}");
        findings.push(warning("assurance_mode_unknown", at, "not one of the modes (5.3)"));
    }
}

/// What is claimed of the effect against what the record shows of it. A claim
/// of `confirmed` is check 7; the reference is silent about the others.
fn effect_mode(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    let claimed = payload.text("assurance", "effect_mode").unwrap_or_default();
    let Ok(claimed) = claimed.parse::<EffectMode>() else { return };
    let derived = EffectMode::derive(payload.block("effect"));
    let at = "/assurance/effect_mode";
    let detail = || {
        let (claimed, derived) = (claimed.name(), derived.name());
        format!("{claimed:?} is claimed, but {derived} is what the record shows (5.3)")
    };
    if claimed > derived && claimed != EffectMode::Confirmed {
        findings.push(error("effect_mode_overclaim", at, detail()));
    } else if claimed < derived {
        findings.push(warning("effect_mode_underclaim", at, detail()));
    }
}

/// The verdict must be compatible with the effect.
fn verdict(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    let at = "/disposition/verdict_class";
    let Some(verdict) = payload.text("disposition", "verdict_class") else { return };
    let mode = EffectMode::derive(payload.block("effect"));
    if !is_known_verdict(verdict) {
        let detail = "whether this verdict may dispatch is not known (12)";
        findings.push(info("dispatch_consequence_unknown", at, detail));
    }
    if verdict == "errored" && mode == EffectMode::NotApplicable {
        let detail = "it ran and threw, yet nothing is said to have been dispatched (5.4.2)";
        findings.push(warning("errored_without_dispatch", at, detail));
    }
    let decision = payload.text("disposition", "decision");
    if matches!(verdict, "denied" | "blocked") && decision == Some("accept") {
        let detail = format!("{verdict:?}, yet the decision was to accept");
        findings.push(warning("verdict_decision_conflict", at, detail));
    }
}

fn status(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    let at = "/effect/status";
    let Some(status) = payload.text("effect", "status") else {
        let detail = "an effect says how far it came; read as dispatched (5.2)";
        findings.push(warning("effect_status_missing", at, detail));
        return;
    };
    if !EFFECT_STATUSES.contains(&status) {
        let detail = format!("{status:?} is not one of the five; read as dispatched (5.2)");
        findings.push(info("effect_status_unknown", at, detail));
    }
    let has = |name| payload.member("effect", name).is_some();
    let conflict = match status {
        "planned" if has("request_digest") => Some("request_digest"),
        "planned" | "dispatched" if has("response_digest") => Some("response_digest"),
        _ => None,
    };
    if let Some(member) = conflict {
        let detail = format!("must be absent while the effect is {status} (5.2)");
        findings.push(warning("effect_digest_conflict", format!("/effect/{member}"), detail));
    }
    if status == "dispatched" && !has("request_digest") {
        let detail = "should bind what was sent (5.2)";
        findings.push(info("request_digest_missing", "/effect/request_digest", detail));
    }
    if status == "reverted" && !has("external_ref") && payload.decision_id().is_none() {
        let detail = "nothing tells which effect was undone (5.2)";
        findings.push(warning("reverted_without_reference", "/effect/external_ref", detail));
    }
}

/// Types of digests and text members.
fn digests(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    for name in ["request_digest", "response_digest"] {
        let value = payload.member("effect", name);
        if value.is_some_and(|v| !v.text().is_some_and(is_digest)) {
            let at = format!("/effect/{name}");
            findings.push(warning("digest_malformed", at, "not 64 lowercase hex digits"));
        }
    }
    if payload.member("effect", "external_ref").is_some_and(|v| v.text().is_none()) {
        findings.push(warning("member_not_text", "/effect/external_ref", "not a string"));
    }
    if let Some(Json::Bool(_) | Json::Number(_)) = payload.member("effect", "effect_attestation") {
        findings.push(warning("member_not_text", "/effect/effect_attestation", "not a string"));
    }
}
