//! No secrets in output, even at the most verbose log level; no file that others
//! can write or, if it is private, read.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan::envelope::{Draft, SignedStatement, StatementId, seal};
use capstan::key::{Algorithm, SigningKey};

const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/policy/open.toml");
const TOKEN: &str = "tok-5cf1b27a9d04";
/// A wrong token, one character off.
const WRONG: &str = "tok-5cf1b27a9d05";

/// A temporary directory, and the program with umask 0.
struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        fs::set_permissions(sandbox.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        sandbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 0 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_capstan")]);
        command.args(line.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("HOME", self.0.path()).env_remove("CAPSTAN_VECTORS");
        command
    }

    /// Runs a command that succeeds; both streams.
    fn run(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        let said = both_streams(&output);
        assert!(output.status.success(), "capstan {line}: {said}");
        said
    }

    /// A log with a token at the most verbose level; its output is in a file.
    fn serve(&self, settings: &[(&str, &str)]) -> Running {
        let log = self.path("said");
        let mut command = self.command("serve --listen 127.0.0.1:0 --data data");
        command.envs(settings.iter().copied());
        command.env("CAPSTAN_AUTH__TOKEN", TOKEN).env("CAPSTAN_LOG__LEVEL", "trace");
        command.env("CAPSTAN_METRICS__PUBLIC", "false");
        command
            .stdout(File::create(&log).unwrap())
            .stderr(File::options().append(true).open(&log).unwrap());
        let child = command.spawn().unwrap();
        let mut running = Running { child, log, url: String::new() };
        for _ in 0..600 {
            let said = running.said();
            if let Some(line) = said.lines().find_map(|line| line.strip_prefix("listening on ")) {
                running.url = line.to_owned();
                return running;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("it does not listen: {}", running.said());
    }
}

fn both_streams(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said)).concat()
}

struct Running {
    child: Child,
    log: PathBuf,
    url: String,
}

impl Running {
    fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Stops it; all its output.
    fn stop(mut self) -> String {
        self.signal("-TERM");
        assert!(self.child.wait().unwrap().success());
        self.said()
    }

    /// The response to a request over HTTP/1.1.
    fn ask(&self, line: &str, token: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             content-type: application/cose\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The response body of a registration over HTTP/2.
    fn post_over_http2(&self, token: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        let text = |name: &[u8], value: &str| {
            [name, &[u8::try_from(value.len()).unwrap()], value.as_bytes()].concat()
        };
        // POST and http, then path, authority, type and token by their index in
        // RFC 7541, Appendix A.
        let headers = [
            vec![0x83, 0x86],
            text(&[4], "/entries"),
            text(&[1], "x"),
            text(&[0x0f, 31 - 15], "application/cose"),
            text(&[0x0f, 23 - 15], &format!("Bearer {token}")),
        ];
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&frame(4, 0, 0, b"")).unwrap();
        stream.write_all(&frame(1, 4, 1, &headers.concat())).unwrap();
        stream.write_all(&frame(0, 1, 1, body)).unwrap();
        let mut answer = Vec::new();
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).unwrap();
            let [a, b, c, kind, flags, _, _, _, id] = head;
            let mut content = vec![0; usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap()];
            stream.read_exact(&mut content).unwrap();
            if (kind, id) == (0, 1) {
                answer.extend(content);
            }
            if id == 1 && flags & 1 == 1 {
                return String::from_utf8_lossy(&answer).into_owned();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// A frame of HTTP/2 (RFC 9113, 4.1).
fn frame(kind: u8, flags: u8, stream: u8, content: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, flags, 0, 0, 0, stream], content].concat()
}

fn statement(payload: &[u8]) -> Vec<u8> {
    let draft = Draft {
        content_type: "text/plain",
        issuer: "https://agent.example",
        subject: "urn:example:secrets",
        issued_at: None,
        payload,
    };
    seal(&draft, &SigningKey::generate(Algorithm::EdDsa).unwrap()).unwrap()
}

/// A secret in every form it could be printed: text, hex, a list of numbers,
/// base64 at each of three offsets.
fn encodings(secret: &[u8]) -> Vec<String> {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let numbers: Vec<String> = secret.iter().map(u8::to_string).collect();
    let mut all = vec![hex.to_uppercase(), hex, numbers.join(", ")];
    all.extend(String::from_utf8(secret.to_vec()));
    for skip in 0..3 {
        let whole = secret[skip..].chunks_exact(3).flatten().copied().collect::<Vec<u8>>();
        let text = STANDARD.encode(whole);
        all.push(text.replace('+', "-").replace('/', "_"));
        all.push(text);
    }
    all
}

