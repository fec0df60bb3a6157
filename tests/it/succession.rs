//! Key rotation, and clients that trust the old key: they follow a succession and
//! nothing else, and never discard what the log sent.

use std::process::Output;

use crate::cli::{Running, Sandbox};
use crate::live::request;

const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/policy/open.toml");
const SERVE: &str = "--listen 127.0.0.1:0";

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(sandbox: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(sandbox.path(name)).unwrap()
}

/// Fingerprint of the current service key.
fn active_key(sandbox: &Sandbox, log: &Running) -> String {
    let fresh = sandbox.json(0, &format!("trust add {} --trust fresh.toml --yes --json", log.url));
    std::fs::remove_file(sandbox.path("fresh.toml")).unwrap();
    fresh["keys"][0].as_str().unwrap().to_owned()
}

fn keys(sandbox: &Sandbox, trust: &str) -> Vec<String> {
    let shown = sandbox.json(0, &format!("trust show --trust {trust} --json"));
    let logs = shown["logs"].as_array().unwrap();
    let keys = logs.iter().flat_map(|log| log["keys"].as_array().unwrap());
    keys.map(|key| key.as_str().unwrap().to_owned()).collect()
}

/// A log whose first key is in `trust.toml`, and which has rotated twice since.
fn rotated(sandbox: &Sandbox) -> Running {
    sandbox.init();
    let log = sandbox.start(&format!("serve --data log {SERVE}"));
    sandbox.expect(0, &format!("trust add {} --trust trust.toml --yes", log.url));
    log.stop();
    sandbox.expect(0, "key rotate --data log");
    sandbox.expect(0, "key rotate --data log");
    sandbox.start(&format!("serve --data log {SERVE}"))
}

#[test]
fn succession_is_followed_from_pinned_key() {
    let sandbox = Sandbox::new();
    let log = rotated(&sandbox);
    let pinned = text(&sandbox, "trust.toml");
    let new = active_key(&sandbox, &log);
    assert!(!keys(&sandbox, "trust.toml").contains(&new));
    ["one", "two", "three"].iter().for_each(|name| sandbox.seal(name));
    let line = format!("register one.cose --url {} --trust trust.toml", log.url);
    let output = sandbox.run(&line);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains(&new) && stderr(&output).contains("succession"));
    let after = keys(&sandbox, "trust.toml");
    assert_eq!((after.len(), &after[0]), (3, &new), "all three, the newest first");
    assert_eq!(text(&sandbox, "trust.toml").matches("[[log]]").count(), 1);
    // Reported once: the key is known from now on.
    let output = sandbox.run(&line);
    assert!(output.status.success() && !stderr(&output).contains("succession"));
    // With many statements it is reported once too.
    std::fs::write(sandbox.path("trust.toml"), &pinned).unwrap();
    let line =
        format!("register one.cose two.cose three.cose --url {} --trust trust.toml", log.url);
    let output = sandbox.run(&line);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("published a succession").count(), 1);
    // `trust add` follows as well, without a prompt.
    std::fs::write(sandbox.path("trust.toml"), &pinned).unwrap();
    sandbox.expect(0, &format!("trust add {} --trust trust.toml", log.url));
    assert_eq!(keys(&sandbox, "trust.toml"), after);
}

#[test]
fn trust_follow_works_offline() {
    let sandbox = Sandbox::new();
    let log = rotated(&sandbox);
    let address = log.url.strip_prefix("http://").unwrap();
    for (index, name) in [(2, "first"), (3, "second")] {
        let path = format!("GET /entries/1.{index}/statement");
        let (status, bytes) = request(address, &path, b"").unwrap();
        assert_eq!(status, 200);
        std::fs::write(sandbox.path(name), bytes).unwrap();
    }
    let new = active_key(&sandbox, &log);
    log.stop();
    // The second alone starts from an untrusted key.
    let rows = [(3, "second"), (3, "second second"), (0, "second first"), (3, "second first")];
    for (exit, files) in rows {
        sandbox.expect(exit, &format!("trust follow {files} --trust trust.toml"));
    }
    assert_eq!(keys(&sandbox, "trust.toml")[0], new);
}

