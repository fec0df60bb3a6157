//! Appending a batch: the new frontier and root, inclusion paths, full tiles.
//!
//! In: the frontier and edge before a batch, and its leaf hashes. Out: a
//! `Plan`, and the tiles that became full. Everything is computed in memory, so
//! a batch can be applied to clones and discarded.

use super::tile::{TILE_LEVELS, TILE_WIDTH, TileId, hash_tile, parse_hash_tile};
use super::tree::{Frontier, Nodes, count, empty_root, node_hash, root_of};
use super::{Error, LeafIndex, TreeSize};
use crate::wire::digest::Digest;

/// The result of appending one batch.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The frontier with the batch.
    pub after: Frontier,
    /// The root with the batch.
    pub root: Digest,
    /// The inclusion path of every new leaf at the new size, in batch order.
    pub paths: Vec<Vec<Digest>>,
}

impl Plan {
    /// Appends a batch. Every node is hashed once; paths copy hashes.
    pub fn extend(before: &Frontier, leaves: &[Digest]) -> Self {
        let first = before.size().get();
        let size = first + count(leaves);
        let mut rows = rows(before, leaves.to_vec(), size);
        let mut peaks = Vec::new();
        let mut incomplete = None;
        for row in &mut rows {
            row.incomplete = incomplete;
            if let Some(peak) = row.hashes.last().filter(|_| row.count % 2 == 1) {
                peaks.push(*peak);
                incomplete = Some(incomplete.map_or(*peak, |right| node_hash(peak, &right)));
            }
        }
        peaks.reverse();
        let paths = (first..size).map(|index| path(&rows, index)).collect();
        Self {
            after: Frontier { size: TreeSize::new(size), peaks },
            root: incomplete.unwrap_or_else(empty_root),
            paths,
        }
    }
}

/// The part of one level of the new tree that new leaves need.
struct Row {
    /// Complete nodes on this level, in the whole tree.
    count: u64,
    /// The index of the first of `hashes`, which end with the last complete
    /// node.
    start: u64,
    hashes: Vec<Digest>,
    /// The hash of the leaves to the right of all complete nodes, if any.
    incomplete: Option<Digest>,
}

/// The complete nodes above new leaves. A left sibling without new leaves was
/// a peak before, because its parent is new.
fn rows(before: &Frontier, leaves: Vec<Digest>, size: u64) -> Vec<Row> {
    let first = before.size().get();
    let mut peaks = before.peaks().iter().rev();
    let mut hashes = leaves;
    let mut rows = Vec::new();
    for level in 0..u64::BITS - size.leading_zeros() {
        let mut start = first >> level;
        if let Some(peak) = (start % 2 == 1).then(|| peaks.next()).flatten() {
            hashes.insert(0, *peak);
            start -= 1;
        }
        let (pairs, _) = hashes.as_chunks();
        let parents = pairs.iter().map(|[left, right]| node_hash(left, right)).collect();
        rows.push(Row { count: size >> level, start, hashes, incomplete: None });
        hashes = parents;
    }
    rows
}

fn path(rows: &[Row], index: u64) -> Vec<Digest> {
    let mut path = Vec::with_capacity(rows.len());
    for (level, row) in rows.iter().enumerate() {
        let sibling = (index >> level) ^ 1;
        path.extend(if sibling == row.count { row.incomplete } else { row.complete(sibling) });
    }
    path
}

impl Row {
    fn complete(&self, index: u64) -> Option<Digest> {
        let place = usize::try_from(index.checked_sub(self.start)?).ok()?;
        self.hashes.get(place).copied()
    }
}

/// The right-edge tile of every tile level: fewer than 256 hashes each.
#[derive(Debug, Eq, PartialEq)]
pub struct Edge {
    size: TreeSize,
    levels: [Vec<Digest>; TILE_LEVELS],
}