/// The private scalar of a PKCS #8 key.
fn scalar(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(body).unwrap();
    let before: [&[u8]; 2] = [&[2, 1, 1, 4, 32], &[4, 34, 4, 32]];
    let mut places = before.iter().filter_map(|before| {
        let at = der.windows(before.len()).position(|part| part == *before)?;
        der.get(at + before.len()..at + before.len() + 32)
    });
    places.next().unwrap().to_vec()
}

/// All secrets: both tokens, and each key as scalar and as PEM lines.
fn secrets(sandbox: &Sandbox) -> Vec<String> {
    let mut all: Vec<String> =
        [TOKEN, WRONG].iter().flat_map(|t| encodings(t.as_bytes())).collect();
    let keys = fs::read_dir(sandbox.path("data/keys")).unwrap().map(|entry| entry.unwrap().path());
    for path in keys.chain([sandbox.path("agent.key"), sandbox.path("tls.key")]) {
        let pem = fs::read_to_string(&path).unwrap();
        all.extend(encodings(&scalar(&pem)));
        all.extend(pem.lines().filter(|line| !line.starts_with('-')).map(str::to_owned));
    }
    all
}

/// The first secret found in some output.
fn leaked_secret(sandbox: &Sandbox, said: &str) -> Option<String> {
    secrets(sandbox).into_iter().find(|secret| said.contains(secret.as_str()))
}

