//! Damage under a running log.

use super::*;
use crate::metrics::Metrics;
use crate::service::fsck::tests::{Rows, log};
use crate::service::open;
use crate::service::tests::{code, options, statement};

/// A log of two tiles of leaves, damaged while nobody looked, and open.
fn damaged(damage: impl FnOnce(&Rows)) -> (tempfile::TempDir, Arc<Service>) {
    let outside = tempfile::tempdir().unwrap();
    // It is made on a runtime of its own.
    let made = std::thread::scope(|scope| scope.spawn(|| log(outside.path())).join());
    let data = made.unwrap();
    let rows = Rows::of(&data);
    damage(&rows);
    drop(rows);
    let service = open(&data, options(), Metrics::new("test")).unwrap();
    (outside, service)
}

#[tokio::test]
async fn a_whole_log_is_walked_and_begun_again() {
    let (_outside, service) = damaged(|_| ());
    let step = service.scrub_step(0).unwrap();
    assert_eq!(step.next, 1);
    assert!(step.bytes > 256 * 100, "{step:?}");
    assert_eq!(service.scrub_step(1).unwrap().next, 0);
    service.keep_scrub_place(7).unwrap();
    assert_eq!(std::fs::read_to_string(service.scrub_place()).unwrap(), "7\n");
    assert!(service.writable().is_ok());
}

#[tokio::test]
async fn damage_stops_writing_and_nothing_else() {
    let (_outside, service) = damaged(|rows| {
        let (mut canonical, time) = rows.stored(5);
        canonical[20] ^= 1;
        rows.store(5, &canonical, time);
    });
    let known = statement(b"before");
    assert_eq!(code(service.register(known).await), "ok", "nobody looked yet");
    keep_scrubbing(service.clone(), 1 << 30).await;
    assert!(service.damaged());
    assert_eq!(service.writable(), Err("the store is damaged"));
    assert_eq!(code(service.register(statement(b"after")).await), "read-only");
    assert!(service.metrics().encode().contains("capstan_scrub_findings_total 1"));
    let other = service.entry_at(LeafIndex::new(6)).unwrap().unwrap();
    assert_eq!(other.index, LeafIndex::new(6));
    assert!(service.root_at(TreeSize::new(100)).is_ok());
    let reloaded = service.reload().await;
    assert!(matches!(reloaded, Err(crate::service::ControlError::Damaged)));
}

#[tokio::test]
async fn every_part_is_looked_at() {
    type Damage = fn(&Rows);
    let rows: [(&str, Damage); 4] = [
        ("index 5 is missing", |rows| rows.remove("statements", &5_u64.to_be_bytes())),
        ("index 5 is damaged", |rows| rows.put("statements", &5_u64.to_be_bytes(), b"x")),
        ("not the one its id names", |rows| {
            let id = StatementId::of_canonical(&rows.stored(5).0);
            rows.put("ids", id.entry().as_bytes(), &6_u64.to_be_bytes());
        }),
        ("is damaged", |rows| {
            let id = StatementId::of_canonical(&rows.stored(5).0);
            rows.put("ids", id.entry().as_bytes(), b"x");
        }),
    ];
    for (expected, damage) in rows {
        let (_outside, service) = damaged(damage);
        let said = service.scrub_step(0).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
    // A log does not start on a damaged tile, but one can be hit later.
    let (_outside, service) = damaged(|_| ());
    let mut hashes = vec![Digest::of(b""); 256];
    let said = service.scrub_tile(TileId::full(0, 0), &hashes, &Edge::empty()).unwrap_err();
    assert!(said.contains("tile/0/000"), "{said}");
    hashes.clear();
    assert!(service.scrub_tile(TileId::full(0, 0), &hashes, &Edge::empty()).is_ok());
}

#[tokio::test]
async fn zero_is_never() {
    let (_outside, service) = damaged(|rows| rows.remove("statements", &5_u64.to_be_bytes()));
    keep_scrubbing(service.clone(), 0).await;
    assert!(!service.damaged());
}
