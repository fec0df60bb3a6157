//! What a data directory notices about itself before anything is written.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use tempfile::TempDir;

use super::*;
use crate::key::{Algorithm, SigningKey};
use crate::log::Plan;

const TIME: UnixSeconds = UnixSeconds::new(1_780_272_000);

fn canonical(index: u64) -> Vec<u8> {
    format!("statement {index}").into_bytes()
}

fn code<T>(result: Result<T, Error>) -> &'static str {
    result.map_or_else(|e| e.code(), |_| "ok")
}

/// A directory to be, inside one that disappears.
fn place() -> (TempDir, PathBuf) {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("data");
    (outside, path)
}

/// Appends `count` statements in one commit.
fn append(store: &Store, head: &HeadRecord, edge: &mut Edge, count: u64) -> HeadRecord {
    let first = head.size().get();
    let terms = Terms::default();
    let canonicals: Vec<_> = (first..first + count).map(canonical).collect();
    let entries: Vec<_> = canonicals
        .iter()
        .map(|canonical| NewEntry {
            id: StatementId::of_canonical(canonical),
            canonical,
            collateral: vec![0xa0],
            terms: &terms,
        })
        .collect();
    let leaves: Vec<_> = entries.iter().map(|e| leaf_hash(e.id.entry())).collect();
    let tiles: Vec<_> = leaves.iter().flat_map(|leaf| edge.append(*leaf)).collect();
    let next = head.next(Plan::extend(head.frontier(), &leaves).after, TIME);
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let commit = Commit {
        entries: &entries,
        tiles: &tiles,
        head: &next,
        controls: &[(Control::Policy, LeafIndex::new(0))],
        keys: Some(std::slice::from_ref(key.public())),
    };
    store.commit(&commit).unwrap();
    next
}

/// A log of `count` statements, closed again; its head before and after the
/// last one.
fn log_of(path: &Path, count: u64) -> (HeadRecord, HeadRecord) {
    let dir = DataDir::create(path).unwrap();
    dir.write_format().unwrap();
    let store = Store::create(dir).unwrap();
    let mut edge = Edge::empty();
    let before = append(&store, &HeadRecord::empty(), &mut edge, count - 1);
    let after = append(&store, &before, &mut edge, 1);
    (before, after)
}

fn open(path: &Path) -> Result<(Store, HeadRecord, Edge), Error> {
    Store::open(DataDir::open(path)?)
}

/// Changes one keyspace behind the store's back.
fn meddle(path: &Path, name: &str, change: impl FnOnce(&Keyspace)) {
    let database = Database::builder(path.join("store")).open().unwrap();
    change(&database.keyspace(name, KeyspaceCreateOptions::default).unwrap());
    database.persist(PersistMode::SyncAll).unwrap();
}

#[test]
fn what_was_committed_is_found_again() {
    let (_outside, path) = place();
    let (_, head) = log_of(&path, 600);
    let (store, found, edge) = open(&path).unwrap();
    assert_eq!(found.head(), head.head());
    assert_eq!(root_at(&store.nodes(&edge), found.size()).unwrap(), head.root());
    for index in [0, 255, 256, 599] {
        let id = StatementId::of_canonical(&canonical(index));
        let index = LeafIndex::new(index);
        assert_eq!(store.find(&id).unwrap(), Some(index));
        let stored = store.statement(index).unwrap().unwrap();
        assert_eq!(stored.canonical, canonical(index.get()));
        assert_eq!((stored.collateral, stored.time), (vec![0xa0], TIME));
    }
    assert_eq!(store.find(&StatementId::of_canonical(b"other")).unwrap(), None);
    assert_eq!(store.statement(LeafIndex::new(600)).unwrap(), None);
    assert_eq!(store.entries(LeafIndex::new(598), 2).unwrap().len(), 2);
    assert_eq!(code(store.entries(LeafIndex::new(599), 2)), "store-statement-missing");
    assert_eq!(store.control(Control::Policy).unwrap(), Some(LeafIndex::new(0)));
    assert_eq!(store.control(Control::Trust).unwrap(), None);
    assert_eq!(store.keys().unwrap().len(), 1);
    assert!(store.dir().free_bytes().unwrap() > 0);
    assert_eq!(code(store.full_tile(TileId::full(0, 2))), "store-tile-missing");
}

