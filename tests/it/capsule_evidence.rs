//! `capstan verify` on a Capsule, with and without a manifest.

use std::path::Path;
use std::process::Command;

use capstan::envelope::{Draft, seal_with_claims};
use capstan::key::{Algorithm, SigningKey};
use capstan::profile::capsule::CONTENT_TYPE;
use capstan::wire::jcs::{Suite, canonical};
use capstan::wire::json::Json;

const EVIDENCE: &str = r#"{"margin_bp":300}"#;

fn json(text: &str) -> Json {
    Json::read(text.as_bytes()).unwrap()
}

/// A signed Capsule whose one constraint binds the evidence.
fn statement() -> Vec<u8> {
    let digest = Suite::JcsN.digest(&json(EVIDENCE)).unwrap().hex();
    let text = format!(
        r#"{{"spec_version":"draft-mih-scitt-agent-action-capsule-01","format_version":"2",
        "action_id":"7","action_type":"decide","operator":"acme","developer":"agent@v1",
        "timestamp":"2026-06-13T00:00:00Z","disposition":{{"decision":"reject",
        "approver":"policy","human_disposed":false,"verdict_class":"blocked"}},
        "assurance":{{"attestation_mode":"self_attested","effect_mode":"not_applicable",
        "ledger_mode":"standalone"}},"constraints":[{{"id":"com.example.margin_floor",
        "result":"pass","evidence_digest":"{digest}"}}]}}"#
    );
    let capsule = json(&text);
    let id = Suite::JcsN.digest(&capsule).unwrap().hex();
    let Json::Object(mut members) = capsule else { panic!() };
    members.push(("capsule_id".to_owned(), id.into()));
    let payload = canonical(&Json::Object(members)).unwrap();
    let draft = Draft {
        content_type: CONTENT_TYPE,
        issuer: "agent@v1",
        subject: "urn:agent-action-capsule:acme:7",
        issued_at: None,
        payload: payload.as_bytes(),
    };
    let claims = [("capsule_statement_type", "agent_action".to_owned())];
    seal_with_claims(&draft, &claims, &SigningKey::generate(Algorithm::Es256).unwrap()).unwrap()
}

fn verify(folder: &Path, flags: &[&str]) -> (Option<i32>, serde_json::Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.args(["--json", "verify", "action.cose", "--signed-only", "--allow-self-certified"]);
    command.args(flags).current_dir(folder);
    command.env("HOME", folder).env_remove("XDG_CONFIG_HOME").env_remove("CAPSTAN_TRUST");
    let output = command.env_remove("CAPSTAN_VECTORS").output().unwrap();
    let said = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), said)
}

fn codes(report: &serde_json::Value) -> Vec<(String, String)> {
    let checks = report["checks"].as_array().unwrap();
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    checks.iter().map(|c| (text(&c["check"]), text(&c["code"]))).collect()
}

#[test]
fn class_2_with_manifest_and_evidence() {
    let sandbox = tempfile::tempdir().unwrap();
    let folder = sandbox.path();
    std::fs::write(folder.join("action.cose"), statement()).unwrap();
    std::fs::create_dir(folder.join("evidence")).unwrap();
    let manifest = |floor: u32| {
        let text = format!(
            "manifest = \"m\"\n[[constraint]]\nid = \"com.example.margin_floor\"\n\
             evidence_schema = {{ type = \"object\" }}\n[[constraint.threshold]]\n\
             at = \"/margin_bp\"\nop = \">=\"\nvalue = {floor}\n"
        );
        std::fs::write(folder.join("m.toml"), text).unwrap();
    };
    manifest(300);
    let flags = ["--manifest", "m.toml", "--evidence", "evidence"];
    let (exit, plain) = verify(folder, &[]);
    assert_eq!(exit, Some(0), "{plain}");
    assert_eq!(plain["capsule"]["ok"], true);
    assert_eq!(plain["capsule"]["attestation_mode"], "self_attested");
    let with = |expected: (Option<i32>, &str)| {
        let (exit, report) = verify(folder, &flags);
        let found = codes(&report);
        let (last, before) = found.split_last().unwrap();
        assert_eq!((exit, last.1.as_str()), expected, "{report}");
        assert_eq!(last.0, "evidence");
        assert_eq!(before, codes(&plain), "Class 1 is as it was");
    };
    with((Some(3), "evidence_missing"));
    std::fs::write(folder.join("evidence/anything.json"), EVIDENCE).unwrap();
    with((Some(0), "ok"));
    manifest(301);
    with((Some(1), "threshold_not_applied"));
    std::fs::write(folder.join("m.toml"), "manifest = 1").unwrap();
    assert_eq!(verify(folder, &flags).0, Some(2));
    assert_eq!(verify(folder, &["--manifest", "m.toml"]).0, Some(2));
}
