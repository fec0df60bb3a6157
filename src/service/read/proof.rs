//! Receipts, consistency proofs and tiles.

use crate::envelope::{SignedStatement, StatementId};
use crate::key::PublicKey;
use crate::log::{LeafIndex, Nodes, TILE_WIDTH, TileId, TilePath, TreeSize};
use crate::log::{consistency_path, consistency_roots, entry_bundle, hash_tile};
use crate::log::{inclusion_path, root_at};
use crate::receipt::{Head, attach};
use crate::service::{Entry, Fault, Rules, Service, Snapshot};
use crate::store::{self, Stored};
use crate::wire::digest::Digest;
use std::sync::Arc;

/// The status of a statement id.
pub enum EntryStatus {
    /// It is in the log.
    Logged(Entry),
    /// It was accepted and is not committed yet.
    Pending,
    /// It is neither.
    Unknown,
}

impl Service {
    /// The status of the statement with this id.
    pub fn find(&self, id: &StatementId) -> Result<EntryStatus, Fault> {
        // Checked before the store: a statement leaves the queue only after it
        // has been committed.
        let pending = self.committer.contains(id) || self.shared.pending.contains(id);
        Ok(match self.store.find(id)? {
            Some(index) if self.head().size.contains(index) => {
                EntryStatus::Logged(Entry { id: *id, index })
            }
            Some(_) => EntryStatus::Pending,
            None if pending => EntryStatus::Pending,
            None => EntryStatus::Unknown,
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
    pub(in crate::service) fn receipt(&self, entry: &Entry) -> Result<Vec<u8>, Fault> {
        self.receipt_under(&self.snapshot(), entry)
    }

    fn receipt_under(&self, snapshot: &Arc<Snapshot>, entry: &Entry) -> Result<Vec<u8>, Fault> {
        let size = snapshot.signed.head().size;
        let path = inclusion_path(&self.store.nodes(&snapshot.edge), entry.index, size)?;
        let stored = self.stored(entry.index)?;
        self.release(snapshot, entry, &path, &stored.canonical)
    }

    /// The statement with its receipt in label 394.
    pub fn transparent_statement(&self, entry: &Entry) -> Result<Vec<u8>, Fault> {
        self.transparent_under(&self.snapshot(), entry)
    }

    /// The same at the head of a snapshot.
    pub(in crate::service) fn transparent_under(
        &self,
        snapshot: &Arc<Snapshot>,
        entry: &Entry,
    ) -> Result<Vec<u8>, Fault> {
        let receipt = self.receipt_under(snapshot, entry)?;
        let canonical = self.stored(entry.index)?.canonical;
        let damaged = || crate::store::Error::StatementDamaged { index: entry.index };
        let statement = SignedStatement::parse_any_size(canonical).map_err(|_| damaged())?;
        Ok(attach(&statement, &receipt).map_err(|_| damaged())?)
    }

    pub(in crate::service) fn stored(&self, index: LeafIndex) -> Result<Stored, Fault> {
        let stored = self.store.statement(index)?;
        Ok(stored.ok_or(crate::store::Error::StatementMissing { index })?)
    }

    /// A consistency receipt between two sizes, `0 < from < to <= size`.
    /// Heads below the newest are signed on request: they are prefixes of a
    /// tree that is signed already.
    pub fn consistency(&self, from: TreeSize, to: TreeSize) -> Result<Vec<u8>, Fault> {
        let snapshot = self.snapshot();
        let (nodes, newest) = (self.store.nodes(&snapshot.edge), *snapshot.signed.head());
        let path = consistency_path(&nodes, from, to)?;
        let checked = root_under(&nodes, to, &newest).and_then(|root| {
            let older = root_at(&nodes, from)?;
            let roots = consistency_roots(from.get(), to.get(), older, &path);
            if roots.is_ok_and(|(_, newer)| newer == root) {
                Ok(root)
            } else {
                Err(Fault::SelfCheck)
            }
        });
        if matches!(checked, Err(Fault::SelfCheck)) {
            self.metrics.self_audit_failed();
            tracing::error!(%from, %to, "a consistency receipt failed its own verification");
        }
        let root = checked?;
        if to == newest.size {
            return Ok(snapshot.signed.consistency(from, &path));
        }
        let head = Head { size: to, root, time: newest.time };
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

/// The root at a size, if it is consistent with the newest head: a damaged tile
/// gives another root, which must never be signed.
fn root_under(
    nodes: &impl Nodes<Error = store::Error>,
    size: TreeSize,
    newest: &Head,
) -> Result<Digest, Fault> {
    let root = root_at(nodes, size)?;
    let above = if size == newest.size {
        root
    } else {
        let path = consistency_path(nodes, size, newest.size)?;
        let roots = consistency_roots(size.get(), newest.size.get(), root, &path);
        roots.map_err(|_| Fault::SelfCheck)?.1
    };
    if above == newest.root { Ok(root) } else { Err(Fault::SelfCheck) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{MemoryNodes, leaf_hash_of_bytes};
    use crate::wire::time::UnixSeconds;

    /// A tree with one wrong hash.
    struct Damaged {
        nodes: MemoryNodes,
        at: Option<(u8, u64)>,
    }

    impl Nodes for Damaged {
        type Error = store::Error;

        fn node(&self, level: u8, index: u64) -> Result<Digest, store::Error> {
            let node = self.nodes.node(level, index)?;
            let is_damaged = self.at == Some((level, index));
            Ok(if is_damaged { Digest::of(node.as_bytes()) } else { node })
        }
    }

    /// Every size of every small tree, with every hash damaged in turn.
    #[test]
    fn damaged_root_is_never_returned() {
        let mut withheld = 0;
        for size in 1..=20_u64 {
            let leaves = (0..size).map(|index| leaf_hash_of_bytes(&index.to_be_bytes()));
            let mut nodes = Damaged { nodes: leaves.collect(), at: None };
            let root = root_at(&nodes, TreeSize::new(size)).unwrap();
            let newest = Head { size: TreeSize::new(size), root, time: UnixSeconds::default() };
            for older in (1..=size).map(TreeSize::new) {
                nodes.at = None;
                let right = root_under(&nodes, older, &newest).unwrap();
                for at in (0..5).flat_map(|level| (0..size >> level).map(move |i| (level, i))) {
                    nodes.at = Some(at);
                    match root_under(&nodes, older, &newest) {
                        Ok(root) => assert_eq!(root, right, "{older} of {size}, damaged {at:?}"),
                        Err(Fault::SelfCheck) => withheld += 1,
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        }
        assert!(withheld > 100, "{withheld}");
    }
}