#[test]
fn one_directory_one_process() {
    let (_outside, path) = place();
    assert_eq!(code(open(&path)), "store-not-found");
    log_of(&path, 2);
    let held = open(&path).unwrap();
    assert_eq!(code(DataDir::open(&path)), "store-locked");
    assert_eq!(code(DataDir::create(&path)), "store-exists");
    drop(held);
    assert_eq!(code(open(&path)), "ok");
}

#[test]
fn a_directory_that_is_not_ready() {
    let (_outside, path) = place();
    let dir = DataDir::create(&path).unwrap();
    dir.write_format().unwrap();
    drop(Store::create(dir).unwrap());
    assert_eq!(code(open(&path)), "store-head-missing");
    std::fs::write(path.join("FORMAT"), "capstan 2\n").unwrap();
    let error = open(&path).err().unwrap();
    assert_eq!(error.code(), "store-format");
    assert!(error.to_string().contains("capstan 2"), "{error}");
    std::fs::write(path.join("FORMAT"), "capstan 1\n").unwrap();
    std::fs::remove_dir_all(path.join("store")).unwrap();
    std::fs::write(path.join("store"), "not a directory").unwrap();
    assert_eq!(code(open(&path)), "store-engine");
}

type Change = fn(&Keyspace, &HeadRecord);

/// Damage of each kind: (what, keyspace, how, code).
const DAMAGE: &[(&str, &str, Change, &str)] = &[
    ("head rubbish", "meta", |k, _| put(k, b"head", b"rubbish"), "store-head-unreadable"),
    ("an older head", "meta", |k, head| put(k, b"head", &head.encode()), "store-beyond-head"),
    ("head gone", "meta", |k, _| k.remove("head").unwrap(), "store-head-missing"),
    (
        "a statement changed",
        "statements",
        |k, _| put(k, &599_u64.to_be_bytes(), &[0x83, 0x41, 0x78, 0x40, 0x00]),
        "store-head-damaged",
    ),
    (
        "a statement unreadable",
        "statements",
        |k, _| put(k, &599_u64.to_be_bytes(), b"rubbish"),
        "store-statement-damaged",
    ),
    (
        "a statement gone",
        "statements",
        |k, _| k.remove(599_u64.to_be_bytes()).unwrap(),
        "store-statement-missing",
    ),
    (
        "a statement too many",
        "statements",
        |k, _| put(k, &600_u64.to_be_bytes(), &[0x83, 0x41, 0x78, 0x40, 0x00]),
        "store-beyond-head",
    ),
    ("a tile gone", "tiles", |k, _| k.remove([0; 9]).unwrap(), "store-tile-missing"),
    ("a tile changed", "tiles", |k, _| put(k, &[0; 9], &[7; 8192]), "store-head-damaged"),
    ("a tile cut", "tiles", |k, _| put(k, &[0; 9], &[7; 8191]), "log-tile-length"),
];

fn put(keyspace: &Keyspace, key: &[u8], value: &[u8]) {
    keyspace.insert(key, value).unwrap();
}

#[test]
fn damage_is_found_when_opening() {
    for (what, keyspace, change, expected) in DAMAGE {
        let (_outside, path) = place();
        let (before, _) = log_of(&path, 600);
        meddle(&path, keyspace, |k| change(k, &before));
        assert_eq!(code(open(&path)), *expected, "{what}");
    }
}

#[test]
fn damage_is_found_when_reading() {
    let (_outside, path) = place();
    log_of(&path, 3);
    let id = StatementId::of_canonical(&canonical(1));
    meddle(&path, "ids", |ids| put(ids, id.entry().as_bytes(), b"short"));
    meddle(&path, "statements", |s| put(s, &0_u64.to_be_bytes(), &[0x80]));
    meddle(&path, "meta", |meta| {
        put(meta, b"keys", b"rubbish");
        put(meta, Control::Policy.subject().as_bytes(), b"short");
    });
    // Three leaves are all read at the start, so damage shows there first.
    assert_eq!(code(open(&path)), "store-statement-damaged");
    let dir = DataDir::open(&path).unwrap();
    let store = Store::create(dir).unwrap();
    assert_eq!(code(store.find(&id)), "store-id-damaged");
    assert_eq!(code(store.statement(LeafIndex::new(0))), "store-statement-damaged");
    assert_eq!(code(store.keys()), "store-keys-unreadable");
    assert_eq!(code(store.control(Control::Policy)), "store-head-unreadable");
}

