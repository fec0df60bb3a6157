//! `capstan hammer` against a log that keeps its promises, and against ones
//! that do not.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use capstan::checkpoint::{Checkpoint, SignedCheckpoint, VerifierKey};
use capstan::key::{Algorithm, SigningKey};
use capstan::service;
use capstan::wire::digest::Digest;
use serde_json::Value as Json;

use crate::live::Server;

const OPEN: &str = include_str!("../../policy/open.toml");

/// Runs the hammer in a directory; standard output, and the exit code.
fn hammer(at: &Path, exit: i32, line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.arg("hammer").args(line.split_whitespace()).current_dir(at);
    let output = command.env_remove("CAPSTAN_TOKEN").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "capstan hammer {line}\n{told}\n{errors}");
    told
}

fn object(at: &Path, exit: i32, line: &str) -> Json {
    serde_json::from_str(&hammer(at, exit, &format!("{line} --json"))).unwrap()
}

fn log(at: &Path, policy: &str) -> PathBuf {
    let data = at.join("data");
    service::init(&data, "hammer.invalid", policy, Algorithm::Es256).unwrap();
    data
}

fn number(object: &Json, pointer: &str) -> u64 {
    let found = object.pointer(pointer).and_then(Json::as_u64);
    found.unwrap_or_else(|| panic!("{pointer} in {object}"))
}

#[test]
fn an_open_log_keeps_every_promise() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&log(dir.path(), OPEN));
    let line = format!("--url http://{} --dev --seconds 2 --seed 1", server.address);
    let told = object(dir.path(), 0, &line);
    assert_eq!((&told["ok"], &told["code"]), (&true.into(), &"ok".into()), "{told}");
    assert_eq!(number(&told, "/seed"), 1);
    for kind in ["capsules", "opaque", "pacr", "pca", "trace"] {
        assert!(number(&told, &format!("/statements/by_kind/{kind}")) > 0, "{told}");
    }
    let positive = [
        "/statements/registered",
        "/statements/duplicates",
        "/statements/refused",
        "/statements/reads/receipts",
        "/statements/reads/consistency",
        "/statements/reads/checkpoints",
        "/statements/reads/tiles",
        "/heads",
        "/checked/leaves",
        "/checked/heads",
        "/checked/statements",
        "/checked/absent",
    ];
    positive.iter().for_each(|pointer| assert!(number(&told, pointer) > 0, "{pointer}: {told}"));
    for pointer in ["pushed_back", "pending", "connection_errors", "unfinished", "not_verified"] {
        number(&told, &format!("/statements/{pointer}"));
    }
    assert_eq!(number(&told, "/checked/places"), number(&told, "/statements/registered"));
    assert_eq!(told["checked"]["published"], true, "{told}");
    let latency = &told["statements"]["answer_ms"];
    let [p50, p90, p99, max] = ["p50", "p90", "p99", "max"].map(|q| latency[q].as_f64().unwrap());
    assert!(0.0 < p50 && p50 <= p90 && p90 <= p99 && p99 <= max, "{latency}");
    assert!(!dir.path().join("hammer-evidence").exists(), "nothing was broken");
}

#[test]
fn all_records_by_keys_that_the_log_knows() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let data = log(at, include_str!("../../policy/all-records.toml"));
    hammer(at, 0, "--key-dir keys --trust-out data/trust.toml");
    let server = Server::start(&data);
    let url = format!("--url http://{}", server.address);
    let mix = "--mix capsules=2,pacr=2,pca=1,trace=2";
    let line = format!("{url} --key-dir keys {mix} --pre-signed --count 200 --batch 20");
    let told = object(at, 0, &line);
    assert_eq!(number(&told, "/statements/unfinished"), 0);
    assert!(number(&told, "/statements/registered") > 100, "{told}");
    let text = hammer(at, 0, &format!("{url} --key-dir keys {mix} --rate 50 --seconds 1"));
    assert!(text.starts_with("yes  every promise was kept"), "{text}");
    // The policy has no place for bytes it knows nothing about.
    let line = format!("{url} --key-dir keys --mix opaque --count 5");
    assert_eq!(object(at, 2, &line)["code"], "not-admitted");
}

