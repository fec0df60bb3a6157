//! Class 1 verification (section 6): checks 1 to 8 in the draft's order.
//!
//! In: a normalised payload and what was verified around it. Out: one `ok`,
//! findings with the codes and severities of the reference, the modes as
//! rederived and the identity as recomputed. It never fails.

use std::collections::{BTreeMap, BTreeSet};

use super::assurance::{AttestationMode, Derived, EffectMode, LedgerMode};
use super::payload::{Payload, is_digest};
use super::vocabulary::{APPROVERS, NEVER_DISPATCH, REGISTRIES};
use super::{CapsuleRecord, Format, Known};
use crate::profile::finding::{Finding, Severity};
use crate::wire::jcs::{self, SuiteDigest};
use crate::wire::json::{Json, pointer_token};

/// What Class 1 verification has to say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Class1 {
    /// The one answer; none when parts are concealed.
    pub ok: Option<bool>,
    /// Why, in the order of the checks.
    pub findings: Vec<Finding>,
    /// The modes, rederived; none when there was no object to read.
    pub derived: Option<Derived>,
    /// The identity, recomputed; none when the payload has no canonical form.
    pub capsule_id: Option<SuiteDigest>,
}

const REQUIRED: [&str; 8] = [
    "spec_version",
    "format_version",
    "capsule_id",
    "action_id",
    "action_type",
    "operator",
    "developer",
    "timestamp",
];

/// `self_reported_reasoning`, `domain` and `provenance` came with the next
/// draft; the reference of this one types them already.
const BLOCKS: [&str; 5] =
    ["effect", "assurance", "disposition", "chain", "self_reported_reasoning"];
const LATER_TEXTS: [(&str, &str); 2] =
    [("domain", "domain_not_string"), ("provenance", "provenance_not_string")];

/// Members whose values are looked up in a set, beyond the registries.
const LOOKED_UP: [(&str, &str); 3] =
    [("assurance", "effect_mode"), ("assurance", "attestation_mode"), ("assurance", "ledger_mode")];

/// Runs every check.
pub(super) fn class1(payload: &Payload<'_>, format: &Format, known: &Known<'_>) -> Class1 {
    let derived = Derived::of(payload, known);
    let capsule_id = super::recompute(payload.0);
    let mut findings = Vec::new();
    if let Format::Unsupported(version) = format {
        let detail = format!("format_version {version:?}; only \"2\" is defined (5.1)");
        findings.push(error(1, "unsupported_format_version", "/format_version", detail));
    } else {
        structural(payload, &mut findings);
        disposition(payload, &mut findings);
        identity(payload, capsule_id.as_ref(), &mut findings);
        effect(payload, derived.effect, &mut findings);
        chain(payload, known, &mut findings);
        assurance(payload, &derived, &mut findings);
        vocabulary(payload, &mut findings);
    }
    let ok = !findings.iter().any(|f| f.gating);
    Class1 { ok: Some(ok), findings, derived: Some(derived), capsule_id }
}

fn error(check: u8, code: &'static str, at: &str, detail: impl Into<String>) -> Finding {
    Finding::new(Severity::Error, code, at, detail).of_check(check)
}

fn info(check: u8, code: &'static str, at: &str, detail: impl Into<String>) -> Finding {
    Finding::new(Severity::Info, code, at, detail).of_check(check)
}

/// Check 1.
fn structural(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    for name in REQUIRED {
        let at = pointer_token(name);
        match payload.get(name) {
            None => findings.push(error(1, "missing_required_field", &at, "required (5.1)")),
            Some(Json::Text(_)) => {}
            Some(other) => {
                let detail = format!("a {}, not a string (5.1)", other.kind());
                findings.push(error(1, "field_not_string", &at, detail));
            }
        }
    }
    if payload.get("capsule_id").is_some_and(|id| !id.text().is_some_and(is_digest)) {
        let detail = "not 64 lowercase hex digits (5.1)";
        findings.push(error(1, "capsule_id_malformed", "/capsule_id", detail));
    }
    let types = [Some("fyi"), Some("decide")];
    if payload.get("action_type").is_some_and(|t| !types.contains(&t.text())) {
        let detail = "neither \"fyi\" nor \"decide\" (5.1)";
        findings.push(error(1, "action_type_invalid", "/action_type", detail));
    }
    for name in BLOCKS {
        if payload.get(name).is_some_and(|block| block.members().is_none()) {
            findings.push(error(1, "block_not_object", &pointer_token(name), "not an object"));
        }
    }
    for (name, code) in LATER_TEXTS {
        if payload.get(name).is_some_and(|value| value.text().is_none()) {
            findings.push(error(1, code, &pointer_token(name), "not a string"));
        }
    }
    if payload.get("constraints").is_some_and(|list| list.array().is_none()) {
        findings.push(error(1, "constraints_not_array", "/constraints", "not an array (8.1)"));
    }
    numbers(payload.0, findings);
    looked_up(payload, findings);
}

