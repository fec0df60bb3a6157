//! The tree of RFC 9162, section 2.1: hashes, peaks, roots and paths.
//!
//! In: leaf hashes, or the complete subtrees of a `Nodes`. Out: roots and
//! paths. The incomplete right edge is computed here, so storage holds only
//! hashes that never change.

use super::{Error, LeafIndex, TreeSize};
use crate::wire::digest::Digest;

/// The leaf hash of an entry that is a digest, as ours are.
pub fn leaf_hash(entry: &Digest) -> Digest {
    let mut input = [0; 33];
    let (_, rest) = input.split_at_mut(1);
    rest.copy_from_slice(entry.as_bytes());
    Digest::of(&input)
}

/// The leaf hash of any entry.
pub fn leaf_hash_of_bytes(entry: &[u8]) -> Digest {
    Digest::of_parts(&[&[0], entry])
}

/// The hash of an inner node.
pub fn node_hash(left: &Digest, right: &Digest) -> Digest {
    Digest::of_node(1, left, right)
}

/// The root of the tree without leaves.
pub fn empty_root() -> Digest {
    Digest::of(&[])
}

/// The root of the tree with exactly these leaf hashes.
pub fn root_of(leaves: &[Digest]) -> Digest {
    let mut frontier = Frontier::empty();
    leaves.iter().for_each(|leaf| frontier.append(*leaf));
    frontier.root()
}

/// The size of a tree and the roots of its complete subtrees (peaks), largest
/// first, one per set bit of the size. This suffices for appending.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Frontier {
    pub(super) size: TreeSize,
    pub(super) peaks: Vec<Digest>,
}

impl Frontier {
    /// The frontier of the tree without leaves.
    pub const fn empty() -> Self {
        Self { size: TreeSize::new(0), peaks: Vec::new() }
    }

    /// A stored frontier; `None` if the number of peaks does not fit the size.
    pub fn from_parts(size: TreeSize, peaks: Vec<Digest>) -> Option<Self> {
        let fits = usize::try_from(size.get().count_ones()) == Ok(peaks.len());
        (fits && size <= TreeSize::MAX).then_some(Self { size, peaks })
    }

    /// The size of the tree.
    pub fn size(&self) -> TreeSize {
        self.size
    }

    /// The roots of the complete subtrees, largest first.
    pub fn peaks(&self) -> &[Digest] {
        &self.peaks
    }

    /// The root of the tree.
    pub fn root(&self) -> Digest {
        let smallest_first = self.peaks.iter().rev().copied();
        smallest_first.reduce(|right, left| node_hash(&left, &right)).unwrap_or_else(empty_root)
    }

    /// Adds one leaf hash.
    pub fn append(&mut self, leaf: Digest) {
        // Merging equal peaks is the carry of adding one to the size.
        let carries = self.size.get().trailing_ones();
        let merged = (0..carries)
            .map_while(|_| self.peaks.pop())
            .fold(leaf, |right, left| node_hash(&left, &right));
        self.peaks.push(merged);
        self.size = TreeSize::new(self.size.get() + 1);
    }

    /// The size as 8 bytes big-endian, then 32 bytes per peak.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.size.get().to_be_bytes().to_vec();
        self.peaks.iter().for_each(|peak| bytes.extend_from_slice(peak.as_bytes()));
        bytes
    }

    /// Reads what `encode` wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let malformed = || Error::Frontier { length: bytes.len() };
        let (size, rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
        let (peaks, []) = rest.as_chunks() else { return Err(malformed()) };
        let peaks = peaks.iter().copied().map(Digest::from_bytes).collect();
        Self::from_parts(TreeSize::new(u64::from_be_bytes(*size)), peaks).ok_or_else(malformed)
    }
}

/// A source of the hashes of complete subtrees.
pub trait Nodes {
    /// Why a hash could not be read.
    type Error;

    /// The hash of the complete subtree of 2^`level` leaves that starts at
    /// leaf `index` * 2^`level`.
    fn node(&self, level: u8, index: u64) -> Result<Digest, Self::Error>;
}

/// The root at a size the nodes cover.
pub fn root_at<N: Nodes>(nodes: &N, size: TreeSize) -> Result<Digest, N::Error> {
    range_hash(nodes, 0, size.get())
}

