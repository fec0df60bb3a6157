//! `capstan record`, its outbox, and logs that do not answer as they should:
//! the only sealed copy of a record is never lost.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use serde_json::Value;

use crate::cli::{Running, Sandbox};
use crate::live::request;

const SERVE: &str = "serve --data log --listen";

/// A sandbox with a key and a few descriptions of actions.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.expect(0, "keygen --alg Ed25519 --output agent.key");
    for name in ["one", "two"] {
        describe(&sandbox, name, true);
    }
    sandbox
}

fn describe(sandbox: &Sandbox, name: &str, with_id: bool) {
    let mut action = serde_json::json!({
        "action_type": "decide", "operator": "acme", "developer": "agent@1",
        "disposition": {"decision": "accept", "approver": "policy", "human_disposed": false},
    });
    if with_id {
        action["action_id"] = name.into();
    }
    std::fs::write(sandbox.path(&format!("{name}.json")), action.to_string()).unwrap();
}

fn command(sandbox: &Sandbox, line: &str) -> Command {
    let mut command = sandbox.command(line);
    command.env("CAPSTAN_OUTBOX", sandbox.path("outbox")).env_remove("CAPSTAN_TOKEN");
    command
}

fn record(sandbox: &Sandbox, name: &str, url: &str, more: &str) -> Output {
    let line = format!("record {name}.json --key agent.key --url {url} --json {more}");
    command(sandbox, &line).output().unwrap()
}

fn answer(output: &Output) -> (i32, Value) {
    let said = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (output.status.code().unwrap(), value)
}

fn flush(sandbox: &Sandbox, more: &str) -> (i32, Value) {
    answer(&command(sandbox, &format!("outbox flush --json {more}")).output().unwrap())
}

/// Names of the files in one part of the outbox.
fn files(sandbox: &Sandbox, part: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(sandbox.path("outbox").join(part)) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn counts(sandbox: &Sandbox) -> (u64, u64, u64) {
    let (_, status) = answer(&command(sandbox, "outbox status --json").output().unwrap());
    let count = |name: &str| status[name].as_u64().unwrap();
    (count("waiting"), count("receipted"), count("refused"))
}

fn size(log: &Running) -> u64 {
    let address = log.url.strip_prefix("http://").unwrap();
    let (_, body) = request(address, "GET /", b"").unwrap();
    let value: Value = serde_json::from_slice(&body).unwrap();
    value["tree_size"].as_u64().unwrap()
}

/// Answers POST as it is told, and everything else as a log without keys.
fn server(post: impl Fn(&mut TcpStream, &[u8]) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (head, body) = read(&mut stream);
            if head.starts_with("POST ") {
                post(&mut stream, &body);
            } else if head.contains("scitt-keys") {
                respond(&mut stream, "200 OK", "application/cbor", &[0x80]);
            } else {
                respond(&mut stream, "404 Not Found", "text/plain", b"");
            }
        }
    });
    url
}

fn read(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer).unwrap_or(0);
        bytes.extend_from_slice(&buffer[..count]);
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
        let head = end.map(|end| String::from_utf8_lossy(&bytes[..end]).into_owned());
        if let (Some(end), Some(head)) = (end, head) {
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok()
            });
            if bytes.len() >= end + 4 + length.unwrap_or(0) || count == 0 {
                return (head, bytes[end + 4..].to_vec());
            }
        } else if count == 0 {
            return (String::new(), Vec::new());
        }
    }
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _gone = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

const PROBLEM: &str = r#"{"title":"Bad Request","detail":"the policy says no","code":"no-rule"}"#;