/// Fractions first, then integers that are too large, as the reference does.
fn numbers(payload: &Json, findings: &mut Vec<Finding>) {
    let (floats, large): (Vec<jcs::Error>, Vec<jcs::Error>) = jcs::unsafe_numbers(payload)
        .into_iter()
        .partition(|e| matches!(e, jcs::Error::NotInteger { .. }));
    let finding = |code, e: &jcs::Error| error(1, code, e.pointer(), format!("{e} (5.1)"));
    findings.extend(floats.iter().map(|e| finding("float_in_digest_field", e)));
    findings.extend(large.iter().map(|e| finding("unsafe_integer_in_digest_field", e)));
}

/// A list or object where a word is looked up is no word at all; other
/// scalars are merely unregistered.
fn looked_up(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    let governed = REGISTRIES.iter().map(|r| (r.block, r.member));
    for (block, member) in governed.chain(LOOKED_UP) {
        if let Some(value @ (Json::Array(_) | Json::Object(_))) = payload.member(block, member) {
            let detail = format!("an {}, not a string", value.kind());
            findings.push(error(1, "field_not_string", &format!("/{block}/{member}"), detail));
        }
    }
}

/// The rest of check 1, and the honesty of the human flag, which the draft
/// keeps out of the numbered checks.
fn disposition(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    if payload.block("disposition").is_none() {
        return;
    }
    let approver = payload.member("disposition", "approver");
    match approver {
        None => {
            let at = "/disposition/approver";
            findings.push(error(1, "missing_required_field", at, "required (5.4)"));
        }
        Some(value) if !value.text().is_some_and(|name| APPROVERS.contains(&name)) => {
            let detail = "neither \"human\" nor \"policy\" (5.4)";
            findings.push(error(1, "approver_invalid", "/disposition/approver", detail));
        }
        Some(_) => {}
    }
    if payload.member("disposition", "decision").is_none() {
        let at = "/disposition/decision";
        findings.push(error(1, "missing_required_field", at, "required (5.4)"));
    }
    let at = "/disposition/human_disposed";
    match payload.member("disposition", "human_disposed").and_then(Json::bool) {
        None => findings.push(error(1, "field_not_bool", at, "required and boolean (5.4)")),
        Some(true) if approver.and_then(Json::text) != Some("human") => {
            let detail = "human_disposed is true, but the approver is not human (5.4)";
            findings.push(Finding::new(Severity::Warning, "dishonest_human_disposed", at, detail));
        }
        Some(_) => {}
    }
}

/// Check 2.
fn identity(payload: &Payload<'_>, id: Option<&SuiteDigest>, findings: &mut Vec<Finding>) {
    let (Some(carried), Some(id)) = (payload.get("capsule_id"), id) else { return };
    if carried.text() != Some(&id.hex()) {
        let detail = format!("the payload digests to {}", id.hex());
        findings.push(error(2, "capsule_id_mismatch", "/capsule_id", detail));
    }
}

/// Checks 3, 4 and 5.
fn effect(payload: &Payload<'_>, mode: EffectMode, findings: &mut Vec<Finding>) {
    let confirmed = payload.text("effect", "status") == Some("confirmed");
    if confirmed && payload.digest("effect", "response_digest").is_none() {
        let detail = "confirmed, but no response is bound by a digest (5.2)";
        findings.push(error(3, "confirmed_without_response", "/effect/response_digest", detail));
    }
    let verdict = payload.text("disposition", "verdict_class");
    let never = verdict.filter(|v| NEVER_DISPATCH.contains(v));
    if let Some(verdict) = never.filter(|_| mode != EffectMode::NotApplicable) {
        let detail = format!("{verdict:?} never dispatches, but the effect is {}", mode.name());
        let at = "/disposition/verdict_class";
        findings.push(error(4, "verdict_effect_conflict", at, format!("{detail} (5.4.2)")));
    }
    let attested = payload.member("effect", "effect_attestation").is_some();
    let at = "/effect/effect_attestation";
    match (mode, attested) {
        (EffectMode::NotApplicable, true) => {
            let detail = "nothing was executed, so nobody can vouch for it (5.2)";
            findings.push(error(5, "effect_attestation_present", at, detail));
        }
        (EffectMode::Confirmed | EffectMode::DispatchedUnconfirmed, false) => {
            let detail = format!("the effect is {}, but nobody vouches for it (5.2)", mode.name());
            findings.push(error(5, "effect_attestation_missing", at, detail));
        }
        _ => {}
    }
}

/// Check 6, as far as one record and a look into the store allow.
fn chain(payload: &Payload<'_>, known: &Known<'_>, findings: &mut Vec<Finding>) {
    if payload.block("chain").is_none() {
        return;
    }
    let at = "/chain/parent_capsule_id";
    if payload.digest("chain", "parent_capsule_id").is_none() {
        let detail = "not 64 lowercase hex digits (5.4.4)";
        findings.push(error(6, "chain_parent_malformed", at, detail));
    }
    if payload.member("chain", "relation").is_none() {
        findings.push(error(6, "missing_required_field", "/chain/relation", "required (5.4.4)"));
    }
    match (known.parents, payload.text("chain", "parent_capsule_id")) {
        (None, _) => {
            let detail = "only the store can tell whether the parent exists";
            findings.push(info(6, "chain_check_store_level", at, detail));
        }
        (Some(has), Some(parent)) if !has(parent) => {
            let detail = format!("{parent} is not in the store");
            findings.push(error(6, "chain_parent_missing", at, detail));
        }
        _ => {}
    }
}

