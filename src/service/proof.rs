//! What the log can prove, at any time and between any two sizes.

use super::{Entry, Fault, Rules, Service, Snapshot};
use crate::envelope::{SignedStatement, StatementId};
use crate::key::PublicKey;
use crate::log::{LeafIndex, TILE_WIDTH, TileId, TilePath, TreeSize};
use crate::log::{consistency_path, entry_bundle, hash_tile, inclusion_path, root_at};
use crate::receipt::{Head, attach};
use crate::store::Stored;
use crate::wire::digest::Digest;
use std::sync::Arc;

/// Where a statement is.
pub enum Whereabouts {
    /// In the log.
    Logged(Entry),
    /// In the queue.
    Pending,
    /// Nowhere we know of.
    Unknown,
}

impl Service {
    /// Where the statement with this name is.
    pub fn find(&self, id: &StatementId) -> Result<Whereabouts, Fault> {
        // Asked before the store: a statement leaves the queue only after it
        // has reached the store.
        let pending = self.queue.holds(id) || self.shared.held.holds(id);
        Ok(match self.store.find(id)? {
            Some(index) if self.head().size.contains(index) => {
                Whereabouts::Logged(Entry { id: *id, index })
            }
            Some(_) => Whereabouts::Pending,
            None if pending => Whereabouts::Pending,
            None => Whereabouts::Unknown,
        })
    }

    /// The entry at an index.
    pub fn entry_at(&self, index: LeafIndex) -> Result<Option<Entry>, Fault> {
        if !self.head().size.contains(index) {
            return Ok(None);
        }
        let stored = self.stored(index)?;
        Ok(Some(Entry { id: StatementId::of_canonical(&stored.canonical), index }))
    }

    /// The newest signed head.
    pub fn head(&self) -> Head {
        *self.shared.snapshot.load().signed.head()
    }

    /// The newest snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.snapshot.load_full()
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<Rules> {
        self.shared.rules.load_full()
    }

    /// The service's public keys, the active one first.
    pub fn keys(&self) -> Arc<Vec<PublicKey>> {
        self.shared.keys.load_full()
    }

    /// A receipt at the newest head.
    pub(super) fn receipt(&self, entry: &Entry) -> Result<Vec<u8>, Fault> {
        let snapshot = self.snapshot();
        let size = snapshot.signed.head().size;
        let path = inclusion_path(&self.store.nodes(&snapshot.edge), entry.index, size)?;
        let stored = self.stored(entry.index)?;
        self.release(&snapshot, entry, &path, &stored.canonical)
    }

    /// The statement with its receipt in label 394.
    pub fn transparent_statement(&self, entry: &Entry) -> Result<Vec<u8>, Fault> {
        let receipt = self.receipt(entry)?;
        let canonical = self.stored(entry.index)?.canonical;
        let damaged = || crate::store::Error::StatementDamaged { index: entry.index };
        let statement = SignedStatement::parse_any_size(canonical).map_err(|_| damaged())?;
        Ok(attach(&statement, &receipt).map_err(|_| damaged())?)
    }

    pub(super) fn stored(&self, index: LeafIndex) -> Result<Stored, Fault> {
        let stored = self.store.statement(index)?;
        Ok(stored.ok_or(crate::store::Error::StatementMissing { index })?)
    }

    /// A consistency receipt between two sizes, `0 < from < to <= size`.
    /// Heads below the newest are signed when asked for: the tree they cover
    /// has been signed before and cannot have changed.
    pub fn consistency(&self, from: TreeSize, to: TreeSize) -> Result<Vec<u8>, Fault> {
        let snapshot = self.snapshot();
        let nodes = self.store.nodes(&snapshot.edge);
        let path = consistency_path(&nodes, from, to)?;
        if to == snapshot.signed.head().size {
            return Ok(snapshot.signed.consistency(from, &path));
        }
        let head = Head { size: to, root: root_at(&nodes, to)?, time: snapshot.signed.head().time };
        Ok(self.sign_head(head)?.consistency(from, &path))
    }

    /// The root of the tree at an earlier size.
    pub fn root_at(&self, size: TreeSize) -> Result<Digest, Fault> {
        let snapshot = self.snapshot();
        Ok(root_at(&self.store.nodes(&snapshot.edge), size)?)
    }

    /// A tile or an entry bundle; none beyond the newest head.
    pub fn tile(&self, path: &TilePath) -> Result<Option<Vec<u8>>, Fault> {
        let snapshot = self.snapshot();
        let size = snapshot.signed.head().size;
        match *path {
            TilePath::Hashes(tile) if !tile.within(size) => Ok(None),
            TilePath::Hashes(tile) => self.hash_tile(&snapshot, tile).map(Some),
            TilePath::Entries { index, width } => {
                if !(TileId { level: 0, index, width }).within(size) {
                    return Ok(None);
                }
                let first = LeafIndex::new(index * u64::from(TILE_WIDTH));
                Ok(Some(entry_bundle(&self.store.entries(first, usize::from(width))?)))
            }
        }
    }

    fn hash_tile(&self, snapshot: &Snapshot, tile: TileId) -> Result<Vec<u8>, Fault> {
        let width = usize::from(tile.width);
        let full = TileId::full(tile.level, tile.index);
        if full.within(snapshot.signed.head().size) {
            let bytes = self.store.full_tile(full)?;
            return Ok(bytes.get(..width * 32).unwrap_or_default().to_vec());
        }
        Ok(hash_tile(snapshot.edge.partial(tile.level).get(..width).unwrap_or_default()))
    }
}
