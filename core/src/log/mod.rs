//! The Merkle log of RFC 9162 with SHA-256, as arithmetic.
//!
//! In: leaf hashes, tree sizes, and hashes of complete subtrees from wherever
//! they are kept. Out: roots, paths, tiles, and what a batch changes. Nothing
//! here stores, signs or knows what a statement is.

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

/// The place of a leaf, counted from 0.
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

/// How many leaves a tree has: one past its last leaf.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct TreeSize(u64);

impl TreeSize {
    /// The largest tree whose state we take from outside. A Merkle path in it
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

/// Why a path does not prove, or bytes are not a piece of a log.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "log-")]
pub enum Error {
    /// The bytes of an entry bundle are not 1 to 256 digests with lengths.
    #[error("{length} bytes are not a bundle of 32-byte entries")]
    EntryBundle { length: usize },
    /// A frontier with another number of peaks than its size has.
    #[error("{length} bytes are not a frontier")]
    Frontier { length: usize },
    /// The leaf is not in the tree.
    #[error("leaf {index} is not in a tree of {size} leaves")]
    IndexOutsideTree { index: LeafIndex, size: TreeSize },
    /// A subtree that is not complete, or not kept.
    #[error("there is no complete subtree {index} of level {level}")]
    NodeMissing { level: u8, index: u64 },
    /// The path does not start from the older root.
    #[error("the path leads to the older root {computed}, expected {expected}")]
    OlderRootMismatch { computed: Digest, expected: Digest },
    /// A consistency path holds at least one node.
    #[error("the consistency path is empty")]
    PathEmpty,
    /// The path goes on after it has reached the root.
    #[error("the path has {given} nodes, the root is reached after {needed}")]
    PathTooLong { given: usize, needed: usize },
    /// The path stops before it has reached the root.
    #[error("the path of {given} nodes does not reach the root")]
    PathTooShort { given: usize },
    /// Consistency leads from a tree to a larger one, and neither is empty.
    #[error("no path leads from size {from} to size {to}")]
    SizesNotIncreasing { from: TreeSize, to: TreeSize },
    /// A tile of another length than its width says.
    #[error("a tile of {expected} bytes has {found}")]
    TileLength { expected: usize, found: usize },
    /// A path that is not the one spelling of a tile.
    #[error("not the path of a tile")]
    TilePath,
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
