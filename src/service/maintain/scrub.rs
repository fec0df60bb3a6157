//! The scrub: a running log slowly rereads all of its store.
//!
//! One step checks one tile of 256 leaves: the statements under it, their ids,
//! the tile, and its root in the tile above. A step keeps no state, so the next
//! tile is all that a restart needs. A finding makes the log read-only for good;
//! reads that can be proven are still served.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::envelope::StatementId;
use crate::log::{Edge, LeafIndex, TILE_WIDTH, TileId, TreeSize, leaf_hash};
use crate::log::{parse_hash_tile, root_at, root_of};
use crate::service::Service;
use crate::service::error::chain;
use crate::store::{self, Stored, write_public};
use crate::wire::digest::Digest;

/// Between two passes, so that a small log is not read all day.
const PAUSE: Duration = Duration::from_secs(3600);
/// Steps after which the position is saved: 16,384 statements.
const SAVE_AFTER: u64 = 64;

/// The result of a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScrubStep {
    /// Bytes read.
    pub bytes: u64,
    /// The next tile of leaves; 0 after the last one.
    pub next: u64,
}

impl Service {
    /// Checks one tile of leaves; the error says what is damaged, and where.
    pub fn scrub_step(&self, tile: u64) -> Result<ScrubStep, String> {
        store::catch_panic(|| Ok(self.check_tile(tile)))
            .unwrap_or_else(|e: store::Error| Err(chain(&e)))
    }

    fn check_tile(&self, tile: u64) -> Result<ScrubStep, String> {
        let snapshot = self.shared.snapshot.load_full();
        let size = snapshot.signed.head().size;
        let first = tile.saturating_mul(u64::from(TILE_WIDTH));
        let end = size.get().min(first.saturating_add(u64::from(TILE_WIDTH)));
        let mut bytes = 0;
        let mut leaves = Vec::new();
        for index in (first..end).map(LeafIndex::new) {
            let row = self.store.row(index).map_err(|e| chain(&e))?;
            bytes += size_of(&row);
            leaves.push(self.scrub_statement(index, &row)?);
        }
        let edge = &snapshot.edge;
        bytes += self.scrub_tile(TileId::full(0, tile), &leaves, edge)?;
        let next = if end < size.get() { tile + 1 } else { 0 };
        if next == 0 {
            let root = root_at(&self.store.nodes(edge), size).map_err(|e| chain(&e))?;
            if root != snapshot.signed.head().root {
                return Err(format!(
                    "the tiles do not give the root that was signed at size {size}"
                ));
            }
        }
        Ok(ScrubStep { bytes, next })
    }

    /// The leaf of a statement, computed from its bytes.
    fn scrub_statement(&self, index: LeafIndex, row: &[u8]) -> Result<Digest, String> {
        let damaged = || chain(&store::Error::StatementDamaged { index });
        let stored = Stored::decode(row).ok_or_else(damaged)?;
        let id = StatementId::of_canonical(&stored.canonical);
        match self.store.find(&id) {
            Ok(Some(at)) if at == index => Ok(leaf_hash(id.entry())),
            Ok(_) => Err(format!("the statement at index {index} is not the one its id names")),
            Err(e) => Err(chain(&e)),
        }
    }

