//! The Merkle tree of RFC 9162 with SHA-256, as pure functions.
//!
//! In: leaf hashes, tree sizes, and hashes of complete subtrees. Out: roots,
//! paths, tiles, and what a batch changes. Nothing here stores, signs or knows
//! about statements.

mod proof;
mod sequencer;
mod tile;
mod tree;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::wire::digest::Digest;

pub use proof::{PathMemo, consistency_roots, inclusion_root};
pub use sequencer::{Edge, Plan, TileNodes};
pub use tile::{TILE_WIDTH, TileId, TilePath};
pub use tile::{entry_bundle, hash_tile, parse_entry_bundle, parse_hash_tile, tiles_of};
pub use tree::{Frontier, MemoryNodes, Nodes};
pub use tree::{consistency_path, inclusion_path, root_at, root_of};
pub use tree::{empty_root, leaf_hash, leaf_hash_of_bytes, node_hash};

/// The index of a leaf, from 0.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct LeafIndex(u64);

impl LeafIndex {
    /// The leaf with `index` leaves before it.
    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    /// The number of leaves before it.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for LeafIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The number of leaves in a tree.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct TreeSize(u64);

impl TreeSize {
    /// The largest size accepted for a frontier. A Merkle path in such a tree
    /// fits `limits::PATH_NODES_MAX`, and no arithmetic on it overflows.
    pub const MAX: Self = Self(1 << 63);

    /// A tree of `size` leaves.
    pub const fn new(size: u64) -> Self {
        Self(size)
    }

    /// The number of leaves.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether the leaf is in a tree of this size.
    pub const fn contains(self, leaf: LeafIndex) -> bool {
        leaf.0 < self.0
    }
}

impl fmt::Display for TreeSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Why a path proves nothing, or bytes are not part of a log.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "log-")]
pub enum Error {
    /// The bytes of an entry bundle are not 1 to 256 digests with lengths.
    #[error("{length} bytes are not a bundle of 32-byte entries")]
    EntryBundle { length: usize },
    /// A frontier whose number of peaks does not fit its size.
    #[error("{length} bytes are not a frontier")]
    Frontier { length: usize },
    /// The leaf is not in the tree.
    #[error("leaf {index} is not in a tree of {size} leaves")]
    IndexOutsideTree { index: LeafIndex, size: TreeSize },
    /// A subtree that is not complete, or not stored.
    #[error("there is no complete subtree {index} of level {level}")]
    NodeMissing { level: u8, index: u64 },
    /// The path does not start from the older root.
    #[error("the path leads to the older root {computed}, expected {expected}")]
    OlderRootMismatch { computed: Digest, expected: Digest },
    /// A consistency path holds at least one node.
    #[error("the consistency path is empty")]
    PathEmpty,
    /// The path has nodes beyond the root.
    #[error("the path has {given} nodes, the root is reached after {needed}")]
    PathTooLong { given: usize, needed: usize },
    /// The path ends below the root.
    #[error("the path of {given} nodes does not reach the root")]
    PathTooShort { given: usize },
    /// Consistency needs a non-empty tree and a larger one.
    #[error("there is no consistency path from size {from} to size {to}")]
    SizesNotIncreasing { from: TreeSize, to: TreeSize },
    /// A tile whose length does not fit its width.
    #[error("a tile of {expected} bytes has {found}")]
    TileLength { expected: usize, found: usize },
    /// Not the canonical path of a tile.
    #[error("not the path of a tile")]
    TilePath,
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
