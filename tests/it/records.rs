//! Records of every profile, against a real process: a log with a policy,
//! two agents it knows, and one sound record of each kind.

mod causal;
mod exchange;
mod facts;
mod golden;
mod hostile;
mod kinds;
mod mixed;
mod samples;
mod sessions;
mod waiting;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use capstan::envelope::{Draft, SignedStatement, StatementId, seal, seal_with_claims};
use capstan::key::{Algorithm, PublicKey, SigningKey};
use capstan::profile::capsule::{self, Action};
use capstan::profile::cra::trace::{self, GENESIS};
use capstan::profile::pacr;
use capstan::service;
use capstan::trust::{TrustAnchors, TrustedLog};
use capstan::verify::ANY_LOG;
use capstan::wire::cbor::{Value as Cbor, split_sequence};
use serde_json::{Value, json};

use crate::live::{Server, request, request_of};
use samples::{batches, causal, certificate, events, name, one_of_each, tuple};

const AGENT: &str = "https://agent.example";
const OTHER: &str = "https://other.example";
const SESSION: &str = "01939c6e-0000-7000-8000-000000000002";

/// Keeps whatever a known agent signs.
const KEEP: &str = "name = \"keep\"\n[[allow]]\nbinding = [\"pinned\"]\n";

/// Keeps only what fits what is logged.
const STRICT: &str = r#"
name = "strict"
[[allow]]
name = "fits"
binding = ["pinned"]
findings_at_most = "warning"
predecessors = ["none", "known"]
session = ["none", "new", "extends", "repeats"]
nonce = ["none", "new"]
record_id = ["new", "known"]
"#;

struct World {
    dir: tempfile::TempDir,
    server: Server,
    keys: [SigningKey; 2],
    trust: TrustAnchors,
}

impl World {
    fn new(policy: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        service::init(&data, "records.invalid", policy, Algorithm::Es256).unwrap();
        let keys = [(); 2].map(|()| SigningKey::generate(Algorithm::EdDsa).unwrap());
        let issuer = |(name, key): (&str, &SigningKey)| {
            let pem = key.public().to_pem().unwrap();
            format!("[[issuer]]\nname = {name:?}\nkeys = ['''\n{pem}''']\n")
        };
        let trust: String = [AGENT, OTHER].into_iter().zip(&keys).map(issuer).collect();
        std::fs::write(data.join("trust.toml"), &trust).unwrap();
        std::fs::write(dir.path().join("trust.toml"), &trust).unwrap();
        let server = Server::start(&data);
        let (_, set) = request(&server.address, "GET /.well-known/scitt-keys", b"").unwrap();
        let set = Cbor::read(&set).unwrap();
        let key = PublicKey::from_cose_value(&set.array().unwrap()[0]).unwrap();
        std::fs::write(dir.path().join("log.pem"), key.to_pem().unwrap()).unwrap();
        let log = TrustedLog { name: ANY_LOG.to_owned(), keys: vec![key], checkpoint: None };
        let trust = TrustAnchors::parse(&trust).unwrap().with_log(log);
        Self { dir, server, keys, trust }
    }

    /// A statement of one of the two agents.
    fn seal(&self, issuer: &str, (content_type, payload): (&str, &[u8])) -> Vec<u8> {
        let subject = "urn:example:record";
        let draft = Draft { content_type, issuer, subject, issued_at: None, payload };
        seal(&draft, &self.keys[usize::from(issuer == OTHER)]).unwrap()
    }

    fn causal(&self, id: &str, predecessors: &[&str]) -> Vec<u8> {
        self.seal(AGENT, (pacr::JSON_CONTENT_TYPE, &causal(id, predecessors, json!({}))))
    }

    fn batch(&self, lines: &str) -> Vec<u8> {
        self.seal(AGENT, (trace::BATCH_CONTENT_TYPE, lines.as_bytes()))
    }

