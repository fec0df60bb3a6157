//! Our own observations: every code, and that none of them changes `ok`.

use super::*;

const REASON: &str = "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"";

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
        &[("/effect", "null"), ("/assurance/effect_mode", "\"dispatched_unconfirmed\"")],
        "effect_mode_overclaim",
        "/assurance/effect_mode",
    ),
    (
        &[
            ("/effect", r#"{"status":"planned"}"#),
            ("/assurance/effect_mode", "\"dispatched_unconfirmed\""),
        ],
        "effect_mode_overclaim",
        "/assurance/effect_mode",
    ),
    (
        &[("/assurance/effect_mode", "\"not_applicable\"")],
        "effect_mode_underclaim",
        "/assurance/effect_mode",
    ),
    (
        &[("/assurance/effect_mode", "\"dispatched_unconfirmed\"")],
        "effect_mode_underclaim",
        "/assurance/effect_mode",
    ),
    (
        &[("/constraints/0/evidence", r#"{"margin_bp":"240"}"#)],
        "constraint_evidence_inline",
        "/constraints/0/evidence",
    ),
    (
        &[("/constraints/0/evidence", "\"240\"")],
        "constraint_evidence_inline",
        "/constraints/0/evidence",
    ),
    (
        &[("/constraints/0/check_type", "\"Margin Check\"")],
        "constraint_label_malformed",
        "/constraints/0/check_type",
    ),
    (
        &[("/constraints/0/method", "\"a-b\"")],
        "constraint_label_malformed",
        "/constraints/0/method",
    ),
    (&[("/constraints/0/id", "\"A\"")], "constraint_label_malformed", "/constraints/0/id"),
    (
        &[("/constraints/0/check_type", "\"margin\"")],
        "constraint_label_bare",
        "/constraints/0/check_type",
    ),
    (
        &[("/constraints/0/method", "\"table_lookup\"")],
        "constraint_label_bare",
        "/constraints/0/method",
    ),
    (
        &[("/compliance/framework_tags", r#"["org.example.iso","soc2"]"#)],
        "framework_tag_bare",
        "/compliance/framework_tags/1",
    ),
    (
        &[("/compliance/framework_tags", "\"soc2\"")],
        "framework_tags_malformed",
        "/compliance/framework_tags",
    ),
    (
        &[("/assurance/sources", r#"[{"kind":"org.example.sensor"},{"kind":"sensor"}]"#)],
        "source_kind_unknown",
        "/assurance/sources/1/kind",
    ),
    (&[("/assurance/sources", "1")], "sources_malformed", "/assurance/sources"),
    (&[("/assurance/sources", "[1]")], "sources_malformed", "/assurance/sources/0"),
    (
        &[
            ("/disposition/decision", "\"reject\""),
            ("/disposition/verdict_class", "null"),
            ("/effect", "null"),
            ("/assurance/effect_mode", "\"not_applicable\""),
        ],
        "verdict_class_missing",
        "/disposition/verdict_class",
    ),
    (&[("/disposition/reason_digest", REASON)], "reason_on_executed", "/disposition/reason_digest"),
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
        let found = listed(&stricter);
        assert!(found.iter().any(|(_, c, _, a)| c == code && a == at), "{changes:?}: {found:?}");
        assert!(stricter.iter().all(|f| !f.gating && f.check.is_none()), "{changes:?}");
        assert_eq!(record.class1().ok, Some(true), "{changes:?}: {:?}", record.class1());
    }
}

/// Claimed against shown: more is an error, less a warning. `confirmed` is
/// the reference's own check.
#[test]
fn effect_modes_claimed_against_shown() {
    const NONE: &str = "null";
    const SENT: &str = r#"{"status":"dispatched","effect_attestation":"runtime_claimed"}"#;
    let cases = [
        (NONE, "not_applicable", None),
        (NONE, "dispatched_unconfirmed", Some(("effect_mode_overclaim", "error"))),
        (SENT, "not_applicable", Some(("effect_mode_underclaim", "warning"))),
        (SENT, "dispatched_unconfirmed", None),
        ("", "not_applicable", Some(("effect_mode_underclaim", "warning"))),
        ("", "dispatched_unconfirmed", Some(("effect_mode_underclaim", "warning"))),
        ("", "confirmed", None),
        ("", "x", None),
    ];
    for (effect, claimed, expected) in cases {
        let claimed = format!("\"{claimed}\"");
        let mut changes = vec![("/assurance/effect_mode", claimed.as_str())];
        changes.extend((!effect.is_empty()).then_some(("/effect", effect)));
        let (record, stricter) = CapsuleRecord::of(changed(&changes));
        let found = listed(&stricter);
        let found: Vec<_> =
            found.iter().filter(|(_, code, ..)| code.starts_with("effect_mode_")).collect();
        let found = found.first().map(|(_, code, severity, _)| (*code, *severity));
        assert_eq!(found, expected, "{effect} {claimed}");
        assert_eq!(record.class1().ok, Some(true), "the reference says nothing");
    }
    for effect in [NONE, SENT] {
        let changes = [("/assurance/effect_mode", "\"confirmed\""), ("/effect", effect)];
        let (record, stricter) = CapsuleRecord::of(changed(&changes));
        assert_eq!(record.class1().ok, Some(false), "check 7");
        assert!(!listed(&stricter).iter().any(|(_, code, ..)| code.starts_with("effect_mode_")));
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
    assert_eq!(listed(&stricter), [expected]);
    assert_eq!(record.class1().ok, Some(true));
    assert_eq!(record.summary().parent.map(|p| p.record_id), record.capsule_id());
}
