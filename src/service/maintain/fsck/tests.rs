//! Every way a data directory can be wrong, and the code for each.

use super::*;
use crate::envelope::{Draft, seal};
use crate::key::{Algorithm, SigningKey, key_set};
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::profile::{Compared, Reason, Source};
use crate::service::{Options, Writer, init_on, open_on, rotate};
use crate::store::fixture::TestLog;
use crate::wire::cbor;

const OPEN: &str = include_str!("../../../../policy/open.toml");
const ISSUERS: &str = include_str!("../../../../policy/issuers.toml");
const NAME: &str = "https://fsck.example";

/// Makes a log of 262 entries: policy, trust, 259 statements, one succession;
/// one full tile.
pub(crate) fn fill(log: &TestLog) {
    let policy = Policy::parse(OPEN).unwrap();
    init_on(log.create(), NAME, policy, Algorithm::Es256, &log.guard()).unwrap();
    let options = Options::from_config(&crate::config::Config::default());
    let options = Options { min_free_bytes: 0, ..options };
    let service = open_on(log.open().unwrap(), options, Metrics::new("test")).unwrap();
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
    let mut writer = Writer::open_on(log.open().unwrap(), &log.guard(), false).unwrap();
    rotate(&mut writer, None).unwrap();
}

fn statement(key: &SigningKey, issuer: &str, subject: &str) -> Vec<u8> {
    let content_type = "text/plain";
    let issued_at = Some(UnixSeconds::new(1_800_000_000));
    seal(&Draft { content_type, issuer, subject, issued_at, payload: b"x" }, key).unwrap()
}

/// A statement of the log itself, made with its first key.
fn own(log: &TestLog, control: Control, payload: &[u8]) -> Vec<u8> {
    let keys = std::fs::read_dir(log.path.join("keys")).unwrap();
    let pems = keys.map(|entry| entry.unwrap().path());
    let mut pems: Vec<_> = pems.filter(|p| p.display().to_string().contains("service-")).collect();
    let (store, _) = Store::open_unchecked(log.open().unwrap()).unwrap();
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

/// S and time of a statement.
pub(crate) fn stored(log: &TestLog, index: u64) -> (Vec<u8>, u64) {
    let row = Stored::decode(&log.get(Space::Statements, &index.to_be_bytes())).unwrap();
    (row.canonical, row.time.seconds())
}

/// Stores another statement at an index.
pub(crate) fn store(log: &TestLog, index: u64, canonical: &[u8], time: u64) {
    let mut out = Vec::new();
    cbor::array(&mut out, 3);
    cbor::bytes(&mut out, canonical);
    cbor::bytes(&mut out, &[0xa0]);
    cbor::int(&mut out, time);
    log.tamper(Space::Statements, &index.to_be_bytes(), Some(&out));
}

/// The key of the id row of a statement.
pub(crate) fn id_key(log: &TestLog, index: u64) -> Vec<u8> {
    StatementId::of_canonical(&stored(log, index).0).entry().as_bytes().to_vec()
}

fn codes(log: &TestLog) -> Vec<&'static str> {
    let mut left = 0;
    let mut progress = |done, total| left = total - done;
    let checked = fsck_on(log.open().unwrap(), &log.guard(), &mut progress).unwrap();
    assert_eq!(left, 0);
    checked.findings.into_iter().map(|finding| finding.code).collect()
}

type Damage = fn(&TestLog);

const TILE_0: [u8; 9] = [0; 9];

