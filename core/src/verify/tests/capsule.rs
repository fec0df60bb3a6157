//! Capsules inside statements: what a receipt adds, and what it does not.

use super::*;
use crate::profile::capsule::{
    AttestationMode, CONTENT_TYPE, Evidence as File, Manifest, OUTCOME_CONTENT_TYPE,
};
use crate::wire::jcs;
use crate::wire::json::Json;

const CAPSULE: &str = r#"{"action_id":"7","action_type":"decide","assurance":{"attestation_mode":"anchored","effect_mode":"confirmed","ledger_mode":"standalone"},"constraints":[{"id":"com.example.limit","result":"pass","evidence_digest":"EVIDENCE"}],"developer":"https://agent.example","disposition":{"approver":"human","decision":"accept","human_disposed":true,"verdict_class":"executed"},"effect":{"effect_attestation":"gate_executed","response_digest":"1111111111111111111111111111111111111111111111111111111111111111","status":"confirmed","type":"write_order"},"format_version":"2","operator":"acme","spec_version":"draft-mih-scitt-agent-action-capsule-01","timestamp":"2026-06-01T00:00:00Z"}"#;

const EVIDENCE: &str = r#"{"amount":10}"#;

fn sealed(text: &str) -> Vec<u8> {
    let evidence = Json::read(EVIDENCE.as_bytes()).unwrap();
    let digest = jcs::Suite::JcsN.digest(&evidence).unwrap().hex();
    let text = text.replace("EVIDENCE", &digest);
    let id = jcs::Suite::JcsN.digest(&Json::read(text.as_bytes()).unwrap()).unwrap().hex();
    text.replacen('{', &format!(r#"{{"capsule_id":"{id}","#), 1).into_bytes()
}

const SUBJECT: &str = "urn:agent-action-capsule:acme:7";

fn scene(payload: &[u8], subject: &str) -> Scene {
    let kind = ("capsule_statement_type", "agent_action".into());
    under(vec![(1.into(), ISSUER.into()), (2.into(), subject.into())], &[kind], payload)
}

/// A Capsule under these claims, logged.
fn under(mut claims: Vec<(Other, Other)>, named: &[(&str, Other)], payload: &[u8]) -> Scene {
    let issuer = ed25519();
    claims.extend(named.iter().map(|(name, value)| ((*name).into(), value.clone())));
    let sketch = Sketch::new(&issuer).with(3, CONTENT_TYPE).with(15, Other::Map(claims));
    let statement = sketch.payload(payload).sign(&issuer);
    let log = SmallLog::around(es256(), &statement, 2, 8);
    Scene { issuer, statement, log }
}

fn good() -> Scene {
    scene(&sealed(CAPSULE), SUBJECT)
}

#[test]
fn anchored_is_derived() {
    let scene = good();
    let attested = |bytes: &[u8], trust: &TrustAnchors| {
        let report = verify(bytes, &evidence(trust));
        let mode = report.capsule.as_ref().unwrap().class1.derived.unwrap().attestation;
        let overclaimed = report.warnings.iter().any(|w| w.contains("attestation_mode"));
        assert_eq!(overclaimed, mode == AttestationMode::SelfAttested, "{:?}", report.warnings);
        assert!(named(&report, "capsule").detail.contains(mode.name()));
        mode
    };
    let transparent = scene.transparent();
    assert_eq!(attested(&transparent, &scene.trust()), AttestationMode::Anchored);
    // The same without its receipt, and with a receipt nobody vouches for.
    assert_eq!(attested(&scene.statement, &scene.trust()), AttestationMode::SelfAttested);
    assert_eq!(attested(&transparent, &scene.pins()), AttestationMode::SelfAttested);
    let other = scene.pins().with_log(trusted(LOG, &es256()));
    assert_eq!(attested(&transparent, &other), AttestationMode::SelfAttested);
}

#[test]
fn capsule_summary_line() {
    let scene = good();
    let report = verify(&scene.transparent(), &evidence(&scene.trust()));
    assert_eq!((report.verdict(), report.code()), (Outcome::Yes, "ok"));
    let line = "executed, a human acted, effect confirmed (gate_executed); \
                attestation anchored, ledger standalone";
    assert_eq!(named(&report, "capsule").detail, line);
    assert_eq!(named(&report, "bound").outcome, Outcome::Yes);
}

#[test]
fn invalid_capsule_fails() {
    let damaged = CAPSULE.replace(r#""response_digest""#, r#""response""#);
    let report_of = |scene: &Scene| verify(&scene.transparent(), &evidence(&scene.trust()));
    let report = report_of(&scene(&sealed(&damaged), SUBJECT));
    assert_eq!((report.verdict(), report.code()), (Outcome::No, "confirmed_without_response"));
    let report = report_of(&scene(b"{\"a\":1,\"a\":2}", SUBJECT));
    assert_eq!((report.verdict(), report.code()), (Outcome::No, "json-duplicate-key"));
}

/// A payload that cannot be read is not checked; a yes still needs a header
/// that is bound to the action.
#[test]
fn concealed_or_unsupported_capsule() {
    for (from, to, capsule, expected) in [
        (
            r#""format_version":"2""#,
            r#""format_version":"4""#,
            "unsupported_format_version",
            (Outcome::CannotTell, "binding-not-shown"),
        ),
        (
            r#""operator":"acme""#,
            r#""_sd":["x"]"#,
            "concealed_not_evaluated",
            (Outcome::CannotTell, "binding-not-shown"),
        ),
        (
            r#""action_type":"decide""#,
            r#""_sd":["x"],"action_type":"decide""#,
            "concealed_not_evaluated",
            (Outcome::Yes, "ok"),
        ),
    ] {
        let scene = scene(&sealed(&CAPSULE.replace(from, to)), SUBJECT);
        let report = verify(&scene.transparent(), &evidence(&scene.trust()));
        let line = named(&report, "capsule");
        assert_eq!((line.outcome, line.code), (Outcome::NotChecked, capsule));
        assert_eq!((report.verdict(), report.code()), expected, "{to}");
    }
}

/// A header that does not match the payload is a no; with `signed_only` the
/// check is shown but does not count.
#[test]
fn unbound_header_fails() {
    let who = |issuer: &str, subject: &str| -> Vec<(Other, Other)> {
        vec![(1.into(), issuer.into()), (2.into(), subject.into())]
    };
    let kind = |value: &str| ("capsule_statement_type", Other::from(value));
    let action = || kind("agent_action");
    let evil = "https://evil.example";
    let rows = [
        (who(evil, SUBJECT), vec![action()], "issuer_not_developer"),
        (who(ISSUER, "urn:agent-action-capsule:acme:8"), vec![action()], "subject_mismatch"),
        (who(ISSUER, "urn:agent-action-capsule:evil:7"), vec![action()], "subject_mismatch"),
        (who(ISSUER, ""), vec![action()], "subject_mismatch"),
        (who(ISSUER, SUBJECT), Vec::new(), "statement_type_missing"),
        (who(ISSUER, SUBJECT), vec![kind("outcome")], "statement_type_mismatch"),
        (who(ISSUER, SUBJECT), vec![kind("agent_actions")], "statement_type_mismatch"),
        (
            who(ISSUER, SUBJECT),
            vec![("capsule_statement_type", 1.into())],
            "statement_type_missing",
        ),
        (
            who(ISSUER, SUBJECT),
            vec![action(), ("capsule_action_type", "fulfill".into())],
            "action_type_mismatch",
        ),
        (who(ISSUER, SUBJECT), vec![action(), ("capsule_decision_id", 7.into())], "claim_not_text"),
    ];
    for (claims, extra, code) in rows {
        let issuer = claims[0].1.as_text().unwrap().to_owned();
        let scene = under(claims, &extra, &sealed(CAPSULE));
        let trust = scene.trust().with_issuer(&issuer, std::slice::from_ref(scene.issuer.public()));
        let transparent = scene.transparent();
        let report = verify(&transparent, &evidence(&trust));
        assert_eq!((report.verdict(), report.code()), (Outcome::No, code), "{report:?}");
        assert_eq!(named(&report, "bound").code, code);
        assert_eq!(named(&report, "capsule").outcome, Outcome::Yes, "{report:?}");
        assert_eq!(named(&report, "logged").outcome, Outcome::Yes);
        let given = Evidence { demand: SIGNED_ONLY, ..evidence(&trust) };
        let report = verify(&transparent, &given);
        assert_eq!((report.verdict(), named(&report, "bound").code), (Outcome::Yes, code));
    }
    let decision = [action(), ("capsule_decision_id", "d-1".into()), ("other", "x".into())];
    let scene = under(who(ISSUER, SUBJECT), &decision, &sealed(CAPSULE));
    assert_eq!(answer(&scene.transparent(), &scene.trust()), (Outcome::Yes, "ok"));
}

/// Only the header of an outcome names its action.
#[test]
fn outcome_header() {
    let outcome = ("capsule_statement_type", "outcome");
    for (subject, named_claims, expected) in [
        (SUBJECT, vec![outcome], (Outcome::Yes, "ok")),
        (SUBJECT, vec![], (Outcome::No, "statement_type_missing")),
        (
            SUBJECT,
            vec![("capsule_statement_type", "agent_action")],
            (Outcome::No, "statement_type_mismatch"),
        ),
        ("order-7", vec![outcome], (Outcome::No, "subject_not_action")),
    ] {
        let issuer = ed25519();
        let mut claims: Vec<(Other, Other)> =
            vec![(1.into(), ISSUER.into()), (2.into(), subject.into())];
        claims.extend(named_claims.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let sketch =
            Sketch::new(&issuer).with(3, OUTCOME_CONTENT_TYPE).with(15, Other::Map(claims));
        let statement = sketch.payload(br#"{"action_id":"7"}"#).sign(&issuer);
        let log = SmallLog::around(es256(), &statement, 2, 8);
        let scene = Scene { issuer, statement, log };
        assert_eq!(answer(&scene.transparent(), &scene.trust()), expected, "{subject}");
    }
}

#[test]
fn manifest_only_adds_class_2() {
    let scene = good();
    let report = verify(&scene.statement, &evidence(&scene.pins()));
    let manifest = |limit: u32| {
        let threshold =
            format!("[[constraint.threshold]]\nat = \"/amount\"\nop = \"<=\"\nvalue = {limit}");
        let text =
            format!("manifest = \"m\"\n[[constraint]]\nid = \"com.example.limit\"\n{threshold}");
        Manifest::parse(&text).unwrap()
    };
    let files = [File { name: "a".to_owned(), bytes: EVIDENCE.as_bytes().to_vec() }];
    let with = |manifest: &Manifest, files: &[File]| {
        let extended = report.clone().with_manifest(manifest, files);
        assert_eq!(extended.checks[..report.checks.len()], report.checks[..]);
        assert_eq!(
            extended.capsule.as_ref().unwrap().class1,
            report.capsule.as_ref().unwrap().class1
        );
        let check = named(&extended, "evidence");
        (check.outcome, check.code)
    };
    assert_eq!(with(&manifest(10), &files), (Outcome::Yes, "ok"));
    assert_eq!(with(&manifest(9), &files), (Outcome::No, "threshold_not_applied"));
    assert_eq!(with(&manifest(10), &[]), (Outcome::CannotTell, "evidence_missing"));
    let opaque = Scene::new();
    let plain = verify(&opaque.statement, &evidence(&opaque.pins()));
    assert_eq!(plain.clone().with_manifest(&manifest(1), &files), plain);
}
