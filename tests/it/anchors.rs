//! Scopes of certificate anchors, for a log and for a verifier, and trust files
//! older than scopes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capstan::envelope::{SignedStatement, StatementId, sig_structure};
use capstan::key::{Algorithm, SigningKey};
use capstan::service;
use capstan::wire::cbor;
use capstan::wire::label::COSE_SIGN1_TAG;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SanType, date_time_ymd,
};
use serde_json::{Value as Json, json};

use crate::live::{Server, request, request_of};

const AGENT: &str = "spiffe://prod.example/agent";
/// Admits all certificates of our own CA, and of the partner its own subjects.
const POLICY: &str = "\
name = \"certified\"
[[allow]]
name = \"own\"
anchor = \"own *\"
[[allow]]
name = \"partner\"
anchor = \"partner *\"
subject = \"urn:partner:*\"
";

fn params(name: &str, from: i32, to: i32) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    params
}

/// The CA of one organisation.
struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    fn new(name: &str) -> Self {
        let mut params = params(name, 2020, 2040);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// An `[[anchor]]` with its scope.
    fn anchor(&self, name: &str, scope: &str) -> String {
        let pem = self.0.pem();
        format!("[[anchor]]\nname = {name:?} # of ours\ncertificate = '''\n{pem}'''\n{scope}\n")
    }

    /// A statement whose certificate has the issuer as URI.
    fn statement(&self, issuer: &str, subject: &str) -> Vec<u8> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let mut leaf = params("leaf", 2025, 2035);
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.subject_alt_names = vec![SanType::URI(issuer.try_into().unwrap())];
        let leaf = leaf.signed_by(&pair, &self.0).unwrap();
        let key = SigningKey::from_pkcs8(pair.serialized_der()).unwrap();
        let mut protected = Vec::new();
        cbor::map(&mut protected, 4);
        cbor::int(&mut protected, 1);
        cbor::int(&mut protected, key.algorithm().cose());
        cbor::int(&mut protected, 3);
        cbor::text(&mut protected, "text/plain");
        cbor::int(&mut protected, 15);
        cbor::map(&mut protected, 2);
        for (label, text) in [(1, issuer), (2, subject)] {
            cbor::int(&mut protected, label);
            cbor::text(&mut protected, text);
        }
        cbor::int(&mut protected, 33);
        cbor::bytes(&mut protected, leaf.der());
        let signature = key.sign(&sig_structure(&protected, b"hello")).unwrap();
        let mut out = Vec::new();
        cbor::tag(&mut out, COSE_SIGN1_TAG);
        cbor::array(&mut out, 4);
        cbor::bytes(&mut out, &protected);
        cbor::map(&mut out, 0);
        cbor::bytes(&mut out, b"hello");
        cbor::bytes(&mut out, &signature);
        out
    }
}

fn id_of(statement: &[u8]) -> StatementId {
    StatementId::of(&SignedStatement::parse(statement.to_vec()).unwrap())
}

/// A log, two organisations, and a verifier in the same directory.
struct Sandbox {
    dir: tempfile::TempDir,
    own: Ca,
    partner: Ca,
}

impl Sandbox {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sandbox = Self { dir, own: Ca::new("own"), partner: Ca::new("partner") };
        service::init(&sandbox.data(), "anchors.invalid", POLICY, Algorithm::Es256).unwrap();
        sandbox
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn trust(&self, own: &str, partner: &str) -> String {
        self.own.anchor("own root", own) + &self.partner.anchor("partner root", partner)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.dir.path().join(name), bytes).unwrap();
    }

    /// Exit code and printed object, with standard error as member `said`.
    fn capstan(&self, words: &[&str]) -> (Option<i32>, Json) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(words).arg("--json").current_dir(self.dir.path()).stdin(Stdio::null());
        command.env("HOME", self.dir.path()).env_remove("XDG_CONFIG_HOME");
        let output = command.env_remove("CAPSTAN_TRUST").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let object = serde_json::from_slice(&output.stdout);
        let mut object: Json = object.unwrap_or_else(|_| panic!("{words:?}: {errors}"));
        object["said"] = json!(errors);
        (output.status.code(), object)
    }
}

