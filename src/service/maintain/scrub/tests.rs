//! Damage under a running log.

use super::*;
use crate::metrics::Metrics;
use crate::service::maintain::fsck::tests::{Rows, log};
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
    let lies_there = |first: u64, end: u64| -> u64 {
        let rows = (first..end).map(|index| service.store.row(LeafIndex::new(index)).unwrap());
        rows.map(|row| size_of(&row)).sum()
    };
    // The statements once, and the one full tile.
    let (bytes, next) = (lies_there(0, 256) + 256 * 32, 1);
    assert_eq!(service.scrub_step(0), Ok(Step { bytes, next }));
    let (bytes, next) = (lies_there(256, 262), 0);
    assert_eq!(service.scrub_step(1), Ok(Step { bytes, next }));
    assert_eq!(service.kept_scrub_place(), None);
    for (tile, kept) in [(0, Some(0)), (1, Some(1)), (7, None)] {
        service.keep_scrub_place(tile);
        assert_eq!(service.kept_scrub_place(), kept, "{tile} of 262 leaves");
    }
    assert!(service.writable().is_ok());
}

#[test]
fn the_rest_after_a_step_holds_the_rate() {
    let rows = [
        (1 << 20, 1 << 20, 1_000_000),
        (150_000, 1 << 20, 143_052),
        (1, 1 << 30, 1),
        (1 << 20, 1, 1_048_576_000_000),
    ];
    for (bytes, bytes_per_second, micros) in rows {
        let step = Step { bytes, next: 1 };
        assert_eq!(rest(&step, bytes_per_second).as_micros(), micros, "{bytes}");
        let last = Step { next: 0, ..step };
        assert!(rest(&last, bytes_per_second) > rest(&step, bytes_per_second));
    }
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
    let reloaded = service.reload().await;
    assert!(matches!(reloaded, Err(crate::service::ControlError::Damaged)));
    // What can be proven is answered, what cannot is not.
    for (index, is_whole) in [(4, true), (5, false), (6, true)] {
        let entry = service.entry_at(LeafIndex::new(index)).unwrap().unwrap();
        assert_eq!(service.receipt(&entry).is_ok(), is_whole, "receipt of {index}");
        assert_eq!(service.transparent_statement(&entry).is_ok(), is_whole, "{index}");
    }
    assert!(service.consistency(TreeSize::new(100), TreeSize::new(200)).is_ok());
}

#[tokio::test]
async fn damage_is_remembered_by_the_next_start() {
    let (outside, service) =
        damaged(|rows| rows.put("statements", &5_u64.to_be_bytes(), b"garbage"));
    keep_scrubbing(service.clone(), 1 << 30).await;
    assert!(service.damaged());
    service.shut_down().unwrap();
    drop(service);
    let again = open(&outside.path().join("log"), options(), Metrics::new("test")).unwrap();
    assert!(again.damaged(), "before its first request");
    assert_eq!(code(again.register(statement(b"after")).await), "read-only");
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
