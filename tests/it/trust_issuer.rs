//! `capstan trust issuer` binds a name to a key, for a verifier and for a log.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::live::{Server, request};

const NAME: &str = "https://a.example";

struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        for key in ["one.key", "two.key"] {
            sandbox.run(0, &format!("keygen --output {key}"));
        }
        sandbox
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The printed object.
    fn run(&self, exit: i32, line: &str) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(line.split_whitespace()).arg("--json").current_dir(self.path());
        command.env("HOME", self.path()).env_remove("XDG_CONFIG_HOME");
        command.env_remove("CAPSTAN_TRUST").stdin(Stdio::null());
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{stderr}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    fn seal(&self, name: &str, key: &str) {
        std::fs::write(self.path().join("p.json"), format!("{{\"of\":{name:?}}}")).unwrap();
        let flags = format!("--content-type application/json --iss {NAME} --sub x --key {key}");
        self.run(0, &format!("seal p.json {flags} --output {name}.cose"));
    }
}

#[test]
fn second_key_needs_add_flag() {
    let sandbox = Sandbox::new();
    let file = "--trust t.toml";
    let first = sandbox.run(0, &format!("trust issuer {NAME} one.key.pub {file}"));
    assert_eq!((&first["is_new"], &first["ok"]), (&true.into(), &true.into()), "{first}");
    assert_eq!(first["key"].as_str().map(str::len), Some(64));
    let again = sandbox.run(0, &format!("trust issuer {NAME} one.key.pub {file}"));
    assert_eq!((&again["is_new"], &again["key"]), (&false.into(), &first["key"]));
    let text = || std::fs::read_to_string(sandbox.path().join("t.toml")).unwrap();
    let before = text();
    let times = "--from 2026-01-01T00:00:00Z --until 2027-01-01T00:00:00+01:00";
    let refused = [
        (1, format!("trust issuer {NAME} two.key.pub {file}"), "issuer-other-key"),
        (1, format!("trust issuer {NAME} one.key.pub {file} {times}"), "issuer-other-time"),
        (1, format!("trust issuer {NAME} one.key.pub {file} {times} --add"), "issuer-other-time"),
        (2, format!("trust issuer {NAME} p.json {file}"), "failed"),
        (
            2,
            format!(
                "trust issuer n one.key.pub {file} --from 2026-01-02T00:00:00Z \
                 --until 2026-01-02T00:00:00Z"
            ),
            "usage",
        ),
        (2, "trust issuer n one.key.pub --data nowhere".to_owned(), "store-not-found"),
    ];
    for (exit, line, code) in refused {
        let said = sandbox.run(exit, &line);
        assert_eq!(said["code"], code, "{line}: {said}");
        assert_eq!(text(), before, "{line} changes nothing");
    }
    let said = sandbox.run(1, &format!("trust issuer {NAME} two.key.pub {file}"));
    assert!(said["error"].as_str().unwrap().contains(first["key"].as_str().unwrap()), "{said}");
    sandbox.run(2, &format!("trust issuer {NAME} one.key.pub {file} --from yesterday"));
    let second = sandbox.run(0, &format!("trust issuer {NAME} two.key.pub {file} {times} --add"));
    let shown = sandbox.run(0, &format!("trust show {file}"));
    let issuer = &shown["issuers"][0];
    assert_eq!((&issuer["name"], issuer["keys"].as_array().unwrap().len()), (&NAME.into(), 2));
    assert_eq!(
        (&issuer["keys"][0]["key"], &issuer["keys"][1]["key"]),
        (&first["key"], &second["key"])
    );
    assert_eq!(issuer["keys"][1]["from"], "2026-01-01T00:00:00Z", "{shown}");
    assert_eq!(issuer["keys"][1]["until"], "2026-12-31T23:00:00Z", "{shown}");
    assert!(issuer["keys"][0]["until"].is_null());
}

/// A did:key or did:jwk accepts no other key.
#[test]
fn did_key_needs_no_key_file() {
    let sandbox = Sandbox::new();
    let pem = std::fs::read_to_string(sandbox.path().join("one.key.pub")).unwrap();
    let key = capstan::key::PublicKey::from_pem(&pem).unwrap();
    let name = capstan::trust::did_key::did_key(&key).unwrap();
    let said = sandbox.run(1, &format!("trust issuer {name} two.key.pub --trust t.toml"));
    assert_eq!(said["code"], "issuer-other-key", "{said}");
    assert_eq!(sandbox.run(2, "trust issuer https://a.example --trust t.toml")["code"], "usage");
    sandbox.run(2, "trust issuer did:key:z6Mk --trust t.toml");
    assert!(!sandbox.path().join("t.toml").exists());
    let said = sandbox.run(0, &format!("trust issuer {name} --trust t.toml"));
    assert_eq!(said["key"], key.id().to_string());
    let said = sandbox.run(0, &format!("trust issuer {name} one.key.pub --trust t.toml"));
    assert_eq!(said["is_new"], false);
}

/// A policy for pinned keys admits an agent after one command on the log's side; a
/// verifier says yes after one on its own.
#[test]
fn pinning_admits_on_the_log_and_verifies_for_the_client() {
    let sandbox = Sandbox::new();
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/policy/issuers.toml");
    sandbox.run(0, &format!("init --data log --name log.example --policy {policy}"));
    sandbox.seal("before", "one.key");
    let data = sandbox.path().join("log");
    let post = |server: &Server, name: &str| {
        let statement = std::fs::read(sandbox.path().join(format!("{name}.cose"))).unwrap();
        request(&server.address, "POST /entries", &statement).unwrap().0
    };
    let server = Server::start(&data);
    assert_eq!(post(&server, "before"), 400);
    server.terminate();
    sandbox.run(0, &format!("trust issuer {NAME} one.key.pub --data log"));
    let server = Server::start(&data);
    assert_eq!(post(&server, "before"), 201);
    let url = format!("http://{}", server.address);
    sandbox.run(0, &format!("register before.cose --url {url}"));
    sandbox.run(0, &format!("trust add {url} --yes"));
    let line = "verify before.transparent.cose";
    assert_eq!(sandbox.run(3, line)["code"], "self-certified");
    sandbox.run(0, &format!("trust issuer {NAME} one.key.pub"));
    assert_eq!(sandbox.run(0, line)["code"], "ok");
    sandbox.seal("stranger", "two.key");
    assert_eq!(post(&server, "stranger"), 400);
    assert_eq!(sandbox.run(1, "verify stranger.cose")["code"], "signature-invalid");
}
