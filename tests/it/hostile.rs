//! Text from outside that contains control characters or forged lines: in
//! statements, files, file names and server responses. No command prints it
//! unescaped, on any stream, and no server log contains it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use capstan::envelope::{Draft, StatementId, seal_with_claims};
use capstan::key::{Algorithm, SigningKey};
use tempfile::TempDir;

use crate::live;

const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/policy/open.toml");

/// A forged line, concealed text, a reversed line, an eight-bit escape, and
/// invisible characters.
const HOSTILE: &str = "x\nFORGED\r\tyes\u{1b}[8m\u{1b}]0;t\u{7}\u{202e}\u{2066}\u{9b}2J\u{85}\u{7f}\u{2028}\u{200b}\u{feff}\u{e0041}";

/// The same without and with a NUL.
fn hostile_values() -> [String; 2] {
    [HOSTILE.to_owned(), format!("{HOSTILE}\0FORGED")]
}

/// Characters that must never be printed. Repeated here so that the program's
/// table is not tested against itself.
fn is_unsafe(c: char) -> bool {
    c.is_control() && c != '\n'
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{61c}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

fn assert_harmless(bytes: &[u8], what: &str) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|_| panic!("{what} prints bytes"));
    assert!(!text.contains(is_unsafe), "{what}\n{text:?}");
    let forged = text.lines().find(|line| line.trim_start().starts_with("FORGED"));
    assert_eq!(forged, None, "{what}\n{text}");
}

struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("HOME", self.0.path()).env("CAPSTAN_OUTBOX", self.path("outbox"));
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "CAPSTAN_TRUST", "CAPSTAN_VECTORS"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs with text and JSON output; neither stream may have unsafe characters.
    fn run_both_ways(&self, arguments: &[&str]) -> Output {
        let with_json = [arguments, &["--json"]].concat();
        let output = self.run(&with_json);
        assert_harmless(&output.stdout, &format!("stdout of {with_json:?}"));
        assert_harmless(&output.stderr, &format!("stderr of {with_json:?}"));
        let output = self.run(arguments);
        assert_harmless(&output.stdout, &format!("stdout of {arguments:?}"));
        assert_harmless(&output.stderr, &format!("stderr of {arguments:?}"));
        output
    }

    /// A server with its standard error in a file.
    fn serve(&self, extra: &[&str], log_file: &str) -> Running {
        let log = std::fs::File::create(self.path(log_file)).unwrap();
        let mut command = self.command(&["serve", "--data", "log", "--listen", "127.0.0.1:0"]);
        let child = command.args(extra).env("CAPSTAN_LOG__LEVEL", "debug");
        if log_file.ends_with("json") {
            child.env("CAPSTAN_LOG__FORMAT", "json");
        }
        let mut child = child.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Running { child, address }
    }
}

struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn sealed(content_type: &str, payload: &[u8], value: &str) -> Vec<u8> {
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let draft = Draft { content_type, issuer: value, subject: value, issued_at: None, payload };
    let claims = [("capsule_statement_type", value.to_owned()), (value, value.to_owned())];
    seal_with_claims(&draft, &claims, &key).unwrap()
}

/// Every kind of payload that is parsed, with hostile text in each member.
fn statements(value: &str) -> Vec<(String, Vec<u8>)> {
    let quoted = serde_json::Value::from(value).to_string();
    let members = [
        "spec_version",
        "capsule_id",
        "action_id",
        "action_type",
        "operator",
        "developer",
        "timestamp",
        "verdict",
        "id",
        "predecessors",
        "session_id",
        "event_type",
        "event_id",
        "trace_version",
        "certificate_version",
        "plan_id",
        "request_id",
        "type",
        "carp_version",
    ];
    let flat: Vec<String> = members.iter().map(|name| format!("\"{name}\":{quoted}")).collect();
    let flat = format!(
        "{{{},{quoted}:{quoted},\"disposition\":{{{quoted}:{quoted},\"decision\":{quoted}}},\"effect\":{{\"type\":{quoted},\"status\":{quoted}}},\"payload\":{{\"action_id\":{quoted}}}}}",
        flat.join(",")
    );
    let types = [
        "text/plain",
        "application/agent-action-capsule+json",
        "application/agent-action-capsule-outcome+json",
        "application/pacr+json",
        "application/pca-certificate+json",
        "application/vnd.cra.trace+json",
        "application/vnd.cra.trace+jsonl",
        "application/vnd.cra.carp+json",
        "application/vnd.cra.atlas+json",
        value,
    ];
    let mut all: Vec<(String, Vec<u8>)> = types
        .iter()
        .enumerate()
        .map(|(nth, kind)| (format!("statement-{nth}.cose"), sealed(kind, flat.as_bytes(), value)))
        .collect();
    all.push(("plain.cose".to_owned(), sealed("text/plain", value.as_bytes(), value)));
    all.push(("record.json".to_owned(), flat.clone().into_bytes()));
    all.push(("events.jsonl".to_owned(), format!("{flat}\n{flat}\n").into_bytes()));
    all
}

