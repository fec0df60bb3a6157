//! One good Capsule, and everything that can be wrong with it.

mod bindings;
mod hostile;
mod producing;
mod stricter;

use super::*;
use crate::profile::{Record, Summary};
use crate::wire::time::UnixSeconds;

/// A Capsule with every block of the profile.
pub(super) const GOOD: &str = r#"{
  "spec_version": "draft-mih-scitt-agent-action-capsule-01", "format_version": "2",
  "action_id": "order-7", "action_type": "decide", "operator": "acme", "developer": "agent@v1",
  "timestamp": "2026-06-13T00:00:00Z",
  "disposition": {"decision": "accept", "approver": "human", "human_disposed": true,
    "authority": "sandbox-4", "verdict_class": "executed"},
  "effect": {"status": "confirmed", "type": "write_order", "external_ref": "erp:7",
    "irreversibility_class": "two_way", "effect_attestation": "gate_executed",
    "request_digest": "1111111111111111111111111111111111111111111111111111111111111111",
    "response_digest": "2222222222222222222222222222222222222222222222222222222222222222"},
  "constraints": [{"id": "com.example.margin_floor", "result": "pass", "severity": "high",
    "blocking": true, "check_type": "com.example.threshold", "method": "com.example.rule",
    "evidence_digest": "3333333333333333333333333333333333333333333333333333333333333333"}],
  "model_attestation": {"model_id": "m", "provider": "p"},
  "assurance": {"attestation_mode": "self_attested", "effect_mode": "confirmed",
    "ledger_mode": "standalone"}
}"#;

pub(super) fn json(text: &str) -> Json {
    Json::read(text.as_bytes()).unwrap()
}

/// The good one with some members changed; null removes. Sealed afterwards.
pub(super) fn changed(changes: &[(&str, &str)]) -> Json {
    let mut capsule = json(GOOD);
    for (pointer, value) in changes {
        set(&mut capsule, pointer, json(value));
    }
    sealed(capsule)
}

/// Puts a value at a pointer; the last step may be new.
pub(super) fn set(json: &mut Json, pointer: &str, value: Json) {
    let (step, rest) =
        pointer[1..].split_once('/').map_or((&pointer[1..], None), |(a, b)| (a, Some(b)));
    let inner = match json {
        Json::Array(items) => &mut items[step.parse::<usize>().unwrap()],
        Json::Object(members) => {
            let at = members.iter().position(|(name, _)| name == step).unwrap_or_else(|| {
                members.push((step.to_owned(), Json::object::<&str>([])));
                members.len() - 1
            });
            &mut members[at].1
        }
        other => panic!("{pointer} in a {}", other.kind()),
    };
    match rest {
        None => *inner = value,
        Some(rest) => set(inner, &format!("/{rest}"), value),
    }
}

pub(super) fn sealed(mut capsule: Json) -> Json {
    let id = recompute(&capsule).map_or_else(|| "0".repeat(64), |id| id.hex());
    set(&mut capsule, "/capsule_id", id.into());
    capsule
}

/// Check number, code, severity and place of each finding.
pub(super) fn listed(findings: &[Finding]) -> Vec<(Option<u8>, &str, &str, &str)> {
    findings.iter().map(|f| (f.check, f.code, f.severity.name(), f.at.as_str())).collect()
}

#[test]
fn a_good_capsule_has_nothing_to_say() {
    let (record, stricter) = CapsuleRecord::of(changed(&[]));
    assert_eq!(record.class1().findings, []);
    assert_eq!(stricter, []);
    assert_eq!(record.class1().ok, Some(true));
    let summary = record.summary();
    assert_eq!(summary.record_id, record.capsule_id());
    assert_eq!(summary.effect_mode.as_deref(), Some("confirmed"));
    assert_eq!(summary.human_disposed, Some(true));
    assert_eq!(summary.claimed_at, UnixSeconds::from_rfc3339("2026-06-13T00:00:00Z"));
    assert_eq!((summary.ok, summary.is_concealed), (Some(true), false));
}

type Changes = &'static [(&'static str, &'static str)];

const FOURS: &str = "\"4444444444444444444444444444444444444444444444444444444444444444\"";

