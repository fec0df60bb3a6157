//! Disposition details, constraint records and model attestation.

use super::{error, info, warning};
use crate::profile::capsule::assurance::EffectMode;
use crate::profile::capsule::payload::{Payload, is_digest};
use crate::profile::capsule::vocabulary::{ON_EXPIRY, RESULTS};
use crate::profile::finding::Finding;
use crate::wire::json::Json;

pub(super) fn observe(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    disposition(payload, findings);
    for (i, constraint) in payload.constraints().iter().enumerate() {
        shape(constraint, &format!("/constraints/{i}"), findings);
    }
    gate(payload, findings);
    model(payload, findings);
}

fn disposition(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    let reason = payload.member("disposition", "reason_digest");
    if reason.is_some_and(|v| !v.text().is_some_and(is_digest)) {
        let at = "/disposition/reason_digest";
        findings.push(warning("digest_malformed", at, "not 64 lowercase hex digits"));
    }
    if payload.member("disposition", "authority").is_some_and(|v| v.text().is_none()) {
        let detail = "at most a reference, never its structure (5.4)";
        findings.push(warning("member_not_text", "/disposition/authority", detail));
    }
    let verdict = payload.text("disposition", "verdict_class");
    if reason.is_some() && verdict == Some("executed") {
        let detail = "an action that was executed has no reason to give (5.4)";
        findings.push(warning("reason_on_executed", "/disposition/reason_digest", detail));
    }
    let decision = payload.text("disposition", "decision");
    let undone = decision.filter(|d| ["reject", "needs_input", "deferred"].contains(d));
    if let (Some(decision), None) = (undone, payload.member("disposition", "verdict_class")) {
        let detail = format!("{decision:?}, and nothing says why; recommended (5.4)");
        findings.push(info("verdict_class_missing", "/disposition/verdict_class", detail));
    }
    let Some(policy) = payload.member("disposition", "expiry_policy") else { return };
    let at = "/disposition/expiry_policy";
    let ttl = policy.get("ttl_seconds").and_then(Json::int).filter(|seconds| *seconds >= 0);
    let then = policy.get("on_expiry").and_then(Json::text);
    if ttl.is_none() || !then.is_some_and(|word| ON_EXPIRY.contains(&word)) {
        let detail = "whole seconds in ttl_seconds, expired or escalated in on_expiry (5.4)";
        findings.push(warning("expiry_policy_malformed", at, detail));
    }
    let is_deferral = ["decision", "verdict_class"]
        .iter()
        .any(|name| payload.text("disposition", name) == Some("deferred"));
    if !is_deferral {
        let detail = "only a deferral can run out (5.4)";
        findings.push(warning("expiry_policy_misplaced", at, detail));
    }
}

/// One constraint record (8.1).
fn shape(constraint: &Json, at: &str, findings: &mut Vec<Finding>) {
    let text = |name| constraint.get(name).and_then(Json::text);
    let wrong = if constraint.members().is_none() {
        Some("not an object")
    } else if text("id").is_none_or(str::is_empty) {
        Some("has no id")
    } else if !text("result").is_some_and(|word| RESULTS.contains(&word)) {
        Some("result is not pass, fail or n/a")
    } else if constraint.get("blocking").is_some_and(|v| v.bool().is_none()) {
        Some("blocking is not a boolean")
    } else if ["severity", "check_type", "method"]
        .iter()
        .any(|name| constraint.get(name).is_some_and(|v| v.text().is_none()))
    {
        Some("severity, check_type and method are strings")
    } else if constraint.get("evidence_digest").is_some_and(|v| !v.text().is_some_and(is_digest)) {
        Some("evidence_digest is not 64 lowercase hex digits")
    } else {
        None
    };
    if let Some(detail) = wrong {
        findings.push(warning("constraint_malformed", at, format!("{detail} (8.1)")));
    }
    if constraint.get("evidence").is_some() {
        let detail = "what a check evaluated is bound by evidence_digest and never shown (8.1)";
        findings.push(error("constraint_evidence_inline", format!("{at}/evidence"), detail));
    }
    if text("id").is_some_and(|id| !id.is_empty() && !id.contains(['.', ':', '/'])) {
        let detail = "a name without a namespace; no such name is seeded (9.1)";
        findings.push(info("constraint_id_bare", format!("{at}/id"), detail));
    }
}

/// A check that gated and failed, on an action that went ahead.
fn gate(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    if EffectMode::derive(payload.block("effect")) == EffectMode::NotApplicable {
        return;
    }
    let failed = |c: &Json| {
        let blocking = c.get("blocking").and_then(Json::bool) == Some(true);
        blocking && c.get("result").and_then(Json::text) == Some("fail")
    };
    for (i, _) in payload.constraints().iter().enumerate().filter(|(_, c)| failed(c)) {
        let detail = "a blocking check failed, and the action went ahead";
        let code = "blocking_constraint_ignored";
        findings.push(warning(code, format!("/constraints/{i}"), detail));
    }
}

fn model(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    let has = |name| payload.member("model_attestation", name).is_some();
    if has("model_id") != has("provider") {
        let detail = "model_id and provider go together";
        findings.push(warning("model_attestation_incomplete", "/model_attestation", detail));
    }
}