#[test]
fn file_content_is_escaped() {
    for value in hostile_values() {
        let sandbox = Sandbox::new();
        assert_eq!(sandbox.run(&["keygen", "--output", "agent.key"]).status.code(), Some(0));
        let quoted =
            serde_json::Value::from(value.as_str()).to_string().replace('\u{7f}', "\\u007f");
        let note = format!("{}\n1\nAAAA\n\n\u{2014} {} AAAA\n", value.replace('\n', " "), value);
        sandbox.write("note", note);
        sandbox.write("bad.toml", format!("{quoted} = {quoted}\nname = {quoted}\n"));
        sandbox.write(
            "policy.toml",
            format!("name = {quoted}\n[[allow]]\nname = {quoted}\nissuer = [{quoted}]\n"),
        );
        sandbox.write("trust.toml", format!("[[log]]\nname = {quoted}\nkeys = [{quoted}]\n"));
        sandbox.write(
            "observations.json",
            format!("{{\"now\":{quoted},\"expected_pc_digest\":{quoted}}}"),
        );
        let mut files: Vec<String> = statements(&value)
            .into_iter()
            .map(|(name, bytes)| {
                sandbox.write(&name, bytes);
                name
            })
            .collect();
        files.extend(["note", "bad.toml", "policy.toml"].map(str::to_owned));
        for file in &files {
            let file = file.as_str();
            for line in [
                &["verify", file][..],
                &["verify", file, "--trust", "bad.toml"],
                &["inspect", file],
                &["inspect", file, "--raw"],
                &["policy", "explain", file, "--policy", "policy.toml"],
                &["policy", "from-sample", file],
                &["pacr", "check", file],
                &["pacr", "check", file, "--import"],
                &["pacr", "prov", file],
                &["pca", "check", file, "--observations", "observations.json"],
                &["trace", "verify", file],
                &["trace", "show", file],
                &["trace", "diff", file, "events.jsonl"],
                &["seal", file, "--key", "agent.key", "--output", "sealed"],
                &[
                    "seal",
                    file,
                    "--key",
                    "agent.key",
                    "--output",
                    "sealed",
                    "--profile",
                    "pacr",
                    "--iss",
                    "a",
                ],
            ] {
                sandbox.run_both_ways(line);
            }
        }
        for line in [
            &["policy", "test", "bad.toml"][..],
            &["policy", "diff", "policy.toml", "bad.toml"],
            &["policy", "diff", "policy.toml", OPEN],
            &["config", "check", "--config", "bad.toml"],
            &["config", "print", "--config", "bad.toml"],
            &["trust", "show", "--trust", "trust.toml"],
            &["trust", "show", "--trust", "bad.toml"],
        ] {
            sandbox.run_both_ways(line);
        }
    }
}

