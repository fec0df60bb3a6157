//! Roots computed from Merkle paths (RFC 9162, 2.1.3.2 and 2.1.4.2).
//!
//! In: an untrusted path with its index and sizes. Out: the root it leads to,
//! for the caller to compare with a trusted one. A path that is too long or too
//! short is an error.

use std::sync::Arc;

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
    PathMemo::default().inclusion_root(leaf, index, size, path)
}

/// Caches one inclusion path, so that the part it shares with other paths is
/// not hashed again: all leaves of a batch share the upper part.
///
/// The result always equals that of `inclusion_root`. From any step on, the root
/// depends only on the position, the hash there and the remaining siblings; the
/// cached root is used only where all three equal those of the cached path.
#[derive(Clone, Debug, Default)]
pub struct PathMemo(Option<Arc<KnownPath>>);

#[derive(Debug)]
struct KnownPath {
    /// Position and hash before each sibling is used.
    nodes: Vec<(Climb, Digest)>,
    siblings: Vec<Digest>,
    root: Digest,
}

impl KnownPath {
    /// Whether this path passes through `node` and has exactly the siblings
    /// `rest` from there on.
    fn continues(&self, node: &(Climb, Digest), rest: &[Digest]) -> bool {
        let step = self.nodes.len().checked_sub(rest.len());
        step.and_then(|step| self.nodes.get(step)) == Some(node) && self.siblings.ends_with(rest)
    }
}

impl PathMemo {
    /// The root that an inclusion path leads to from a leaf hash. A path that
    /// shares nothing with the cached one replaces it.
    pub fn inclusion_root(
        &mut self,
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
        let mut hash = leaf;
        let mut nodes = Vec::with_capacity(path.len());
        let mut rest = path;
        while let Some((sibling, after)) = rest.split_first() {
            let node = (climb, hash);
            if let Some(known) = self.0.as_deref().filter(|known| known.continues(&node, rest)) {
                return Ok(known.root);
            }
            nodes.push(node);
            hash = match climb.step() {
                Some(Side::Left) => node_hash(sibling, &hash),
                Some(Side::Right) => node_hash(&hash, sibling),
                None => {
                    let (given, needed) = (path.len(), path.len() - rest.len());
                    return Err(Error::PathTooLong { given, needed });
                }
            };
            rest = after;
        }
        climb.arrived(path)?;
        self.0 = Some(Arc::new(KnownPath { nodes, siblings: path.to_vec(), root: hash }));
        Ok(hash)
    }
}

/// The older and the newer root that a consistency path leads to. The older
/// one has been compared with `older_root`; the caller compares the newer.
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
    // A complete older tree is a node of the newer one, and the path omits its
    // root.
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

/// A position in the tree: the node's index on its level, and the index of the
/// last node there (`fn` and `sn` in the RFC).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Climb {
    node: u64,
    last: u64,
}

/// The side of the next sibling.
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
            // The last node of a level may have no sibling for several levels.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{MemoryNodes, inclusion_path, leaf_hash};

    /// Every leaf of a small tree with its path.
    fn tree(size: u64) -> Vec<(Digest, Vec<Digest>)> {
        let leaf = |i: u64| leaf_hash(&Digest::of(&i.to_be_bytes()));
        let nodes: MemoryNodes = (0..size).map(leaf).collect();
        let path = |i| inclusion_path(&nodes, LeafIndex::new(i), TreeSize::new(size)).unwrap();
        (0..size).map(|i| (leaf(i), path(i))).collect()
    }

    /// Variations of `path`, some with elements of `known`.
    fn mutations(path: &[Digest], known: &[Digest]) -> Vec<Vec<Digest>> {
        let mut all = vec![Vec::new(), known.to_vec(), [path, known].concat()];
        let other = Digest::of(b"other");
        for at in 0..=path.len() {
            for new in known.iter().chain([&other]) {
                let mut longer = path.to_vec();
                longer.insert(at, *new);
                all.push(longer);
                if at < path.len() {
                    let mut changed = path.to_vec();
                    changed[at] = *new;
                    all.push(changed);
                }
            }
            if at < path.len() {
                let mut shorter = path.to_vec();
                shorter.remove(at);
                all.push(shorter);
                all.push(path[..at].to_vec());
                all.push(path[at..].to_vec());
            }
        }
        all
    }

    #[test]
    fn memo_changes_no_result() {
        for size in 1..=13 {
            let tree = tree(size);
            for (known_index, (known_leaf, known_path)) in (0..).zip(&tree) {
                let mut memo = PathMemo::default();
                memo.inclusion_root(*known_leaf, known_index, size, known_path).unwrap();
                for (index, (leaf, path)) in (0..).zip(&tree) {
                    let same = |leaf: Digest, index: u64, size: u64, path: &[Digest]| {
                        let with = memo.clone().inclusion_root(leaf, index, size, path);
                        assert_eq!(with, inclusion_root(leaf, index, size, path));
                    };
                    same(*leaf, index, size, path);
                    same(*known_leaf, index, size, path);
                    same(Digest::of(b"other"), index, size, path);
                    for other in 0..=size {
                        same(*leaf, other, size, path);
                        same(*leaf, index, other, path);
                    }
                    same(*leaf, index, 2 * size, path);
                    for mutated in mutations(path, known_path) {
                        same(*leaf, index, size, &mutated);
                        same(*known_leaf, known_index, size, &mutated);
                    }
                }
            }
        }
    }

    #[test]
    fn refused_path_keeps_memo_usable() {
        let tree = tree(11);
        let mut memo = PathMemo::default();
        let mut expected = None;
        for (index, (leaf, path)) in (0..).zip(&tree) {
            for mutated in mutations(path, &tree[3].1) {
                let plain = inclusion_root(*leaf, index, 11, &mutated);
                assert_eq!(memo.inclusion_root(*leaf, index, 11, &mutated), plain);
            }
            let root = memo.inclusion_root(*leaf, index, 11, path).unwrap();
            assert_eq!(root, *expected.get_or_insert(root));
        }
    }

    /// With a wrong cached root, every path that meets the cached one below
    /// the root returns it.
    #[test]
    fn memo_is_used_where_paths_meet() {
        for size in 1..=13 {
            let tree = tree(size);
            let (_, known) = &tree[0];
            let wrong = Digest::of(b"wrong");
            for (index, (leaf, path)) in (0..).zip(&tree) {
                let mut memo = PathMemo::default();
                memo.inclusion_root(tree[0].0, 0, size, known).unwrap();
                let KnownPath { nodes, siblings, .. } = Arc::into_inner(memo.0.unwrap()).unwrap();
                memo = PathMemo(Some(Arc::new(KnownPath { nodes, siblings, root: wrong })));
                let shared = path.last() == known.last() && !path.is_empty();
                let found = memo.inclusion_root(*leaf, index, size, path).unwrap();
                assert_eq!(found == wrong, shared, "{index} of {size}");
            }
        }
    }
}
