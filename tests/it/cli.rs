//! The command line as people and scripts meet it: exit codes, what goes to
//! which stream, and files on disk.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/policy/open.toml");

/// A directory in which nobody is trusted, and the program.
pub(crate) struct Sandbox(TempDir);

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command.env("HOME", self.0.path()).env_remove("XDG_CONFIG_HOME");
        command.env_remove("XDG_STATE_HOME").env_remove("CAPSTAN_TRUST").stdin(Stdio::null());
        command.env_remove("CAPSTAN_VECTORS");
        command
    }

    pub(crate) fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs, checks the exit code, gives standard output.
    pub(crate) fn expect(&self, exit: i32, line: &str) -> String {
        let output = self.run(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, exit: i32, line: &str) -> serde_json::Value {
        let out = self.expect(exit, line);
        assert_eq!(out.lines().count(), 1, "capstan {line}: one object on one line");
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert!(value.is_object(), "capstan {line}");
        value
    }

    pub(crate) fn seal(&self, name: &str) {
        if !self.path("agent.key").exists() {
            self.expect(0, "keygen --output agent.key");
        }
        std::fs::write(self.path("payload.json"), "{\"action\":\"refund\"}").unwrap();
        let flags = "--key agent.key --content-type application/json --iss https://a.example";
        self.expect(0, &format!("seal payload.json {flags} --sub {name} --output {name}.cose"));
    }

    pub(crate) fn init(&self) {
        self.expect(0, &format!("init --data log --name log.example --policy {OPEN}"));
    }

    /// Starts a log and waits until it says where it listens.
    pub(crate) fn start(&self, line: &str) -> Running {
        let mut command = self.command(line);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let url = first.trim().strip_prefix("listening on ").unwrap().to_owned();
        Running { child, url }
    }
}

pub(crate) struct Running {
    child: Child,
    pub(crate) url: String,
}