/// A clone is about to be appended to, so it gets the capacity of full tiles.
impl Clone for Edge {
    fn clone(&self) -> Self {
        let with_room = |level: &Vec<Digest>| {
            let mut copy = Vec::with_capacity(usize::from(TILE_WIDTH));
            copy.extend_from_slice(level);
            copy
        };
        Self { size: self.size, levels: self.levels.each_ref().map(with_room) }
    }
}

impl Edge {
    /// The edge of the tree without leaves.
    pub fn empty() -> Self {
        Self { size: TreeSize::new(0), levels: Default::default() }
    }

    /// The edge of a tree whose full tiles and leaf hashes are stored. Reads
    /// the leaves to the right of the last full tile, and the full tiles whose
    /// roots are in the partial tiles above: at most 255 on each level.
    pub fn rebuild<B: AsRef<[u8]>, E: From<Error>>(
        size: TreeSize,
        mut fetch: impl FnMut(TileId) -> Result<B, E>,
        mut leaf: impl FnMut(LeafIndex) -> Result<Digest, E>,
    ) -> Result<Self, E> {
        let mut edge = Self { size, ..Self::empty() };
        for (level, partial) in (0_u8..).zip(&mut edge.levels) {
            let nodes = size.get() >> (u32::from(level) * 8);
            for index in nodes - nodes % 256..nodes {
                partial.push(match level.checked_sub(1) {
                    None => leaf(LeafIndex::new(index))?,
                    Some(below) => {
                        let bytes = fetch(TileId::full(below, index))?;
                        root_of(&parse_hash_tile(bytes.as_ref(), TILE_WIDTH)?)
                    }
                });
            }
        }
        Ok(edge)
    }

    /// The size of the tree.
    pub fn size(&self) -> TreeSize {
        self.size
    }

    /// The hashes of the partial tile of a tile level; empty if there is none.
    pub fn partial(&self, level: u8) -> &[Digest] {
        self.levels.get(usize::from(level)).map_or(&[], Vec::as_slice)
    }

    /// Adds one leaf hash; returns the tiles it filled, lowest level first,
    /// with their 8192 bytes.
    pub fn append(&mut self, leaf: Digest) -> Vec<(TileId, Vec<u8>)> {
        let mut full = Vec::new();
        let mut hash = leaf;
        let mut index = self.size.get();
        for (level, partial) in (0_u8..).zip(&mut self.levels) {
            partial.push(hash);
            if partial.len() < usize::from(TILE_WIDTH) {
                break;
            }
            index /= 256;
            full.push((TileId::full(level, index), hash_tile(partial)));
            hash = root_of(partial);
            partial.clear();
        }
        self.size = TreeSize::new(self.size.get() + 1);
        full
    }
}

/// All complete subtrees of a tree, from its edge or from full tiles.
pub struct TileNodes<'a, F> {
    edge: &'a Edge,
    fetch: F,
}

impl<'a, F> TileNodes<'a, F> {
    /// Nodes of the edge's tree; `fetch` is called for full tiles only.
    pub fn new(edge: &'a Edge, fetch: F) -> Self {
        Self { edge, fetch }
    }
}

impl<F, B, E> Nodes for TileNodes<'_, F>
where
    F: Fn(TileId) -> Result<B, E>,
    B: AsRef<[u8]>,
    E: From<Error>,
{
    type Error = E;

    fn node(&self, level: u8, index: u64) -> Result<Digest, E> {
        let missing = || E::from(Error::NodeMissing { level, index });
        // A node 2^height hashes wide is inside one tile.
        let height = level % 8;
        let tile = TileId::full(level / 8, index >> (8 - height));
        let place = usize::try_from((index % (256 >> height)) << height).map_err(|_| missing())?;
        let root = |hashes: &[Digest]| hashes.get(place..place + (1 << height)).map(root_of);
        if tile.within(self.edge.size()) {
            let bytes = (self.fetch)(tile)?;
            return root(&parse_hash_tile(bytes.as_ref(), TILE_WIDTH)?).ok_or_else(missing);
        }
        if !(TileId { width: 1, ..tile }).within(self.edge.size()) {
            return Err(missing());
        }
        root(self.edge.partial(tile.level)).ok_or_else(missing)
    }
}