#[test]
fn any_server_can_be_loaded_plainly() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&log(dir.path(), OPEN));
    let line = format!("--url http://{} --plain --count 30 --keys es256", server.address);
    let told = object(dir.path(), 0, &line);
    assert_eq!(number(&told, "/statements/by_kind/opaque"), 30);
    assert_eq!(number(&told, "/statements/not_verified"), 0);
    assert_eq!(number(&told, "/checked/leaves"), 0, "no tiles are read");
}

#[test]
fn what_would_hit_somebody_else_is_not_started() {
    let dir = tempfile::tempdir().unwrap();
    let rows = [
        ("--url http://192.0.2.7:1 --dev", "not-loopback"),
        ("--url http://[2001:db8::1]:1 --dev", "not-loopback"),
        ("--url http://127.0.0.1:1", "usage"),
        ("--url http://127.0.0.1:1 --dev --keys x5chain", "usage"),
        ("--url http://127.0.0.1:1 --dev --once --mix capsules,trace", "usage"),
    ];
    for (line, code) in rows {
        assert_eq!(object(dir.path(), 2, line)["code"], code, "{line}");
    }
}

/// A log that takes one statement each second from one address.
fn slow_log(at: &Path) -> PathBuf {
    let data = log(at, OPEN);
    std::fs::write(data.join("capstan.toml"), "[rate]\nper_second = 1\n").unwrap();
    data
}

#[test]
fn what_is_pushed_back_can_be_counted_and_left() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&slow_log(dir.path()));
    let line = format!("--url http://{} --dev --mix opaque --once", server.address);
    let told = object(dir.path(), 0, &format!("{line} --count 30 --duplicates 0 --refusals 0"));
    assert_eq!(number(&told, "/statements/requests"), 30, "none is sent again: {told}");
    let (taken, pushed) =
        (number(&told, "/statements/registered"), number(&told, "/statements/pushed_back"));
    assert!(taken > 0 && pushed > 0 && taken + pushed == 30, "{told}");
    assert_eq!(number(&told, "/statements/pushed_back_by/429 too-many-requests"), pushed);
}

#[test]
fn a_log_that_is_gone_is_waited_for_and_then_is_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&log(dir.path(), OPEN));
    let address = server.address.clone();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        server.kill();
    });
    let line = format!("--url http://{address} --dev --seconds 20 --patience 1");
    assert_eq!(object(dir.path(), 2, &line)["code"], "gone");
    killer.join().unwrap();
}

/// What a lying server makes of an answer: path of the request, head and
/// body of the answer; gives another body, under 201 if it was refused.
type Lie = dyn Fn(&str, &str, &[u8]) -> Option<Vec<u8>> + Send + Sync;

/// Stands between the hammer and a log. Ends with the test process.
fn proxy(server: &Server, lie: Arc<Lie>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, upstream) = (listener.local_addr().unwrap(), server.address.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (upstream, lie) = (upstream.clone(), lie.clone());
            std::thread::spawn(move || relay(stream, &upstream, &*lie));
        }
    });
    format!("http://{address}")
}

/// One request on a connection of its own; none when it breaks off.
fn relay(mut client: TcpStream, upstream: &str, lie: &Lie) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut server = TcpStream::connect(upstream).ok()?;
    server.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).ok()?;
    server.write_all(&body).ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let mut told = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let mut content = answer[end + 4..].to_vec();
    if let Some(other) = lie(head.split_whitespace().nth(1)?, &told, &content) {
        let old = format!("content-length: {}", content.len());
        told = told.replace(&old, &format!("content-length: {}", other.len()));
        told = told.replacen("http/1.1 400 bad request", "http/1.1 201 created", 1);
        content = other;
    }
    let told = told.replacen("http/", "HTTP/", 1);
    client.write_all(format!("{told}\r\n\r\n").as_bytes()).ok()?;
    client.write_all(&content).ok()
}

