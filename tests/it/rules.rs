//! Logs written under version 1 of the built-in rules.
//!
//! `tests/fixtures/rules-1` was written by an older program and has entries that
//! are rejected today.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capstan::envelope::{
    AuthContext, Authentic, Draft, Resolved, RulesVersion, SignedStatement, seal, seal_with_claims,
};
use capstan::key::{Algorithm, SigningKey, twin};
use capstan::log::{LeafIndex, Plan, leaf_hash};
use capstan::profile::{self, Control};
use capstan::service;
use capstan::store::{Backend, Commit, NewEntry, Store, Terms};
use capstan::trust::TrustAnchors;
use capstan::wire::cbor::Value;
use serde_json::{Value as Json, json};

use crate::live::{Server, request, request_of};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/rules-1");
/// Entries of the fixture.
const SIZE: u64 = 19;

/// A copy of the fixture in a temporary directory.
struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        copy(Path::new(FIXTURE), sandbox.at());
        // Git does not keep empty directories and modes.
        for keyspace in fs::read_dir(sandbox.data().join("store/keyspaces")).unwrap() {
            fs::create_dir_all(keyspace.unwrap().path().join("tables")).unwrap();
        }
        for key in fs::read_dir(sandbox.data().join("keys")).unwrap() {
            fs::set_permissions(key.unwrap().path(), Permissions::from_mode(0o600)).unwrap();
        }
        for private in [sandbox.data(), sandbox.data().join("keys")] {
            fs::set_permissions(private, Permissions::from_mode(0o700)).unwrap();
        }
        sandbox
    }

    fn at(&self) -> &Path {
        self.0.path()
    }

    fn data(&self) -> PathBuf {
        self.at().join("log")
    }

    /// Exit code and printed object.
    fn capstan(&self, line: &str) -> (Option<i32>, Json) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(line.split_whitespace()).arg("--json").current_dir(self.at());
        command.env("HOME", self.at()).env_remove("XDG_CONFIG_HOME").env_remove("CAPSTAN_TRUST");
        let output = command.stdin(Stdio::null()).output().unwrap();
        let (text, errors) = (output.stdout, String::from_utf8_lossy(&output.stderr));
        let object = serde_json::from_slice(&text).unwrap_or_else(|_| panic!("{line}: {errors}"));
        (output.status.code(), object)
    }

    fn replay(&self, source: &str) -> Json {
        let (exit, object) = self.capstan(&format!("replay {source}"));
        assert_eq!(exit, Some(0), "{object}");
        object
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The names of the fixture's statements, in the order of the log.
fn names() -> Vec<String> {
    let text = fs::read_to_string(Path::new(FIXTURE).join("entries.txt")).unwrap();
    text.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

/// The rules version named by the policy statement at an index.
fn rules_at(server: &Server, index: u64) -> RulesVersion {
    let head = format!("GET /entries/1.{index}/statement");
    let (status, statement) = request(&server.address, &head, b"").unwrap();
    assert_eq!(status, 200);
    let statement = SignedStatement::parse_any_size(statement).unwrap();
    let kind = statement.header().content_type.as_ref().unwrap().to_string();
    assert_eq!(kind, Control::Policy.content_type(), "entry {index}");
    RulesVersion::of_policy(statement.header()).unwrap()
}

/// A statement that the old log's policy admits.
fn sealed_text(key: &SigningKey, text: &str) -> Vec<u8> {
    let draft = Draft {
        content_type: "text/plain",
        issuer: "https://agent.example",
        subject: "urn:anybody:new",
        issued_at: None,
        payload: text.as_bytes(),
    };
    seal(&draft, key).unwrap()
}

#[test]
fn old_log_replays_and_continues_under_current_rules() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.replay("--data log")["decided"], SIZE);
    assert_eq!(sandbox.capstan("fsck --data log").0, Some(0));

    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    // Its anchor has no scope and needs one now.
    let (exit, object) = sandbox.capstan("serve --data log --listen 127.0.0.1:0");
    assert_eq!((exit, &object["code"]), (Some(1), &json!("trust-anchor-unscoped")), "{object}");
    assert!(object["error"].as_str().unwrap().contains("`capstan trust upgrade"), "{object}");
    assert_eq!(sandbox.replay("--data log")["decided"], SIZE, "nothing was written");
    let (exit, object) = sandbox.capstan("trust upgrade log/trust.toml --data log");
    assert_eq!(exit, Some(0), "{object}");
    let seen = json!({
        "spiffe": ["prod.example"],
        "dns": [],
        "uri": ["https://certified.example/agent"],
        "did_x509": false,
    });
    assert_eq!(object["anchors"][0]["scope"], seen, "{object}");
    let server = Server::start(&sandbox.data());
    assert_eq!(rules_at(&server, 0), RulesVersion::V1);
    assert_eq!(rules_at(&server, SIZE + 1), RulesVersion::V2, "one more policy statement");
    for text in ["first", "second"] {
        let (status, _) =
            request(&server.address, "POST /entries", &sealed_text(&key, text)).unwrap();
        assert_eq!(status, 201);
    }
    let decided = SIZE + 4;
    server.terminate();
    assert_eq!(sandbox.replay("--data log")["decided"], decided);

    // The version is logged only once.
    let server = Server::start(&sandbox.data());
    assert_eq!(sandbox.replay(&format!("--url http://{}", server.address))["decided"], decided);
    server.terminate();
    assert_eq!(sandbox.capstan("fsck --data log").0, Some(0));
}

