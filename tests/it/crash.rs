//! SIGKILL under load, again and again: nothing acknowledged is lost, and
//! every head ever signed is a prefix of the last one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use capstan::config::Config;
use capstan::envelope::{SignedStatement, StatementId};
use capstan::key::{Algorithm, PublicKey, SigningKey};
use capstan::log::TreeSize;
use capstan::metrics::Metrics;
use capstan::receipt::Receipt;
use capstan::service::{self, Options};
use capstan::verify::{Memo, inclusion};

use crate::live::{Server, request, sealed};

/// `tests/faults/run long kill` kills ten times as often, under the hammer.
const KILLS: u64 = 20;
const WRITERS: u64 = 8;

/// A statement the log answered 201 for, and its answer.
struct Acknowledged {
    statement: Vec<u8>,
    receipt: Vec<u8>,
}

#[test]
fn sigkill_loses_nothing_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let policy = include_str!("../../policy/open.toml");
    service::init(&data, "crash.invalid", policy, Algorithm::Es256).unwrap();
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let acknowledged = Mutex::new(Vec::new());
    let counter = AtomicU64::new(0);
    for round in 0..KILLS {
        let server = Server::start(&data);
        check_some(&server, &acknowledged.lock().unwrap());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| write(&server.address, &key, &counter, &stop, &acknowledged));
            }
            // A different moment in each round, the same in each run.
            std::thread::sleep(Duration::from_millis(40 + round * 37 % 160));
            server.kill();
            stop.store(true, Ordering::Relaxed);
        });
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 20, "the load was real: {}", acknowledged.len());
    check_all(&data, &acknowledged);
}

fn write(
    address: &str,
    key: &SigningKey,
    counter: &AtomicU64,
    stop: &AtomicBool,
    acknowledged: &Mutex<Vec<Acknowledged>>,
) {
    while !stop.load(Ordering::Relaxed) {
        let n = counter.fetch_add(1, Ordering::Relaxed);
        let statement = sealed(key, &n.to_string());
        match request(address, "POST /entries", &statement) {
            Ok((201, receipt)) => {
                acknowledged.lock().unwrap().push(Acknowledged { statement, receipt });
            }
            Ok((status, _)) => panic!("status {status}"),
            Err(_) => return,
        }
    }
}

/// After a restart the newest of the acknowledged statements are there.
fn check_some(server: &Server, acknowledged: &[Acknowledged]) {
    for one in acknowledged.iter().rev().take(10) {
        let statement = SignedStatement::parse(one.statement.clone()).unwrap();
        let id = StatementId::of(&statement);
        let (status, _) = request(&server.address, &format!("GET /entries/{id}"), b"").unwrap();
        assert_eq!(status, 200, "{id} was acknowledged");
    }
}

/// Every receipt verifies, its root is the root of the final tree at that
/// size, the statement is where the receipt says, and fsck is clean.
fn check_all(data: &std::path::Path, acknowledged: &[Acknowledged]) {
    let options = Options::from_config(&Config::default());
    let service = service::open(data, options, Metrics::new("test")).unwrap();
    let keys: Vec<PublicKey> = service.keys().to_vec();
    let mut memo = Memo::default();
    for one in acknowledged {
        let statement = SignedStatement::parse(one.statement.clone()).unwrap();
        let receipt = Receipt::parse(one.receipt.clone()).unwrap();
        let included = inclusion(&receipt, &statement.canonical(), &keys, &mut memo).unwrap();
        let (index, size) = included.place.unwrap();
        let root = service.root_at(TreeSize::new(size)).unwrap();
        assert_eq!(root, included.root, "the head at {size} is a prefix of the last");
        let entry = service.entry_at(capstan::log::LeafIndex::new(index)).unwrap().unwrap();
        assert_eq!(entry.id, StatementId::of(&statement));
    }
    service.shut_down().unwrap();
    drop(service);
    let fsck = std::process::Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(["fsck", "--data"])
        .env_remove("CAPSTAN_VECTORS")
        .arg(data)
        .output()
        .unwrap();
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
}

/// A graceful end loses nothing either, and the answer to everything that
/// was taken is given.
#[test]
fn sigterm_completes_accepted_registrations() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let policy = include_str!("../../policy/open.toml");
    service::init(&data, "term.invalid", policy, Algorithm::Es256).unwrap();
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let (acknowledged, counter) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let server = Server::start(&data);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| write(&server.address, &key, &counter, &stop, &acknowledged));
        }
        std::thread::sleep(Duration::from_millis(150));
        assert!(server.terminate().success());
    });
    check_all(&data, &acknowledged.into_inner().unwrap());
}

/// An old copy of the data directory, put back after the log went on.
#[test]
fn older_copy_does_not_write() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let policy = include_str!("../../policy/open.toml");
    service::init(&data, "restore.invalid", policy, Algorithm::Es256).unwrap();
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let register = |server: &Server, text: &str| {
        let answer = request(&server.address, "POST /entries", &sealed(&key, text));
        assert_eq!(answer.unwrap().0, 201);
    };
    let server = Server::start(&data);
    register(&server, "before the backup");
    assert!(server.terminate().success());
    copy_tree(&data, &copy);
    let server = Server::start(&data);
    register(&server, "after the backup");
    assert!(server.terminate().success());
    std::fs::remove_dir_all(&data).unwrap();
    copy_tree(&copy, &data);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .env_remove("CAPSTAN_VECTORS")
        .arg(&data)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("rolled back"), "{said}");
}

pub(crate) fn copy_tree(from: &std::path::Path, to: &std::path::Path) {
    let status = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(status.success());
}
