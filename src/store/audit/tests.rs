use super::*;
use crate::envelope::StatementId;
use crate::envelope::{Draft, seal};
use crate::key::{Algorithm, SigningKey};
use crate::log::{Plan, leaf_hash};
use crate::profile::Control;
use crate::store::{Commit, DataDir, HeadRecord, NewEntry};

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
fn log(store: &Store) -> Vec<Stored> {
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
        head = head.next(after, time);
        let entry =
            NewEntry { id, canonical: &canonical, collateral: collateral.clone(), terms: &terms };
        let commit = Commit {
            entries: &[entry],
            tiles: &[],
            head: &head,
            controls: &[(Control::Policy, LeafIndex::new(0))],
            keys: Some(std::slice::from_ref(key.public())),
        };
        store.commit(&commit).unwrap();
        all.push(Stored { canonical, collateral, time });
    }
    all
}

fn is_sound(store: &Store, all: &[Stored]) -> bool {
    let mut audit = IndexAudit::default();
    let heard = (0..)
        .map(LeafIndex::new)
        .zip(all)
        .all(|(index, stored)| audit.hear(store, index, stored).unwrap().is_empty());
    heard && audit.finish(store).unwrap().is_empty()
}

/// Every bit of every row, the keys included: none says nothing.
#[test]
fn no_bit_of_the_index_can_flip_unseen() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::create(DataDir::create(&outside.path().join("data")).unwrap()).unwrap();
    let all = log(&store);
    assert!(is_sound(&store, &all));
    let rows: Vec<_> = store.engine.index_rows().map(|row| row.into_inner().unwrap()).collect();
    let times = rows.iter().filter(|(key, _)| Term::is_time(key)).count();
    let sessions = rows.iter().filter(|(_, value)| value.len() == 72).count();
    let asked = rows.iter().filter(|(key, value)| Term::is_alone(key) && value.len() == 8).count();
    assert_eq!((times, sessions), (3, 1), "all kinds of rows are there");
    assert!(asked >= 2, "{asked}");
    for (key, value) in &rows {
        let bits = (key.len() + value.len()) * 8;
        for bit in 0..bits {
            let mut row = [&**key, &**value].concat();
            row[bit / 8] ^= 1 << (bit % 8);
            let (other, changed) = row.split_at(key.len());
            // A key that another row has would hide that row, too.
            let hidden = rows.iter().find(|row| *row.0 == *other && row.0 != *key);
            store.engine.replace_row(key, Some((other, changed)));
            assert!(!is_sound(&store, &all), "bit {bit} of {key:?} {value:?}");
            store.engine.replace_row(other, Some((key, value)));
            if let Some((key, value)) = hidden {
                store.engine.replace_row(key, Some((key, value)));
            }
        }
        store.engine.replace_row(key, None);
        assert!(!is_sound(&store, &all), "{key:?} is gone");
        store.engine.replace_row(key, Some((key, value)));
    }
    assert!(is_sound(&store, &all), "every flip was put back");
}