/// What is changed, the check that fails, its code and its place.
const CLASS_1: &[(Changes, u8, &str, &str)] = &[
    (&[("/operator", "null")], 1, "missing_required_field", "/operator"),
    (&[("/operator", "5")], 1, "field_not_string", "/operator"),
    (&[("/assurance/effect_mode", "[1]")], 1, "field_not_string", "/assurance/effect_mode"),
    (&[("/effect/type", "{\"a\":1}")], 1, "field_not_string", "/effect/type"),
    (&[("/action_type", "\"x\"")], 1, "action_type_invalid", "/action_type"),
    (&[("/format_version", "\"4\"")], 1, "unsupported_format_version", "/format_version"),
    (&[("/assurance", "1")], 1, "block_not_object", "/assurance"),
    (&[("/domain", "1")], 1, "domain_not_string", "/domain"),
    (&[("/provenance", "1")], 1, "provenance_not_string", "/provenance"),
    (&[("/constraints", "1")], 1, "constraints_not_array", "/constraints"),
    (&[("/effect/amount", "1.5")], 1, "float_in_digest_field", "/effect/amount"),
    (&[("/x", "[1e3]")], 1, "float_in_digest_field", "/x/0"),
    (&[("/x", "-0")], 1, "float_in_digest_field", "/x"),
    (&[("/x", "9007199254740992")], 1, "unsafe_integer_in_digest_field", "/x"),
    (
        &[("/disposition/approver", "\"counterparty\"")],
        1,
        "approver_invalid",
        "/disposition/approver",
    ),
    (&[("/disposition/decision", "null")], 1, "missing_required_field", "/disposition/decision"),
    (&[("/disposition/human_disposed", "1")], 1, "field_not_bool", "/disposition/human_disposed"),
    (
        &[("/effect/response_digest", "null")],
        3,
        "confirmed_without_response",
        "/effect/response_digest",
    ),
    (
        &[("/disposition/verdict_class", "\"blocked\"")],
        4,
        "verdict_effect_conflict",
        "/disposition/verdict_class",
    ),
    (
        &[("/effect/effect_attestation", "null")],
        5,
        "effect_attestation_missing",
        "/effect/effect_attestation",
    ),
    (
        &[("/effect/status", "\"planned\"")],
        5,
        "effect_attestation_present",
        "/effect/effect_attestation",
    ),
    (
        &[("/chain/relation", "\"supersedes\"")],
        6,
        "chain_parent_malformed",
        "/chain/parent_capsule_id",
    ),
    (&[("/chain/parent_capsule_id", FOURS)], 6, "missing_required_field", "/chain/relation"),
    (&[("/effect/status", "\"failed\"")], 7, "assurance_overclaim", "/assurance/effect_mode"),
];

#[test]
fn every_class_1_code() {
    for (changes, check, code, at) in CLASS_1 {
        let (record, _) = CapsuleRecord::of(changed(changes));
        let found = listed(&record.class1().findings);
        assert!(found.contains(&(Some(*check), code, "error", at)), "{changes:?}: {found:?}");
        assert_eq!(record.class1().ok, Some(false), "{changes:?}");
    }
    let mut renamed = changed(&[]);
    set(&mut renamed, "/capsule_id", Json::from("A".repeat(64)));
    let (record, _) = CapsuleRecord::of(renamed);
    let codes: Vec<&str> = record.class1().findings.iter().map(|f| f.code).collect();
    assert_eq!(codes, ["capsule_id_malformed", "capsule_id_mismatch"]);
    let (record, _) = CapsuleRecord::of(Json::from(1));
    assert_eq!(listed(&record.class1().findings), [(Some(1), "not_an_object", "error", "")]);
}

#[test]
fn notes_do_not_gate() {
    let cases: &[(Changes, Option<u8>, &str, &str)] = &[
        (&[("/disposition/approver", "\"policy\"")], None, "dishonest_human_disposed", "warning"),
        (
            &[("/assurance/attestation_mode", "\"anchored\"")],
            Some(7),
            "assurance_overclaim",
            "info",
        ),
        (&[("/assurance/ledger_mode", "\"anchored\"")], Some(7), "assurance_overclaim", "info"),
        (&[("/effect/type", "\"x\"")], Some(8), "unknown_registry_value", "info"),
        (
            &[("/effect/effect_attestation", "\"x\"")],
            Some(8),
            "effect_attestation_graded_floor",
            "info",
        ),
        (
            &[(
                "/chain",
                r#"{"relation":"supersedes","parent_capsule_id":"4444444444444444444444444444444444444444444444444444444444444444"}"#,
            )],
            Some(6),
            "chain_check_store_level",
            "info",
        ),
    ];
    for (changes, check, code, severity) in cases {
        let (record, _) = CapsuleRecord::of(changed(changes));
        let found = listed(&record.class1().findings);
        let hit = found.iter().any(|(c, k, s, _)| (c, k, s) == (check, code, severity));
        assert!(hit, "{changes:?}: {found:?}");
        assert_eq!(record.class1().ok, Some(true), "{changes:?}");
    }
}

