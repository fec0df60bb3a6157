use super::*;
use crate::envelope::StatementId;
use crate::envelope::{Draft, seal};
use crate::key::{Algorithm, SigningKey};
use crate::log::{Plan, leaf_hash};
use crate::profile::Control;
use crate::store::fixture::TestLog;
use crate::store::{Commit, HeadRecord, NewEntry};

/// A record that is asked for, one with a nonce, a session, and two payloads
/// that nothing is known about.
fn canonicals() -> Vec<Vec<u8>> {
    let payloads: [(&str, &[u8]); 5] = [
        ("application/agent-action-capsule+json", include_bytes!("../../../fuzz/seeds/capsule/0")),
        ("application/pca-certificate+json", include_bytes!("../../../fuzz/seeds/pca/0")),
        ("application/vnd.cra.trace+jsonl", include_bytes!("../../../fuzz/seeds/trace/0")),
        ("text/plain", b"one"),
        ("text/plain", b"two"),
    ];
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let (issuer, issued_at) = ("https://agents.example", None);
    let sealed = payloads.map(|(content_type, payload)| {
        seal(&Draft { content_type, issuer, subject: "s", issued_at, payload }, &key).unwrap()
    });
    sealed.into()
}

/// Commits of one statement each; the first three are of one second.
fn fill(store: &Store) -> Vec<Stored> {
    let mut head = HeadRecord::empty();
    let (times, key) = ([7, 7, 7, 8, 9], SigningKey::generate(Algorithm::Es256).unwrap());
    let mut all = Vec::new();
    for (canonical, time) in canonicals().into_iter().zip(times.map(UnixSeconds::new)) {
        let (mut terms, session) = Terms::of_canonical(&canonical);
        if let Some((session, span)) = session {
            let end = continuity(None, &span).head_after(&span).unwrap();
            terms = terms.ending(session, &end);
        }
        let (id, collateral) = (StatementId::of_canonical(&canonical), vec![0xa0]);
        let after = Plan::extend(head.frontier(), &[leaf_hash(id.entry())]).after;
        let before = std::mem::replace(&mut head, HeadRecord::empty());
        head = before.next(after, time);
        let entry =
            NewEntry { id, canonical: &canonical, collateral: collateral.clone(), terms: &terms };
        let commit = Commit {
            before: &before,
            entries: &[entry],
            tiles: &[],
            head: &head,
            controls: &[(Control::Policy, LeafIndex::new(0))],
            keys: Some(std::slice::from_ref(key.public())),
        };
        store.commit(&store.take_over().unwrap(), &commit).unwrap();
        all.push(Stored { canonical, collateral, time });
    }
    all
}

fn is_sound(store: &Store, all: &[Stored]) -> bool {
    let mut audit = IndexAudit::default();
    let is_complete = (0..)
        .map(LeafIndex::new)
        .zip(all)
        .all(|(index, stored)| audit.check(store, index, stored).unwrap().is_empty());
    is_complete && audit.finish(store).unwrap().is_empty()
}

/// Puts another row in the place of one.
fn replace(store: &Store, key: &[u8], row: Option<(&[u8], &[u8])>) {
    store.firsts.clear();
    store.backend.engine.tamper(Space::Index, key, None);
    if let Some((key, value)) = row {
        store.backend.engine.tamper(Space::Index, key, Some(value));
    }
}

/// Every bit of every row, the keys included.
#[test]
fn every_flipped_bit_of_the_index_is_found() {
    TestLog::on_each_engine().iter().for_each(check_flipped_bits);
}

fn check_flipped_bits(log: &TestLog) {
    let store = Store::create(log.create()).unwrap();
    let all = fill(&store);
    assert!(is_sound(&store, &all));
    let engine = &store.backend.engine;
    let rows = engine.scan(Space::Index, &KeyRange::all(), Direction::Forward, usize::MAX).unwrap();
    let times = rows.iter().filter(|(key, _)| Term::is_time(key)).count();
    let sessions = rows.iter().filter(|(_, value)| value.len() == 72).count();
    let firsts = rows.iter().filter(|(key, value)| Term::is_alone(key) && value.len() == 8).count();
    assert_eq!((times, sessions), (3, 1), "all kinds of rows are there");
    assert!(firsts >= 2, "{firsts}");
    for (key, value) in &rows {
        let bits = (key.len() + value.len()) * 8;
        for bit in 0..bits {
            let mut row = [&**key, &**value].concat();
            row[bit / 8] ^= 1 << (bit % 8);
            let (other, changed) = row.split_at(key.len());
            // A key that another row has would hide that row, too.
            let hidden = rows.iter().find(|row| *row.0 == *other && row.0 != *key);
            replace(&store, key, Some((other, changed)));
            assert!(!is_sound(&store, &all), "bit {bit} of {key:?} {value:?}");
            replace(&store, other, Some((key, value)));
            if let Some((key, value)) = hidden {
                replace(&store, key, Some((key, value)));
            }
        }
        replace(&store, key, None);
        assert!(!is_sound(&store, &all), "{key:?} is gone");
        replace(&store, key, Some((key, value)));
    }
    assert!(is_sound(&store, &all), "every flip was put back");
}
