//! What a data directory notices about itself before anything is written.

use std::os::unix::fs::PermissionsExt as _;

use super::fixture::TestLog;
use super::memory::{Faulty, Memory, MemoryObjects};
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
        before: head,
        entries: &entries,
        tiles: &tiles,
        head: &next,
        controls: &[(Control::Policy, LeafIndex::new(0))],
        keys: Some(std::slice::from_ref(key.public())),
    };
    store.commit(&store.take_over().unwrap(), &commit).unwrap();
    next
}

/// Makes a log of `count` statements, closed again; its head before and after
/// the last one.
fn fill(log: &TestLog, count: u64) -> (HeadRecord, HeadRecord) {
    let backend = log.create();
    backend.dir.write_format().unwrap();
    let store = Store::create(backend).unwrap();
    let mut edge = Edge::empty();
    let before = append(&store, &HeadRecord::empty(), &mut edge, count - 1);
    let after = append(&store, &before, &mut edge, 1);
    (before, after)
}

fn open(log: &TestLog) -> Result<(Store, HeadRecord, Edge), Error> {
    Store::open(log.open()?)
}

#[test]
fn committed_rows_are_read_back() {
    TestLog::on_each_engine().iter().for_each(check_committed_rows);
}

fn check_committed_rows(log: &TestLog) {
    let (_, head) = fill(log, 600);
    let (store, found, edge) = open(log).unwrap();
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
    assert_eq!([Space::Statements, Space::Ids].map(|s| store.count(s).unwrap()), [600, 600]);
}

#[test]
fn ids_are_found_by_their_first_digits() {
    for log in TestLog::on_each_engine() {
        fill(&log, 600);
        let (store, ..) = open(&log).unwrap();
        let mut all: Vec<String> =
            (0..600).map(|n| StatementId::of_canonical(&canonical(n)).to_string()).collect();
        all.sort();
        for (prefix, limit) in [("", 7), ("a", 600), ("ab", 600), ("abc", 3), ("ff", 600)] {
            let wanted = all.iter().filter(|id| id.starts_with(prefix)).take(limit);
            let found = store.ids_from(prefix, limit).unwrap();
            let found = found.iter().map(|(id, _)| id.to_string());
            assert!(found.eq(wanted.cloned()), "{prefix} on {}", log.engine());
        }
    }
}

/// Pages of a scan join without a gap, in both directions.
#[test]
fn scans_see_every_row_once() {
    for log in TestLog::on_each_engine() {
        fill(&log, 600);
        let (store, ..) = open(&log).unwrap();
        for (from, to) in [(0, 600), (0, 1), (3, 3), (599, 600), (17, 170), (7, 5)] {
            for direction in [Direction::Forward, Direction::Backward] {
                let key = |index: u64| index.to_be_bytes().to_vec();
                let range = KeyRange { from: key(from), to: Some(key(to)) };
                let mut seen = Vec::new();
                let visit = |key: &[u8], _: &[u8]| {
                    seen.push(read_index(key).unwrap().get());
                    Ok(ControlFlow::<()>::Continue(()))
                };
                store.scan(Space::Statements, range, direction, visit).unwrap();
                if direction == Direction::Backward {
                    seen.reverse();
                }
                assert_eq!(seen, (from..to).collect::<Vec<_>>(), "{}", log.engine());
            }
        }
    }
    for (prefix, to) in [(&b"ab"[..], Some(&b"ac"[..])), (b"a\xff", Some(b"b")), (b"\xff", None)] {
        assert_eq!(KeyRange::prefix(prefix).to.as_deref(), to);
    }
}

