//! Our own observations: every code, and that none of them changes `ok`.

use super::*;

/// What is changed, the code of what we notice, and its place.
const STRICTER: &[(Changes, &str, &str)] = &[
    (&[("/x", "{}")], "non_normalised_payload", "/x"),
    (&[("/x", r#"[{"y":null}]"#)], "non_normalised_payload", "/x/0/y"),
    (&[("/operator", "\"\"")], "field_empty", "/operator"),
    (&[("/timestamp", "\"yesterday\"")], "timestamp_not_utc", "/timestamp"),
    (&[("/timestamp", "\"2026-06-13T02:00:00+02:00\"")], "timestamp_not_utc", "/timestamp"),
    (&[("/timestamp", "\"2026-06-13 00:00:00Z\"")], "timestamp_not_utc", "/timestamp"),
    (&[("/assurance", "null")], "assurance_missing", "/assurance"),
    (&[("/disposition", "null")], "disposition_missing", "/disposition"),
    (&[("/assurance/ledger_mode", "\"x\"")], "assurance_mode_unknown", "/assurance/ledger_mode"),
    (
        &[("/disposition/verdict_class", "\"x\"")],
        "dispatch_consequence_unknown",
        "/disposition/verdict_class",
    ),
    (
        &[
            ("/disposition/verdict_class", "\"errored\""),
            ("/effect", "null"),
            ("/assurance", "null"),
        ],
        "errored_without_dispatch",
        "/disposition/verdict_class",
    ),
    (
        &[
            ("/disposition/verdict_class", "\"denied\""),
            ("/effect", "null"),
            ("/assurance", "null"),
        ],
        "verdict_decision_conflict",
        "/disposition/verdict_class",
    ),
    (
        &[("/effect/status", "null"), ("/assurance", "null")],
        "effect_status_missing",
        "/effect/status",
    ),
    (
        &[("/effect/status", "\"x\""), ("/assurance", "null")],
        "effect_status_unknown",
        "/effect/status",
    ),
    (
        &[("/effect/status", "\"dispatched\""), ("/assurance", "null")],
        "effect_digest_conflict",
        "/effect/response_digest",
    ),
    (
        &[("/effect", r#"{"status":"planned","request_digest":"x"}"#), ("/assurance", "null")],
        "effect_digest_conflict",
        "/effect/request_digest",
    ),
    (
        &[
            ("/effect/status", "\"dispatched\""),
            ("/assurance", "null"),
            ("/effect/request_digest", "null"),
        ],
        "request_digest_missing",
        "/effect/request_digest",
    ),
    (
        &[
            ("/effect/status", "\"reverted\""),
            ("/assurance", "null"),
            ("/effect/external_ref", "null"),
        ],
        "reverted_without_reference",
        "/effect/external_ref",
    ),
    (&[("/effect/request_digest", "\"x\"")], "digest_malformed", "/effect/request_digest"),
    (&[("/disposition/reason_digest", "\"x\"")], "digest_malformed", "/disposition/reason_digest"),
    (&[("/effect/external_ref", "1")], "member_not_text", "/effect/external_ref"),
    (&[("/effect/effect_attestation", "1")], "member_not_text", "/effect/effect_attestation"),
    (&[("/disposition/authority", r#"{"a":1}"#)], "member_not_text", "/disposition/authority"),
    (
        &[
            ("/disposition/verdict_class", "\"deferred\""),
            ("/effect", "null"),
            ("/assurance", "null"),
            ("/disposition/expiry_policy", r#"{"ttl_seconds":-1,"on_expiry":"expired"}"#),
        ],
        "expiry_policy_malformed",
        "/disposition/expiry_policy",
    ),
    (
        &[("/disposition/expiry_policy", r#"{"ttl_seconds":1,"on_expiry":"expired"}"#)],
        "expiry_policy_misplaced",
        "/disposition/expiry_policy",
    ),
    (&[("/constraints/0", "1")], "constraint_malformed", "/constraints/0"),
    (&[("/constraints/0/id", "null")], "constraint_malformed", "/constraints/0"),
    (&[("/constraints/0/result", "\"ok\"")], "constraint_malformed", "/constraints/0"),
    (&[("/constraints/0/blocking", "1")], "constraint_malformed", "/constraints/0"),
    (&[("/constraints/0/severity", "1")], "constraint_malformed", "/constraints/0"),
    (&[("/constraints/0/evidence_digest", "\"x\"")], "constraint_malformed", "/constraints/0"),
    (&[("/constraints/0/id", "\"margin\"")], "constraint_id_bare", "/constraints/0/id"),
    (&[("/constraints/0/result", "\"fail\"")], "blocking_constraint_ignored", "/constraints/0"),
    (
        &[("/model_attestation/provider", "null")],
        "model_attestation_incomplete",
        "/model_attestation",
    ),
];

#[test]
fn every_stricter_code_and_none_gates() {
    for (changes, code, at) in STRICTER {
        let (record, stricter) = CapsuleRecord::of(changed(changes));
        let found = told(&stricter);
        assert!(found.iter().any(|(_, c, _, a)| c == code && a == at), "{changes:?}: {found:?}");
        assert!(stricter.iter().all(|f| !f.gating && f.check.is_none()), "{changes:?}");
        assert_eq!(record.class1().ok, Some(true), "{changes:?}: {:?}", record.class1());
    }
}

#[test]
fn a_capsule_that_follows_itself() {
    let mut capsule = changed(&[]);
    let id = CapsuleRecord::of(capsule.clone()).0.capsule_id().unwrap();
    set(&mut capsule, "/chain/parent_capsule_id", id.into());
    set(&mut capsule, "/chain/relation", Json::from("supersedes"));
    let (record, stricter) = CapsuleRecord::of(capsule.clone());
    let expected = (None, "chain_self_reference", "error", "/chain/parent_capsule_id");
    assert_eq!(told(&stricter), [expected]);
    assert_eq!(record.class1().ok, Some(true));
    assert_eq!(record.summary().parent.map(|p| p.record_id), record.capsule_id());
}