    /// A tile must hold these hashes, and the tile above its root. When this
    /// completes a full tile above, that one is checked in turn.
    fn scrub_tile(&self, tile: TileId, hashes: &[Digest], edge: &Edge) -> Result<u64, String> {
        if !tile.within(edge.size()) {
            let same = edge.partial(tile.level) == hashes;
            return if same { Ok(0) } else { Err(differs(tile)) };
        }
        let stored = self.store.full_tile_uncached(tile).map_err(|e| chain(&e))?;
        let found = parse_hash_tile(&stored, TILE_WIDTH).map_err(|_| differs(tile))?;
        if found != hashes {
            return Err(differs(tile));
        }
        let mut read = size_of(&stored);
        let width = u64::from(TILE_WIDTH);
        let above = TileId::full(tile.level + 1, tile.index / width);
        let position = usize::try_from(tile.index % width).unwrap_or(usize::MAX);
        let whole = if above.within(edge.size()) {
            let stored = self.store.full_tile_uncached(above).map_err(|e| chain(&e))?;
            read += size_of(&stored);
            parse_hash_tile(&stored, TILE_WIDTH).map_err(|_| differs(above))?
        } else {
            edge.partial(above.level).to_vec()
        };
        if whole.get(position) != Some(&root_of(hashes)) {
            return Err(differs(above));
        }
        let is_last = position + 1 == usize::from(TILE_WIDTH) && above.within(edge.size());
        let more = if is_last { self.scrub_tile(above, &whole, edge)? } else { 0 };
        Ok(read + more)
    }

    /// Makes the log read-only for good.
    pub(in crate::service) fn mark_damaged(&self, what: &str) {
        self.damaged.store(true, Ordering::Relaxed);
        self.metrics.scrub_found();
        self.metrics.read_only(true);
        tracing::error!(
            finding = what,
            "the store is damaged and the log read-only from now on: stop it and run fsck"
        );
    }

    /// Repeats the step at the saved position before anything is written: an
    /// earlier process that found damage saved the position of it.
    pub(in crate::service) fn scrub_saved_position(&self) {
        if let Some(tile) = self.saved_scrub_position()
            && let Err(what) = self.scrub_step(tile)
        {
            self.mark_damaged(&what);
        }
    }

    /// The saved position, unless it is past the end.
    fn saved_scrub_position(&self) -> Option<u64> {
        let tile: u64 = std::fs::read_to_string(self.scrub_path()).ok()?.trim().parse().ok()?;
        let first = TreeSize::new(tile.saturating_mul(TILE_WIDTH.into()));
        (first < self.head().size).then_some(tile)
    }

    fn scrub_path(&self) -> std::path::PathBuf {
        self.store.dir().path().join("scrub")
    }

    fn save_scrub_position(&self, tile: u64) {
        if let Err(error) = write_public(&self.scrub_path(), format!("{tile}\n").as_bytes()) {
            tracing::warn!(error = %chain(&error), "the position of the scrub was not saved");
        }
    }
}

/// The pause after a step that keeps the average rate.
fn pause_after(step: &ScrubStep, bytes_per_second: u64) -> Duration {
    let micros = step.bytes.saturating_mul(1_000_000).div_ceil(bytes_per_second);
    let pause = if step.next == 0 { PAUSE } else { Duration::ZERO };
    pause + Duration::from_micros(micros)
}

fn size_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn differs(tile: TileId) -> String {
    format!("{} does not match the hashes below it", tile.path())
}

/// Scrubs pass after pass until something is found. Reads at most
/// `bytes_per_second` on average; 0 turns the scrub off.
pub async fn keep_scrubbing(service: Arc<Service>, bytes_per_second: u64) {
    if bytes_per_second == 0 || service.options.read_only {
        return;
    }
    let mut tile = service.saved_scrub_position().unwrap_or(0);
    while !service.damaged() {
        let worker = service.clone();
        let step = tokio::task::spawn_blocking(move || {
            let step = worker.scrub_step(tile);
            match &step {
                Ok(step) if step.next % SAVE_AFTER != 0 => {}
                Ok(step) => worker.save_scrub_position(step.next),
                Err(_) => worker.save_scrub_position(tile),
            }
            step
        });
        match step.await {
            Ok(Ok(step)) => {
                service.metrics.scrubbed(step.bytes);
                tile = step.next;
                tokio::time::sleep(pause_after(&step, bytes_per_second)).await;
            }
            Ok(Err(what)) => return service.mark_damaged(&what),
            Err(_) => return,
        }
    }
}
