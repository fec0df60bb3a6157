//! Paths checked as RFC 9162 says, 2.1.3.2 and 2.1.4.2, node for node.
//!
//! In: a path and the numbers beside it, all from outside. Out: the root they
//! lead to, for the caller to compare with one it trusts. A path is taken
//! whole: one node too many or too few is an error, never ignored.

use super::tree::node_hash;
use super::{Error, LeafIndex, TreeSize};
use crate::wire::digest::Digest;

/// The root that an inclusion path leads to from a leaf hash.
pub fn inclusion_root(
    leaf: Digest,
    index: u64,
    size: u64,
    path: &[Digest],
) -> Result<Digest, Error> {
    if index >= size {
        let (index, size) = (LeafIndex::new(index), TreeSize::new(size));
        return Err(Error::IndexOutsideTree { index, size });
    }
    let mut climb = Climb { node: index, last: size - 1 };
    let mut root = leaf;
    for (used, sibling) in path.iter().enumerate() {
        root = match climb.step() {
            Some(Side::Left) => node_hash(sibling, &root),
            Some(Side::Right) => node_hash(&root, sibling),
            None => return Err(Error::PathTooLong { given: path.len(), needed: used }),
        };
    }
    climb.arrived(path)?;
    Ok(root)
}

/// The older and the newer root that a consistency path leads to. The older
/// one has been compared with `older_root`; the newer is the caller's to
/// compare.
pub fn consistency_roots(
    from: u64,
    to: u64,
    older_root: Digest,
    path: &[Digest],
) -> Result<(Digest, Digest), Error> {
    if from == 0 || from >= to {
        let (from, to) = (TreeSize::new(from), TreeSize::new(to));
        return Err(Error::SizesNotIncreasing { from, to });
    }
    let (first, rest) = path.split_first().ok_or(Error::PathEmpty)?;
    // A complete older tree is a node of the newer one, and its root is not
    // repeated in the path.
    let (seed, siblings) = if from.is_power_of_two() { (older_root, path) } else { (*first, rest) };
    let shared = (from - 1).trailing_ones();
    let mut climb = Climb { node: from - 1, last: to - 1 };
    (0..shared).for_each(|_| climb.up());
    let (mut older, mut newer) = (seed, seed);
    for (used, sibling) in siblings.iter().enumerate() {
        match climb.step() {
            Some(Side::Left) => {
                older = node_hash(sibling, &older);
                newer = node_hash(sibling, &newer);
            }
            Some(Side::Right) => newer = node_hash(&newer, sibling),
            None => {
                let needed = path.len() - siblings.len() + used;
                return Err(Error::PathTooLong { given: path.len(), needed });
            }
        }
    }
    climb.arrived(path)?;
    if older != older_root {
        return Err(Error::OlderRootMismatch { computed: older, expected: older_root });
    }
    Ok((older, newer))
}

/// Where we are on the way up: the node's index on its level, and the index
/// of the last node there (`fn` and `sn` in the RFC).
struct Climb {
    node: u64,
    last: u64,
}

/// Where the next sibling stands.
enum Side {
    Left,
    Right,
}

impl Climb {
    fn up(&mut self) {
        self.node >>= 1;
        self.last >>= 1;
    }

    /// Goes up to the next level that has a sibling; `None` at the root.
    fn step(&mut self) -> Option<Side> {
        if self.last == 0 {
            return None;
        }
        let side = if self.node % 2 == 1 || self.node == self.last {
            // The last node of a level may stand alone for several levels.
            while self.node != 0 && self.node.is_multiple_of(2) {
                self.up();
            }
            Side::Left
        } else {
            Side::Right
        };
        self.up();
        Some(side)
    }

    fn arrived(&self, path: &[Digest]) -> Result<(), Error> {
        if self.last == 0 { Ok(()) } else { Err(Error::PathTooShort { given: path.len() }) }
    }
}