impl Running {
    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    pub(crate) fn stop(mut self) {
        self.signal("-TERM");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// In the description, by flag, or in neither: then the action is its own
/// decision.
#[test]
fn decision_id_is_sealed() {
    let sandbox = Sandbox::new();
    sandbox.expect(0, "keygen --output agent.key");
    let action = |id: &str| {
        format!(
            r#"{{"operator":"acme","developer":"agent@v1","action_id":"pay-1"{id},"disposition":
            {{"decision":"accept","approver":"policy"}}}}"#
        )
    };
    std::fs::write(sandbox.path("plain.json"), action("")).unwrap();
    std::fs::write(sandbox.path("named.json"), action(r#","decision_id":"d-1""#)).unwrap();
    let cases = [
        ("plain.json", "pay-1"),
        ("named.json", "d-1"),
        ("plain.json --decision-id d-1", "d-1"),
        ("named.json --decision-id d-1", "d-1"),
    ];
    for (what, expected) in cases {
        sandbox.expect(0, &format!("seal {what} --key agent.key -o out.cose"));
        let record = sandbox.json(0, "inspect out.cose --json")["record"].clone();
        assert_eq!(record["decision_id"], expected, "{what}: {record}");
    }
    let line = "seal named.json --decision-id d-2 --key agent.key -o out.cose --json";
    assert_eq!(sandbox.json(1, line)["code"], "description-wrong");
    let raw = "--content-type text/plain --iss a --sub b --key agent.key -o out.cose";
    sandbox.expect(2, &format!("seal plain.json --decision-id d-1 {raw}"));
}

/// Each is sealed as it is printed, by the command that is printed with it.
#[test]
fn examples_are_sealed_as_printed() {
    let sandbox = Sandbox::new();
    sandbox.expect(0, "keygen --output agent.key");
    for (kind, file) in [
        ("executed", "action"),
        ("blocked", "action"),
        ("approval", "action"),
        ("outcome", "outcome"),
    ] {
        let output = sandbox.run(&format!("seal --example {kind}"));
        std::fs::write(sandbox.path(&format!("{file}.json")), &output.stdout).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let command = said.split('`').nth(1).unwrap().strip_prefix("capstan ").unwrap();
        sandbox.expect(0, command);
        let shown = sandbox.json(0, &format!("inspect {file}.cose --json"));
        let named = if file == "outcome" { "capsule-outcome" } else { "capsule" };
        assert_eq!(shown["record"]["artefact"], named, "{shown}");
        assert_eq!(shown["record"]["ok"], true, "{shown}");
        assert!(sandbox.json(0, &format!("seal --example {kind} --json")).is_object());
    }
    let first = sandbox.expect(0, "seal --example executed");
    assert_eq!(sandbox.expect(0, "seal --example"), first);
    sandbox.expect(2, "seal --example other");
    sandbox.expect(2, "seal");
    std::fs::write(sandbox.path("action.json"), r#"{"operater":"a","verdict":"b"}"#).unwrap();
    let refused = sandbox.json(1, "seal action.json --key agent.key -o x.cose --json");
    let details = refused["details"].as_str().unwrap();
    for part in ["/operater", "did you mean operator", "/verdict ", "/developer must be given"] {
        assert!(details.contains(part), "{refused}");
    }
}

#[test]
fn exit_codes_match_results() {
    let sandbox = Sandbox::new();
    sandbox.seal("one");
    std::fs::write(sandbox.path("bad.cose"), "garbage").unwrap();
    std::fs::write(sandbox.path("bad.toml"), "lissten = 1\n").unwrap();
    let rows = [
        (0, "--version"),
        (0, "verify one.cose --signed-only --allow-self-certified"),
        (0, "inspect one.cose"),
        (0, "inspect one.cose --raw"),
        (0, "config print --default"),
        (0, "config check"),
        (0, "completions bash"),
        (0, "man pages"),
        (0, "trust show"),
        (1, "verify bad.cose"),
        (1, "verify one.cose bad.cose"),
        (1, "verify bad.cose nowhere.cose"),
        (1, "keygen --output agent.key"),
        (1, "config check --config bad.toml"),
        (2, "health --url http://127.0.0.1:1"),
        (3, "verify one.cose"),
        (3, "verify one.cose --signed-only"),
        (3, "verify one.cose --allow-self-certified"),
        (1, "verify one.cose --issuer https://b.example"),
        (2, "verify one.cose --signed-only --require receipt"),
        (2, "verify one.cose --require luck"),
        (2, ""),
        (2, "verify"),
        (2, "frobnicate"),
        (2, "verify nowhere.cose"),
        (2, "verify one.cose --trust nowhere.toml"),
        (2, "verify one.cose --older 3:abc"),
        (2, "inspect bad.cose"),
        (2, "init --data log"),
        (2, "init --name log.example"),
        (2, "serve"),
        (2, "serve --data nowhere"),
        (2, "fsck --data nowhere"),
        (2, "config check --config nowhere.toml"),
        (2, "register one.cose --url http://127.0.0.1:1"),
        (2, "register one.cose --url ftp://127.0.0.1"),
        (2, "audit http://127.0.0.1:1"),
        (2, "prove --from 1 --url http://127.0.0.1:1"),
    ];
    for (exit, line) in rows {
        let output = sandbox.run(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{stderr}");
        if exit == 2 {
            assert!(output.stdout.is_empty(), "capstan {line} prints errors to stderr");
            assert!(!stderr.is_empty(), "capstan {line} says why");
        }
    }
}

#[test]
fn help_fits_a_screen_and_every_verb_shows_an_example() {
    let sandbox = Sandbox::new();
    let help = sandbox.expect(0, "--help");
    let listed = help.lines().skip_while(|l| *l != "Commands:").skip(1);
    let verbs: Vec<&str> = listed
        .take_while(|l| !l.is_empty())
        .filter_map(|l| l.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    let nested = [
        "key rotate",
        "trust add",
        "trust issuer",
        "trust show",
        "config print",
        "config check",
        "outbox flush",
        "outbox status",
        "pacr check",
        "pacr compare",
        "pacr prov",
        "pca check",
        "policy explain",
        "policy test",
        "policy try",
        "policy diff",
        "policy from-sample",
        "policy refusals",
        "policy set",
        "trace verify",
        "trace diff",
        "trace show",
    ];
    let groups = ["key", "trust", "config", "outbox", "pacr", "pca", "policy", "trace"];
    let single = verbs.into_iter().filter(|verb| !groups.contains(verb));
    for verb in single.chain(nested) {
        let help = sandbox.expect(0, &format!("{verb} -h"));
        assert!(help.lines().count() <= 36, "{verb} -h is too long");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{verb} -h is too wide");
        let shown = ["Example: capstan ", "Examples:\n  capstan "];
        assert!(shown.iter().any(|s| help.contains(s)), "{verb} -h has no example");
    }
}

#[test]
fn moved_commands_name_their_program() {
    let sandbox = Sandbox::new();
    for (line, program) in [
        ("hammer --url http://127.0.0.1:1 --dev", "capstan-hammer"),
        ("pca conformance --vectors some", "capstan-pca-conformance"),
    ] {
        let output = sandbox.run(line);
        assert_eq!(output.status.code(), Some(2), "capstan {line}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(&format!("--package capstan-tools --bin {program}")), "{stderr}");
        assert_eq!(sandbox.json(2, &format!("{line} --json"))["code"], "usage");
    }
}

#[test]
fn json_output_is_one_object() {
    let sandbox = Sandbox::new();
    sandbox.seal("one");
    std::fs::write(sandbox.path("bad.cose"), "garbage").unwrap();
    sandbox.init();
    let rows = [
        (0, "verify one.cose --signed-only --issuer-key agent.key.pub --json", "ok"),
        (3, "verify one.cose --json", "self-certified"),
        (1, "verify bad.cose --json", "not-sign1"),
        (1, "verify one.cose bad.cose --json", "not-sign1"),
        (2, "verify nowhere.cose --json", "unreadable"),
        (2, "register one.cose --url http://127.0.0.1:1 --json", "failed"),
        (1, "init --data log --name log.example --json", "store-exists"),
        (0, "fsck --data log --json", "ok"),
        (2, "fsck --data nowhere --json", "store-not-found"),
    ];
    for (exit, line, code) in rows {
        assert_eq!(sandbox.json(exit, line)["code"], code, "capstan {line}");
    }
    let report = sandbox.json(3, "verify one.cose --json");
    assert_eq!(report["ok"], serde_json::Value::Null);
    assert!(report["reason"].as_str().unwrap().contains("but the statement itself"), "{report}");
    assert_eq!(report["checks"][0]["counts"], true);
    assert_eq!(report["file"], "one.cose");
    assert_eq!(report["checks"][0]["check"], "signed");
    assert!(report["warnings"].is_array() && report["not_shown"].is_array());
    let many = sandbox.json(1, "verify one.cose bad.cose --json");
    assert_eq!(many["files"].as_array().unwrap().len(), 2);
    assert_eq!(sandbox.json(0, "inspect one.cose --json")["issuer"], "https://a.example");
}

#[test]
fn private_keys_are_0600_and_never_overwritten() {
    let sandbox = Sandbox::new();
    for algorithm in ["ES256", "ES384", "Ed25519"] {
        let file = format!("{algorithm}.key");
        let thumbprint = sandbox.expect(0, &format!("keygen --alg {algorithm} --output {file}"));
        assert_eq!(thumbprint.lines().next().unwrap().len(), 64);
        let mode = std::fs::metadata(sandbox.path(&file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let before = std::fs::read(sandbox.path(&file)).unwrap();
        sandbox.expect(1, &format!("keygen --output {file}"));
        assert_eq!(std::fs::read(sandbox.path(&file)).unwrap(), before);
        let public = std::fs::read_to_string(sandbox.path(&format!("{file}.pub"))).unwrap();
        assert!(public.starts_with("-----BEGIN PUBLIC KEY-----"));
    }
    let loose = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(sandbox.path("ES256.key"), loose).unwrap();
    std::fs::write(sandbox.path("p"), "x").unwrap();
    sandbox.expect(2, "seal p --key ES256.key --content-type text/plain --iss i --sub s");
}

#[test]
fn pinned_key_verifies_offline() {
    let sandbox = Sandbox::new();
    sandbox.seal("one");
    sandbox.expect(0, "keygen --output other.key");
    let rows = [
        (0, "verify one.cose --signed-only --issuer-key agent.key.pub", "given by hand"),
        (3, "verify one.cose --issuer-key agent.key.pub", "receipt-missing"),
        (1, "verify one.cose --issuer-key other.key.pub", "signature-invalid"),
        (3, "verify one.cose", "self-certified"),
    ];
    for (exit, line, said) in rows {
        let out = sandbox.expect(exit, line);
        assert!(out.contains(said), "capstan {line}: {out}");
        assert!(out.contains("not shown by this"), "{out}");
    }
}

#[test]
fn init_refuses_existing_log_and_fsck_passes() {
    let sandbox = Sandbox::new();
    sandbox.init();
    let key = std::fs::read_dir(sandbox.path("log/keys")).unwrap().count();
    sandbox.expect(1, &format!("init --data log --name other.example --policy {OPEN}"));
    assert_eq!(std::fs::read_dir(sandbox.path("log/keys")).unwrap().count(), key);
    assert!(sandbox.expect(0, "fsck --data log").starts_with("yes  2 statements by 1 issuer"));
    assert!(sandbox.expect(0, "config print --data log").contains("checkpoint.interval_ms"));
}

/// The whole road: register, believe, verify, audit, rotate, roll back.
#[test]
fn register_verify_and_audit_statement() {
    let sandbox = Sandbox::new();
    sandbox.init();
    sandbox.seal("one");
    sandbox.seal("two");
    let log = sandbox.start("serve --data log --listen 127.0.0.1:0");
    let url = log.url.clone();
    sandbox.expect(2, "fsck --data log");
    let done =
        sandbox.json(0, &format!("register one.cose --url {url} --receipt one.receipt --json"));
    assert_eq!(done["index"], 2);
    sandbox.expect(3, "verify one.transparent.cose");
    sandbox.expect(2, &format!("trust add {url} --trust trust.toml"));
    sandbox.expect(0, &format!("trust add {url} --trust trust.toml --yes"));
    sandbox.expect(0, &format!("trust add {url} --trust trust.toml --yes"));
    // The log is believed; whose key it is, nobody has said yet.
    let seen = sandbox.expect(3, "verify one.transparent.cose --trust trust.toml");
    assert!(seen.lines().next().unwrap().contains("nothing ties the key to the name"), "{seen}");
    sandbox.expect(0, "trust issuer https://a.example agent.key.pub --trust trust.toml");
    let trust = std::fs::read_to_string(sandbox.path("trust.toml")).unwrap();
    assert_eq!(trust.matches("[[log]]").count(), 1);
    let seen = sandbox.expect(0, "verify one.transparent.cose --trust trust.toml");
    assert!(seen.contains("https://log.example #2"), "{seen}");
    sandbox.expect(0, "verify one.receipt --statement one.cose --trust trust.toml");
    sandbox.expect(1, "verify one.receipt --statement two.cose --trust trust.toml");
    sandbox.expect(3, "verify one.receipt --trust trust.toml");
    wait_until_healthy(&sandbox, &url);
    sandbox.expect(0, &format!("audit {url} --state audit.json"));

    sandbox.expect(0, &format!("register one.cose two.cose --url {url} --output both"));
    sandbox.expect(0, "verify both/two.transparent.cose --trust trust.toml");
    let id = done["id"].as_str().unwrap();
    sandbox.expect(0, &format!("prove {id} --url {url} --output fresh.receipt"));
    sandbox.expect(0, "verify fresh.receipt --statement one.cose --trust trust.toml");
    sandbox.expect(1, &format!("prove {} --url {url} --output no", "0".repeat(64)));
    sandbox.expect(0, &format!("prove --from 3 --to 4 --url {url} --output growth.receipt"));
    sandbox.expect(3, "verify growth.receipt --trust trust.toml");
    log.stop();

    let audited: serde_json::Value =
        serde_json::from_slice(&std::fs::read(sandbox.path("audit.json")).unwrap()).unwrap();
    std::fs::write(sandbox.path("older"), audited["note"].as_str().unwrap()).unwrap();
    sandbox.expect(0, "verify older --trust trust.toml");
    older_checkpoint_needs_valid_signature(&sandbox);
    rotate_and_roll_back(&sandbox);
}

/// A consistency receipt is worth as much as the tree it grew from.
fn older_checkpoint_needs_valid_signature(sandbox: &Sandbox) {
    let judged = |exit, older: &str, trust: &str| {
        let line = format!("verify growth.receipt --older {older} --trust {trust} --json");
        let report = sandbox.json(exit, &line);
        let checks = report["checks"].as_array().unwrap().clone();
        let older = checks.into_iter().find(|check| check["check"] == "older");
        (report["code"].as_str().unwrap().to_owned(), older.map(|check| check["code"].clone()))
    };
    let ok = |older: Option<&str>| ("ok".to_owned(), older.map(Into::into));
    assert_eq!(judged(0, "older", "trust.toml"), ok(Some("ok")));
    let trust = std::fs::read_to_string(sandbox.path("trust.toml")).unwrap();
    let unknown = trust.lines().filter(|line| !line.starts_with("checkpoint"));
    std::fs::write(sandbox.path("receipts.toml"), unknown.collect::<Vec<_>>().join("\n")).unwrap();
    let (code, older) = judged(3, "older", "receipts.toml");
    assert_eq!((code.as_str(), older), ("log-unknown", Some("log-unknown".into())));
    let note = std::fs::read_to_string(sandbox.path("older")).unwrap();
    let (text, signature) = note.trim_end().rsplit_once(' ').unwrap();
    let mut signature = capstan::wire::text::from_base64(signature).unwrap();
    *signature.last_mut().unwrap() ^= 1;
    let forged = format!("{text} {}\n", capstan::wire::text::base64(&signature));
    std::fs::write(sandbox.path("forged"), forged).unwrap();
    let (code, older) = judged(1, "forged", "trust.toml");
    assert_eq!((code.as_str(), older), ("note-signature", Some("note-signature".into())));
    // A root on the user's own word needs no signature.
    let root = note.lines().nth(2).unwrap();
    let root = capstan::wire::text::hex(&capstan::wire::text::from_base64(root).unwrap());
    assert_eq!(judged(0, &format!("3:{root}"), "receipts.toml"), ok(None));
}

fn rotate_and_roll_back(sandbox: &Sandbox) {
    copy(&sandbox.path("log"), &sandbox.path("old"));
    sandbox.expect(0, "key rotate --data log");
    sandbox.expect(0, "fsck --data log");
    let log = sandbox.start("serve --data log --listen 127.0.0.1:0");
    sandbox.seal("three");
    std::fs::copy(sandbox.path("trust.toml"), sandbox.path("before.toml")).unwrap();
    sandbox.expect(0, &format!("register three.cose --url {} --trust trust.toml", log.url));
    sandbox.expect(0, &format!("trust add {} --trust before.toml", log.url));
    sandbox.expect(0, &format!("register three.cose --url {} --trust trust.toml", log.url));
    for old_and_new in ["one", "three"] {
        sandbox.expect(0, &format!("verify {old_and_new}.transparent.cose --trust trust.toml"));
    }
    wait_until_healthy(sandbox, &log.url);
    sandbox.expect(0, &format!("audit {} --state audit.json", log.url));
    log.stop();

    std::fs::rename(sandbox.path("log"), sandbox.path("newer")).unwrap();
    copy(&sandbox.path("old"), &sandbox.path("log"));
    let refused = sandbox.run("serve --data log --listen 127.0.0.1:0");
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stdout.is_empty());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--read-only"));
    assert_eq!(sandbox.json(1, "fsck --data log --json")["code"], "rolled-back");
    let log = sandbox.start("serve --data log --listen 127.0.0.1:0 --read-only");
    let forked = sandbox.run(&format!("audit {} --state audit.json", log.url));
    let said = String::from_utf8_lossy(&forked.stderr).into_owned();
    assert_eq!(forked.status.code(), Some(1), "{said}");
    assert!(said.contains("before:") && said.contains("now:"), "{said}");
}

/// Healthy means that a checkpoint is out.
fn wait_until_healthy(sandbox: &Sandbox, url: &str) {
    let healthy = || sandbox.run(&format!("health --url {url}")).status.code() == Some(0);
    let tries = (0..100).find(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        healthy()
    });
    assert!(tries.is_some(), "the log did not become healthy");
    // A checkpoint may be one interval behind.
    std::thread::sleep(std::time::Duration::from_millis(1200));
}

#[test]
fn reload_keeps_old_policy_on_error() {
    let sandbox = Sandbox::new();
    sandbox.init();
    sandbox.seal("one");
    sandbox.seal("two");
    let log = sandbox.start("serve --data log --listen 127.0.0.1:0");
    sandbox.expect(0, &format!("register one.cose --url {}", log.url));
    let closed = include_str!("../../policy/issuers.toml");
    std::fs::write(sandbox.path("log/policy.toml"), closed).unwrap();
    log.signal("-HUP");
    let refused = (0..50).find(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        sandbox.run(&format!("register two.cose --url {}", log.url)).status.code() == Some(1)
    });
    // The first try may have come before the reload, and a statement that is
    // logged stays logged; a new one is refused for certain.
    sandbox.seal("three");
    let output = sandbox.run(&format!("register three.cose --url {}", log.url));
    assert_eq!(output.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("policy"));
    log.stop();
    sandbox.expect(0, "fsck --data log");
}

#[test]
fn dev_deletes_its_data_and_receipts_warn() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("tmp")).unwrap();
    let mut command = sandbox.command("dev --listen 127.0.0.1:0");
    let child = command.env("TMPDIR", sandbox.path("tmp")).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    let url = first.trim().strip_prefix("listening on ").unwrap().to_owned();
    let log = Running { child, url };
    assert_eq!(std::fs::read_dir(sandbox.path("tmp")).unwrap().count(), 1);
    sandbox.seal("one");
    let done = sandbox.json(0, &format!("register one.cose --url {} --json", log.url));
    assert_eq!(done["index"], 4, "policy, trust and two samples came before");
    sandbox.expect(0, &format!("trust add {} --trust trust.toml --yes", log.url));
    sandbox.expect(0, "trust issuer https://a.example agent.key.pub --trust trust.toml");
    let report = sandbox.expect(3, "verify one.transparent.cose --trust trust.toml");
    assert!(
        report.lines().next().unwrap().contains("receipts of a development log prove nothing"),
        "{report}"
    );
    let report = sandbox.expect(0, "verify one.transparent.cose --trust trust.toml --allow-dev");
    assert!(report.contains("development log"), "{report}");
    log.stop();
    let mut rest = String::new();
    stdout.read_line(&mut rest).unwrap();
    assert_eq!(rest, "", "exactly one line on standard output");
    assert_eq!(std::fs::read_dir(sandbox.path("tmp")).unwrap().count(), 0);
}

#[test]
fn closed_stdout_is_not_an_error() {
    let sandbox = Sandbox::new();
    let mut child =
        sandbox.command("config print --default").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