/// Check 7. A claimed effect nobody confirmed is an error; a claimed receipt
/// or chain that was not seen is a note.
fn assurance(payload: &Payload<'_>, derived: &Derived, findings: &mut Vec<Finding>) {
    let claim = |name| payload.text("assurance", name);
    let over = |name: &str, derived: &str| {
        (format!("/assurance/{name}"), format!("claimed, but {derived} is what was derived (5.3)"))
    };
    let claimed = claim("effect_mode").and_then(|name| name.parse::<EffectMode>().ok());
    if claimed == Some(EffectMode::Confirmed) && derived.effect != EffectMode::Confirmed {
        let (at, detail) = over("effect_mode", derived.effect.name());
        findings.push(error(7, "assurance_overclaim", &at, detail));
    }
    let claimed = claim("attestation_mode").and_then(|name| name.parse::<AttestationMode>().ok());
    if claimed.is_some_and(|mode| mode > derived.attestation) {
        let (at, detail) = over("attestation_mode", derived.attestation.name());
        findings.push(info(7, "assurance_overclaim", &at, detail));
    }
    let claimed = claim("ledger_mode").and_then(|name| name.parse::<LedgerMode>().ok());
    if claimed.is_some_and(|mode| mode > derived.ledger) {
        let (at, detail) = over("ledger_mode", derived.ledger.name());
        findings.push(info(7, "assurance_overclaim", &at, detail));
    }
}

/// Check 8.
fn vocabulary(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    for registry in &REGISTRIES {
        let Some(value) = payload.member(registry.block, registry.member) else { continue };
        let seeded = value.text().is_some_and(|text| registry.values.contains(&text));
        if seeded || matches!(value, Json::Array(_) | Json::Object(_)) {
            continue;
        }
        let at = format!("/{}/{}", registry.block, registry.member);
        let detail = format!("not a seeded value of {}; never a refusal (12)", registry.name);
        findings.push(info(8, "unknown_registry_value", &at, detail));
        if registry.name == "effect_attestation" {
            let detail = "graded no stronger than runtime_claimed (5.2)";
            findings.push(info(8, "effect_attestation_graded_floor", &at, detail));
        }
    }
}

/// Class 1 over a whole ledger, in ledger order (5.4.4): every Capsule is
/// judged with the others as its store. Beyond the reference, a parent that
/// does not come earlier and one id in two chains are findings; these do not
/// change `ok`.
pub fn class1_ledger(ledger: &[CapsuleRecord]) -> Vec<Class1> {
    let carried = |record: &CapsuleRecord| {
        record.payload().get("capsule_id").and_then(Json::text).map(str::to_owned)
    };
    let ids: BTreeSet<String> = ledger.iter().filter_map(carried).collect();
    let known = Known { parents: Some(&|id| ids.contains(id)), ..Known::NOTHING };
    let mut seen = Seen::default();
    let judged = ledger.iter().map(|record| {
        let mut result = record.class1_knowing(&known);
        result.findings.extend(seen.chain(record));
        seen.ids.extend(carried(record));
        result
    });
    judged.collect()
}

/// The Capsules of a ledger so far.
#[derive(Default)]
struct Seen<'a> {
    ids: BTreeSet<String>,
    superseded: BTreeSet<&'a str>,
    chains: BTreeMap<String, Option<&'a Json>>,
}

impl<'a> Seen<'a> {
    fn chain(&mut self, record: &'a CapsuleRecord) -> Vec<Finding> {
        let mut findings = Vec::new();
        let at = "/chain/parent_capsule_id";
        let chain = record.payload().get("chain");
        if let Some(id) = record.capsule_id() {
            let first = *self.chains.entry(id).or_insert(chain);
            if first != chain {
                let detail = "an earlier Capsule has the same id and another chain";
                let code = "capsule_id_equivocation";
                findings.push(Finding::new(Severity::Error, code, "/chain", detail));
            }
        }
        let Some(parent) = record.text("chain", "parent_capsule_id") else { return findings };
        if record.text("chain", "relation") == Some("supersedes") && !self.superseded.insert(parent)
        {
            let detail = format!("{parent} was superseded earlier, which counts");
            findings.push(info(6, "concurrent_supersedes", at, detail));
        }
        if !self.ids.contains(parent) {
            let detail = "the parent does not come earlier in the ledger";
            let code = "chain_parent_not_earlier";
            findings.push(Finding::new(Severity::Error, code, at, detail));
        }
        findings
    }
}
