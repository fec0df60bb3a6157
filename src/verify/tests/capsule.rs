//! Capsules inside statements: what a receipt adds, and what it does not.

use super::*;
use crate::profile::capsule::{AttestationMode, CONTENT_TYPE, Evidence as File, Manifest};
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

fn scene(payload: &[u8], subject: &str) -> Scene {
    let issuer = ed25519();
    let claims = vec![
        (1.into(), ISSUER.into()),
        (2.into(), subject.into()),
        ("capsule_statement_type".into(), "agent_action".into()),
    ];
    let sketch = Sketch::new(&issuer).with(3, CONTENT_TYPE).with(15, Other::Map(claims));
    let statement = sketch.payload(payload).sign(&issuer);
    let log = SmallLog::around(es256(), &statement, 2, 8);
    Scene { issuer, statement, log }
}

fn good() -> Scene {
    scene(&sealed(CAPSULE), "urn:agent-action-capsule:acme:7")
}

fn check<'a>(report: &'a Report, name: &str) -> &'a Check {
    report.checks.iter().find(|c| c.name == name).unwrap()
}

#[test]
fn anchored_is_derived_never_copied() {
    let scene = good();
    let attested = |bytes: &[u8], trust: &TrustAnchors| {
        let report = verify(bytes, &evidence(trust));
        let mode = report.capsule.as_ref().unwrap().class1.derived.unwrap().attestation;
        let overclaimed = report.warnings.iter().any(|w| w.contains("attestation_mode"));
        assert_eq!(overclaimed, mode == AttestationMode::SelfAttested, "{:?}", report.warnings);
        assert!(check(&report, "capsule").detail.contains(mode.name()));
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
fn a_capsule_line_for_people() {
    let scene = good();
    let report = verify(&scene.transparent(), &evidence(&scene.trust()));
    assert_eq!((report.verdict(), report.code()), (Outcome::Yes, "ok"));
    let line = "executed, a human acted, effect confirmed (gate_executed); \
                attestation anchored, ledger standalone";
    assert_eq!(check(&report, "capsule").detail, line);
    assert_eq!(check(&report, "bound").outcome, Outcome::Yes);
}

#[test]
fn a_bad_capsule_is_a_no_and_a_loose_header_is_not() {
    let damaged = CAPSULE.replace(r#""response_digest""#, r#""response""#);
    let subject = "urn:agent-action-capsule:acme:7";
    let report_of = |scene: &Scene| verify(&scene.transparent(), &evidence(&scene.trust()));
    let report = report_of(&scene(&sealed(&damaged), subject));
    assert_eq!((report.verdict(), report.code()), (Outcome::No, "confirmed_without_response"));
    let report = report_of(&scene(b"{\"a\":1,\"a\":2}", subject));
    assert_eq!((report.verdict(), report.code()), (Outcome::No, "json-duplicate-key"));
    let report = report_of(&scene(&sealed(CAPSULE), "urn:agent-action-capsule:acme:8"));
    assert_eq!(report.verdict(), Outcome::Yes);
    assert_eq!(check(&report, "bound").code, "subject_mismatch");
    for (from, to, code) in [
        (r#""format_version":"2""#, r#""format_version":"4""#, "unsupported_format_version"),
        (r#""operator":"acme""#, r#""_sd":["x"]"#, "concealed_not_evaluated"),
    ] {
        let report = report_of(&scene(&sealed(&CAPSULE.replace(from, to)), subject));
        let line = check(&report, "capsule");
        assert_eq!((line.outcome, line.code), (Outcome::NotChecked, code));
        assert_eq!(report.verdict(), Outcome::Yes, "what is not read is not judged");
    }
}

#[test]
fn a_manifest_adds_class_2_and_changes_nothing_else() {
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
        let check = check(&extended, "evidence");
        (check.outcome, check.code)
    };
    assert_eq!(with(&manifest(10), &files), (Outcome::Yes, "ok"));
    assert_eq!(with(&manifest(9), &files), (Outcome::No, "threshold_not_applied"));
    assert_eq!(with(&manifest(10), &[]), (Outcome::CannotTell, "evidence_missing"));
    let opaque = Scene::new();
    let plain = verify(&opaque.statement, &evidence(&opaque.pins()));
    assert_eq!(plain.clone().with_manifest(&manifest(1), &files), plain);
}
