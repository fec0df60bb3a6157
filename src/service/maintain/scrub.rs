//! A running log reads itself again, slowly, from the first byte to the last.
//!
//! One step is one tile of 256 leaves: the statements under it, their ids,
//! the tile, and its root in the tile above. What a step needs is on the disk,
//! so the place to go on from is one number. A finding ends writing for good:
//! reads that can be proven go on.

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

/// Between two walks; a small log is not read all day.
const PAUSE: Duration = Duration::from_secs(3600);
/// Steps after which the place is kept: 16,384 statements.
const KEEP_AFTER: u64 = 64;

/// What one step read and where the next one begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// Bytes read.
    pub bytes: u64,
    /// The next tile of leaves; 0 after the last one.
    pub next: u64,
}

impl Service {
    /// Checks one tile of leaves; the words say what is wrong, and where.
    pub fn scrub_step(&self, tile: u64) -> Result<Step, String> {
        store::catch_panic(|| Ok(self.look_at(tile)))
            .unwrap_or_else(|e: store::Error| Err(chain(&e)))
    }

    fn look_at(&self, tile: u64) -> Result<Step, String> {
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
                return Err(format!("the tiles do not give the root that was signed at {size}"));
            }
        }
        Ok(Step { bytes, next })
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

    /// A tile holds these hashes, and the tile above holds its root; up to
    /// the first one that is not full.
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
        let place = usize::try_from(tile.index % width).unwrap_or(usize::MAX);
        let whole = if above.within(edge.size()) {
            let stored = self.store.full_tile_uncached(above).map_err(|e| chain(&e))?;
            read += size_of(&stored);
            parse_hash_tile(&stored, TILE_WIDTH).map_err(|_| differs(above))?
        } else {
            edge.partial(above.level).to_vec()
        };
        if whole.get(place) != Some(&root_of(hashes)) {
            return Err(differs(above));
        }
        // The last tile under a full one has it checked in turn.
        let is_last = place + 1 == usize::from(TILE_WIDTH) && above.within(edge.size());
        let more = if is_last { self.scrub_tile(above, &whole, edge)? } else { 0 };
        Ok(read + more)
    }

    /// Stops writing for good.
    pub(in crate::service) fn is_damaged(&self, what: &str) {
        self.damaged.store(true, Ordering::Relaxed);
        self.metrics.scrub_found();
        self.metrics.read_only(true);
        tracing::error!(
            finding = what,
            "the store is damaged; nothing is written any more: run fsck on a stopped log"
        );
    }

    /// Makes the step that an earlier walk was to make next, before anything
    /// is written: where it found damage, it stopped.
    pub(in crate::service) fn scrub_where_left(&self) {
        if let Some(tile) = self.kept_scrub_place()
            && let Err(what) = self.scrub_step(tile)
        {
            self.is_damaged(&what);
        }
    }

    /// The next tile of leaves, if a walk has begun and is not past the end.
    fn kept_scrub_place(&self) -> Option<u64> {
        let tile: u64 = std::fs::read_to_string(self.scrub_place()).ok()?.trim().parse().ok()?;
        let first = TreeSize::new(tile.saturating_mul(TILE_WIDTH.into()));
        (first < self.head().size).then_some(tile)
    }

    fn scrub_place(&self) -> std::path::PathBuf {
        self.store.dir().path().join("scrub")
    }

    fn keep_scrub_place(&self, tile: u64) {
        if let Err(error) = write_public(&self.scrub_place(), format!("{tile}\n").as_bytes()) {
            tracing::warn!(error = %chain(&error), "the place of the scrub was not kept");
        }
    }
}

/// How long to rest after a step, so that no more is read in a second than
/// allowed, on average.
fn rest(step: &Step, bytes_per_second: u64) -> Duration {
    let micros = step.bytes.saturating_mul(1_000_000).div_ceil(bytes_per_second);
    let pause = if step.next == 0 { PAUSE } else { Duration::ZERO };
    pause + Duration::from_micros(micros)
}

fn size_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn differs(tile: TileId) -> String {
    format!("{} is not what lies under it", tile.path())
}

/// Walks for ever, or until something is found. At most `bytes_per_second`
/// are read on average; 0 is not at all.
pub async fn keep_scrubbing(service: Arc<Service>, bytes_per_second: u64) {
    if bytes_per_second == 0 || service.options.read_only {
        return;
    }
    let mut tile = service.kept_scrub_place().unwrap_or(0);
    while !service.damaged() {
        let worker = service.clone();
        let step = tokio::task::spawn_blocking(move || {
            let step = worker.scrub_step(tile);
            match &step {
                Ok(step) if step.next % KEEP_AFTER != 0 => {}
                Ok(step) => worker.keep_scrub_place(step.next),
                Err(_) => worker.keep_scrub_place(tile),
            }
            step
        });
        match step.await {
            Ok(Ok(step)) => {
                service.metrics.scrubbed(step.bytes);
                tile = step.next;
                tokio::time::sleep(rest(&step, bytes_per_second)).await;
            }
            Ok(Err(what)) => return service.is_damaged(&what),
            Err(_) => return,
        }
    }
}