/// A commit under an old lease, or for another head, writes nothing.
#[test]
fn only_the_newest_lease_commits_to_the_newest_head() {
    for log in TestLog::on_each_engine() {
        let (before, after) = fill(&log, 3);
        let (store, head, _) = open(&log).unwrap();
        let commit = |before: &HeadRecord, lease: &Lease| {
            let next = head.next(head.frontier().clone(), TIME);
            let (entries, tiles, controls, keys) = (&[], &[], &[], None);
            code(
                store
                    .commit(lease, &Commit { before, entries, tiles, head: &next, controls, keys }),
            )
        };
        let old = store.take_over().unwrap();
        let new = store.take_over().unwrap();
        assert_eq!(commit(&after, &old), "store-deposed", "{}", log.engine());
        assert_eq!(commit(&before, &new), "store-deposed", "{}", log.engine());
        assert_eq!(commit(&after, &new), "ok");
        assert_eq!(commit(&after, &new), "store-deposed", "the head has changed");
    }
}

/// Reads of an engine behind a network leave the worker of the runtime to
/// other tasks; `block_in_place` would panic on a runtime of one thread.
#[test]
fn reads_that_may_wait_run_on_any_runtime() {
    let log = TestLog::on_fjall();
    let engine = Faulty::new(Arc::new(Memory::default()));
    let dir = DataDir::create(&log.path).unwrap();
    let store = Store::create(Backend::new(Box::new(engine), dir)).unwrap();
    append(&store, &HeadRecord::empty(), &mut Edge::empty(), 3);
    let find = || store.find(&StatementId::of_canonical(&canonical(1))).unwrap().is_some();
    assert!(find());
    let one = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(one.block_on(async { find() }));
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    assert!(many.block_on(async { store.reading(find) }));
    let store = Arc::new(store);
    let (is_done, done) = std::sync::mpsc::channel();
    many.block_on(async {
        // On the only worker one read waits for another task.
        let reader = tokio::spawn({
            let store = store.clone();
            async move { store.reading(|| done.recv().unwrap()) }
        });
        tokio::spawn(async move { is_done.send(()).unwrap() }).await.unwrap();
        reader.await.unwrap();
    });
}

#[test]
fn one_process_opens_a_directory() {
    for log in TestLog::on_each_engine() {
        assert_eq!(code(open(&log)), "store-not-found");
        fill(&log, 2);
        let held = open(&log).unwrap();
        assert_eq!(code(DataDir::open(&log.path)), "store-locked");
        assert!(is_in_use(&log.path).unwrap());
        assert_eq!(code(DataDir::create(&log.path)), "store-exists");
        drop(held);
        assert!(!is_in_use(&log.path).unwrap());
        assert_eq!(code(open(&log)), "ok");
    }
}

#[test]
fn unfinished_or_foreign_directory_is_refused() {
    let log = TestLog::on_fjall();
    let path = &log.path;
    let backend = log.create();
    backend.dir.write_format().unwrap();
    drop(Store::create(backend).unwrap());
    assert_eq!(code(open(&log)), "store-head-missing");
    std::fs::write(path.join("FORMAT"), "capstan 2\n").unwrap();
    let error = open(&log).err().unwrap();
    assert_eq!(error.code(), "store-format");
    assert!(error.to_string().contains("capstan 2"), "{error}");
    std::fs::write(path.join("FORMAT"), "capstan 1\n").unwrap();
    std::fs::remove_dir_all(path.join("store")).unwrap();
    std::fs::write(path.join("store"), "not a directory").unwrap();
    assert_eq!(code(open(&log)), "store-engine");
}

/// A row that damage replaces or removes.
struct Damage {
    what: &'static str,
    space: Space,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    code: &'static str,
}