const DAMAGES: &[(&[&str], Damage)] = &[
    (&[], |_| ()),
    (&["statement-missing", "count-differs"], |log| {
        log.tamper(Space::Statements, &5_u64.to_be_bytes(), None);
    }),
    (&["store-statement-damaged"], |log| {
        log.tamper(Space::Statements, &5_u64.to_be_bytes(), Some(b"garbage"));
    }),
    (&["id-missing", "count-differs"], |log| {
        log.tamper(Space::Ids, &id_key(log, 5), None);
    }),
    (&["id-mismatch"], |log| {
        log.tamper(Space::Ids, &id_key(log, 5), Some(&6_u64.to_be_bytes()));
    }),
    (&["id-missing", "signature-invalid", "tile-differs", "root-differs", "forked"], |log| {
        let (mut canonical, time) = stored(log, 5);
        *canonical.last_mut().unwrap() ^= 1;
        store(log, 5, &canonical, time);
    }),
    (&["time-runs-back"], |log| store(log, 5, &stored(log, 5).0, 1)),
    (&["not-canonical", "not-sign1"], |log| {
        let (canonical, time) = stored(log, 5);
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
        store(log, 5, &other, time);
        store(log, 6, b"garbage", time);
    }),
    (&["tile-differs"], |log| log.tamper(Space::Tiles, &TILE_0, Some(&[0; 8192]))),
    (&["store-tile-missing", "count-differs"], |log| log.tamper(Space::Tiles, &TILE_0, None)),
    (&["control-not-last"], |log| {
        let key = Control::Trust.subject().as_bytes();
        log.tamper(Space::Meta, key, Some(&5_u64.to_be_bytes()));
    }),
    (&["keys-differ"], |log| {
        let (store, _) = Store::open_unchecked(log.open().unwrap()).unwrap();
        let mut keys = store.keys().unwrap();
        drop(store);
        keys.insert(0, SigningKey::generate(Algorithm::Es256).unwrap().public().clone());
        log.tamper(Space::Meta, b"keys", Some(&key_set(keys.iter())));
    }),
    (&["succession-invalid"], |log| {
        store(log, 5, &own(log, Control::Succession, &[0xa0]), 1);
    }),
    (&["resumption-invalid"], |log| {
        let payload = resumption(6, Digest::of(b"elsewhere"));
        store(log, 5, &own(log, Control::Resumption, &payload), 1);
    }),
    (&["resumption-invalid"], |log| {
        let payload = resumption(5, Digest::of(b"elsewhere"));
        store(log, 5, &own(log, Control::Resumption, &payload), 1);
    }),
    (&["policy-refuses"], |log| {
        store(log, 0, &own(log, Control::Policy, ISSUERS.as_bytes()), 1);
    }),
    (&["policy-missing"], |log| {
        let (trust, time) = stored(log, 1);
        store(log, 0, &trust, time);
    }),
    (&["rolled-back"], |log| log.guard().replace(&unknown_head(9999)).unwrap()),
    (&["forked"], |log| log.guard().replace(&unknown_head(9)).unwrap()),
    (&["guard-unreadable"], |log| std::fs::write(log.guard().path(), "garbage").unwrap()),
    (&["checkpoint-unusable"], |log| {
        std::fs::write(log.path.join("checkpoint"), "garbage").unwrap();
    }),
];

fn unknown_head(size: u64) -> Head {
    let (size, root) = (crate::log::TreeSize::new(size), Digest::of(b""));
    Head { size, root, time: UnixSeconds::default() }
}

fn resumption(size: u64, root: Digest) -> Vec<u8> {
    let compared = vec![Compared { source: Source::Operator, size, root, address: None }];
    let time = UnixSeconds::default();
    Resumption { size, root, reason: Reason::Restored, time, compared }.encode()
}

#[test]
fn every_damage_has_its_code() {
    for good in TestLog::on_each_engine() {
        fill(&good);
        for (nth, (expected, damage)) in DAMAGES.iter().enumerate() {
            let log = good.copy(&format!("damaged-{nth}"));
            damage(&log);
            let (found, engine) = (codes(&log), log.engine());
            if expected.is_empty() {
                assert_eq!(found, [""; 0], "damage {nth} on {engine}");
            }
            for code in *expected {
                assert!(found.contains(code), "damage {nth} on {engine}: no {code} in {found:?}");
            }
        }
    }
}

#[test]
fn sound_log_is_counted() {
    for log in TestLog::on_each_engine() {
        fill(&log);
        let checked = fsck_on(log.open().unwrap(), &log.guard(), &mut |_, _| ()).unwrap();
        assert_eq!(checked.head.size.get(), 262);
        assert_eq!(checked.root, Some(checked.head.root));
        assert_eq!((checked.threads.issuers(), checked.threads.count()), (2, 262));
    }
}
