//! What every verb answers: one JSON object when it is asked for one, the
//! documented exit code, and words where there is nothing to show.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/policy/open.toml");

struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command.env("HOME", self.0.path()).stdin(Stdio::null());
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "CAPSTAN_TRUST", "CAPSTAN_VECTORS"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn expect(&self, exit: i32, line: &str) -> String {
        let output = self.run(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// One object on one line, whatever the exit code.
    fn object(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --json"));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "capstan {line} --json prints one line: {text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(value.is_object(), "capstan {line} --json: {text}");
        value
    }

    fn start(&self, line: &str) -> (Running, String) {
        let mut command = self.command(line);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        (Running(child), first)
    }

    /// Keys, a statement, a log, and a trace.
    fn furnished() -> Self {
        let sandbox = Self::new();
        sandbox.expect(0, "keygen --output agent.key");
        std::fs::write(sandbox.path("payload.json"), "{\"action\":\"refund\"}").unwrap();
        let flags = "--key agent.key --content-type application/json --iss https://a.example";
        sandbox.expect(0, &format!("seal payload.json {flags} --sub one --output one.cose"));
        sandbox.expect(0, &format!("init --data log --name log.example --policy {OPEN}"));
        std::fs::write(sandbox.path("empty.jsonl"), "").unwrap();
        sandbox
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// `URL` stands for the address of a running log, `ID` for a statement in it.
const LINES: &[&str] = &[
    "audit URL --state audit.json",
    "backup --data log --to copy",
    "bundle ID --url URL",
    "bundle ID --url URL -o one.bundle",
    "bundle nothing --url URL",
    "completions bash",
    "config check",
    "config print",
    "config print --default",
    "find https://a.example --url URL",
    "find nothing --url URL",
    "fsck --data nowhere",
    "health --url URL",
    "init --data other --name other.example",
    "inspect one.cose",
    "inspect one.cose --raw",
    "inspect one.cose --payload payload.out",
    "inspect agent.key",
    "key rotate --data nowhere",
    "keygen --output other.key",
    "lineage nothing --url URL",
    "log --url URL",
    "log --limit 500 --url URL",
    "man pages",
    "open-items --url URL",
    "outbox status",
    "outbox flush --url URL",
    "pacr check payload.json",
    "pacr compare payload.json payload.json",
    "pacr prov payload.json",
    "pca check payload.json --observations payload.json",
    "policy diff log/policy.toml log/policy.toml",
    "policy explain one.cose --policy log/policy.toml",
    "policy from-sample one.cose",
    "policy from-sample one.cose -o sample.toml",
    "policy refusals --data log",
    "policy set log/policy.toml --data log",
    "policy test log/policy.toml",
    "policy try log/policy.toml --data nowhere",
    "prove ID --url URL",
    "prove ID --url URL -o receipt.cose",
    "prove --from 2 --to 3 --url URL -o growth.cose",
    "record payload.json --key agent.key --content-type text/plain --iss a --sub b --url URL",
    "register one.cose --url URL",
    "reindex --data nowhere",
    "replay --url URL",
    "resume --data nowhere",
    "restore --from nowhere --data new --keys log/keys",
    "seal payload.json --key agent.key --content-type text/plain --iss a --sub b",
    "seal payload.json --key agent.key --content-type text/plain --iss a --sub b -o two.cose",
    "seal payload.json --key agent.key",
    "seal payload.json --key agent.key.pub --content-type text/plain --iss a --sub b",
    "serve --data nowhere",
    "story ID --url URL",
    "story nothing --url URL",
    "trace diff empty.jsonl empty.jsonl",
    "trace show empty.jsonl",
    "trace verify empty.jsonl",
    "trust add URL --trust trust.toml --yes",
    "trust show",
    "verify one.cose",
    "verify one.bundle",
    "verify agent.key",
    "verify",
    "frobnicate",
    "log --limit many --url URL",
];

#[test]
fn every_verb_prints_one_object() {
    let sandbox = Sandbox::furnished();
    let (log, first) = sandbox.start("serve --data log --listen 127.0.0.1:0 --json");
    let first: Value = serde_json::from_str(&first).unwrap();
    let url = first["url"].as_str().unwrap().to_owned();
    let id = sandbox.object(&format!("register one.cose --url {url}"))["id"].clone();
    let id = id.as_str().unwrap();
    let mut seen = Vec::new();
    for line in LINES {
        sandbox.object(&line.replace("URL", &url).replace("ID ", &format!("{id} ")));
        seen.extend(line.split(' ').next());
    }
    drop(log);
    let (_dev, first) = sandbox.start("dev --listen 127.0.0.1:0 --json");
    assert!(serde_json::from_str::<Value>(&first).unwrap()["url"].is_string());
    let help = sandbox.expect(0, "--help");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = listed.take_while(|line| !line.is_empty());
    let verbs = verbs.filter_map(|line| line.split_whitespace().next());
    let elsewhere = ["help", "dev", "serve"];
    for verb in verbs.filter(|verb| !elsewhere.contains(verb)) {
        assert!(seen.contains(&verb), "{verb} has no line here");
    }
}

#[test]
fn binary_results_are_base64_or_in_named_file() {
    let sandbox = Sandbox::furnished();
    let flags = "--key agent.key --content-type text/plain --iss a --sub b";
    let inside = sandbox.object(&format!("seal payload.json {flags}"));
    let bytes = capstan::wire::text::from_base64(inside["statement"].as_str().unwrap()).unwrap();
    std::fs::write(sandbox.path("inside.cose"), bytes).unwrap();
    assert_eq!(sandbox.object("inspect inside.cose")["id"], inside["id"]);
    let named = sandbox.object(&format!("seal payload.json {flags} -o named.cose"));
    assert_eq!((&named["output"], named.get("statement")), (&"named.cose".into(), None));
    assert_eq!(sandbox.object("inspect named.cose")["id"], named["id"]);
}

#[test]
fn inspect_shows_bundle_and_writes_payload() {
    let sandbox = Sandbox::furnished();
    let (_log, first) = sandbox.start("serve --data log --listen 127.0.0.1:0");
    let url = first.trim().strip_prefix("listening on ").unwrap().to_owned();
    let id = sandbox.object(&format!("register one.cose --url {url}"))["id"].clone();
    sandbox.expect(0, &format!("bundle {} --url {url} -o one.bundle", id.as_str().unwrap()));
    let shown = sandbox.object("inspect one.bundle --payload out.json");
    assert_eq!((&shown["artefact"], &shown["statement"]["id"]), (&"bundle".into(), &id));
    assert_eq!(shown["policy"]["subject"], "urn:capstan:policy");
    assert_eq!(shown["checkpoint"]["origin"], "log.example");
    let text = sandbox.expect(0, "inspect one.bundle");
    assert!(text.starts_with("bundle\n  statement:\n"), "{text}");
    assert!(text.contains(id.as_str().unwrap()), "{text}");
    let payload = std::fs::read(sandbox.path("payload.json")).unwrap();
    assert_eq!(std::fs::read(sandbox.path("out.json")).unwrap(), payload);
    sandbox.expect(0, "inspect one.cose --payload out2.json");
    assert_eq!(std::fs::read(sandbox.path("out2.json")).unwrap(), payload);
}

#[test]
fn bad_requests_exit_with_2() {
    let sandbox = Sandbox::furnished();
    let rows = [
        ("log --data log --limit 500", "500 is not in 1..=200"),
        ("log --data log --limit 0", "0 is not in 1..=200"),
        ("log --data log --cursor here", "it wants the cursor of a page"),
        ("log --data log --since yesterday", "it wants an RFC 3339 time"),
        ("health --url http://127.0.0.1:1", "Connection refused"),
        ("verify agent.key", "agent.key is a private key"),
        ("verify agent.key.pub", "agent.key.pub is a public key"),
        ("inspect agent.key", "agent.key is a private key"),
        ("seal payload.json --key agent.key.pub", "agent.key.pub is a public key"),
        ("seal payload.json --key agent.key.pub", "try: --key agent.key\n"),
    ];
    for (line, said) in rows {
        let output = sandbox.run(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "capstan {line}\n{stderr}");
        assert!(stderr.contains(said), "capstan {line}\n{stderr}");
        assert!(output.stdout.is_empty(), "capstan {line}");
    }
}

#[test]
fn empty_results_print_none() {
    let sandbox = Sandbox::furnished();
    for line in ["find nothing --data log", "open-items --data log", "log --data log --issuer x"] {
        assert_eq!(sandbox.expect(0, line), "none\n", "capstan {line}");
        assert_eq!(sandbox.object(line)["statements"], serde_json::json!([]), "capstan {line}");
    }
}

/// Statements that nobody signed are refusals as well; they do not push out
/// those of people with keys.
#[test]
fn refusals_of_bad_signatures_are_listed() {
    let sandbox = Sandbox::furnished();
    let (log, first) = sandbox.start("serve --data log --listen 127.0.0.1:0");
    let url = first.trim().strip_prefix("listening on ").unwrap().to_owned();
    let mut bytes = std::fs::read(sandbox.path("one.cose")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(sandbox.path("bent.cose"), bytes).unwrap();
    sandbox.expect(1, &format!("register bent.cose --url {url}"));
    drop(log);
    let refusals = sandbox.object("policy refusals --data log")["refusals"].clone();
    let [one] = refusals.as_array().unwrap().as_slice() else { panic!("{refusals}") };
    assert_eq!(one["code"], "signature-invalid");
    assert_eq!((&one["issuer"], &one["authentic"]), (&"https://a.example".into(), &false.into()));
    let text = sandbox.expect(0, "policy refusals --data log");
    assert!(text.contains("not authenticated: anybody may have sent it"), "{text}");
}