#[test]
fn a_store_behind_a_known_head_or_beside_it() {
    let (_outside, path) = place();
    let (before, after) = log_of(&path, 5);
    let (store, head, edge) = open(&path).unwrap();
    let check = |known: &Head| code(store.check_extends(&head, &edge, known, "guard"));
    assert_eq!(check(&after.head()), "ok");
    assert_eq!(check(&before.head()), "ok");
    let size = TreeSize::new(6);
    assert_eq!(check(&Head { size, ..after.head() }), "store-rolled-back");
    assert_eq!(check(&Head { root: before.root(), ..after.head() }), "store-forked");
    assert_eq!(check(&Head { root: after.root(), ..before.head() }), "store-forked");
}

#[test]
fn the_guard_remembers_or_says_why_not() {
    let (outside, path) = place();
    let (before, after) = log_of(&path, 5);
    let guard = Guard::at(&outside.path().join("guard"));
    assert_eq!(guard.read().unwrap(), None);
    guard.write(&before.head()).unwrap();
    guard.write(&after.head()).unwrap();
    assert_eq!(guard.read().unwrap(), Some(after.head()));
    let text = std::fs::read_to_string(guard.path()).unwrap();
    for damaged in ["", "capstan guard 2\n", &text.replace("size 5", "size five"), &text[..60]] {
        std::fs::write(guard.path(), damaged).unwrap();
        assert_eq!(code(guard.read()), "store-io", "{damaged:?} is not an empty guard");
    }
    assert_eq!(code(Guard::at(outside.path()).read()), "store-io");
    assert_eq!(DataDir::open(&path).unwrap().guard_path(), outside.path().join("data.guard"));
}

#[test]
fn private_files_stay_private() {
    let (outside, _) = place();
    let path = outside.path().join("key.pem");
    write_private(&path, b"secret").unwrap();
    assert_eq!(DataDir::read_private(&path).unwrap(), "secret");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(code(write_private(&path, b"other")), "store-io", "a key is never replaced");
    assert_eq!(DataDir::read_private(&path).unwrap(), "secret");
    for mode in [0o644, 0o640, 0o604, 0o660] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(code(DataDir::read_private(&path)), "store-world-readable", "{mode:o}");
    }
    assert_eq!(code(DataDir::read_private(&outside.path().join("none"))), "store-io");
}

#[test]
fn public_files_are_replaced_whole() {
    let (outside, _) = place();
    let path = outside.path().join("checkpoint");
    write_public(&path, b"one").unwrap();
    write_public(&path, b"two").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
    let left: Vec<_> = std::fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing temporary stays behind");
    assert_eq!(code(write_public(&outside.path().join("no/dir"), b"x")), "store-io");
}

#[test]
fn time_in_the_log_never_runs_backwards() {
    let empty = HeadRecord::empty();
    assert_eq!(empty.root(), crate::log::empty_root());
    let first = empty.next(empty.frontier().clone(), TIME);
    let second = first.next(first.frontier().clone(), UnixSeconds::new(5));
    assert_eq!(second.time(), TIME);
    let decoded = HeadRecord::decode(&second.encode()).unwrap();
    assert_eq!(decoded.encode(), second.encode());
    let mut broken = second.encode();
    broken[5] ^= 1;
    assert!(HeadRecord::decode(&broken).is_none(), "the root is the frontier's");
}

#[test]
fn a_copy_has_the_tree_of_its_source_or_is_none() {
    let (outside, path) = place();
    let store = Store::create(DataDir::create(&path).unwrap()).unwrap();
    let head = append(&store, &HeadRecord::empty(), &mut Edge::empty(), 300);
    let manifest = Manifest::of(&store, "key".to_owned()).unwrap();
    let manifest = Manifest::decode(&manifest.encode()).unwrap();
    assert_eq!(manifest.head().root, head.root());
    let copy = |name: &str, change: &dyn Fn(u64, Vec<u8>) -> Vec<u8>| {
        let mut copy = Copy::create(&outside.path().join(name)).unwrap();
        for index in 0..300 {
            copy.take(&change(index, store.row(LeafIndex::new(index)).unwrap()))?;
        }
        copy.finish(&manifest)
    };
    assert_eq!(code(copy("same", &|_, row| row)), "ok");
    let flip = |row: &mut [u8]| row[5] ^= 1;
    let flipped = copy("flipped", &|index, mut row| {
        if index == 7 {
            flip(&mut row);
        }
        row
    });
    assert_eq!(code(flipped), "store-copy-differs");
    assert!(!outside.path().join("flipped/FORMAT").exists());
    let garbage = copy("garbage", &|index, row| if index == 7 { vec![0xff] } else { row });
    assert_eq!(code(garbage), "store-statement-damaged");
}