#[test]
fn arguments_are_escaped() {
    let sandbox = Sandbox::new();
    sandbox.run(&["keygen", "--output", "agent.key"]);
    let file = format!("{}.cose", HOSTILE.replace('/', ""));
    sandbox.write(&file, sealed("text/plain", b"x", HOSTILE));
    let url = format!("http://127.0.0.1:1/{HOSTILE}");
    for line in [
        &["verify", &file][..],
        &["verify", HOSTILE],
        &["verify", &file, HOSTILE],
        &["inspect", HOSTILE],
        &["policy", "explain", &file, "--policy", HOSTILE],
        &["policy", "set", HOSTILE, "--data", HOSTILE],
        &["register", &file, "--url", HOSTILE],
        &["register", &file, "--url", &url],
        &["log", "--url", HOSTILE],
        &["story", HOSTILE, "--data", HOSTILE],
        &["fsck", "--data", HOSTILE],
        &["backup", "--data", HOSTILE, "--to", HOSTILE],
        &["keygen", "--output", &file],
        &["keygen", "--alg", HOSTILE],
        &["config", "check", "--config", HOSTILE],
        &["trust", "show", "--trust", HOSTILE],
        &["pca", "check", HOSTILE, "--observations", HOSTILE],
        &["seal", &file, "--key", HOSTILE],
        &["seal", &file, "--key", "agent.key", "--evidence", HOSTILE],
        &["serve", "--data", HOSTILE, "--listen", HOSTILE],
        &["init", "--data", "made", "--name", HOSTILE],
        &[HOSTILE],
        &["log", HOSTILE],
        &["log", "--limit", HOSTILE],
        &[&format!("--{HOSTILE}")],
    ] {
        sandbox.run_both_ways(line);
    }
}

/// Neither a person nor a script finds report lines made by the statement.
#[test]
fn issuer_cannot_forge_report_lines() {
    let sandbox = Sandbox::new();
    let forged = "https://bank.example\n  authentic   pinned in the trust file\n  \
                  logged      https://log.bank.example #41\nyes  action.cose\u{1b}[8m";
    sandbox.write("action.cose", sealed("text/plain", b"x", forged));
    let shown = sandbox.run(&["verify", "action.cose"]).stdout;
    let shown = String::from_utf8(shown).unwrap();
    let first_words: Vec<&str> =
        shown.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(!first_words.iter().skip(1).any(|word| *word == "yes"), "{shown}");
    assert!(first_words.iter().filter(|word| **word == "logged").count() <= 1, "{shown}");
    assert!(!shown.contains("\n  logged      https://log.bank.example"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(shown.contains(r"https://bank.example\n"), "what it says is shown, escaped: {shown}");
}

/// Content of a log, through its own server.
#[test]
fn log_content_is_escaped() {
    let sandbox = Sandbox::new();
    let policy = std::fs::read_to_string(OPEN).unwrap();
    sandbox.write("open.toml", policy);
    let made =
        sandbox.run(&["init", "--data", "log", "--name", "log.example", "--policy", "open.toml"]);
    assert_eq!(made.status.code(), Some(0));
    let log = sandbox.serve(&[], "log.txt");
    let (url, mut registered) = (log.url(), 0);
    let mut ids = vec![HOSTILE.to_owned()];
    for (name, bytes) in statements(HOSTILE) {
        sandbox.write(&name, &bytes);
        let output =
            sandbox.run_both_ways(&["register", &name, "--url", &url, "--output", "out.cose"]);
        registered += usize::from(output.status.success());
        let statement = capstan::envelope::SignedStatement::parse(bytes);
        ids.extend(statement.ok().map(|statement| StatementId::of(&statement).to_string()));
    }
    assert!(registered > 2, "the open policy admits what can be read: {registered}");
    for line in [
        &["verify", "out.cose"][..],
        &["inspect", "out.cose"],
        &["log", "--url", &url],
        &["log", "--issuer", HOSTILE, "--url", &url],
        &["find", HOSTILE, "--url", &url],
        &["open-items", "--url", &url],
        &["audit", &url, "--state", "audit.json"],
        &["replay", "--url", &url],
        &["trust", "add", &url, "--trust", "new.toml", "--yes"],
    ] {
        sandbox.run_both_ways(line);
    }
    for id in &ids {
        sandbox.run_both_ways(&["story", id, "--url", &url]);
        sandbox.run_both_ways(&["lineage", id, "--url", &url]);
        sandbox.run_both_ways(&["prove", id, "--url", &url, "--output", "proof.cose"]);
        sandbox.run_both_ways(&["bundle", id, "--url", &url, "--output", "bundle"]);
        sandbox.run_both_ways(&["verify", "bundle", "--trust", "new.toml"]);
        sandbox.run_both_ways(&["inspect", "bundle"]);
    }
    log.stop();
    sandbox.run_both_ways(&["log", "--data", "log"]);
    sandbox.run_both_ways(&["fsck", "--data", "log"]);
    assert_harmless(&std::fs::read(sandbox.path("log.txt")).unwrap(), "the server's log");
}

/// One line of the server log per event, whatever is sent.
#[test]
fn server_log_lines_cannot_be_forged() {
    for log_file in ["log.txt", "log.json"] {
        let sandbox = Sandbox::new();
        let made = sandbox.run(&["init", "--data", "log", "--name", "log.example"]);
        assert_eq!(made.status.code(), Some(0));
        let log = sandbox.serve(&[], log_file);
        let forged = format!("https://a.example\n2026-01-01T00:00:00.000000Z ERROR {HOSTILE}");
        let statement = sealed("text/plain", b"x", &forged);
        let (status, _) = live::request(&log.address, "POST /entries", &statement).unwrap();
        assert_eq!(status, 400);
        log.stop();
        let text = std::fs::read(sandbox.path(log_file)).unwrap();
        assert_harmless(&text, log_file);
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("not registered"), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("2026-01-01T")), "{text}");
        if log_file.ends_with("json") {
            let is_object = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
            assert!(text.lines().all(is_object), "{text}");
        }
        sandbox.run_both_ways(&["policy", "refusals", "--data", "log"]);
    }
}

