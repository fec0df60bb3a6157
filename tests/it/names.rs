//! One way to name a thing: every verb that takes a name takes whatever was
//! printed of it, and says so when that is not clear.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/policy/open.toml");

struct Sandbox(TempDir);

impl Sandbox {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, url: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("HOME", self.0.path()).env("CAPSTAN_URL", url);
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "CAPSTAN_TRUST", "CAPSTAN_VECTORS"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, url: &str, arguments: &[&str]) -> Output {
        self.command(url, arguments).output().unwrap()
    }

    fn object(&self, url: &str, exit: i32, arguments: &[&str]) -> Value {
        let output = self.run(url, &[arguments, &["--json"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}\n{stderr}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

fn action(id: &str, decision: &str) -> String {
    format!(
        r#"{{"operator":"acme","developer":"agent@v1","action_id":"{id}","disposition":
        {{"decision":"{decision}","approver":"policy","verdict_class":"{}"}}}}"#,
        if decision == "deferred" { "deferred" } else { "executed" }
    )
}

/// A log in which #2 is a capsule that waits, #3 has the subject "2", and #4
/// and #5 have the same subject.
fn furnished() -> (Sandbox, Running, String) {
    let sandbox = Sandbox(tempfile::tempdir().unwrap());
    let done = |arguments: &[&str], url: &str| {
        let output = sandbox.run(url, arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{stderr}");
    };
    done(&["keygen", "--output", "agent.key"], "");
    done(&["init", "--data", "log", "--name", "log.example", "--policy", OPEN], "");
    let mut command = sandbox.command("", &["serve", "--data", "log", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let url = first.trim().strip_prefix("listening on ").unwrap().to_owned();
    std::fs::write(sandbox.path("pending.json"), action("pay-1", "deferred")).unwrap();
    std::fs::write(sandbox.path("done.json"), action("pay-1", "accept")).unwrap();
    done(&["seal", "pending.json", "--key", "agent.key", "-o", "pending.cose"], "");
    done(&["register", "pending.cose"], &url);
    for (nth, subject) in ["2", "twice", "twice"].iter().enumerate() {
        std::fs::write(sandbox.path("note"), nth.to_string()).unwrap();
        let kind = ["--content-type", "text/plain", "--iss", "https://a.example", "--sub", subject];
        let file = format!("note-{nth}.cose");
        done(&[&["seal", "note", "--key", "agent.key", "-o", &file][..], &kind].concat(), "");
        done(&["register", &file], &url);
    }
    (sandbox, Running(child), url)
}

#[test]
fn every_printed_name_resolves() {
    let (sandbox, _log, url) = furnished();
    let shown = sandbox.object("", 0, &["inspect", "pending.cose"]);
    let id = shown["id"].as_str().unwrap();
    let capsule = shown["record"]["record_id"].as_str().unwrap();
    let printed = sandbox.run(&url, &["log", "--operator", "acme"]).stdout;
    let printed = String::from_utf8(printed).unwrap();
    let short = printed.split_whitespace().last().unwrap();
    assert!(short.contains('…'), "{printed}");
    std::fs::write(sandbox.path("outcome.json"), r#"{"status":"confirmed"}"#).unwrap();
    let names = [id, &id[..8], &id[..13], "#2", "1.2", capsule, "pay-1", short];
    for name in names {
        sandbox.object(&url, 0, &["bundle", name, "-o", "one.bundle"]);
        assert_eq!(
            sandbox.object("", 0, &["inspect", "one.bundle"])["statement"]["id"],
            id,
            "{name}"
        );
        sandbox.object(&url, 0, &["prove", name, "-o", "one.receipt"]);
        let story = sandbox.object(&url, 0, &["story", name]);
        assert_eq!(story["chain"][0]["index"], 2, "story {name}");
        let seal = ["seal", "done.json", "--key", "agent.key", "-o", "done.cose", "--supersedes"];
        sandbox.object(&url, 0, &[&seal[..], &[name]].concat());
        let sealed = sandbox.object("", 0, &["inspect", "done.cose"]);
        assert_eq!(sealed["record"]["parent"]["record_id"], capsule, "--supersedes {name}");
        let seal = ["seal", "outcome.json", "--key", "agent.key", "-o", "outcome.cose"];
        let about = ["--iss", "https://a.example", "--outcome-of", name];
        sandbox.object(&url, 0, &[&seal[..], &about].concat());
        let sealed = sandbox.object("", 0, &["inspect", "outcome.cose"]);
        assert_eq!(sealed["subject"], shown["subject"], "--outcome-of {name}");
    }
    // Without a log a file or the whole capsule id will do, and nothing else.
    for (exit, name) in [(0, "pending.cose"), (0, capsule), (2, "#2"), (2, "pay-1")] {
        let seal = ["seal", "done.json", "--key", "agent.key", "-o", "done.cose", "--supersedes"];
        sandbox.object("", exit, &[&seal[..], &[name]].concat());
    }
    let waits = sandbox.run(&url, &["open-items"]);
    let said = String::from_utf8_lossy(&waits.stderr);
    assert!(said.contains("record ACTION.json --key KEY --supersedes 2\n"), "{said}");
    // A record that is sent says where it is, in the words the next command takes.
    let sent = ["record", "done.json", "--key", "agent.key", "--supersedes", "#2"];
    assert_eq!(sandbox.object(&url, 0, &sent)["ok"], true);
    assert_eq!(sandbox.object(&url, 0, &["open-items"])["statements"], serde_json::json!([]));
}

#[test]
fn ambiguous_name_lists_candidates() {
    let (sandbox, _log, url) = furnished();
    let outcome = ["seal", "done.json", "--key", "agent.key", "--iss", "a", "--outcome-of", "#3"];
    let rows: [(&[&str], i32, &str, &[&str]); 10] = [
        (&outcome, 1, "not-a-capsule", &["#3 is not a capsule"]),
        (&["bundle", "2"], 2, "ambiguous", &["  #2 ", "  #3 "]),
        (&["prove", "twice"], 2, "ambiguous", &["  #4 ", "  #5 "]),
        (&["story", "2"], 2, "ambiguous", &["  #2 ", "  #3 "]),
        (&["bundle", "nothing"], 1, "not-found", &[]),
        (&["bundle", "#99"], 1, "not-found", &[]),
        (&["story", "nothing"], 1, "not-found", &[]),
        (&["lineage", "#3"], 1, "not-a-causal-record", &["#3 is not a causal record"]),
        (
            &["seal", "done.json", "--key", "agent.key", "--supersedes", "#3"],
            1,
            "not-a-capsule",
            &["#3 is not a capsule"],
        ),
        (
            &["seal", "done.json", "--key", "agent.key", "--supersedes", "note-1.cose"],
            1,
            "not-a-capsule",
            &["note-1.cose holds no capsule"],
        ),
    ];
    for (arguments, exit, code, said) in rows {
        assert_eq!(sandbox.object(&url, exit, arguments)["code"], code, "{arguments:?}");
        let output = sandbox.run(&url, arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        for line in said {
            assert!(stderr.contains(line), "{arguments:?}\n{stderr}");
        }
    }
    // What is no capsule is no candidate for one: a place and a subject.
    let seal = ["seal", "done.json", "--key", "agent.key", "-o", "done.cose", "--supersedes", "2"];
    sandbox.object(&url, 0, &seal);
}