fn post(server: &Server, statement: &[u8]) -> (u16, Json) {
    let (status, body) = request(&server.address, "POST /entries", statement).unwrap();
    let problem = cbor::Value::read(&body).ok();
    let detail = problem.as_ref().and_then(|p| p.get(-2)).and_then(cbor::Value::text);
    (status, json!(detail))
}

fn get(server: &Server, path: &str) -> Json {
    let (_, body) =
        request_of(&server.address, &format!("GET {path}"), ("application/json", b"")).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn certificate_outside_anchor_scope_is_rejected() {
    let sandbox = Sandbox::new();
    let trust = sandbox.trust("spiffe = [\"prod.example\"]", "spiffe = [\"partner.example\"]");
    fs::write(sandbox.data().join("trust.toml"), &trust).unwrap();
    let server = Server::start(&sandbox.data());
    let honest = sandbox.own.statement(AGENT, "urn:own:1");
    let forged = sandbox.partner.statement(AGENT, "urn:partner:1");
    assert_eq!(post(&server, &honest).0, 201);
    let (status, detail) = post(&server, &forged);
    assert_eq!(status, 400);
    let detail = detail.as_str().unwrap();
    assert!(detail.contains("anchor partner root may not speak for"), "{detail}");
    // In its own domain it may sign, and the policy sees the anchor.
    let theirs = sandbox.partner.statement("spiffe://partner.example/bot", "urn:partner:2");
    assert_eq!(post(&server, &theirs).0, 201);
    let astray = sandbox.partner.statement("spiffe://partner.example/bot", "urn:own:2");
    let (status, detail) = post(&server, &astray);
    assert_eq!(status, 400);
    assert!(detail.as_str().unwrap().contains("anchor is partner root"), "{detail}");

    let entry = get(&server, &format!("/api/v1/statements/{}", id_of(&theirs)));
    assert_eq!((&entry["binding"], &entry["anchor"]), (&json!("x5chain"), &json!("partner root")));
    let first = get(&server, "/api/v1/statements/1.0");
    assert_eq!((&first["binding"], &first["anchor"]), (&json!("pinned"), &Json::Null));

    // A verifier with the same anchors agrees.
    sandbox.write("trust.toml", &trust);
    for (name, bytes, code) in [("honest", &honest, "ok"), ("forged", &forged, "x509-out-of-scope")]
    {
        sandbox.write(name, bytes);
        let (_, report) = sandbox.capstan(&["verify", name, "--trust", "trust.toml"]);
        let checks = report["checks"].as_array().unwrap();
        let signed = checks.iter().find(|check| check["check"] == "signed").unwrap();
        assert_eq!(signed["code"], code, "{report}");
        let detail = signed["detail"].as_str().unwrap();
        assert!(code != "ok" || detail.contains("own root"), "{detail}");
    }
    server.terminate();
    assert_eq!(sandbox.capstan(&["replay", "--data", "data"]).0, Some(0));
}

#[test]
fn unscoped_anchor_is_rejected_at_start_and_reload() {
    let sandbox = Sandbox::new();
    let trust_toml = sandbox.data().join("trust.toml");
    fs::write(&trust_toml, sandbox.trust("dns = [\"*\"]", "")).unwrap();
    let serve = ["serve", "--data", "data", "--listen", "127.0.0.1:0"];
    let (exit, object) = sandbox.capstan(&serve);
    assert_eq!((exit, &object["code"]), (Some(1), &json!("trust-anchor-unscoped")), "{object}");
    let next = object["said"].as_str().unwrap();
    assert!(next.contains("trust upgrade data/trust.toml --data data"), "{next}");
    // A running log rejects such a file too.
    fs::write(&trust_toml, sandbox.trust("dns = [\"*\"]", "dns = []")).unwrap();
    let server = Server::start(&sandbox.data());
    let before = get(&server, "/api/v1/statements?profile=control")["tree_size"].clone();
    fs::write(&trust_toml, sandbox.trust("", "dns = []")).unwrap();
    Command::new("kill").args(["-HUP", &server.pid()]).status().unwrap();
    let health = || {
        let (_, body) = request(&server.address, "GET /health", b"").unwrap();
        String::from_utf8_lossy(&body).into_owned()
    };
    let told = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        health().contains("reload-failed")
    });
    assert!(told, "{}", health());
    assert_eq!(get(&server, "/api/v1/statements?profile=control")["tree_size"], before);
}