#[test]
fn absent_null_and_empty_are_judged_alike() {
    let blocked = [
        ("/effect", "null"),
        ("/constraints", "null"),
        ("/assurance/effect_mode", "\"not_applicable\""),
        ("/disposition/verdict_class", "\"blocked\""),
        ("/disposition/decision", "\"reject\""),
    ];
    let mut results = Vec::new();
    for effect in ["null", "{}", "[]", r#"{"status":null}"#] {
        let mut changes = blocked.to_vec();
        changes[0].1 = effect;
        let (record, stricter) = CapsuleRecord::of(changed(&changes));
        assert_eq!(record.class1().ok, Some(true), "{effect}");
        assert_eq!(listed(&stricter), [(None, "non_normalised_payload", "info", "/effect")]);
        results.push(record.class1().clone());
    }
    results.dedup();
    assert_eq!(results.len(), 1);
}

#[test]
fn other_formats_and_concealed_parts_are_not_interpreted() {
    let (record, stricter) = CapsuleRecord::of(changed(&[("/format_version", "\"4\"")]));
    assert_eq!(record.format(), &Format::Unsupported("4".to_owned()));
    assert_eq!(record.class1().findings.len(), 1);
    assert_eq!(stricter, []);
    assert_eq!(record.summary(), Summary { ok: Some(false), ..Summary::default() });
    for (pointer, value) in [
        ("/_sd", "[\"x\"]"),
        ("/_sd_alg", "\"sha-256\""),
        ("/disposition/_sd", "[\"x\"]"),
        ("/constraints/0", r#"{"...":"x"}"#),
    ] {
        let (record, stricter) = CapsuleRecord::of(changed(&[(pointer, value)]));
        let codes: Vec<&str> = record.class1().findings.iter().map(|f| f.code).collect();
        assert_eq!(codes, ["concealed_not_evaluated"], "{pointer}");
        assert_eq!((record.class1().ok, record.is_concealed()), (None, true));
        assert_eq!(stricter, []);
        let summary = record.summary();
        assert_eq!((summary.ok, summary.is_concealed, summary.effect_mode), (None, true, None));
    }
}

#[test]
fn a_receipt_makes_the_claim_true() {
    let (record, _) =
        CapsuleRecord::of(changed(&[("/assurance/attestation_mode", "\"anchored\"")]));
    let anchored = Known { attestation: AttestationMode::Anchored, ..Known::NOTHING };
    let class1 = record.class1_knowing(&anchored);
    assert_eq!(class1.findings, []);
    assert_eq!(class1.derived.unwrap().attestation.name(), "anchored");
}

#[test]
fn a_ledger_is_judged_in_its_order() {
    let parent = changed(&[("/action_id", "\"parent\"")]);
    let id = CapsuleRecord::of(parent.clone()).0.capsule_id().unwrap();
    let chain = format!(r#"{{"relation":"supersedes","parent_capsule_id":"{id}"}}"#);
    let other = format!(r#"{{"relation":"follows","parent_capsule_id":"{id}"}}"#);
    let child = |name: &str, chain: &str| {
        changed(&[
            ("/action_id", name),
            ("/chain", chain),
            ("/assurance/ledger_mode", "\"chained\""),
        ])
    };
    let ledger = [
        child("\"early\"", &chain),
        parent,
        child("\"a\"", &chain),
        child("\"a\"", &other),
        child("\"b\"", &chain.replace(&id[..4], "0000")),
    ];
    let records: Vec<CapsuleRecord> =
        ledger.iter().map(|c| CapsuleRecord::of(c.clone()).0).collect();
    let results = class1_ledger(&records);
    let codes = |i: usize| results[i].findings.iter().map(|f| f.code).collect::<Vec<_>>();
    assert_eq!(codes(0), ["chain_parent_not_earlier"]);
    assert_eq!(codes(1), [""; 0]);
    assert_eq!(codes(2), ["concurrent_supersedes"]);
    assert_eq!(codes(3), ["unknown_registry_value", "capsule_id_equivocation"]);
    assert_eq!(codes(4), ["chain_parent_missing", "chain_parent_not_earlier"]);
    let ok: Vec<_> = results.iter().map(|r| r.ok).collect();
    assert_eq!(ok, [Some(true), Some(true), Some(true), Some(true), Some(false)]);
}