#[test]
fn reading_an_old_log_writes_nothing() {
    let sandbox = Sandbox::new();
    let (exit, listed) = sandbox.capstan("log --data log --limit 5");
    assert_eq!(exit, Some(0), "{listed}");
    assert_eq!(sandbox.replay("--data log")["decided"], SIZE);
}

/// Entries valid under version 1 stay valid.
#[test]
fn bundles_of_old_log_are_never_a_no() {
    let sandbox = Sandbox::new();
    for name in names() {
        let line = format!("verify bundles/{name}.bundle --trust verifier.toml");
        let (exit, object) = sandbox.capstan(&line);
        assert!(matches!(exit, Some(0 | 3)), "{name}: {object}");
        let admitted = object["checks"].as_array().unwrap().iter();
        let admitted = admitted.filter(|check| check["check"] == "admitted").collect::<Vec<_>>();
        assert_ne!(admitted[0]["ok"], json!(false), "{name}: {object}");
        let warned = object["warnings"].to_string().contains("the current version would not");
        assert_eq!(warned, WARNED.contains(&name.as_str()), "{name}: {object}");
        // The statement alone, without the bundle.
        fs::write(sandbox.at().join("one.cose"), transparent_statement_of(&name)).unwrap();
        let (exit, object) = sandbox.capstan("verify one.cose --trust verifier.toml");
        assert!(matches!(exit, Some(0 | 3)), "{name}: {object}");
    }
}

/// Entries that, by their bundle, only version 1 admits. A bundle shows neither
/// the signature twin nor certificates outside the statement.
const WARNED: &[&str] = &[
    "rego-forged-iss",
    "condition-forged-iss",
    "self-certified-did-web",
    "self-certified-did-x509",
    "self-certified-spiffe",
    "self-certified-log",
    "self-certified-empty",
    "self-certified-did-key",
    "unscoped-anchor",
    "session-squatted",
];

/// Every reader of a logged statement gets the registered claim, not a claim with
/// the same name as text label.
#[test]
fn text_claims_never_replace_registered_claims() {
    let sandbox = Sandbox::new();
    for (index, name) in [(3, "rego-forged-iss"), (4, "condition-forged-iss")] {
        fs::write(sandbox.at().join("one.cose"), transparent_statement_of(name)).unwrap();
        let (_, shown) = sandbox.capstan("inspect one.cose");
        assert_eq!(shown["issuer"], "https://mallory.example", "{shown}");
        let (_, verified) = sandbox.capstan("verify one.cose --trust verifier.toml");
        assert!(!verified.to_string().contains("bank.example"), "{verified}");
        let (_, found) = sandbox.capstan("find --data log https://mallory.example");
        let found = found["statements"].as_array().unwrap();
        let found = found.iter().find(|one| one["index"] == index).unwrap();
        assert_eq!(found["issuer"], "https://mallory.example", "{found}");
    }
    let (_, found) = sandbox.capstan("find --data log https://bank.example");
    assert_eq!(found["statements"].as_array().map(Vec::len), Some(0), "{found}");
}

/// The Transparent Statement in a bundle.
fn transparent_statement_of(name: &str) -> Vec<u8> {
    let bundle = fs::read(Path::new(FIXTURE).join(format!("bundles/{name}.bundle"))).unwrap();
    let bundle = Value::read(&bundle).unwrap();
    bundle.get(1).and_then(Value::bytes).unwrap().to_vec()
}

/// Status, and the code of a problem.
fn register(server: &Server, statement: &[u8]) -> (u16, String) {
    let (status, body) = request(&server.address, "POST /entries", statement).unwrap();
    (status, problem_code(&body).unwrap_or_default())
}

/// `{.., "urn:capstan:problem": {"code": ..}}`
fn problem_code(body: &[u8]) -> Option<String> {
    let problem = Value::read(body).ok()?;
    Some(problem.get("urn:capstan:problem")?.get("code")?.text()?.to_owned())
}

