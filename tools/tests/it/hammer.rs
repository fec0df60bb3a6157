//! `capstan-hammer` against a log that keeps its promises.

use std::path::{Path, PathBuf};
use std::process::Command;

use capstan::key::Algorithm;
use capstan::service;
use serde_json::Value as Json;

use crate::server::Server;

pub(crate) const OPEN: &str = include_str!("../../../policy/open.toml");

/// Runs the hammer in a directory; standard output, and the exit code.
fn hammer(at: &Path, exit: i32, line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan-hammer"));
    command.args(line.split_whitespace()).current_dir(at);
    let output = command.env_remove("CAPSTAN_TOKEN").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "capstan-hammer {line}\n{told}\n{errors}");
    told
}

pub(crate) fn object(at: &Path, exit: i32, line: &str) -> Json {
    serde_json::from_str(&hammer(at, exit, &format!("{line} --json"))).unwrap()
}

pub(crate) fn log(at: &Path, policy: &str) -> PathBuf {
    let data = at.join("data");
    service::init(&data, "hammer.invalid", policy, Algorithm::Es256).unwrap();
    data
}

fn number(object: &Json, pointer: &str) -> u64 {
    let found = object.pointer(pointer).and_then(Json::as_u64);
    found.unwrap_or_else(|| panic!("{pointer} in {object}"))
}

#[test]
fn open_log_passes() {
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
        "/checked/tiles",
        "/checked/statements",
        "/checked/absent",
    ];
    positive.iter().for_each(|pointer| assert!(number(&told, pointer) > 0, "{pointer}: {told}"));
    for pointer in ["pushed_back", "pending", "connection_errors", "unfinished", "not_verified"] {
        number(&told, &format!("/statements/{pointer}"));
    }
    assert_eq!(number(&told, "/checked/places"), number(&told, "/statements/registered"));
    assert_eq!(number(&told, "/checked/heads"), number(&told, "/heads"), "every head");
    assert_eq!(told["checked"]["published"], true, "{told}");
    let latency = &told["statements"]["answer_ms"];
    let [p50, p90, p99, max] = ["p50", "p90", "p99", "max"].map(|q| latency[q].as_f64().unwrap());
    assert!(0.0 < p50 && p50 <= p90 && p90 <= p99 && p99 <= max, "{latency}");
    assert!(!dir.path().join("hammer-evidence").exists(), "nothing was broken");
}

#[test]
fn all_kinds_pass_with_trusted_keys() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let data = log(at, include_str!("../../../policy/all-records.toml"));
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
fn plain_mode_loads_any_scrapi_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&log(dir.path(), OPEN));
    let line = format!("--url http://{} --plain --count 30 --keys es256", server.address);
    let told = object(dir.path(), 0, &line);
    assert_eq!(number(&told, "/statements/by_kind/opaque"), 30);
    assert_eq!(number(&told, "/statements/not_verified"), 0);
    assert_eq!(number(&told, "/checked/leaves"), 0, "no tiles are read");
}

#[test]
fn remote_address_is_refused() {
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
fn once_counts_pushback_and_does_not_retry() {
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
fn unreachable_log_exits_with_2_after_patience() {
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
