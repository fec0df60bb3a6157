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
async fn log_serves_https() {
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
fn unusable_certificate_prevents_start() {
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

/// Exit code, variables, line, and what is said.
type Row<'a> = (i32, &'a [(&'a str, &'a str)], &'a str, &'a str);

/// `capstan` as a user of a log with a private certificate meets it.
fn capstan(home: &Path, settings: &[(&str, &str)], line: &str) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.args(line.split_whitespace()).current_dir(home).env("HOME", home);
    for name in ["XDG_CONFIG_HOME", "CAPSTAN_TRUST", "CAPSTAN_VECTORS", "CAPSTAN_URL", "CAPSTAN_CA"]
    {
        command.env_remove(name);
    }
    command.envs(settings.iter().copied()).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn client_takes_url_and_ca_from_environment() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path();
    let data = home.join("data");
    let policy = include_str!("../../policy/open.toml");
    service::init(&data, "tls.invalid", policy, Algorithm::Es256).unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (home.join("tls.pem"), home.join("tls.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(home.join("other.pem"), other.cert.pem()).unwrap();
    std::fs::write(home.join("empty.pem"), "").unwrap();
    let (_running, line) = start(&data, &certificate, &key);
    let url = line.strip_prefix("listening on ").unwrap();

    let untrusted = "is not trusted: it is self-signed, or this system does not trust its CA";
    let by_ca = format!("log --url {url} --ca tls.pem");
    let rows: [Row<'_>; 9] = [
        (2, &[], "log", "try: --url URL, CAPSTAN_URL in the environment"),
        (2, &[("CAPSTAN_URL", url)], "log", untrusted),
        (2, &[("CAPSTAN_URL", url)], "log", "give it with --ca FILE (or CAPSTAN_CA)"),
        (2, &[("CAPSTAN_URL", url), ("CAPSTAN_CA", "other.pem")], "log", "is not trusted"),
        (2, &[("CAPSTAN_URL", url), ("CAPSTAN_CA", "empty.pem")], "log", "holds no certificate"),
        (0, &[("CAPSTAN_URL", url), ("CAPSTAN_CA", "tls.pem")], "log", ""),
        (0, &[], &by_ca, ""),
        // A flag wins over a variable.
        (0, &[("CAPSTAN_URL", "https://127.0.0.1:1")], &by_ca, ""),
        (0, &[("CAPSTAN_CA", "other.pem")], &by_ca, ""),
    ];
    for (exit, settings, line, said) in rows {
        let output = capstan(home, settings, line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "{settings:?} {line}\n{stderr}");
        assert!(stderr.contains(said), "{settings:?} {line}\n{stderr}");
    }

    std::fs::create_dir_all(home.join(".config/capstan")).unwrap();
    let file = format!("[client]\nurl = \"{url}\"\nca = \"tls.pem\"\n");
    std::fs::write(home.join(".config/capstan/capstan.toml"), file).unwrap();
    for line in [
        "log",
        "find x",
        "open-items",
        "prove --from 1 --to 2 -o growth.cose",
        "audit --state audit.json",
        "trust add --yes --trust trust.toml",
        "replay",
        "outbox flush --outbox outbox",
    ] {
        let output = capstan(home, &[], line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "capstan {line}\n{stderr}");
    }
    let elsewhere = capstan(home, &[("CAPSTAN_URL", "https://127.0.0.1:1")], "log");
    assert_eq!(elsewhere.status.code(), Some(2), "a variable wins over the file");
}

/// New connections get the new certificate; one that cannot be used changes
/// nothing.
#[tokio::test]
async fn sighup_reloads_the_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let policy = include_str!("../../policy/open.toml");
    service::init(&data, "tls.invalid", policy, Algorithm::Es256).unwrap();
    let make = || rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (first, second) = (make(), make());
    let (certificate, key) = (dir.path().join("tls.pem"), dir.path().join("tls.key"));
    let write = |certificate_pem: &str, key_pem: &str| {
        std::fs::write(&certificate, certificate_pem).unwrap();
        std::fs::write(&key, key_pem).unwrap();
    };
    let (pem_1, pem_2) = (first.cert.pem(), second.cert.pem());
    let (key_1, key_2) = (first.signing_key.serialize_pem(), second.signing_key.serialize_pem());
    write(&pem_1, &key_1);
    let (running, line) = start(&data, &certificate, &key);
    let health = format!("{}/health/live", line.strip_prefix("listening on ").unwrap());
    let pid = running.0.id().to_string();
    let hang_up = || assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());

    assert!(client(&pem_1).get(&health).send().await.is_ok());
    write(&pem_2, &key_2);
    hang_up();
    // A signal is handled when the process gets to it.
    let mut tries = 0;
    while client(&pem_2).get(&health).send().await.is_err() {
        tries += 1;
        assert!(tries < 600, "the new certificate is never served");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(client(&pem_1).get(&health).send().await.is_err(), "the old one is gone");
    write(&pem_1, &key_2);
    hang_up();
    for _ in 0..20 {
        assert!(client(&pem_2).get(&health).send().await.is_ok(), "the last good one stays");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
