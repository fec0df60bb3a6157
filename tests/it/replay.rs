//! `capstan replay` by URL, also against a server that lies.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use capstan::envelope::{AuthContext, Authentic, Draft, Resolved, SignedStatement, seal};
use capstan::key::{Algorithm, SigningKey};
use capstan::log::{Plan, leaf_hash};
use capstan::profile;
use capstan::service;
use capstan::store::{Backend, Commit, NewEntry, Store, Terms};
use capstan::trust::TrustAnchors;
use serde_json::Value as Json;

use crate::live::Server;

const BOUND: &str = "name = \"bound\"\n[[allow]]\nbinding = [\"did:web\"]\n";
const RESOLVED: &str = "did:web:agent.example";

struct Sandbox {
    dir: tempfile::TempDir,
    key: SigningKey,
}

impl Sandbox {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sandbox = Self { dir, key: SigningKey::generate(Algorithm::EdDsa).unwrap() };
        service::init(&sandbox.data(), "replay.invalid", BOUND, Algorithm::Es256).unwrap();
        sandbox
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn statement(&self, issuer: &str, payload: &[u8]) -> Authentic {
        let (content_type, subject) = ("text/plain", "urn:example:1");
        let draft = Draft { content_type, issuer, subject, issued_at: None, payload };
        let statement = SignedStatement::parse(seal(&draft, &self.key).unwrap()).unwrap();
        let keys = vec![self.key.public().clone()];
        let resolved = Resolved { keys: if issuer == RESOLVED { keys } else { Vec::new() } };
        let trust = TrustAnchors::default();
        statement.authenticate(&AuthContext::new(&trust, &resolved, service::now())).unwrap()
    }

    /// Appends statements without asking the policy, as a malicious operator
    /// could.
    fn plant(&self, statements: &[Authentic]) {
        let (store, before, mut edge) = Store::open(Backend::open(&self.data()).unwrap()).unwrap();
        let leaves: Vec<_> = statements.iter().map(|s| leaf_hash(s.id().entry())).collect();
        let tiles: Vec<_> = leaves.iter().flat_map(|leaf| edge.append(*leaf)).collect();
        let head = before.next(Plan::extend(before.frontier(), &leaves).after, service::now());
        let read = profile::read(&statements[0]);
        let header = statements[0].statement().header();
        let terms = Terms::of(header, &read);
        let entry = |statement| NewEntry {
            id: Authentic::id(statement),
            canonical: statement.canonical(),
            collateral: statement.collateral(),
            terms: &terms,
        };
        let entries: Vec<_> = statements.iter().map(entry).collect();
        let (before, entries, tiles, head) = (&before, &entries, &tiles, &head);
        let commit = Commit { before, entries, tiles, head, controls: &[], keys: None };
        store.commit(&store.take_over().unwrap(), &commit).unwrap();
    }

    /// The output of `capstan replay`, as an object and as text.
    fn replay(&self, exit: i32, source: &str) -> (Json, String) {
        let run = |line: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
            command.args(line.split_whitespace()).current_dir(self.dir.path());
            command.env("HOME", self.dir.path()).env_remove("XDG_CONFIG_HOME");
            command.env_remove("CAPSTAN_TRUST").env_remove("CAPSTAN_VECTORS");
            let output = command.stdin(Stdio::null()).output();
            let output = output.unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{errors}");
            String::from_utf8(output.stdout).unwrap()
        };
        let object = run(&format!("replay {source} --json"));
        (serde_json::from_str(&object).unwrap(), run(&format!("replay {source}")))
    }
}

/// Instead of a path: the correct response with its last bit flipped.
const FLIP: &str = "";

/// A proxy that replaces the path `from` with `to`; its URL. Ends with the test
/// program.
fn lying_proxy(upstream: &str, from: &'static str, to: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = upstream.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(1000) {
            let upstream = upstream.clone();
            std::thread::spawn(move || forward(stream.unwrap(), &upstream, (from, to)));
        }
    });
    format!("http://{address}")
}

fn forward(mut client: TcpStream, upstream: &str, (from, to): (&str, &str)) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|n| n == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let Some(path) = head.split(' ').nth(1) else { return };
    let lies = path == from;
    let path = if lies && to != FLIP { to } else { path };
    let mut log = TcpStream::connect(upstream).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    log.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    log.read_to_end(&mut answer).unwrap();
    if let Some(last) = answer.last_mut().filter(|_| lies && to == FLIP) {
        *last ^= 1;
    }
    client.write_all(&answer).unwrap();
}

#[test]
fn replay_by_url_equals_replay_by_directory() {
    let sandbox = Sandbox::new();
    let good = |n: u32| sandbox.statement(RESOLVED, &n.to_be_bytes());
    sandbox.plant(&(0..300).map(good).collect::<Vec<_>>());
    let server = Server::start(&sandbox.data());
    let url = format!("--url http://{}", server.address);
    let (object, text) = sandbox.replay(0, &url);
    let expected = serde_json::json!({
        "ok": true, "code": "ok", "size": 302, "decided": 302, "first": null
    });
    assert_eq!(object, expected);
    assert_eq!(text, "yes  302 entries decided again, all the same\n");
    server.kill();
    assert_eq!(sandbox.replay(0, "--data log"), (object, text), "the same as with --data");

    sandbox.plant(&[sandbox.statement("https://nobody.example", b"planted"), good(300)]);
    let server = Server::start(&sandbox.data());
    let far = sandbox.replay(1, &format!("--url http://{}", server.address));
    assert_eq!((&far.0["first"]["index"], &far.0["code"]), (&302.into(), &"policy-refuses".into()));
    server.kill();
    assert_eq!(sandbox.replay(1, "--data log"), far);
}

#[test]
fn replay_reports_altered_entries_and_tiles() {
    let sandbox = Sandbox::new();
    sandbox.plant(&[0, 1, 2].map(|n| sandbox.statement(RESOLVED, &[n])));
    let server = Server::start(&sandbox.data());
    let rows = [
        ("/entries/1.3/statement", "/entries/1.4/statement", "entry-differs", Some(3)),
        ("/entries/1.3/statement", "/entries/1.77/statement", "statement-missing", Some(3)),
        ("/entries/1.3/statement", "/checkpoint", "not-sign1", Some(3)),
        ("/entries/1.0/statement", "/entries/1.2/statement", "first-entry-foreign", None),
        (
            "/api/v1/statements?cursor=5&limit=5",
            "/api/v1/statements?limit=2",
            "time-missing",
            Some(0),
        ),
        ("/tile/0/000.p/5", FLIP, "tiles-differ", None),
    ];
    for (from, to, code, index) in rows {
        let url = lying_proxy(&server.address, from, to);
        let (object, _) = sandbox.replay(1, &format!("--url {url}"));
        assert_eq!(object["code"], code, "{object}");
        assert_eq!(object["first"]["index"].as_u64(), index, "{object}");
    }
}