/// The inclusion path of a leaf at a size the nodes cover (RFC 9162, 2.1.3.1),
/// leaf side first. For a leaf outside the tree the path is empty, which no
/// verifier accepts.
pub fn inclusion_path<N: Nodes>(
    nodes: &N,
    index: LeafIndex,
    size: TreeSize,
) -> Result<Vec<Digest>, N::Error> {
    let mut path = Vec::new();
    if !size.contains(index) {
        return Ok(path);
    }
    let (mut start, mut end) = (0, size.get());
    while end - start > 1 {
        let middle = start + split(end - start);
        if index.get() < middle {
            path.push(range_hash(nodes, middle, end)?);
            end = middle;
        } else {
            path.push(range_hash(nodes, start, middle)?);
            start = middle;
        }
    }
    path.reverse();
    Ok(path)
}

/// The consistency path between two sizes the nodes cover (RFC 9162, 2.1.4.1),
/// leaf side first. Where the RFC defines none (from an empty tree, to the same
/// or a smaller size) it is empty, which no verifier accepts.
pub fn consistency_path<N: Nodes>(
    nodes: &N,
    from: TreeSize,
    to: TreeSize,
) -> Result<Vec<Digest>, N::Error> {
    let mut path = Vec::new();
    if from.get() == 0 || from >= to {
        return Ok(path);
    }
    let (mut start, mut end) = (0, to.get());
    while end != from.get() {
        let middle = start + split(end - start);
        if from.get() <= middle {
            path.push(range_hash(nodes, middle, end)?);
            end = middle;
        } else {
            path.push(range_hash(nodes, start, middle)?);
            start = middle;
        }
    }
    // A range from 0 is the older tree, whose root the verifier has.
    if start != 0 {
        path.push(range_hash(nodes, start, end)?);
    }
    path.reverse();
    Ok(path)
}

/// The largest power of two below `length`, which is at least 2.
fn split(length: u64) -> u64 {
    1 << (length - 1).checked_ilog2().unwrap_or(0)
}

/// MTH(D[start:end]) where `start` is a multiple of a power of two that is at
/// least the length, as for every range of the RFC's recursion.
fn range_hash<N: Nodes>(nodes: &N, start: u64, end: u64) -> Result<Digest, N::Error> {
    let length = end - start;
    let (mut hash, mut at) = (None, end);
    for level in (0..64_u8).filter(|level| (length >> level) & 1 == 1) {
        at -= 1 << level;
        let left = nodes.node(level, at >> level)?;
        hash = Some(hash.map_or(left, |right| node_hash(&left, &right)));
    }
    Ok(hash.unwrap_or_else(empty_root))
}

/// The length as u64; no usize is wider.
pub(super) fn count(hashes: &[Digest]) -> u64 {
    u64::try_from(hashes.len()).unwrap_or(u64::MAX)
}

/// All complete subtrees of a tree, in memory: for audits and tests.
#[derive(Clone, Debug, Default)]
pub struct MemoryNodes {
    levels: Vec<Vec<Digest>>,
}

impl MemoryNodes {
    /// Adds one leaf hash.
    pub fn append(&mut self, leaf: Digest) {
        let mut hash = leaf;
        for row in &mut self.levels {
            row.push(hash);
            match row.as_slice() {
                [.., left, right] if row.len().is_multiple_of(2) => hash = node_hash(left, right),
                _ => return,
            }
        }
        self.levels.push(vec![hash]);
    }

    /// The size of the tree.
    pub fn size(&self) -> TreeSize {
        TreeSize::new(self.levels.first().map_or(0, |leaves| count(leaves)))
    }
}

impl FromIterator<Digest> for MemoryNodes {
    fn from_iter<I: IntoIterator<Item = Digest>>(leaves: I) -> Self {
        let mut nodes = Self::default();
        leaves.into_iter().for_each(|leaf| nodes.append(leaf));
        nodes
    }
}

impl Nodes for MemoryNodes {
    type Error = Error;

    fn node(&self, level: u8, index: u64) -> Result<Digest, Error> {
        let row = self.levels.get(usize::from(level));
        let place = usize::try_from(index).ok();
        row.zip(place)
            .and_then(|(row, place)| row.get(place))
            .copied()
            .ok_or(Error::NodeMissing { level, index })
    }
}
