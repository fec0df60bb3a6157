//! Every way a data directory can be wrong, and the word for each.

use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::*;
use crate::envelope::{Draft, seal};
use crate::key::{Algorithm, SigningKey, key_set};
use crate::metrics::Metrics;
use crate::profile::{Compared, Reason, Source};
use crate::service::{Options, init, open, rotate};
use crate::wire::cbor;

const OPEN: &str = include_str!("../../../../policy/open.toml");
const ISSUERS: &str = include_str!("../../../../policy/issuers.toml");
const NAME: &str = "https://fsck.example";

/// A log of 262 entries: policy, trust, 259 statements, one succession; one
/// full tile.
pub(crate) fn log(root: &Path) -> PathBuf {
    let data = root.join("log");
    init(&data, NAME, OPEN, Algorithm::Es256).unwrap();
    let options = Options::from_config(&crate::config::Config::default());
    let options = Options { min_free_bytes: 0, ..options };
    let service = open(&data, options, Metrics::new("test")).unwrap();
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut running = tokio::task::JoinSet::new();
        for n in 0..259 {
            let statement = statement(&key, "https://agents.example", &format!("s{n}"));
            let service = service.clone();
            running.spawn(async move { service.register(statement).await.unwrap() });
        }
        running.join_all().await;
    });
    service.shut_down().unwrap();
    drop(service);
    let mut writer = crate::service::Writer::open(&data, None, false).unwrap();
    rotate(&mut writer, None).unwrap();
    drop(writer);
    data
}

fn statement(key: &SigningKey, issuer: &str, subject: &str) -> Vec<u8> {
    let content_type = "text/plain";
    let issued_at = Some(UnixSeconds::new(1_800_000_000));
    seal(&Draft { content_type, issuer, subject, issued_at, payload: b"x" }, key).unwrap()
}

/// A statement of the log itself, made with its first key.
fn own(data: &Path, control: Control, payload: &[u8]) -> Vec<u8> {
    let keys = std::fs::read_dir(data.join("keys")).unwrap();
    let pems = keys.map(|entry| entry.unwrap().path());
    let mut pems: Vec<_> = pems.filter(|p| p.display().to_string().contains("service-")).collect();
    let (store, _) = Store::open_as_found(DataDir::open(data).unwrap()).unwrap();
    let first = store.keys().unwrap().last().unwrap().id().to_string();
    pems.retain(|path| path.display().to_string().contains(&first));
    let key = SigningKey::from_pem(&std::fs::read_to_string(&pems[0]).unwrap()).unwrap();
    let draft = Draft {
        content_type: control.content_type(),
        issuer: NAME,
        subject: control.subject(),
        issued_at: None,
        payload,
    };
    seal(&draft, &key).unwrap()
}

/// The engine's rows, written to behind everybody's back.
pub(crate) struct Rows {
    database: Database,
}

impl Rows {
    pub(crate) fn of(data: &Path) -> Self {
        Self { database: Database::builder(data.join("store")).open().unwrap() }
    }

    fn keyspace(&self, name: &str) -> Keyspace {
        self.database.keyspace(name, KeyspaceCreateOptions::default).unwrap()
    }

    pub(crate) fn put(&self, keyspace: &str, key: &[u8], value: &[u8]) {
        self.keyspace(keyspace).insert(key, value).unwrap();
        self.database.persist(PersistMode::SyncAll).unwrap();
    }

    pub(crate) fn remove(&self, keyspace: &str, key: &[u8]) {
        self.keyspace(keyspace).remove(key).unwrap();
        self.database.persist(PersistMode::SyncAll).unwrap();
    }

    pub(crate) fn all(&self, keyspace: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let rows = self.keyspace(keyspace).iter().map(|row| row.into_inner().unwrap());
        rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }

    /// `[S, collateral, time]` of a statement.
    pub(crate) fn stored(&self, index: u64) -> (Vec<u8>, u64) {
        let bytes = self.keyspace("statements").get(index.to_be_bytes()).unwrap().unwrap();
        let value = cbor::Value::read(&bytes).unwrap();
        let row = value.array().unwrap();
        (row[0].bytes().unwrap().to_vec(), row[2].int().unwrap())
    }