/// Old entries, sent to a new log with the same name, policy and trust, and to the
/// old log itself.
#[test]
fn version_1_statements_are_rejected_unless_logged() {
    let sandbox = Sandbox::new();
    let line = "init --data new --name old.example --policy log/policy.toml";
    assert_eq!(sandbox.capstan(line).0, Some(0));
    assert_eq!(sandbox.capstan("trust upgrade log/trust.toml --data log").0, Some(0));
    let (new, old) = (Server::start(&sandbox.at().join("new")), Server::start(&sandbox.data()));
    let rows = [
        ("rego-forged-iss", 400, "claim-name-reserved"),
        ("condition-forged-iss", 400, "claim-name-reserved"),
        ("self-certified-did-web", 400, "name-needs-proof"),
        ("self-certified-did-x509", 400, "name-needs-proof"),
        ("self-certified-spiffe", 400, "name-needs-proof"),
        ("self-certified-log", 400, "name-needs-proof"),
        ("self-certified-empty", 400, "name-needs-proof"),
        // It now has its own binding, which this policy does not list.
        ("self-certified-did-key", 400, "policy-refused"),
        ("self-certified", 201, ""),
        ("es256", 201, ""),
        ("es256-twin", 400, "signature-twin"),
    ];
    for (name, status, code) in rows {
        let statement = transparent_statement_of(name);
        assert_eq!(register(&new, &statement), (status, code.to_owned()), "{name}");
        assert_eq!(register(&old, &statement), (201, String::new()), "{name}");
    }
    // Two signatures of one statement in one request.
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let one = sealed_text(&key, "batch");
    let (rest, signature) = one.split_at(one.len() - 64);
    let other = [rest, &twin(Algorithm::Es256, signature).unwrap()].concat();
    let kind = "application/cbor-seq";
    let body = [one, other].concat();
    let (status, answer) = request_of(&new.address, "POST /entries/batch", (kind, &body)).unwrap();
    assert_eq!(status, 200);
    let answers = capstan::wire::cbor::split_sequence(&answer, 2).unwrap();
    let answers = answers.iter().map(|answer| Value::read(answer).unwrap());
    let mut told: Vec<_> = answers.map(|a| a.array().unwrap()[0].int::<u16>().unwrap()).collect();
    told.sort_unstable();
    assert_eq!(told, [201, 400]);
    old.terminate();
    assert_eq!(sandbox.replay("--data log")["decided"], SIZE + 2, "nothing was logged twice");
}

/// Appends a policy statement of the log itself, with any rules version.
fn plant_policy(data: &Path, version: &str) {
    let identity = fs::read_to_string(data.join("name")).unwrap();
    let (store, before, mut edge) = Store::open(Backend::open(data).unwrap()).unwrap();
    let id = store.keys().unwrap()[0].id();
    let pem = fs::read_to_string(store.dir().service_key_path(id)).unwrap();
    let key = SigningKey::from_pem(&pem).unwrap();
    let policy = fs::read(data.join("policy.toml")).unwrap();
    let draft = Draft {
        content_type: Control::Policy.content_type(),
        issuer: &identity,
        subject: Control::Policy.subject(),
        issued_at: None,
        payload: &policy,
    };
    let claims = [(RulesVersion::CLAIM, version.to_owned())];
    let statement = seal_with_claims(&draft, &claims, &key).unwrap();
    let trust = TrustAnchors::default().with_issuer(&identity, &[key.public().clone()]);
    let statement = SignedStatement::parse(statement).unwrap();
    let resolved = Resolved::default();
    let context = AuthContext::new(&trust, &resolved, service::now());
    let statement: Authentic = statement.authenticate(&context).unwrap();
    let leaf = leaf_hash(statement.id().entry());
    let terms = Terms::of(statement.statement().header(), &profile::read(&statement));
    let tiles = edge.append(leaf);
    let index = LeafIndex::new(before.size().get());
    let head = before.next(Plan::extend(before.frontier(), &[leaf]).after, service::now());
    let entry = NewEntry {
        id: statement.id(),
        canonical: statement.canonical(),
        collateral: statement.collateral(),
        terms: &terms,
    };
    let commit = Commit {
        before: &before,
        entries: &[entry],
        tiles: &tiles.into_iter().collect::<Vec<_>>(),
        head: &head,
        controls: &[(Control::Policy, index)],
        keys: None,
    };
    store.commit(&store.take_over().unwrap(), &commit).unwrap();
}

#[test]
fn unknown_rules_version_is_not_opened() {
    let sandbox = Sandbox::new();
    plant_policy(&sandbox.data(), "3");
    for line in ["serve --data log --listen 127.0.0.1:0", "log --data log"] {
        let (exit, object) = sandbox.capstan(line);
        assert_eq!((exit, &object["code"]), (Some(2), &json!("rules-version-unknown")), "{line}");
    }
    let (exit, object) = sandbox.capstan("replay --data log");
    assert_eq!((exit, &object["ok"]), (Some(3), &Json::Null), "{object}");
    assert_eq!(object["code"], "rules-version-unknown");
    assert_eq!(object["first"]["index"], SIZE);
}