/// Everything a server can say but a receipt: the record stays, and reaches
/// the right log later.
#[test]
fn record_stays_in_outbox_without_receipt() {
    let sandbox = sandbox();
    sandbox.init();
    let log = sandbox.start(&format!("{SERVE} 127.0.0.1:0"));
    // A receipt of this very log, for another statement.
    sandbox.seal("other");
    sandbox.expect(0, &format!("register other.cose --url {} --receipt other.receipt", log.url));
    sandbox.expect(0, &format!("trust add {} --trust trust.toml --yes", log.url));
    let receipt = std::fs::read(sandbox.path("other.receipt")).unwrap();
    let json = "application/problem+json";
    let closed =
        format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    type Row = (&'static str, String, &'static str);
    let rows: Vec<Row> = vec![
        ("nobody listens", closed, "could not be reached"),
        ("404", server(|s, _| respond(s, "404 Not Found", "text/plain", b"")), "404"),
        (
            "404 with a problem",
            server(move |s, _| respond(s, "404 Not Found", json, PROBLEM.as_bytes())),
            "the policy says no",
        ),
        ("400 of no log", server(|s, _| respond(s, "400 Bad", "text/html", b"<p>no")), "400"),
        (
            "401",
            server(move |s, _| {
                respond(s, "401 Unauthorized", json, br#"{"title":"Unauthorized"}"#)
            }),
            "token",
        ),
        ("500", server(|s, _| respond(s, "500 Oh", "text/plain", b"")), "500"),
        ("garbage", server(|s, _| respond(s, "201 Created", "application/cose", b"no")), "receipt"),
        ("cut", server(|_, _| ()), "could not be reached"),
        (
            "cut within the answer",
            server(|s, _| {
                drop(s.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 900\r\n\r\nx"))
            }),
            "could not be reached",
        ),
        (
            "a receipt for another statement",
            server(move |s, _| respond(s, "201 Created", "application/cose", &receipt)),
            "does not verify",
        ),
    ];
    let expected = rows.len();
    for (what, url, said) in &rows {
        describe(&sandbox, "row", false);
        let before = files(&sandbox, "waiting");
        let output = record(&sandbox, "row", url, "--trust trust.toml");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let (exit, report) = answer(&output);
        assert_eq!(
            (exit, &report["ok"], &report["code"]),
            (3, &Value::Null, &"waiting".into()),
            "{what}: {report}"
        );
        assert!(stderr.contains(said), "{what}: {stderr}");
        let reached = !said.contains("reached");
        assert!(!(reached && stderr.contains("could not be reached")), "{what}: {stderr}");
        let id = report["waiting"][0].as_str().unwrap();
        let now = files(&sandbox, "waiting");
        assert!(now.contains(&format!("{id}.cose")), "{what}: {now:?}");
        let sent = matches!(*what, "garbage" | "a receipt for another statement");
        assert_eq!(
            now.contains(&format!("{id}.unverified")),
            sent,
            "{what}: what was sent is kept"
        );
        assert!(now.len() > before.len());
    }
    let all = u64::try_from(expected).unwrap();
    assert_eq!(counts(&sandbox), (all, 0, 0));
    private(&sandbox);
    // Each went to its own address, and none to another one's.
    assert_eq!(flush(&sandbox, "--trust trust.toml").0, 3);
    let before = size(&log);
    let (exit, report) = flush(&sandbox, &format!("--url {} --trust trust.toml", log.url));
    assert_eq!((exit, &report["ok"]), (0, &true.into()), "{report}");
    assert_eq!((counts(&sandbox), size(&log)), ((0, all, 0), before + all));
    assert!(files(&sandbox, "waiting").is_empty());
}

/// `register` writes down what it was sent, and says that it is wrong.
#[test]
fn invalid_receipt_is_kept_in_outbox() {
    let sandbox = sandbox();
    sandbox.init();
    let log = sandbox.start(&format!("{SERVE} 127.0.0.1:0"));
    sandbox.expect(0, &format!("trust add {} --trust trust.toml --yes", log.url));
    ["one", "two"].iter().for_each(|name| sandbox.seal(name));
    sandbox.expect(0, &format!("register two.cose --url {} --receipt receipt", log.url));
    let receipt = std::fs::read(sandbox.path("receipt")).unwrap();
    let wrong = server(move |s, _| respond(s, "201 Created", "application/cose", &receipt));
    let garbage = server(|s, _| respond(s, "201 Created", "application/cose", b"garbage"));
    let rows = [(1, "head-signature", wrong), (2, "no-receipt", garbage)];
    for (exit, code, url) in rows {
        let line = format!("register one.cose --url {url} --trust trust.toml");
        let output = sandbox.run(&line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(exit), "{said}");
        assert!(said.contains("one.transparent.cose.unverified"), "{said}");
        assert!(!sandbox.path("one.transparent.cose").exists());
        std::fs::remove_file(sandbox.path("one.transparent.cose.unverified")).unwrap();
        assert_eq!(sandbox.json(exit, &format!("{line} --json"))["code"], code);
    }
}

/// Nobody else can read what waits or was refused.
fn private(sandbox: &Sandbox) {
    for part in ["waiting", "receipted", "refused"] {
        let dir = sandbox.path("outbox").join(part);
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        for name in files(sandbox, part) {
            let mode = std::fs::metadata(dir.join(&name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{part}/{name}");
        }
    }
}

#[test]
fn refused_record_is_kept_with_reason() {
    let sandbox = sandbox();
    let json = "application/problem+json";
    let url = server(move |s, _| respond(s, "400 Bad Request", json, PROBLEM.as_bytes()));
    let output = record(&sandbox, "one", &url, "");
    let (exit, report) = answer(&output);
    assert_eq!((exit, &report["ok"], &report["code"]), (1, &false.into(), &"refused".into()));
    let id = report["refused"][0].as_str().unwrap().to_owned();
    assert_eq!(files(&sandbox, "refused"), [format!("{id}.cose"), format!("{id}.json")]);
    assert_eq!((counts(&sandbox), files(&sandbox, "waiting").len()), ((0, 0, 1), 0));
    let reason = std::fs::read(sandbox.path("outbox/refused").join(format!("{id}.json"))).unwrap();
    let reason: Value = serde_json::from_slice(&reason).unwrap();
    assert_eq!(reason["url"], url.as_str());
    assert!(reason["reason"].as_str().unwrap().contains("the policy says no"));
    private(&sandbox);
    // It is the statement as it was sealed.
    sandbox.expect(0, &format!("inspect outbox/refused/{id}.cose"));
    // What waited, and is refused when it is sent, is kept the same way.
    let silent = server(|_, _| ());
    assert_eq!(answer(&record(&sandbox, "two", &silent, "")).0, 3);
    let (exit, report) = flush(&sandbox, &format!("--url {url}"));
    assert_eq!((exit, &report["ok"]), (1, &false.into()), "{report}");
    assert_eq!(counts(&sandbox), (0, 0, 2));
}

/// The outbox remembers which log each record is for.
#[test]
fn flush_sends_record_to_its_own_log() {
    let sandbox = sandbox();
    sandbox.init();
    let log = sandbox.start(&format!("{SERVE} 127.0.0.1:0"));
    let url = log.url.clone();
    log.stop();
    let line = format!("record one.json --key agent.key --url {url} --outbox elsewhere");
    let output = command(&sandbox, &line).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("outbox flush --outbox elsewhere"), "{said}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("not recorded yet"), "{said}");
    let log = sandbox.start(&format!("{SERVE} {}", url.strip_prefix("http://").unwrap()));
    let (exit, report) = flush(&sandbox, "--outbox elsewhere");
    assert_eq!((exit, report["receipted"].as_array().map(Vec::len)), (0, Some(1)), "{report}");
    assert_eq!(size(&log), 3);
    // Nothing waits any more: nothing is sent.
    assert_eq!(flush(&sandbox, "--outbox elsewhere").0, 0);
}

/// The record is on the disk before anything is sent.
#[test]
fn kill_between_seal_and_send_loses_nothing() {
    let sandbox = sandbox();
    let (sender, receiver) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let url = server(move |_, body| {
        sender.send(body.to_vec()).unwrap();
        let _until_the_end = held.lock().unwrap().recv();
    });
    let line = format!("record one.json --key agent.key --url {url}");
    let mut child =
        command(&sandbox, &line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let sent = receiver.recv().unwrap();
    let waiting = files(&sandbox, "waiting");
    let name = waiting.iter().find(|name| name.ends_with(".cose")).unwrap();
    let kept = std::fs::read(sandbox.path("outbox/waiting").join(name)).unwrap();
    assert_eq!(kept, sent, "what was sent is what is kept");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(release);
    sandbox.init();
    let log = sandbox.start(&format!("{SERVE} 127.0.0.1:0"));
    let (exit, report) = flush(&sandbox, &format!("--url {}", log.url));
    assert_eq!((exit, size(&log)), (0, 3), "{report}");
}

/// Processes on one outbox neither send twice nor lose.
#[test]
fn processes_share_outbox() {
    let sandbox = sandbox();
    sandbox.init();
    let silent = server(|_, _| ());
    for n in 0..12 {
        describe(&sandbox, &format!("n{n}"), true);
        assert_eq!(answer(&record(&sandbox, &format!("n{n}"), &silent, "")).0, 3);
    }
    let log = sandbox.start(&format!("{SERVE} 127.0.0.1:0"));
    let mut children = Vec::new();
    for n in 0..8 {
        let line = if n % 2 == 0 {
            format!("outbox flush --json --url {}", log.url)
        } else {
            describe(&sandbox, &format!("m{n}"), true);
            format!("record m{n}.json --key agent.key --json --url {}", log.url)
        };
        let child = command(&sandbox, &line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        children.push(child.unwrap());
    }
    let mut receipted = 0;
    for child in children {
        let (exit, report) = answer(&child.wait_with_output().unwrap());
        assert_eq!(exit, 0, "{report}");
        receipted += report["receipted"].as_array().unwrap().len();
    }
    // A record may have been sent by somebody else's flush: then its own
    // process reports it as well.
    assert!((16..=20).contains(&receipted), "{receipted}");
    assert_eq!((counts(&sandbox), size(&log)), ((0, 16, 0), 18));
}

#[test]
fn idempotency_key_deduplicates_records() {
    let sandbox = sandbox();
    sandbox.init();
    describe(&sandbox, "plain", false);
    let log = sandbox.start(&format!("{SERVE} 127.0.0.1:0"));
    let first = record(&sandbox, "plain", &log.url, "");
    let (exit, report) = answer(&first);
    assert_eq!((exit, &report["same_description_as"]), (0, &Value::Null), "{report}");
    let id = report["receipted"][0].as_str().unwrap().to_owned();
    // The same description again, twice: other actions, with a warning.
    let mut ids = vec![id.clone()];
    for _ in 0..2 {
        let again = record(&sandbox, "plain", &log.url, "");
        let (exit, report) = answer(&again);
        assert_eq!(
            (exit, report["same_description_as"].as_str()),
            (0, Some(id.as_str())),
            "{report}"
        );
        assert!(String::from_utf8_lossy(&again.stderr).contains(&id));
        ids.push(report["receipted"][0].as_str().unwrap().to_owned());
    }
    let actions: std::collections::BTreeSet<String> = ids
        .iter()
        .map(|id| {
            let path = format!("inspect outbox/receipted/{id}.transparent.cose --json");
            sandbox.json(0, &path)["record"]["action_id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!((actions.len(), size(&log)), (3, 5));
    // A key makes it one, whether it waits or has its receipt.
    let silent = server(|_, _| ());
    let keyed = "--idempotency-key order-7781";
    let (exit, waiting) = answer(&record(&sandbox, "two", &silent, keyed));
    assert_eq!(exit, 3);
    for _ in 0..2 {
        let (exit, report) = answer(&record(&sandbox, "two", &log.url, keyed));
        assert_eq!((exit, &report["receipted"]), (0, &waiting["waiting"]), "{report}");
    }
    assert_eq!(size(&log), 6);
    let (exit, report) = answer(&record(&sandbox, "one", &log.url, keyed));
    assert_eq!((exit, &report["code"]), (1, &"idempotency-key-reused".into()), "{report}");
    // The same sealed bytes again, as from a backup of the outbox.
    let transparent = sandbox.path("outbox/receipted").join(format!("{id}.transparent.cose"));
    let bytes = std::fs::read(&transparent).unwrap();
    let statement = capstan::envelope::SignedStatement::parse_any_size(bytes).unwrap();
    let waiting = sandbox.path("outbox/waiting").join(format!("{id}.cose"));
    std::fs::write(waiting, statement.canonical()).unwrap();
    // It does not say which log it is for.
    assert_eq!(flush(&sandbox, "").0, 3);
    let (exit, report) = flush(&sandbox, &format!("--url {}", log.url));
    assert_eq!((exit, &report["receipted"][0]), (0, &id.into()), "{report}");
    assert_eq!(size(&log), 6, "one statement, one entry");
}