    pub(crate) fn store(&self, index: u64, canonical: &[u8], time: u64) {
        let mut out = Vec::new();
        cbor::array(&mut out, 3);
        cbor::bytes(&mut out, canonical);
        cbor::bytes(&mut out, &[0xa0]);
        cbor::int(&mut out, time);
        self.put("statements", &index.to_be_bytes(), &out);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn codes(data: &Path) -> Vec<&'static str> {
    let mut heard = 0;
    let checked = fsck(data, None, &mut |done, total| heard = total - done).unwrap();
    assert_eq!(heard, 0);
    checked.findings.into_iter().map(|finding| finding.code).collect()
}

type Damage = fn(&Path);

const TILE_0: [u8; 9] = [0; 9];

const ROWS: &[(&[&str], Damage)] = &[
    (&[], |_| ()),
    (&["statement-missing", "count-differs"], |data| {
        Rows::of(data).remove("statements", &5_u64.to_be_bytes());
    }),
    (&["store-statement-damaged"], |data| {
        Rows::of(data).put("statements", &5_u64.to_be_bytes(), b"garbage");
    }),
    (&["id-missing", "count-differs"], |data| {
        let rows = Rows::of(data);
        let id = StatementId::of_canonical(&rows.stored(5).0);
        rows.remove("ids", id.entry().as_bytes());
    }),
    (&["id-mismatch"], |data| {
        let rows = Rows::of(data);
        let id = StatementId::of_canonical(&rows.stored(5).0);
        rows.put("ids", id.entry().as_bytes(), &6_u64.to_be_bytes());
    }),
    (&["id-missing", "signature-invalid", "tile-differs", "root-differs", "forked"], |data| {
        let rows = Rows::of(data);
        let (mut canonical, time) = rows.stored(5);
        *canonical.last_mut().unwrap() ^= 1;
        rows.store(5, &canonical, time);
    }),
    (&["time-runs-back"], |data| {
        let rows = Rows::of(data);
        rows.store(5, &rows.stored(5).0, 1);
    }),
    (&["not-canonical", "not-sign1"], |data| {
        let rows = Rows::of(data);
        let (canonical, time) = rows.stored(5);
        let parsed = SignedStatement::parse(canonical).unwrap();
        let mut other = Vec::new();
        cbor::tag(&mut other, 18);
        cbor::array(&mut other, 4);
        cbor::bytes(&mut other, parsed.protected());
        cbor::map(&mut other, 1);
        cbor::int(&mut other, 99);
        cbor::int(&mut other, 1);
        cbor::bytes(&mut other, parsed.payload().unwrap());
        cbor::bytes(&mut other, parsed.signature());
        rows.store(5, &other, time);
        rows.store(6, b"garbage", time);
    }),
    (&["tile-differs"], |data| {
        Rows::of(data).put("tiles", &TILE_0, &[0; 8192]);
    }),
    (&["store-tile-missing", "count-differs"], |data| {
        Rows::of(data).remove("tiles", &TILE_0);
    }),
    (&["control-not-last"], |data| {
        let key = Control::Trust.subject().as_bytes();
        Rows::of(data).put("meta", key, &5_u64.to_be_bytes());
    }),
    (&["keys-differ"], |data| {
        let (store, _) = Store::open_as_found(DataDir::open(data).unwrap()).unwrap();
        let mut keys = store.keys().unwrap();
        drop(store);
        keys.insert(0, SigningKey::generate(Algorithm::Es256).unwrap().public().clone());
        Rows::of(data).put("meta", b"keys", &key_set(keys.iter()));
    }),
    (&["succession-invalid"], |data| {
        let forged = own(data, Control::Succession, &[0xa0]);
        Rows::of(data).store(5, &forged, 1);
    }),
    (&["resumption-invalid"], |data| {
        let said = resumption(6, Digest::of(b"elsewhere"));
        let statement = own(data, Control::Resumption, &said);
        Rows::of(data).store(5, &statement, 1);
    }),
    (&["resumption-invalid"], |data| {
        let said = resumption(5, Digest::of(b"elsewhere"));
        let statement = own(data, Control::Resumption, &said);
        Rows::of(data).store(5, &statement, 1);
    }),
    (&["policy-refuses"], |data| {
        let other = own(data, Control::Policy, ISSUERS.as_bytes());
        Rows::of(data).store(0, &other, 1);
    }),
    (&["policy-missing"], |data| {
        let rows = Rows::of(data);
        let (trust, time) = rows.stored(1);
        rows.store(0, &trust, time);
    }),
    (&["rolled-back"], |data| {
        let head = Head {
            size: crate::log::TreeSize::new(9999),
            root: Digest::of(b""),
            time: UnixSeconds::default(),
        };
        guard(data).write(&head).unwrap();
    }),
    (&["forked"], |data| {
        let head = Head {
            size: crate::log::TreeSize::new(9),
            root: Digest::of(b""),
            time: UnixSeconds::default(),
        };
        guard(data).write(&head).unwrap();
    }),
    (&["guard-unreadable"], |data| std::fs::write(guard(data).path(), "garbage").unwrap()),
    (&["checkpoint-unusable"], |data| std::fs::write(data.join("checkpoint"), "garbage").unwrap()),
];

fn resumption(size: u64, root: Digest) -> Vec<u8> {
    let compared = vec![Compared { source: Source::Operator, size, root, address: None }];
    let time = UnixSeconds::default();
    Resumption { size, root, reason: Reason::Restored, time, compared }.encode()
}

fn guard(data: &Path) -> crate::store::Guard {
    let mut path = data.as_os_str().to_owned();
    path.push(".guard");
    crate::store::Guard::at(Path::new(&path))
}

#[test]
fn every_damage_has_its_word_and_none_stops_the_walk() {
    let root = tempfile::tempdir().unwrap();
    let good = log(root.path());
    for (nth, (expected, damage)) in ROWS.iter().enumerate() {
        let data = root.path().join(format!("row-{nth}"));
        copy(&good, &data);
        std::fs::copy(guard(&good).path(), guard(&data).path()).unwrap();
        damage(&data);
        let found = codes(&data);
        if expected.is_empty() {
            assert_eq!(found, [""; 0], "row {nth}");
        }
        for code in *expected {
            assert!(found.contains(code), "row {nth}: no {code} in {found:?}");
        }
    }
}

#[test]
fn a_whole_log_tells_who_spoke() {
    let root = tempfile::tempdir().unwrap();
    let checked = fsck(&log(root.path()), None, &mut |_, _| ()).unwrap();
    assert_eq!(checked.head.size.get(), 262);
    assert_eq!(checked.root, Some(checked.head.root));
    assert_eq!((checked.threads.issuers(), checked.threads.count()), (2, 262));
}