    /// A batch of events by one of the two agents, about something.
    fn seal_about(&self, issuer: &str, subject: &str, lines: &str) -> Vec<u8> {
        let (content_type, payload) = (trace::BATCH_CONTENT_TYPE, lines.as_bytes());
        let draft = Draft { content_type, issuer, subject, issued_at: None, payload };
        seal(&draft, &self.keys[usize::from(issuer == OTHER)]).unwrap()
    }

    fn post(&self, statement: &[u8]) -> (u16, Vec<u8>) {
        request(&self.server.address, "POST /entries", statement).unwrap()
    }

    /// Status of every statement of one request, with the detail of its problem.
    fn post_all(&self, statements: &[Vec<u8>]) -> Vec<(u16, String)> {
        let body = statements.concat();
        let body = ("application/cbor-seq", body.as_slice());
        let (status, answers) =
            request_of(&self.server.address, "POST /entries/batch", body).unwrap();
        assert_eq!(status, 200);
        let read = |answer: &&[u8]| {
            let value = Cbor::read(answer).unwrap();
            let [status, body] = value.array().unwrap() else { panic!("{value:?}") };
            let detail = body.get(-2).and_then(Cbor::text).unwrap_or_default();
            (status.int().unwrap(), detail.to_owned())
        };
        split_sequence(&answers, statements.len()).unwrap().iter().map(read).collect()
    }

    /// Registers a statement; the Transparent Statement that is fetched.
    fn admit(&self, statement: &[u8]) -> Vec<u8> {
        let (status, body) = self.post(statement);
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
        let path = format!("GET /entries/{}/statement", id_of(statement));
        let (status, transparent) = request(&self.server.address, &path, b"").unwrap();
        assert_eq!(status, 200);
        transparent
    }

    /// Has a statement refused by the policy; why.
    fn refused(&self, statement: &[u8]) -> String {
        let (status, body) = self.post(statement);
        assert_eq!(status, 400, "{}", String::from_utf8_lossy(&body));
        let problem = Cbor::read(&body).unwrap();
        problem.get(-2).and_then(Cbor::text).unwrap().to_owned()
    }

    /// Registers a Capsule; its id.
    fn act(&self, action: &Action) -> String {
        let made = action.produce().unwrap();
        let draft = Draft {
            content_type: capsule::CONTENT_TYPE,
            issuer: AGENT,
            subject: &made.subject,
            issued_at: None,
            payload: &made.payload,
        };
        self.admit(&seal_with_claims(&draft, &made.claims, &self.keys[0]).unwrap());
        made.capsule_id
    }

    fn status(&self, path: &str) -> u16 {
        request(&self.server.address, &format!("GET {path}"), b"").unwrap().0
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = request(&self.server.address, &format!("GET {path}"), b"").unwrap();
        let text = String::from_utf8_lossy(&body);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_slice(&body).unwrap()
    }

    /// A verb asked of the running log.
    fn ask(&self, line: &str) -> String {
        self.run(0, &format!("{line} --url http://{}", self.server.address))
    }

    fn run(&self, exit: i32, line: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(line.split_whitespace()).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env("HOME", self.dir.path()).env_remove("XDG_CONFIG_HOME");
        let output = command.env_remove("CAPSTAN_TRUST").env_remove("CAPSTAN_VECTORS").output();
        let output = output.unwrap();
        let (text, errors) =
            [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap()).into();
        assert_eq!(output.status.code(), Some(exit), "capstan {line}\n{text}{errors}");
        text
    }

    /// Ends the process; the data directory stays.
    fn rest(&self) -> PathBuf {
        assert!(self.server.terminate().success());
        self.dir.path().join("data")
    }
}

fn id_of(statement: &[u8]) -> StatementId {
    StatementId::of(&SignedStatement::parse_any_size(statement.to_vec()).unwrap())
}

/// Codes of findings, in their order.
fn codes(findings: &Value) -> Vec<&str> {
    findings.as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect()
}

fn indices(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|entry| entry["index"].as_u64().unwrap()).collect()
}