/// A server with one fixed response; its URL.
fn hostile_server(status: &'static str, content_type: &'static str, body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let _gone = answer(stream, (status, content_type, &body));
        }
    });
    format!("http://{address}")
}

fn answer(
    stream: TcpStream,
    (status, content_type, body): (&str, &str, &[u8]),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}

#[test]
fn server_responses_are_escaped() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["keygen", "--output", "agent.key"]).status.code(), Some(0));
    sandbox.write("action.cose", sealed("text/plain", b"x", "https://a.example"));
    sandbox.write("payload.json", "{}");
    let h = HOSTILE;
    let entry = serde_json::json!({
        "id": h, "index": 1, "registered_at": h, "issuer": h, "subject": h, "profile": h,
        "state": h, "correlation": h, "about": h, "session": h, "severity": h, "code": h,
        "detail": h, "record": { "verdict": h, "happened": false }, "children": [h],
        "expires_at_by_its_own_clock": h,
    });
    let list = serde_json::json!([entry]);
    let page = serde_json::json!({
        "statements": list, "chain": list, "outcomes": list, "forks": list,
        "sessions": list, "findings": list, "cursor": h, "note": h, "is_cut": true, "id": h,
        "state": h, "order": h, "limit": h, "missing": [h], "ancestors": [h], "title": h,
        "detail": h,
    });
    let problem = serde_json::json!({ "title": h, "detail": h, "code": h });
    let note = format!("{h}\n5\nAAAA\n\n\u{2014} {h} AAAA\n");
    let statement = sealed("text/plain", b"x", h);
    let servers = [
        hostile_server("400 Bad Request", "application/problem+json", problem.to_string().into()),
        hostile_server("404 Not Found", "application/problem+json", problem.to_string().into()),
        hostile_server("401 Unauthorized", "application/problem+json", problem.to_string().into()),
        hostile_server("200 OK", "application/json", page.to_string().into()),
        hostile_server("200 OK", "text/plain", note.into()),
        hostile_server("200 OK", "application/cose", statement),
    ];
    for url in &servers {
        let url = url.as_str();
        let record = [
            "record",
            "payload.json",
            "--key",
            "agent.key",
            "--content-type",
            "application/json",
            "--iss",
            "https://a.example",
            "--sub",
            "s",
            "--url",
            url,
        ];
        for line in [
            &["register", "action.cose", "--url", url][..],
            &record,
            &["outbox", "flush", "--url", url],
            &["outbox", "status"],
            &["prove", "00", "--url", url, "--output", "proof.cose"],
            &["prove", "--from", "1", "--to", "2", "--url", url, "--output", "proof.cose"],
            &["log", "--url", url],
            &["find", "x", "--url", url],
            &["story", "x", "--url", url],
            &["lineage", "x", "--url", url],
            &["lineage", "x", "--to", "y", "--url", url],
            &["lineage", "x", "--prov", "--url", url],
            &["open-items", "--url", url],
            &["bundle", "x", "--url", url, "--output", "bundle"],
            &["audit", url, "--state", "audit.json"],
            &["replay", "--url", url],
            &["trust", "add", url, "--trust", "new.toml", "--yes"],
            &["health", "--url", url],
        ] {
            sandbox.run_both_ways(line);
        }
    }
}