/// The run ends with exit code 1 and says which promise, with files that
/// show it.
fn caught(lie: impl Fn(&str, &str, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static) -> Json {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&log(dir.path(), OPEN));
    let url = proxy(&server, Arc::new(lie));
    let line = format!("--url {url} --dev --seconds 20 --in-flight 4 --save found");
    let told = object(dir.path(), 1, &line);
    assert_eq!((&told["ok"], &told["code"]), (&false.into(), &"broken-promise".into()), "{told}");
    let files = told["evidence"].as_array().unwrap();
    assert!(files.len() > 1, "{told}");
    for file in files {
        let path = dir.path().join(file.as_str().unwrap());
        assert!(path.starts_with(dir.path().join("found")), "{}", path.display());
        assert!(!std::fs::read(&path).unwrap().is_empty(), "{}", path.display());
    }
    let about = std::fs::read_to_string(dir.path().join("found/broken.json")).unwrap();
    let about: Json = serde_json::from_str(&about).unwrap();
    assert_eq!(about["promise"], told["promise"]);
    assert!(about["run"]["log_keys"].as_array().is_some_and(|keys| keys.len() == 1), "{about}");
    told
}

#[test]
fn the_receipt_of_another_statement_is_caught() {
    let first = Mutex::new(None);
    let told = caught(move |path, head, body| {
        let is_receipt = path == "/entries" && head.starts_with("http/1.1 201");
        let mut first = first.lock().unwrap();
        match (&*first, is_receipt) {
            (_, false) => None,
            (None, true) => {
                *first = Some(body.to_vec());
                None
            }
            (Some(other), true) => Some(other.clone()),
        }
    });
    assert_eq!(told["promise"], "receipt-verifies", "{told}");
}

/// Signs as well as the log does, over a tree that is not the log's.
#[test]
fn a_forked_checkpoint_is_caught() {
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let name = "hammer.invalid";
    let told = caught(move |path, _, body| match path {
        "/checkpoint/key" => Some(VerifierKey::new(name, key.public()).unwrap().to_string().into()),
        "/checkpoint" => {
            let note = std::str::from_utf8(body).unwrap();
            SignedCheckpoint::parse(note).unwrap();
            let size = note.lines().nth(1).unwrap().parse().unwrap();
            let size = capstan::log::TreeSize::new(size);
            let fork = Checkpoint { origin: name.to_owned(), size, root: Digest::of(b"fork") };
            Some(fork.sign(name, &key).unwrap().into())
        }
        _ => None,
    });
    let promise = told["promise"].as_str().unwrap();
    let seen = ["one-root-per-size", "tiles-match-the-root", "only-grows"];
    assert!(seen.contains(&promise), "{told}");
}

#[test]
fn a_tile_of_another_tree_is_caught() {
    let told = caught(|path, _, body| {
        let mut other = body.to_vec();
        path.starts_with("/tile/").then(|| {
            other[5] ^= 1;
            other
        })
    });
    assert_eq!(told["promise"], "tiles-match-the-root", "{told}");
}

/// Whoever sends people away tells them why.
#[test]
fn a_push_back_without_a_reason_is_caught() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&slow_log(dir.path()));
    let lie = |_: &str, head: &str, _: &[u8]| {
        head.starts_with("http/1.1 429").then(|| b"not now".to_vec())
    };
    let url = proxy(&server, Arc::new(lie));
    let line = format!("--url {url} --dev --seconds 20 --in-flight 4 --save found");
    assert_eq!(object(dir.path(), 1, &line)["promise"], "answers-as-specified");
}

/// Somebody in front of the log answers 201 to what it has refused.
#[test]
fn a_log_that_takes_what_it_must_refuse_is_caught() {
    let told = caught(|path, head, _| {
        let refused = path == "/entries" && head.starts_with("http/1.1 400");
        refused.then(|| b"taken".to_vec())
    });
    assert_eq!(told["promise"], "refuses-what-is-not-sound", "{told}");
}