/// Damage of each kind to a log of 600 statements whose head before the last
/// one is `before`.
fn damages(before: &HeadRecord) -> Vec<Damage> {
    let (head, tile) = (b"head".to_vec(), vec![0; 9]);
    let at = |index: u64| index.to_be_bytes().to_vec();
    let other = || Some(vec![0x83, 0x41, 0x78, 0x40, 0x00]);
    let rubbish = || Some(b"rubbish".to_vec());
    let damage = |what, space, key: &Vec<u8>, value, code| Damage {
        what,
        space,
        key: key.clone(),
        value,
        code,
    };
    vec![
        damage("head rubbish", Space::Meta, &head, rubbish(), "store-head-unreadable"),
        damage("older head", Space::Meta, &head, Some(before.encode()), "store-beyond-head"),
        damage("head gone", Space::Meta, &head, None, "store-head-missing"),
        damage("changed", Space::Statements, &at(599), other(), "store-head-damaged"),
        damage("unreadable", Space::Statements, &at(599), rubbish(), "store-statement-damaged"),
        damage("gone", Space::Statements, &at(599), None, "store-statement-missing"),
        damage("one too many", Space::Statements, &at(600), other(), "store-beyond-head"),
        damage("tile gone", Space::Tiles, &tile, None, "store-tile-missing"),
        damage("tile changed", Space::Tiles, &tile, Some(vec![7; 8192]), "store-head-damaged"),
        damage("tile cut", Space::Tiles, &tile, Some(vec![7; 8191]), "log-tile-length"),
    ]
}

#[test]
fn damage_is_found_when_opening() {
    for log in TestLog::on_each_engine() {
        let (before, after) = fill(&log, 600);
        log.guard().advance(&after.head()).unwrap();
        for (nth, Damage { what, space, key, value, code: expected }) in
            damages(&before).into_iter().enumerate()
        {
            let log = log.copy(&format!("damaged-{nth}"));
            log.tamper(space, &key, value.as_deref());
            assert_eq!(code(open(&log)), expected, "{what} on {}", log.engine());
        }
    }
}

#[test]
fn damage_is_found_when_reading() {
    for log in TestLog::on_each_engine() {
        fill(&log, 3);
        let id = StatementId::of_canonical(&canonical(1));
        log.tamper(Space::Ids, id.entry().as_bytes(), Some(b"short"));
        log.tamper(Space::Statements, &0_u64.to_be_bytes(), Some(&[0x80]));
        log.tamper(Space::Meta, b"keys", Some(b"rubbish"));
        log.tamper(Space::Meta, Control::Policy.subject().as_bytes(), Some(b"short"));
        // Three leaves are all read at the start, so damage shows there first.
        assert_eq!(code(open(&log)), "store-statement-damaged");
        let (store, _) = Store::open_unchecked(log.open().unwrap()).unwrap();
        assert_eq!(code(store.find(&id)), "store-id-damaged");
        assert_eq!(code(store.statement(LeafIndex::new(0))), "store-statement-damaged");
        assert_eq!(code(store.keys()), "store-keys-unreadable");
        assert_eq!(code(store.control(Control::Policy)), "store-head-unreadable");
    }
}

#[test]
fn rollback_and_fork_are_detected() {
    TestLog::on_each_engine().iter().for_each(check_rollback_and_fork);
}

fn check_rollback_and_fork(log: &TestLog) {
    let (before, after) = fill(log, 5);
    let (store, head, edge) = open(log).unwrap();
    let check = |known: &Head| code(store.check_extends(&head, &edge, known, "guard"));
    assert_eq!(check(&after.head()), "ok");
    assert_eq!(check(&before.head()), "ok");
    let size = TreeSize::new(6);
    assert_eq!(check(&Head { size, ..after.head() }), "store-rolled-back");
    assert_eq!(check(&Head { root: before.root(), ..after.head() }), "store-forked");
    assert_eq!(check(&Head { root: after.root(), ..before.head() }), "store-forked");
}

