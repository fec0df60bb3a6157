//! HTTPS from a real process, with a certificate made on the spot.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use capstan::envelope::{Draft, seal};
use capstan::key::{Algorithm, SigningKey};
use capstan::receipt::Receipt;
use capstan::service;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// A log that serves with these files, and the line it starts with.
fn start(data: &Path, certificate: &Path, key: &Path) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    command.env("CAPSTAN_TLS__CERTIFICATE", certificate).env("CAPSTAN_TLS__KEY", key);
    command.env_remove("CAPSTAN_VECTORS").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Running(child), line.trim().to_owned())
}

fn client(believed: &str) -> reqwest::Client {
    let root = reqwest::Certificate::from_pem(believed.as_bytes()).unwrap();
    reqwest::Client::builder().tls_certs_only([root]).build().unwrap()
}

#[tokio::test]
async fn a_log_serves_https_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let policy = include_str!("../../policy/open.toml");
    service::init(&data, "tls.invalid", policy, Algorithm::Es256).unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (dir.path().join("tls.pem"), dir.path().join("tls.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (_running, line) = start(&data, &certificate, &key);
    let url = line.strip_prefix("listening on ").unwrap();
    assert!(url.starts_with("https://127.0.0.1:"), "{line}");

    let client_of = client(&made.cert.pem());
    let draft = Draft {
        content_type: "text/plain",
        issuer: "https://agent.example",
        subject: "urn:example:1",
        issued_at: None,
        payload: b"over TLS",
    };
    let statement = seal(&draft, &SigningKey::generate(Algorithm::EdDsa).unwrap()).unwrap();
    let request = client_of.post(format!("{url}/entries")).body(statement);
    let answer = request.header("content-type", "application/cose").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
    Receipt::parse(answer.bytes().await.unwrap().to_vec()).unwrap();

    let stranger = client(&other.cert.pem()).get(format!("{url}/health")).send().await;
    assert!(stranger.is_err(), "another certificate is not believed");
    let plain = reqwest::Client::new().get(format!("{url}/health").replace("https", "http"));
    assert!(plain.send().await.is_err(), "nothing is answered in the clear");
}

#[test]
fn a_certificate_that_cannot_be_used_stops_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let policy = include_str!("../../policy/open.toml");
    service::init(&data, "tls.invalid", policy, Algorithm::Es256).unwrap();
    let (certificate, key) = (dir.path().join("tls.pem"), dir.path().join("tls.key"));
    std::fs::write(&certificate, "no certificate").unwrap();
    let (mut running, line) = start(&data, &certificate, &key);
    assert_eq!(line, "", "it never listens");
    assert_eq!(running.0.wait().unwrap().code(), Some(2));
}
