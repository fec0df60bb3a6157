//! Policy commands, on files and on a stopped log.

use std::path::Path;
use std::process::{Command, Stdio};

fn shipped(name: &str) -> String {
    format!("{}/policy/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Runs the program in `at`; its standard output.
fn capstan(at: &Path, exit: i32, line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.args(line.split_whitespace()).current_dir(at).stdin(Stdio::null());
    command.env("HOME", at).env_remove("XDG_CONFIG_HOME").env_remove("CAPSTAN_TRUST");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{text}{errors}");
    text
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn shipped_policy_cases_pass() {
    let sandbox = tempfile::tempdir().unwrap();
    let all = ["agents", "agents-strict", "all-records", "issuers", "open"].map(shipped).join(" ");
    let text = capstan(sandbox.path(), 0, &format!("policy test {all}"));
    assert!(text.ends_with(" cases, 0 failed\n"), "{text}");
    std::fs::copy(shipped("open"), sandbox.path().join("policy.toml")).unwrap();
    let wrong = "[[case]]\nname = \"no\"\nexpect = \"refuse\"\n";
    std::fs::write(sandbox.path().join("policy.cases.toml"), wrong).unwrap();
    let text = capstan(sandbox.path(), 1, "policy test");
    assert!(text.contains("FAIL  open: no"), "{text}");
}

#[test]
fn explain_from_sample_and_diff() {
    let sandbox = tempfile::tempdir().unwrap();
    let at = sandbox.path();
    capstan(at, 0, "keygen --output agent.key");
    std::fs::write(at.join("payload.json"), "{}").unwrap();
    let flags = "--key agent.key --content-type application/json --iss https://a.example";
    capstan(at, 0, &format!("seal payload.json {flags} --sub x --output x.cose"));
    let (open, issuers) = (shipped("open"), shipped("issuers"));
    capstan(at, 0, &format!("policy explain x.cose --policy {open}"));
    let told = capstan(at, 1, &format!("policy explain x.cose --policy {issuers} --json"));
    let condition = &json(&told)["rules"][0]["conditions"][0];
    assert_eq!(condition["condition"], "binding");
    assert_eq!(
        (condition["held"].as_bool(), condition["saw"].as_str()),
        (Some(false), Some("self-certified"))
    );
    capstan(at, 0, "policy from-sample x.cose --output sample.toml");
    let sample = std::fs::read_to_string(at.join("sample.toml")).unwrap();
    assert!(sample.contains("issuer = [\"https://a.example\"]"), "{sample}");
    capstan(at, 0, "policy diff sample.toml sample.toml");
    let differs = capstan(at, 1, &format!("policy diff {open} {issuers}"));
    assert!(
        differs.contains("- allow \"anyone\"") && differs.contains("+ allow \"known issuers\"")
    );
}

/// An action that supersedes one which is not logged.
const RESOLUTION: &str = r#"{
    "action_id": "pay-1", "action_type": "decide", "operator": "acme", "developer": "agent@1",
    "disposition": {"decision": "accept", "approver": "human", "human_disposed": true,
        "verdict_class": "executed"}
}"#;

#[test]
fn explain_with_facts_of_a_log() {
    let sandbox = tempfile::tempdir().unwrap();
    let at = sandbox.path();
    capstan(at, 0, &format!("init --data log --name log.example --policy {}", shipped("open")));
    capstan(at, 0, "keygen --output agent.key");
    std::fs::write(at.join("action.json"), RESOLUTION).unwrap();
    let parent = "22".repeat(32);
    capstan(at, 0, &format!("seal action.json --key agent.key --supersedes {parent} -o x.cose"));
    let policy = "name = \"known\"\n[[allow]]\nparent = [\"none\", \"known\"]\n";
    std::fs::write(at.join("known.toml"), policy).unwrap();
    let saw = |told: &str| json(told)["rules"][0]["conditions"][0]["saw"].clone();
    let told = capstan(at, 0, "policy explain x.cose --policy known.toml --json");
    assert_eq!(saw(&told), "none", "without a log");
    let told = capstan(at, 1, "policy explain x.cose --policy known.toml --data log --json");
    assert_eq!(saw(&told), "unknown");
    capstan(at, 2, "policy explain x.cose --policy known.toml --data nowhere");
    // `inspect` shows the same record as text and as JSON.
    let told = json(&capstan(at, 0, "inspect x.cose --json"));
    let record = &told["record"];
    assert_eq!(
        (&record["artefact"], &record["verdict"], &record["parent"]["record_id"]),
        (&"capsule".into(), &"executed".into(), &parent.clone().into())
    );
    assert_eq!(record["derived"]["attestation_mode"], "self_attested");
    assert_eq!(record["derived"]["ledger_mode"], "chained");
    assert_eq!(record["findings"][0]["code"], "chain_check_store_level", "{record}");
    let text = capstan(at, 0, "inspect x.cose");
    for line in
        ["  capsule\n", "    action_id       pay-1\n", "    info chain_check_store_level at "]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn replay_try_and_set_on_stopped_log() {
    let sandbox = tempfile::tempdir().unwrap();
    let at = sandbox.path();
    let (open, agents) = (shipped("open"), shipped("agents"));
    capstan(at, 0, &format!("init --data log --name log.example --policy {open}"));
    assert_eq!(json(&capstan(at, 0, "replay --data log --json"))["decided"], 2);
    let tried = capstan(at, 0, &format!("policy try {agents} --data log --last 5 --json"));
    assert_eq!(json(&tried)["decided"], 2);
    assert_eq!(capstan(at, 0, "policy refusals --data log"), "nothing was refused\n");
    std::fs::write(at.join("bad.toml"), "name = \"bad\"\n[[alow]]\n").unwrap();
    capstan(at, 2, "policy set bad.toml --data log");
    let in_file = || std::fs::read_to_string(at.join("log/policy.toml")).unwrap();
    assert!(in_file().contains("name = \"open\""), "an invalid file changes nothing");
    capstan(at, 0, &format!("policy set {agents} --data log"));
    assert!(in_file().contains("name = \"agents\""));
    capstan(at, 2, "replay --data nowhere");
}