#[test]
fn guard_is_a_head_or_an_error() {
    let log = TestLog::on_fjall();
    let (before, after) = fill(&log, 5);
    let outside = log.path.parent().unwrap();
    let guard = Guard::at(&outside.join("guard"));
    assert_eq!(guard.read().unwrap(), None);
    for head in [&before, &after, &before] {
        guard.advance(&head.head()).unwrap();
    }
    assert_eq!(guard.read().unwrap(), Some(after.head()), "it never goes back");
    let text = std::fs::read_to_string(guard.path()).unwrap();
    for damaged in ["", "capstan guard 2\n", &text.replace("size 5", "size five"), &text[..60]] {
        std::fs::write(guard.path(), damaged).unwrap();
        assert_eq!(code(guard.read()), "store-io", "{damaged:?} is not an empty guard");
        assert_eq!(code(guard.advance(&after.head())), "store-io", "{damaged:?} is kept");
    }
    assert_eq!(code(Guard::at(outside).read()), "store-io");
    assert_eq!(DataDir::open(&log.path).unwrap().guard_path(), outside.join("data.guard"));
}

#[test]
fn objects_are_replaced_only_if_unchanged() {
    let outside = tempfile::tempdir().unwrap();
    let places: [&dyn Objects; 2] =
        [&dir::Directory::at(outside.path()), &MemoryObjects::default()];
    for objects in places {
        let path = Path::new("object");
        assert_eq!(objects.get(path).unwrap(), None);
        let nothing = Version::of(b"");
        assert_eq!(code(objects.replace(path, b"zero", &nothing)), "store-object-changed");
        let Created::New(one) = objects.create(path, b"one").unwrap() else { panic!("it is new") };
        assert_eq!(objects.create(path, b"two").unwrap(), Created::Exists);
        assert_eq!(objects.get(path).unwrap(), Some((b"one".to_vec(), one.clone())));
        let two = objects.replace(path, b"two", &one).unwrap();
        assert_eq!(code(objects.replace(path, b"three", &one)), "store-object-changed");
        assert_eq!(objects.get(path).unwrap(), Some((b"two".to_vec(), two)));
        put_object(objects, path, b"four").unwrap();
        put_object(objects, Path::new("other"), b"four").unwrap();
        assert_eq!(objects.get(path).unwrap().unwrap().0, b"four");
    }
}

#[test]
fn private_files_stay_private() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("key.pem");
    write_private(&path, b"secret").unwrap();
    assert_eq!(read_private(&path).unwrap(), "secret");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(code(write_private(&path, b"other")), "store-io", "a key is never replaced");
    assert_eq!(read_private(&path).unwrap(), "secret");
    for mode in [0o644, 0o640, 0o604, 0o660] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(code(read_private(&path)), "store-world-readable", "{mode:o}");
    }
    assert_eq!(code(read_private(&outside.path().join("none"))), "store-io");
}

#[test]
fn public_files_are_replaced_atomically() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("checkpoint");
    write_public(&path, b"one").unwrap();
    write_public(&path, b"two").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
    let left: Vec<_> = std::fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file is left");
    assert_eq!(code(write_public(&outside.path().join("no/dir"), b"x")), "store-io");
}

#[test]
fn time_of_heads_never_runs_backwards() {
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
fn copy_with_another_tree_is_refused() {
    TestLog::on_each_engine().iter().for_each(check_copies);
}

fn check_copies(log: &TestLog) {
    let outside = log.path.parent().unwrap();
    let store = Store::create(log.create()).unwrap();
    let head = append(&store, &HeadRecord::empty(), &mut Edge::empty(), 300);
    let manifest = Manifest::of(&store, "key".to_owned()).unwrap();
    let manifest = Manifest::decode(&manifest.encode()).unwrap();
    assert_eq!(manifest.head().root, head.root());
    let copy = |name: &str, change: &dyn Fn(u64, Vec<u8>) -> Vec<u8>| {
        let mut copy = Copy::create(&outside.join(name)).unwrap();
        for index in 0..300 {
            copy.push(&change(index, store.row(LeafIndex::new(index)).unwrap()))?;
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
    assert!(!outside.join("flipped/FORMAT").exists());
    let garbage = copy("garbage", &|index, row| if index == 7 { vec![0xff] } else { row });
    assert_eq!(code(garbage), "store-statement-damaged");
}