/// Another log under the same name.
#[test]
fn new_key_without_succession_is_not_trusted() {
    let sandbox = Sandbox::new();
    sandbox.init();
    sandbox.expect(0, &format!("init --data other --name log.example --policy {OPEN}"));
    let log = sandbox.start(&format!("serve --data log {SERVE}"));
    let old = active_key(&sandbox, &log);
    sandbox.expect(0, &format!("trust add {} --trust trust.toml --yes", log.url));
    let pinned = text(&sandbox, "trust.toml");
    log.stop();
    let other = sandbox.start(&format!("serve --data other {SERVE}"));
    let new = active_key(&sandbox, &other);
    ["one", "two"].iter().for_each(|name| sandbox.seal(name));
    let register = format!("register one.cose --url {} --trust trust.toml", other.url);
    let output = sandbox.run(&register);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    for part in [&old, &new, "one.transparent.cose.unverified", "trust add", "--replace"] {
        assert!(stderr(&output).contains(part), "{part} in {}", stderr(&output));
    }
    assert!(sandbox.path("one.transparent.cose.unverified").exists());
    assert!(!sandbox.path("one.transparent.cose").exists());
    assert_eq!(sandbox.json(3, &format!("{register} --json"))["code"], "log-key-unknown");
    let many = format!("register one.cose two.cose --url {} --trust trust.toml", other.url);
    sandbox.expect(3, &many);
    assert!(sandbox.path("two.transparent.cose.unverified").exists());
    // The saved file is the statement with a receipt of that log.
    let kept = sandbox.json(0, "inspect one.transparent.cose.unverified --json");
    assert_eq!(kept["receipts"][0]["kid"], new.as_str());

    let add = format!("trust add {} --trust trust.toml --yes", other.url);
    let output = sandbox.run(&add);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    for part in [&old, &new, "--replace"] {
        assert!(stderr(&output).contains(part), "{part} in {}", stderr(&output));
    }
    assert_eq!(text(&sandbox, "trust.toml"), pinned);
    let rows = [
        (1, "log-key-changed", add.clone()),
        (1, "log-key-changed", format!("{add} --fingerprint {new}")),
        (1, "fingerprint-differs", format!("{add} --replace --fingerprint {old}")),
    ];
    for (exit, code, line) in rows {
        assert_eq!(sandbox.json(exit, &format!("{line} --json"))["code"], code, "{line}");
        assert_eq!(text(&sandbox, "trust.toml"), pinned);
    }
    let line = format!("trust add {} --trust trust.toml --replace --fingerprint {new}", other.url);
    sandbox.expect(0, &line);
    assert_eq!(keys(&sandbox, "trust.toml"), [new]);
    sandbox.expect(0, &register);

    sandbox.expect(0, "trust remove log.example --trust trust.toml");
    assert_eq!(keys(&sandbox, "trust.toml").len(), 0);
    assert_eq!(
        sandbox.json(1, "trust remove log.example --trust trust.toml --json")["code"],
        "not-found"
    );
}

/// A restarted `dev` has a new key and no succession.
#[test]
fn restarted_dev_log_has_unknown_key() {
    let sandbox = Sandbox::new();
    let dev = sandbox.start(&format!("dev {SERVE}"));
    sandbox.expect(0, &format!("trust add {} --trust trust.toml --yes", dev.url));
    dev.stop();
    let dev = sandbox.start(&format!("dev {SERVE}"));
    sandbox.seal("one");
    let line = format!("register one.cose --url {} --trust trust.toml --json", dev.url);
    assert_eq!(sandbox.json(3, &line)["code"], "log-key-unknown");
    assert!(sandbox.path("one.transparent.cose.unverified").exists());
}

/// Two trust entries for one name: the one whose key signed counts.
#[test]
fn audit_uses_the_entry_of_the_signing_key() {
    let sandbox = Sandbox::new();
    sandbox.init();
    sandbox.expect(0, &format!("init --data other --name log.example --policy {OPEN}"));
    for data in ["other", "log"] {
        let log = sandbox.start(&format!("serve --data {data} {SERVE}"));
        sandbox.expect(0, &format!("trust add {} --trust {data}.toml --yes", log.url));
        log.stop();
    }
    let (log, other) = (text(&sandbox, "log.toml"), text(&sandbox, "other.toml"));
    std::fs::write(sandbox.path("both.toml"), format!("{other}{log}")).unwrap();
    let running = sandbox.start(&format!("serve --data log {SERVE}"));
    let rows = [(0, "both"), (0, "log"), (1, "other")];
    for (exit, trust) in rows {
        let state = format!("--state {trust}.audit");
        sandbox.expect(exit, &format!("audit {} --trust {trust}.toml {state}", running.url));
    }
}