#[test]
fn trust_upgrade_by_flags() {
    let sandbox = Sandbox::new();
    let old = format!("# Mine.\n{}", sandbox.trust("", "spiffe = [\"partner.example\"]"));
    sandbox.write("trust.toml", &old);
    sandbox.write("honest", sandbox.own.statement(AGENT, "urn:own:1"));
    let verify = ["verify", "honest", "--trust", "trust.toml"];
    let (exit, object) = sandbox.capstan(&verify);
    assert_eq!((exit, &object["code"]), (Some(3), &json!("trust-anchor-unscoped")), "{object}");
    let next = object["said"].as_str().unwrap();
    assert!(next.contains("try: capstan trust upgrade trust.toml --anchor \"own root\""), "{next}");
    let (exit, shown) = sandbox.capstan(&["trust", "show", "--trust", "trust.toml"]);
    assert_eq!((exit, &shown["anchors"][0]["scope"]), (Some(0), &Json::Null), "{shown}");

    let upgrade =
        |words: &[&str]| sandbox.capstan(&[&["trust", "upgrade", "trust.toml"], words].concat());
    for (words, part) in [
        (&[][..], "no flag says which names own root may certify"),
        (&["--anchor", "partner root", "--dns", "*"], "no anchor \"partner root\" lacks a scope"),
        (&["--spiffe", "spiffe://prod.example"], "without spiffe://"),
    ] {
        let (exit, object) = upgrade(words);
        assert_eq!((exit, &object["code"]), (Some(2), &json!("usage")), "{object}");
        assert!(object["error"].as_str().unwrap().contains(part), "{object}");
        assert_eq!(fs::read_to_string(sandbox.dir.path().join("trust.toml")).unwrap(), old);
    }
    let (exit, object) = upgrade(&["--anchor", "own root", "--spiffe", "prod.example"]);
    assert_eq!((exit, &object["left"]), (Some(0), &json!([])), "{object}");
    let name = "name = \"own root\" # of ours\n";
    let expected = old.replace(name, &format!("{name}spiffe = [\"prod.example\"]\n"));
    assert_eq!(fs::read_to_string(sandbox.dir.path().join("trust.toml")).unwrap(), expected);
    assert_ne!(sandbox.capstan(&verify).1["code"], "trust-anchor-unscoped");
    assert_eq!(upgrade(&[]).0, Some(0), "there is nothing left to do");
    // Two unscoped anchors, only one of them named.
    sandbox.write("trust.toml", sandbox.trust("", ""));
    assert_eq!(upgrade(&["--dns", "*"]).1["code"], "usage");
    let (exit, object) = upgrade(&["--anchor", "own root", "--dns", "*"]);
    assert_eq!((exit, &object["left"]), (Some(1), &json!(["partner root"])), "{object}");
}

#[test]
fn trust_upgrade_leaves_unused_anchor() {
    let sandbox = Sandbox::new();
    let trust_toml = sandbox.data().join("trust.toml");
    let known = "spiffe = [\"prod.example\"]";
    fs::write(&trust_toml, sandbox.trust(known, known)).unwrap();
    let server = Server::start(&sandbox.data());
    assert_eq!(post(&server, &sandbox.own.statement(AGENT, "urn:own:1")).0, 201);
    server.terminate();
    fs::write(&trust_toml, sandbox.trust("", "")).unwrap();
    let data = sandbox.data();
    let (exit, object) =
        sandbox.capstan(&["trust", "upgrade", path(&trust_toml), "--data", path(&data)]);
    assert_eq!(exit, Some(1), "{object}");
    assert_eq!(object["anchors"][0]["scope"]["spiffe"], json!(["prod.example"]));
    assert_eq!(object["left"], json!(["partner root"]));
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
