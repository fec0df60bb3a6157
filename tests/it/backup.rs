//! Copies of a running log, and logs made from copies.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use capstan::key::{Algorithm, SigningKey};
use capstan::service;
use serde_json::Value;

use crate::live::{Server, request, sealed};

pub(crate) struct Sandbox {
    dir: tempfile::TempDir,
    key: SigningKey,
    counter: AtomicU64,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let policy = include_str!("../../policy/open.toml");
        service::init(&dir.path().join("data"), "backup.invalid", policy, Algorithm::Es256)
            .unwrap();
        let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
        Self { dir, key, counter: AtomicU64::new(0) }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn register(&self, server: &Server, count: u64) {
        for _ in 0..count {
            let n = self.counter.fetch_add(1, Ordering::Relaxed);
            let statement = sealed(&self.key, &n.to_string());
            assert_eq!(request(&server.address, "POST /entries", &statement).unwrap().0, 201);
        }
    }

    /// Runs the program with paths inside the sandbox; its exit code and answer.
    pub(crate) fn run(&self, line: &str) -> (i32, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
        command.args(line.split_whitespace()).arg("--json").current_dir(self.dir.path());
        let output = command.env_remove("CAPSTAN_VECTORS").output().unwrap();
        let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            panic!("capstan {line}: {}", String::from_utf8_lossy(&output.stderr))
        });
        (output.status.code().unwrap(), answer)
    }

    pub(crate) fn is_whole(&self, name: &str) {
        let (exit, answer) = self.run(&format!("fsck --data {name}"));
        assert_eq!((exit, &answer["code"]), (0, &"ok".into()), "{name}: {answer}");
    }
}

fn size(answer: &Value) -> u64 {
    answer["size"].as_u64().unwrap()
}

#[test]
fn running_log_is_backed_up_incrementally() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox.path("data"));
    sandbox.register(&server, 300);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                sandbox.register(&server, 1);
            }
        });
        let (exit, answer) = sandbox.run("backup --data data --to copy");
        stop.store(true, Ordering::Relaxed);
        assert!(exit == 0 && size(&answer) >= 302, "{answer}");
    });
    sandbox.is_whole("copy");
    sandbox.register(&server, 5);
    let (exit, answer) = sandbox.run("backup --data data --to copy");
    assert_eq!(exit, 0, "{answer}");
    assert!(server.terminate().success());
    let (_, at_rest) = sandbox.run("backup --data data --to other");
    assert_eq!((size(&answer), &answer["root"]), (size(&at_rest), &at_rest["root"]));
    sandbox.is_whole("copy");
    let keys = std::fs::read_dir(sandbox.path("copy/keys")).unwrap().count();
    assert_eq!(keys, 0, "a copy holds no private key");
    let (exit, answer) = sandbox.run("backup --data copy --to data");
    assert_eq!((exit, &answer["ok"]), (2, &Value::Null), "a log is not overwritten: {answer}");
}

#[test]
fn stale_copy_is_not_restored() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox.path("data"));
    sandbox.register(&server, 3);
    assert_eq!(sandbox.run("backup --data data --to old").0, 0);
    sandbox.register(&server, 2);
    assert_eq!(sandbox.run("backup --data data --to new").0, 0);
    let peer = format!("--peer http://{}", server.address);
    let published = || request(&server.address, "GET /checkpoint", b"").unwrap().1;
    let covers = |note: Vec<u8>| String::from_utf8(note).unwrap().lines().nth(1) == Some("7");
    assert!((0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        covers(published())
    }));
    let restore = "restore --keys data/keys --from";
    // The live log is ahead of the old copy, as its guard and its checkpoint
    // are: each alone is reason enough.
    let (exit, answer) = sandbox.run(&format!("{restore} old --data fresh {peer}"));
    assert_eq!((exit, &answer["code"]), (1, &"store-rolled-back".into()), "{answer}");
    assert!(answer["error"].as_str().unwrap_or_default().contains("peer"), "{answer}");
    assert!(!sandbox.path("fresh/FORMAT").exists());
    assert!(server.terminate().success());
    let kept = "--checkpoint data/checkpoint";
    let (exit, answer) = sandbox.run(&format!("{restore} old --data fresh {kept}"));
    assert_eq!((exit, &answer["code"]), (1, &"store-rolled-back".into()), "{answer}");
    std::fs::copy(sandbox.path("data.guard"), sandbox.path("fresh.guard")).unwrap();
    let (exit, answer) = sandbox.run(&format!("{restore} old --data fresh"));
    assert_eq!((exit, &answer["code"]), (1, &"store-rolled-back".into()), "{answer}");
    // Nothing is ahead of the new one, and its head is known elsewhere.
    let (exit, answer) = sandbox.run(&format!("{restore} new --data fresh {kept}"));
    assert_eq!((exit, &answer["writable"]), (0, &true.into()), "{answer}");
    let server = Server::start(&sandbox.path("fresh"));
    sandbox.register(&server, 1);
    assert!(server.terminate().success());
    sandbox.is_whole("fresh");
}

#[test]
fn log_restored_behind_its_head_never_writes() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox.path("data"));
    sandbox.register(&server, 3);
    assert_eq!(sandbox.run("backup --data data --to old").0, 0);
    sandbox.register(&server, 2);
    assert!(server.terminate().success());
    let line = "restore --keys data/keys --from old --data late --checkpoint data/checkpoint";
    let (exit, answer) = sandbox.run(&format!("{line} --read-only"));
    assert_eq!((exit, &answer["writable"]), (0, &false.into()), "{answer}");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_capstan"));
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(sandbox.path("late"));
    let output = serve.env_remove("CAPSTAN_VECTORS").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("rolled back"), "{said}");
}

#[test]
fn damaged_copy_is_not_restored() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run("backup --data data --to copy").0, 0);
    let note = sandbox.path("copy/checkpoint");
    write(&note, "garbage");
    let (exit, answer) = sandbox.run("restore --keys data/keys --from copy --data fresh");
    assert_eq!((exit, &answer["code"]), (1, &"copy-damaged".into()), "{answer}");
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
