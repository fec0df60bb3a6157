//! Every code, every reason, every level; hostile bytes are beside.

mod execution;
mod hostile;

use proptest::prelude::*;

use super::shape::Moment;
use super::*;
use crate::envelope::Header;
use crate::envelope::{Claims, ContentType};
use crate::profile::Record;
use crate::profile::finding::Finding;
use crate::profile::read_payload;
use crate::wire::digest::Digest;
use crate::wire::jcs::Suite;
use crate::wire::json::Json;

pub(super) const ONE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
pub(super) const TWO: &str = "2222222222222222222222222222222222222222222222222222222222222222";

pub(super) fn json(text: &str) -> Json {
    Json::read(text.as_bytes()).unwrap()
}

/// Puts a value in place of, or beside, the members of an object; nothing
/// takes the member away.
pub(super) fn with(object: &Json, changes: &[(&str, &str)]) -> Json {
    let mut members = object.members().unwrap().to_vec();
    for (name, value) in changes {
        members.retain(|(known, _)| known != name);
        if !value.is_empty() {
            members.push(((*name).to_owned(), json(value)));
        }
    }
    Json::Object(members)
}

pub(super) fn certificate(changes: &[(&str, &str)]) -> Json {
    let plain = format!(
        r#"{{"pc_version":"1.0","pc_id":"p","issued_at":"2026-04-02T08:00:00Z","planner_id":"planner",
        "constraints_version_id":"c1","constraints_digest":"{ONE}","plan_digest":"{TWO}","nonce":"n",
        "effective_time":{{"not_before":"2026-04-01T00:00:00Z","not_after":"2026-04-30T23:59:59Z"}},
        "steps":[{{"action_type":"pay","parameters":{{"amount":5}},"required_capabilities":["w"]}}]}}"#
    );
    with(&json(&plain), changes)
}

fn listed(findings: &[Finding]) -> Vec<(&str, &str)> {
    findings.iter().map(|f| (f.code, f.at.as_str())).collect()
}

