//! Damage under a running log.

use super::*;
use crate::metrics::Metrics;
use crate::service::maintain::fsck::tests::{fill, id_key, store, stored};
use crate::service::open_on;
use crate::service::tests::{code, options, statement};
use crate::store::Space;
use crate::store::fixture::TestLog;

fn open(log: &TestLog) -> Arc<Service> {
    open_on(log.open().unwrap(), options(), Metrics::new("test")).unwrap()
}

/// A log of two tiles of leaves on each engine, damaged before it was opened.
fn damaged(damage: impl Fn(&TestLog)) -> Vec<(TestLog, Arc<Service>)> {
    let logs = TestLog::on_each_engine().into_iter().map(|log| {
        // It is made on a runtime of its own.
        std::thread::scope(|scope| scope.spawn(|| fill(&log)).join()).unwrap();
        damage(&log);
        let service = open(&log);
        (log, service)
    });
    logs.collect()
}

#[tokio::test]
async fn sound_log_is_walked_from_end_to_end() {
    for (_log, service) in damaged(|_| ()) {
        check_walk(&service);
    }
}

fn check_walk(service: &Service) {
    let bytes_of = |first: u64, end: u64| -> u64 {
        let rows = (first..end).map(|index| service.store.row(LeafIndex::new(index)).unwrap());
        rows.map(|row| size_of(&row)).sum()
    };
    // The statements once, and the one full tile.
    let (bytes, next) = (bytes_of(0, 256) + 256 * 32, 1);
    assert_eq!(service.scrub_step(0), Ok(ScrubStep { bytes, next }));
    let (bytes, next) = (bytes_of(256, 262), 0);
    assert_eq!(service.scrub_step(1), Ok(ScrubStep { bytes, next }));
    assert_eq!(service.saved_scrub_position(), None);
    for (tile, saved) in [(0, Some(0)), (1, Some(1)), (7, None)] {
        service.save_scrub_position(tile);
        assert_eq!(service.saved_scrub_position(), saved, "{tile} of 262 leaves");
    }
    assert!(service.writable().is_ok());
}

#[test]
fn pause_after_a_step_keeps_the_rate() {
    let rows = [
        (1 << 20, 1 << 20, 1_000_000),
        (150_000, 1 << 20, 143_052),
        (1, 1 << 30, 1),
        (1 << 20, 1, 1_048_576_000_000),
    ];
    for (bytes, bytes_per_second, micros) in rows {
        let step = ScrubStep { bytes, next: 1 };
        assert_eq!(pause_after(&step, bytes_per_second).as_micros(), micros, "{bytes}");
        let last = ScrubStep { next: 0, ..step };
        assert!(pause_after(&last, bytes_per_second) > pause_after(&step, bytes_per_second));
    }
}

#[tokio::test]
async fn damage_makes_the_log_read_only() {
    let flipped = |log: &TestLog| {
        let (mut canonical, time) = stored(log, 5);
        canonical[20] ^= 1;
        store(log, 5, &canonical, time);
    };
    for (_log, service) in damaged(flipped) {
        check_damaged(service).await;
    }
}

async fn check_damaged(service: Arc<Service>) {
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
async fn damage_is_found_again_by_the_next_start() {
    let garbage =
        |log: &TestLog| log.tamper(Space::Statements, &5_u64.to_be_bytes(), Some(b"garbage"));
    for (log, service) in damaged(garbage) {
        keep_scrubbing(service.clone(), 1 << 30).await;
        assert!(service.damaged());
        service.shut_down().unwrap();
        drop(service);
        let again = open(&log);
        assert!(again.damaged(), "before its first request");
        assert_eq!(code(again.register(statement(b"after")).await), "read-only");
    }
}

#[tokio::test]
async fn every_kind_of_row_is_checked() {
    type Damage = fn(&TestLog);
    let damages: [(&str, Damage); 4] = [
        ("index 5 is missing", |log| {
            log.tamper(Space::Statements, &5_u64.to_be_bytes(), None);
        }),
        ("index 5 is damaged", |log| {
            log.tamper(Space::Statements, &5_u64.to_be_bytes(), Some(b"x"));
        }),
        ("not the one its id names", |log| {
            log.tamper(Space::Ids, &id_key(log, 5), Some(&6_u64.to_be_bytes()));
        }),
        ("is damaged", |log| log.tamper(Space::Ids, &id_key(log, 5), Some(b"x"))),
    ];
    for (expected, damage) in damages {
        for (log, service) in damaged(damage) {
            let finding = service.scrub_step(0).unwrap_err();
            assert!(finding.contains(expected), "{}: {finding}", log.engine());
        }
    }
    // A log does not start on a damaged tile, but one can be hit later.
    for (_log, service) in damaged(|_| ()) {
        let mut hashes = vec![Digest::of(b""); 256];
        let tile = TileId::full(0, 0);
        let finding = service.scrub_tile(tile, &hashes, &Edge::empty()).unwrap_err();
        assert!(finding.contains("tile/0/000"), "{finding}");
        hashes.clear();
        assert!(service.scrub_tile(tile, &hashes, &Edge::empty()).is_ok());
    }
}

#[tokio::test]
async fn rate_zero_turns_the_scrub_off() {
    let gone = |log: &TestLog| log.tamper(Space::Statements, &5_u64.to_be_bytes(), None);
    for (_log, service) in damaged(gone) {
        keep_scrubbing(service.clone(), 0).await;
        assert!(!service.damaged());
    }
}
