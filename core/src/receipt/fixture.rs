//! Small logs with signed heads, for the tests of this module's neighbours.

use super::{Head, SignedHead};
use crate::envelope::StatementId;
use crate::key::SigningKey;
use crate::log::{LeafIndex, MemoryNodes, TreeSize};
use crate::log::{consistency_path, inclusion_path, leaf_hash, root_at};
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

pub(crate) const LOG: &str = "https://log.example";
/// 2026-06-01T00:00:00Z.
pub(crate) const TIME: UnixSeconds = UnixSeconds::new(1_780_272_000);

/// A tree in memory with a key.
pub(crate) struct SmallLog {
    pub(crate) key: SigningKey,
    name: String,
    nodes: MemoryNodes,
}

impl SmallLog {
    /// A log of these statements, in this order.
    pub(crate) fn of(key: SigningKey, statements: &[&[u8]]) -> Self {
        let leaf = |s: &&[u8]| leaf_hash(StatementId::of_canonical(s).entry());
        Self { key, name: LOG.to_owned(), nodes: statements.iter().map(leaf).collect() }
    }

    /// The same log under another name.
    pub(crate) fn called(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// A log of `size` leaves with this statement at `index`.
    pub(crate) fn around(key: SigningKey, statement: &[u8], index: u64, size: u64) -> Self {
        let fillers: Vec<Vec<u8>> = (0..size).map(|i| i.to_be_bytes().to_vec()).collect();
        let mut all: Vec<&[u8]> = fillers.iter().map(Vec::as_slice).collect();
        all[usize::try_from(index).unwrap()] = statement;
        Self::of(key, &all)
    }

    pub(crate) fn root(&self, size: u64) -> Digest {
        root_at(&self.nodes, TreeSize::new(size)).unwrap()
    }

    /// The whole tree, signed.
    pub(crate) fn head(&self) -> SignedHead {
        let size = self.nodes.size();
        let head = Head { size, root: self.root(size.get()), time: TIME };
        SignedHead::sign(head, &self.name, &self.key).unwrap()
    }

    pub(crate) fn receipt(&self, index: u64) -> Vec<u8> {
        let index = LeafIndex::new(index);
        let path = inclusion_path(&self.nodes, index, self.nodes.size()).unwrap();
        self.head().receipt(index, &path)
    }

    pub(crate) fn consistency(&self, from: u64) -> Vec<u8> {
        let from = TreeSize::new(from);
        let path = consistency_path(&self.nodes, from, self.nodes.size()).unwrap();
        self.head().consistency(from, &path)
    }
}
