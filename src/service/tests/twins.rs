//! Both ECDSA signatures over one statement verify; only one of them is a leaf.

use super::*;
use crate::envelope::{AuthContext, Authentic, Resolved, SignedStatement};
use crate::key::{SigningKey, twin};
use crate::log::TreeSize;
use crate::service::write::committer::Placement;
use crate::service::write::writer::NewStatement;
use crate::store::Terms;
use crate::trust::TrustAnchors;

fn signed(algorithm: Algorithm, payload: &[u8]) -> Vec<u8> {
    let key = SigningKey::generate(algorithm).unwrap();
    Sketch::self_certified(&key).payload(payload).sign(&key)
}

/// The same statement with its other signature.
fn turned(bytes: &[u8]) -> Vec<u8> {
    let statement = SignedStatement::parse(bytes.to_vec()).unwrap();
    let signature = statement.signature();
    let other = twin(statement.algorithm().unwrap(), signature).unwrap();
    [&bytes[..bytes.len() - signature.len()], &other].concat()
}

fn named(rejected: Rejected) -> Entry {
    assert_eq!(rejected.code(), "signature-twin");
    let text = rejected.to_string();
    let Rejected::Twin { entry } = rejected else { panic!("{text}") };
    assert!(text.contains(&format!("#{}", entry.index)), "{text}");
    entry
}

#[tokio::test]
async fn later_twins_are_refused_and_the_logged_one_is_named() {
    let (_outside, service) = log_with(OPEN, options());
    for algorithm in [Algorithm::Es256, Algorithm::Es384] {
        let first = signed(algorithm, b"once");
        let registered = service.register(first.clone()).await.unwrap();
        let size = service.head().size;
        let refused = service.register(turned(&first)).await.unwrap_err();
        assert_eq!(named(refused), registered.entry, "{algorithm:?}");
        let again = service.register(first).await.unwrap();
        assert_eq!((again.known, again.entry), (true, registered.entry), "{algorithm:?}");
        assert_eq!(service.head().size, size, "{algorithm:?}");
    }
}

/// Both are new when they are decided; the writer sees that they are one.
#[tokio::test]
async fn twins_that_wait_together_get_one_leaf() {
    let (_outside, service) = log_with(OPEN, options());
    let first = signed(Algorithm::Es256, b"together");
    let release = hold_writer(&service).await;
    let mut tickets = Vec::new();
    for bytes in [first.clone(), turned(&first), first.clone(), turned(&first)] {
        tickets.push(queued(&service, bytes).await.unwrap());
    }
    drop(release);
    let mut outcomes = Vec::new();
    for ticket in tickets {
        outcomes.push(service.finish(Progress::Queued(ticket)).await);
    }
    let [one, two, three, four] = <[_; 4]>::try_from(outcomes).unwrap();
    let (one, three) = (one.unwrap().entry, three.unwrap().entry);
    assert_eq!(one, three);
    assert_eq!([named(two.unwrap_err()), named(four.unwrap_err())], [one.clone(), one]);
    assert_eq!(service.head().size.get(), 3);
}

fn authentic(bytes: Vec<u8>) -> (Authentic, Terms) {
    let (trust, resolved) = (TrustAnchors::default(), Resolved::default());
    let statement = SignedStatement::parse(bytes).unwrap();
    let authentic = statement.authenticate(&AuthContext::new(&trust, &resolved, now())).unwrap();
    let terms = Terms::of(authentic.statement().header(), &crate::profile::read(&authentic));
    (authentic, terms)
}

/// One commit with a twin of what is logged, a new pair, and something else.
#[tokio::test]
async fn writer_sorts_twins_of_one_batch() {
    let (_outside, service) = log_with(OPEN, options());
    let old = signed(Algorithm::Es256, b"old");
    let logged = service.register(old.clone()).await.unwrap().entry;
    let (pair, other) = (signed(Algorithm::Es384, b"pair"), statement(b"other"));
    let batch = [turned(&old), turned(&pair), pair.clone(), other, old].map(authentic);
    let work = move |writer: &mut Writer| {
        // As if none had been there when they were decided.
        let size = TreeSize::new(0);
        let new = |(statement, terms)| NewStatement { statement, terms, size };
        let all: Vec<_> = batch.iter().map(|(s, terms)| new((s, terms))).collect();
        Ok(writer.append(&all, now())?)
    };
    let placements = service.committer.with_writer(work).await.unwrap();
    let placements: Vec<_> = placements
        .iter()
        .map(|placement| match placement {
            Placement::Appended { index, .. } => ("appended", index.get()),
            Placement::Known(index) => ("known", index.get()),
            Placement::Twin(entry) => ("twin", entry.index.get()),
            Placement::Outdated => ("outdated", 0),
        })
        .collect();
    let at = logged.index.get();
    assert_eq!(
        placements,
        [("twin", at), ("appended", at + 1), ("twin", at + 1), ("appended", at + 2), ("known", at)]
    );
}