#[test]
fn every_finding_of_a_certificate() {
    let step = |members: &str| format!(r#"[{{{members}}}]"#);
    let good = r#""action_type":"pay","parameters":{},"required_capabilities":[]"#;
    let cases: Vec<(&str, String, &str, &str)> = vec![
        ("x", "1".into(), "pca_member_unknown", "/x"),
        ("signatures", "[]".into(), "pca_member_unknown", "/signatures"),
        ("nonce", "".into(), "pca_member_missing", ""),
        ("nonce", "7".into(), "pca_member_type", "/nonce"),
        ("pc_version", "\"1.1\"".into(), "pca_version_unsupported", "/pc_version"),
        ("plan_digest", format!("\"{}\"", "A".repeat(64)), "pca_digest_malformed", "/plan_digest"),
        ("merkle_root", "\"ab\"".into(), "pca_digest_malformed", "/merkle_root"),
        ("metadata", "[]".into(), "pca_member_type", "/metadata"),
        ("metadata", "{\"a\":{\"b/c\":1e16}}".into(), "pca_number_unsafe", "/metadata/a/b~1c"),
        ("metadata", "{\"a\":1.0}".into(), "pca_canonical_divergent", ""),
        ("issued_at", "\"yesterday\"".into(), "pca_time_malformed", "/issued_at"),
        ("effective_time", "1".into(), "pca_not_an_object", "/effective_time"),
        ("effective_time", "{}".into(), "pca_member_missing", "/effective_time"),
        (
            "effective_time",
            r#"{"not_before":"2026-01-02T00:00:00Z","not_after":"2026-01-01T00:00:00Z"}"#.into(),
            "pca_window_inverted",
            "/effective_time",
        ),
        ("steps", "[]".into(), "pca_no_steps", "/steps"),
        ("steps", "{}".into(), "pca_member_type", "/steps"),
        ("steps", "[1]".into(), "pca_not_an_object", "/steps/0"),
        ("steps", step("\"y\":1"), "pca_member_unknown", "/steps/0/y"),
        ("steps", step(&good.replace("pay", "")), "pca_text_empty", "/steps/0/action_type"),
        ("steps", step(&good.replace("{}", "[]")), "pca_member_type", "/steps/0/parameters"),
        (
            "steps",
            step(&good.replace("[]", "[\"a\",\"a\"]")),
            "pca_capability_repeated",
            "/steps/0/required_capabilities/1",
        ),
        (
            "steps",
            step(&good.replace("[]", "[1]")),
            "pca_member_type",
            "/steps/0/required_capabilities/0",
        ),
        (
            "steps",
            step(&format!("{good},\"egress_class\":null")),
            "pca_member_type",
            "/steps/0/egress_class",
        ),
        ("steps", format!("[{}1]", "1,".repeat(STEPS_MAX)), "pca_limit_exceeded", "/steps"),
        ("signature", "\"x\"".into(), "pca_signature_not_checked", "/signature"),
        ("pc_digest", format!("\"{ONE}\""), "pca_digest_mismatch", "/pc_digest"),
        ("nonce", "\"n\"".into(), "pca_plan_unverified", "/plan_digest"),
    ];
    for (name, value, code, at) in &cases {
        let record = PcaCertificateRecord::of(certificate(&[(name, value)]));
        let found = listed(record.findings());
        assert!(found.contains(&(code, at)), "{name} {code}: {found:?}");
        let flags = ["unverified", "divergent", "not_checked", "no_steps"];
        let gates = !flags.iter().any(|flag| code.contains(flag));
        assert_eq!(record.ok(), !gates, "{code}");
    }
    let all = PcaCertificateRecord::of(json(r#"{"x":1,"nonce":2,"steps":[{"z":1.5e300}]}"#));
    assert!(all.findings().len() > 12, "all of them: {:?}", listed(all.findings()));
}

#[test]
fn what_a_certificate_is_known_by() {
    let record = PcaCertificateRecord::of(certificate(&[]));
    let summary = record.summary();
    assert_eq!(summary.record_id, record.pc_digest().map(|d| d.hex()));
    assert_eq!(summary.developer.as_deref(), Some("planner"));
    assert_eq!(summary.action_type.as_deref(), Some("pay"));
    assert_eq!(summary.nonce.as_deref(), Some("n"));
    assert_eq!(summary.claimed_at.unwrap().to_string(), "2026-04-02T08:00:00Z");
    assert_eq!(summary.ok, Some(true));
    let step = r#"{"action_type":"pay","parameters":{},"required_capabilities":[]}"#;
    let two = PcaCertificateRecord::of(certificate(&[("steps", &format!("[{step},{step}]"))]));
    assert_eq!(two.summary().action_type, None, "of two steps neither is the action");
}

#[test]
fn content_types_and_the_issuer() {
    let header = |media: &str, issuer: &str| Header {
        content_type: Some(ContentType::Media(media.to_owned())),
        claims: Claims { issuer: Some(issuer.to_owned()), ..Claims::default() },
        ..Header::default()
    };
    let text = crate::wire::jcs::canonical(&certificate(&[])).unwrap();
    let read = |issuer| read_payload(&header(CERTIFICATE_CONTENT_TYPE, issuer), text.as_bytes());
    let own = read("planner");
    assert_eq!(own.profile(), "pca-certificate");
    assert_eq!(listed(&own.findings), [("pca_plan_unverified", "/plan_digest")]);
    assert_eq!(own.record.summary().nonce.as_deref(), Some("n"));
    assert!(listed(&read("somebody").findings).contains(&("pca_issuer_not_planner", "iss")));
    let evidence = br#"{"capsule_version":"1.0","proofs":[]}"#;
    let read = read_payload(&header(EVIDENCE_CONTENT_TYPE, "planner"), evidence);
    assert_eq!(read.profile(), "pca-evidence");
    assert_eq!(read.record.summary().ok, Some(true));
    assert_eq!(listed(&read.findings), [("pca_no_proofs", "/proofs")]);
}

#[test]
fn signatures_and_nulls_leave_the_digest_alone_and_nothing_else_does() {
    let digest = |changes: &[(&str, &str)]| pc_digest(Suite::PcaV1, &certificate(changes)).unwrap();
    let plain = digest(&[]);
    for name in ["signature", "signatures", "pc_digest"] {
        assert_eq!(digest(&[(name, "\"x\"")]), plain, "{name}");
    }
    for name in ["merkle_root", "metadata"] {
        assert_eq!(digest(&[(name, "null")]), plain, "{name}");
    }
    for name in ["x", "nonce", "pc_id"] {
        assert_ne!(digest(&[(name, "null")]), plain, "{name}");
    }
}

#[test]
fn evidence() {
    let good = format!(
        r#"{{"capsule_version":"1.0","proofs":[{{"type":"a","digest":"{ONE}","uri":"u"}}],"legal_digest":"{TWO}"}}"#
    );
    let record = PcaEvidenceRecord::read(good.as_bytes());
    assert_eq!(record.findings(), []);
    assert_eq!(record.proofs().collect::<Vec<_>>(), [("a", ONE)]);
    let summary = record.summary();
    assert_eq!(summary.record_id, Some(Digest::of(good.as_bytes()).to_string()));
    assert_eq!((summary.ok, summary.nonce), (Some(true), None));
    let cases = [
        ("proofs", "[]", "pca_no_proofs", "/proofs"),
        ("proofs", "[{}]", "pca_member_missing", "/proofs/0"),
        ("proofs", "[{\"type\":1}]", "pca_member_type", "/proofs/0/type"),
        ("legal_digest", "\"x\"", "pca_digest_malformed", "/legal_digest"),
        ("capsule_version", "\"2\"", "pca_version_unsupported", "/capsule_version"),
        ("more", "{}", "pca_member_unknown", "/more"),
    ];
    for (name, value, code, at) in cases {
        let text = crate::wire::jcs::canonical(&with(&json(&good), &[(name, value)])).unwrap();
        let record = PcaEvidenceRecord::read(text.as_bytes());
        assert!(listed(record.findings()).contains(&(code, at)), "{code}: {:?}", record.findings());
    }
    let empty = PcaEvidenceRecord::read(br#"{"capsule_version":"1.0","proofs":[]}"#);
    assert_eq!(empty.summary().ok, Some(true), "evidence of nothing is still evidence");
}

#[test]
fn times_have_an_offset_and_every_nanosecond() {
    let good = ["2026-04-30T23:59:59Z", "2026-05-01T01:59:59+02:00", "2026-04-30T23:59:59.000Z"];
    let moments = good.map(|text| Moment::parse(text).unwrap());
    assert!(moments.iter().all(|moment| *moment == moments[0]));
    assert!(Moment::parse("2026-04-30T23:59:59.000000001Z").unwrap() > moments[0]);
    let bad = [
        "",
        "2026-04-30",
        "2026-04-30T23:59:59",
        "2026-04-30 23:59:59Z",
        "2026-04-30t23:59:59z",
        "2026-04-30T23:59:59.Z",
        "2026-04-30T23:59:59+2:00",
        "2026-04-30T23:59:59Z[UTC]",
        "2026-04-31T00:00:00Z",
        "2026-04-30T24:00:00Z",
        "+002026-04-30T23:59:59Z",
        "2026-04-30T23:59:5éZ",
    ];
    for text in bad {
        assert_eq!(Moment::parse(text), None, "{text}");
    }
}

#[test]
fn words_of_other_dictionaries() {
    for code in ReasonCode::ALL {
        let read = ReasonCode::import(code.name()).unwrap();
        assert_eq!((read.value, read.is_released), (*code, true));
    }
    let mapped = ReasonCode::import("RC_INTEGRITY_MISMATCH").unwrap();
    assert_eq!((mapped.value, mapped.is_released), (ReasonCode::IntegrityMismatch, false));
    assert_eq!(ReasonCode::import("rc_ok"), None);
    let words = ["EXECUTE", "FALLBACK", "ALLOW", "DENY", "ESCALATE"];
    let read = words.map(|word| Decision::import(word).map(|d| (d.value.name(), d.is_released)));
    let expected = [("EXECUTE", true), ("FALLBACK", true), ("EXECUTE", false), ("FALLBACK", false)];
    assert_eq!(&read[..4], expected.map(Some));
    assert_eq!(read[4], Some(("FALLBACK", false)));
    assert_eq!(Decision::import("execute"), None);
}

#[test]
fn merkle_proofs_hold_for_their_place_alone() {
    for rule in [MerkleRule::Pairs, MerkleRule::Rfc9162] {
        assert_eq!(rule.name().parse(), Ok(rule));
        for count in 1..=17_u8 {
            let steps: Vec<Digest> = (0..count).map(|i| Digest::of(&[i])).collect();
            let (root, leaves) = (rule.root(&steps), u64::from(count));
            for index in 0..steps.len() {
                let proof = rule.prove(&steps, index).unwrap();
                assert_eq!(rule.check(&proof, &root, leaves), Ok(()), "{rule:?} {index}/{count}");
                assert!(rule.check(&proof, &root, leaves + 1).is_err(), "another leaf count");
                let moved = MerkleProof { index: proof.index + leaves, ..proof.clone() };
                assert!(rule.check(&moved, &root, leaves).is_err(), "beyond the end");
                let mut longer = proof.clone();
                longer.path.push(root);
                assert!(rule.check(&longer, &root, leaves).is_err(), "too long");
                let mut shorter = proof.clone();
                if shorter.path.pop().is_some() {
                    assert!(rule.check(&shorter, &root, leaves).is_err(), "too short");
                }
                let other = MerkleProof { leaf: Digest::of(b"other"), ..proof };
                assert!(rule.check(&other, &root, leaves).is_err(), "another leaf");
            }
            assert_eq!(rule.prove(&steps, steps.len()), None);
        }
    }
    let empty = MerkleRule::Pairs.root(&[]);
    let object = json(r#"{"empty":true}"#);
    assert_eq!(Label::Plan.digest(Suite::PcaV1, &object).unwrap().hex(), empty.to_string());
    let [a, b] = [ONE, TWO].map(|hex| Digest::from_hex(hex).unwrap());
    let pair = json(&format!(r#"{{"right":"{TWO}","left":"{ONE}"}}"#));
    let node = Label::Plan.digest(Suite::PcaV1, &pair).unwrap().hex();
    assert_eq!(MerkleRule::Pairs.root(&[a, b]).to_string(), node);
}

#[test]
fn labels_keep_digests_apart() {
    let value = json("{}");
    let digest = |label: &Label| label.digest(Suite::PcaV1, &value).unwrap().hex();
    let distinct: std::collections::HashSet<String> = Label::ALL.iter().map(digest).collect();
    assert_eq!(distinct.len(), 9);
}

/// Any JSON value with safe numbers.
fn values() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-1_000_000_i64..1_000_000).prop_map(Json::from),
        (-1e6..1e6).prop_map(|n: f64| Json::Number(format!("{n:e}"))),
        ".{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::btree_map(".{0,6}", inner, 0..6).prop_map(Json::object),
        ]
    })
}

/// The same value, members turned round and much space between them.
fn respelt(value: &Json, turn: usize) -> String {
    let gap = [" ", "\n", "\t\r\n", ""][turn % 4];
    match value {
        Json::Object(members) => {
            let mut members: Vec<String> = members
                .iter()
                .map(|(n, v)| {
                    let name = serde_json::to_string(n).unwrap();
                    format!("{gap}{name}{gap}:{gap}{}{gap}", respelt(v, turn + 1))
                })
                .collect();
            let by = turn % members.len().max(1);
            members.rotate_left(by);
            members.reverse();
            format!("{{{gap}{}}}", members.join(","))
        }
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(|v| respelt(v, turn + 1)).collect();
            format!("[{gap}{}{gap}]", items.join(&format!("{gap},")))
        }
        Json::Text(text) => serde_json::to_string(text).unwrap(),
        Json::Number(token) => token.clone(),
        Json::Bool(value) => value.to_string(),
        Json::Null => "null".to_owned(),
    }
}

proptest! {
    #[test]
    fn digests_do_not_see_order_or_space(parameters in values(), turn in 0_usize..9) {
        let mut step = json(r#"{"action_type":"pay","required_capabilities":[]}"#);
        if let Json::Object(members) = &mut step {
            members.push(("parameters".to_owned(), parameters));
        }
        let mut whole = certificate(&[("steps", "")]);
        if let Json::Object(members) = &mut whole {
            members.push(("steps".to_owned(), vec![step.clone()].into()));
        }
        let other = json(&respelt(&whole, turn));
        for suite in [Suite::PcaV1, Suite::PcaPython] {
            prop_assert_eq!(pc_digest(suite, &whole), pc_digest(suite, &other));
            let again = json(&respelt(&step, turn));
            prop_assert_eq!(Label::Action.digest(suite, &step), Label::Action.digest(suite, &again));
            let text = suite.canonical(&whole).unwrap();
            prop_assert_eq!(suite.canonical(&json(&text)).unwrap(), text);
        }
    }
}