/// Creates a log, an agent's key and a certificate with its key; the output.
fn set_up(sandbox: &Sandbox) -> String {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(sandbox.path("tls.pem"), made.cert.pem()).unwrap();
    fs::write(sandbox.path("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let init = format!("init --data data --name log.example --policy {OPEN}");
    [init.as_str(), "key rotate --data data", "keygen --output agent.key --json"]
        .map(|line| sandbox.run(line))
        .concat()
}

#[test]
fn leak_is_detected_in_every_encoding() {
    let sandbox = Sandbox::new();
    assert_eq!(leaked_secret(&sandbox, &set_up(&sandbox)), None);
    let pem = fs::read_to_string(sandbox.path("agent.key")).unwrap();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(&body).unwrap();
    let said = [
        format!("headers: {{\"authorization\": \"Bearer {WRONG}\"}}"),
        format!("token={TOKEN:?}"),
        STANDARD.encode(format!("Bearer {TOKEN}")),
        pem,
        format!("{der:?}"),
        der.iter().map(|byte| format!("{byte:02X}")).collect(),
        STANDARD.encode(&der[1..]),
        STANDARD.encode(&der[2..]),
    ];
    for said in said {
        assert!(leaked_secret(&sandbox, &said).is_some(), "{said}");
    }
}

#[test]
fn log_output_has_no_secrets() {
    let sandbox = Sandbox::new();
    let mut said = set_up(&sandbox);
    let log = sandbox.serve(&[]);
    let statements = [b"over 1.1", b"over 2.0"].map(|payload| statement(payload));
    let id = StatementId::of(&SignedStatement::parse(statements[0].clone()).unwrap()).to_string();
    for (token, refused) in [(WRONG, true), (TOKEN, false)] {
        let answers = [
            log.ask("POST /entries", token, &statements[0]),
            log.post_over_http2(token, &statements[1]),
            log.ask("GET /metrics", token, b""),
        ];
        for answer in &answers {
            assert_eq!(answer.contains("unauthorized"), refused, "{answer}");
        }
        said.extend(answers);
    }
    said += &log.ask("POST /entries", TOKEN, b"no statement");
    for path in ["/", "/policy", "/health", "/.well-known/scitt-keys", "/checkpoint/key"] {
        said += &log.ask(&format!("GET {path}"), TOKEN, b"");
    }
    said += &sandbox.run("backup --data data --to copy");
    fs::write(sandbox.path("data/trust.toml"), "no trust").unwrap();
    log.signal("-HUP");
    for _ in 0..200 {
        if log.said().contains("reload failed") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let log = log.stop();
    for word in ["TRACE", "registered", &id, "reload failed", "stopped"] {
        assert!(log.contains(word), "{word} must be in the log, or the test proves nothing: {log}");
    }
    assert_eq!(leaked_secret(&sandbox, &(said + &log)), None);
}

#[tokio::test]
async fn tls_log_output_has_no_secrets() {
    let sandbox = Sandbox::new();
    let mut said = set_up(&sandbox);
    let [certificate, key] =
        ["tls.pem", "tls.key"].map(|name| sandbox.path(name).display().to_string());
    let log = sandbox.serve(&[
        ("CAPSTAN_TLS__CERTIFICATE", &certificate),
        ("CAPSTAN_TLS__KEY", &key),
        ("CAPSTAN_LOG__FORMAT", "json"),
    ]);
    let root = fs::read(&certificate).unwrap();
    let root = reqwest::Certificate::from_pem(&root).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([root]).build().unwrap();
    for (token, status) in [(WRONG, 401), (TOKEN, 201)] {
        let request = client.post(format!("{}/entries", log.url)).bearer_auth(token);
        let request = request.header("content-type", "application/cose").body(statement(b"tls"));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status);
        said += &String::from_utf8_lossy(&answer.bytes().await.unwrap());
    }
    let log = log.stop();
    assert!(log.contains("\"message\":\"registered\""), "{log}");
    assert_eq!(leaked_secret(&sandbox, &(said + &log)), None);
}

#[test]
fn command_output_has_no_secrets() {
    let sandbox = Sandbox::new();
    set_up(&sandbox);
    fs::write(sandbox.path("one.cose"), statement(b"one")).unwrap();
    let with_key = sandbox.path("tls.key").display().to_string();
    let rows = [
        ("config print --data data", Some(0)),
        ("config print --data data --json", Some(0)),
        ("config check --data data", Some(0)),
        ("serve --data nowhere", Some(2)),
        ("register one.cose --url http://127.0.0.1:1", Some(2)),
        ("register --help", Some(0)),
        // A private key instead of a public one.
        ("verify one.cose --issuer-key agent.key", Some(2)),
    ];
    for (line, exit) in rows {
        let mut command = sandbox.command(line);
        if line.starts_with("register") {
            command.env("CAPSTAN_TOKEN", TOKEN);
        } else {
            command.env("CAPSTAN_AUTH__TOKEN", TOKEN).env("CAPSTAN_TLS__KEY", &with_key);
            command.env("CAPSTAN_TLS__CERTIFICATE", sandbox.path("tls.pem"));
        }
        let output = command.output().unwrap();
        let said = both_streams(&output);
        assert_eq!(output.status.code(), exit, "capstan {line}: {said}");
        assert!(!said.is_empty(), "capstan {line}");
        assert_eq!(leaked_secret(&sandbox, &said), None, "capstan {line}");
    }
}

/// All files under a directory with their modes; private directories are not
/// entered.
fn modes(dir: &Path, into: &mut Vec<(PathBuf, u32)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o7777;
        into.push((path.clone(), mode));
        if path.is_dir() && path.file_name().is_some_and(|name| name != "store") {
            modes(&path, into);
        }
    }
}

#[test]
fn file_modes_do_not_depend_on_umask() {
    let sandbox = Sandbox::new();
    set_up(&sandbox);
    let log = sandbox.serve(&[]);
    assert!(log.ask("POST /entries", TOKEN, &statement(b"one")).starts_with("HTTP/1.1 201"));
    sandbox.run("backup --data data --to copy");
    let socket = sandbox.path("data/backup.sock");
    assert!(socket.exists(), "a running log has its socket in the private directory");
    log.stop();
    sandbox.run("restore --from copy --data again --keys data/keys");
    let mut all = Vec::new();
    modes(sandbox.0.path(), &mut all);
    let ours = ["tls.pem", "tls.key", "said"].map(|name| sandbox.path(name));
    all.retain(|(path, _)| !ours.contains(path));
    let mut private = 0;
    for (path, mode) in &all {
        let name = path.strip_prefix(sandbox.0.path()).unwrap();
        let is_key = name.extension().is_some_and(|ending| ending == "pem" || ending == "key");
        let is_dir = path.is_dir() && !name.ends_with("store");
        let inside = name.components().count() > 1;
        let fits = match (is_key, is_dir) {
            (true, _) => *mode == 0o600,
            (_, true) => *mode == 0o700,
            // Inside a private directory.
            _ if inside => true,
            _ => mode & 0o022 == 0,
        };
        assert!(fits, "{}: {mode:o}", name.display());
        private += usize::from(is_key);
    }
    // Two service keys and the checkpoint key; of the restored log the two in use;
    // the agent's key.
    assert_eq!(private, 6, "{all:?}");
    for name in ["data.guard", "agent.key.pub", "data/keys", "copy", "again"] {
        assert!(all.iter().any(|(path, _)| *path == sandbox.path(name)), "{name} in {all:?}");
    }
}
