//! Every path of every tree up to 257 leaves, three ways, against the RFC's
//! recursive definition and two foreign trees.

mod foreign;
mod oracle;
mod tiles;

use std::cell::RefCell;
use std::collections::HashMap;

use super::*;
use oracle::{LARGEST, Naive};

fn size(size: u64) -> TreeSize {
    TreeSize::new(size)
}

fn at(index: u64) -> usize {
    usize::try_from(index).unwrap()
}

fn leaves(count: u64) -> Vec<Digest> {
    (0..count).map(|i| leaf_hash(&Digest::of(&i.to_be_bytes()))).collect()
}

/// A log without a disk: the edge, and its full tiles in a map.
struct Kept {
    edge: Edge,
    tiles: HashMap<TileId, Vec<u8>>,
}

impl Kept {
    fn new(leaves: &[Digest]) -> Self {
        let mut kept = Self { edge: Edge::empty(), tiles: HashMap::new() };
        leaves.iter().for_each(|leaf| kept.append(*leaf));
        kept
    }

    fn append(&mut self, leaf: Digest) {
        for (id, bytes) in self.edge.append(leaf) {
            assert!(self.tiles.insert(id, bytes).is_none(), "{} was written twice", id.path());
        }
    }

    fn fetch(&self, id: TileId) -> Result<&[u8], Error> {
        Ok(self.tiles.get(&id).unwrap_or_else(|| panic!("{} was never written", id.path())))
    }

    fn nodes<'a>(&'a self) -> TileNodes<'a, impl Fn(TileId) -> Result<&'a [u8], Error>> {
        TileNodes::new(&self.edge, |id| self.fetch(id))
    }
}

/// The eight leaves every RFC 6962 implementation is measured by.
#[test]
#[allow(clippy::disallowed_macros, reason = "the test runner keeps what a test prints")]
fn known_answer_vectors() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/vectors").to_owned();
    let folder = std::env::var("CAPSTAN_VECTORS").unwrap_or(default);
    let Ok(text) = std::fs::read_to_string(format!("{folder}/scitt/rfc9162-kat/kat.json")) else {
        println!("no vectors in {folder}; set CAPSTAN_VECTORS");
        return;
    };
    let kat: serde_json::Value = serde_json::from_str(&text).unwrap();
    let digest = |v: &serde_json::Value| Digest::from_hex(v.as_str().unwrap()).unwrap();
    let list = |v: &serde_json::Value| v.as_array().unwrap().clone();
    let path = |v: &serde_json::Value| list(&v["path"]).iter().map(digest).collect::<Vec<_>>();
    let bytes = |v: &serde_json::Value| crate::wire::text::from_hex(v.as_str().unwrap()).unwrap();
    let leaves: Vec<Digest> =
        list(&kat["leaves_hex"]).iter().map(|l| leaf_hash_of_bytes(&bytes(l))).collect();
    let nodes: MemoryNodes = leaves.iter().copied().collect();
    let roots: Vec<Digest> = list(&kat["roots_by_size"]).iter().map(digest).collect();
    assert_eq!(empty_root(), digest(&kat["empty_root"]));
    for (n, root) in (1..).zip(&roots) {
        assert_eq!(root_at(&nodes, size(n)).as_ref(), Ok(root), "size {n}");
    }
    for case in list(&kat["inclusion"]) {
        let (n, i) = (case["tree_size"].as_u64().unwrap(), case["leaf_index"].as_u64().unwrap());
        let ours = inclusion_path(&nodes, LeafIndex::new(i), size(n)).unwrap();
        assert_eq!(ours, path(&case), "leaf {i} of {n}");
        let root = inclusion_root(leaves[at(i)], i, n, &ours);
        assert_eq!(root, Ok(roots[at(n - 1)]));
    }
    for case in list(&kat["consistency"]) {
        let number = |name: &str| case[name].as_u64().unwrap();
        let (m, n) = (number("tree_size_1"), number("tree_size_2"));
        let ours = consistency_path(&nodes, size(m), size(n)).unwrap();
        assert_eq!(ours, path(&case), "{m} to {n}");
        let (older, newer) = (roots[at(m - 1)], roots[at(n - 1)]);
        assert_eq!(consistency_roots(m, n, older, &ours), Ok((older, newer)));
    }
}

#[test]
fn every_root_and_inclusion_path() {
    let all = leaves(LARGEST);
    let naive = Naive::new(&all);
    let memory: MemoryNodes = all.iter().copied().collect();
    let mut kept = Kept::new(&[]);
    let mut frontier = Frontier::empty();
    for (n, leaf) in (1..).zip(&all) {
        kept.append(*leaf);
        frontier.append(*leaf);
        let root = naive.root(0, n);
        assert_eq!(frontier.root(), root, "size {n}");
        assert_eq!(root_at(&kept.nodes(), size(n)), Ok(root), "size {n}");
        assert_eq!(root_at(&memory, size(n)), Ok(root), "size {n}");
        let foreign = oracle::RsMerkle::new(&all[..at(n)]);
        assert_eq!(foreign.root(), root, "size {n}");
        for i in 0..n {
            let expected = naive.inclusion(i, n);
            let index = LeafIndex::new(i);
            assert_eq!(inclusion_path(&memory, index, size(n)).as_ref(), Ok(&expected));
            assert_eq!(inclusion_path(&kept.nodes(), index, size(n)).as_ref(), Ok(&expected));
            assert_eq!(foreign.inclusion(i), expected, "leaf {i} of {n}");
            assert_eq!(inclusion_root(all[at(i)], i, n, &expected), Ok(root));
        }
    }
    assert_eq!(memory.size(), size(LARGEST));
}

#[test]
fn every_consistency_path() {
    let all = leaves(LARGEST);
    let naive = Naive::new(&all);
    let memory: MemoryNodes = all.iter().copied().collect();
    let kept = Kept::new(&all);
    let mut foreign = oracle::CtMerkle::new();
    for n in 1..=LARGEST {
        foreign.append(&Digest::of(&(n - 1).to_be_bytes()));
        assert_eq!(foreign.root(), naive.root(0, n), "size {n}");
        for m in 1..n {
            let expected = naive.consistency(m, n);
            let (older, newer) = (naive.root(0, m), naive.root(0, n));
            assert_eq!(consistency_path(&memory, size(m), size(n)).as_ref(), Ok(&expected));
            assert_eq!(consistency_path(&kept.nodes(), size(m), size(n)).as_ref(), Ok(&expected));
            assert_eq!(foreign.consistency(m), expected, "{m} to {n}");
            assert_eq!(consistency_roots(m, n, older, &expected), Ok((older, newer)));
        }
    }
}

/// A plan knows the paths of its batch wherever the batch began.
#[test]
fn every_plan() {
    let all = leaves(LARGEST);
    let naive = Naive::new(&all);
    let mut frontiers = vec![Frontier::empty()];
    for leaf in &all {
        let mut next = frontiers.last().unwrap().clone();
        next.append(*leaf);
        frontiers.push(next);
    }
    for n in 0..=LARGEST {
        let near = n.saturating_sub(5)..=n;
        let starts: Vec<u64> = if n <= 70 { (0..=n).collect() } else { near.collect() };
        let powers = (0..9).map(|k| 1 << k).filter(|start| *start <= n);
        for start in starts.into_iter().chain(powers).chain([0, n / 2, n / 3 * 2]) {
            let batch = &all[at(start)..at(n)];
            let plan = Plan::extend(&frontiers[at(start)], batch);
            assert_eq!(plan.after, frontiers[at(n)], "{start} to {n}");
            assert_eq!(plan.root, naive.root(0, n), "{start} to {n}");
            let expected: Vec<_> = (start..n).map(|i| naive.inclusion(i, n)).collect();
            assert_eq!(plan.paths, expected, "{start} to {n}");
        }
    }
}

/// Paths with a node dropped, added or flipped; each a different computation.
fn damaged(path: &[Digest]) -> Vec<Vec<Digest>> {
    let stray = Digest::of(b"stray");
    let mut out = vec![[path, &[stray]].concat(), [&[stray], path].concat()];
    for at in 0..path.len() {
        let (mut short, mut flipped) = (path.to_vec(), path.to_vec());
        short.remove(at);
        let mut bytes = *path[at].as_bytes();
        bytes[at % 32] ^= 1 << (at % 8);
        flipped[at] = Digest::from_bytes(bytes);
        out.extend([short, flipped]);
    }
    out
}

#[test]
fn damaged_inclusion_paths_fail() {
    let all = leaves(LARGEST);
    let naive = Naive::new(&all);
    for n in 1..=LARGEST {
        for i in 0..n {
            let (leaf, path, root) = (all[at(i)], naive.inclusion(i, n), naive.root(0, n));
            for bad in damaged(&path) {
                let result = inclusion_root(leaf, i, n, &bad);
                assert_ne!(result, Ok(root), "leaf {i} of {n}");
                assert_eq!(result.is_err(), bad.len() != path.len());
            }
            let next = [(i + 1, n), (i.wrapping_sub(1), n), (i, n + 1), (i, n - 1), (i + 1, n + 1)];
            for (other, tree) in next {
                // Neither number is signed: where they ask for the same
                // computation they get the same answer.
                let same = other < tree
                    && oracle::inclusion_sides(other, tree) == oracle::inclusion_sides(i, n);
                let result = inclusion_root(leaf, other, tree, &path);
                assert_eq!(result == Ok(root), same, "leaf {i} of {n} as {other} of {tree}");
            }
        }
    }
}

#[test]
fn damaged_consistency_paths_fail() {
    let all = leaves(LARGEST);
    let naive = Naive::new(&all);
    for n in 2..=LARGEST {
        for m in 1..n {
            let (older, newer) = (naive.root(0, m), naive.root(0, n));
            let path = naive.consistency(m, n);
            for bad in damaged(&path) {
                let result = consistency_roots(m, n, older, &bad);
                assert_ne!(result, Ok((older, newer)), "{m} to {n}");
                assert!(result.is_err() || bad.len() == path.len(), "{m} to {n}");
            }
            for (from, to) in [(m + 1, n), (m - 1, n), (m, n + 1), (m, n - 1), (m + 1, n + 1)] {
                let same = 0 < from
                    && from < to
                    && oracle::consistency_sides(from, to) == oracle::consistency_sides(m, n);
                let result = consistency_roots(from, to, older, &path);
                assert_eq!(result == Ok((older, newer)), same, "{m} to {n} as {from} to {to}");
            }
        }
    }
}

/// Numbers at the end of their range neither overflow nor run long.
#[test]
fn hostile_numbers() {
    let node = Digest::of(b"");
    let path = [node; 65];
    assert!(inclusion_root(node, u64::MAX - 1, u64::MAX, &path).is_err());
    assert!(consistency_roots(u64::MAX - 1, u64::MAX, node, &path).is_err());
    let kept = Kept::new(&leaves(3));
    for (level, index) in [(0, u64::MAX), (255, 0), (63, u64::MAX), (7, 1 << 57), (1, 1), (0, 3)] {
        let expected = Err(Error::NodeMissing { level, index });
        assert_eq!(kept.nodes().node(level, index), expected);
    }
    assert!(!TileId::full(0, u64::MAX).within(TreeSize::MAX));
}

/// Each error, by its code.
#[test]
fn refusals() {
    let node = Digest::of(b"");
    let kept = Kept::new(&leaves(2));
    let cases = [
        (parse_entry_bundle(&[]).err(), "log-entry-bundle"),
        (Frontier::decode(&[0; 7]).err(), "log-frontier"),
        (inclusion_root(node, 1, 1, &[]).err(), "log-index-outside-tree"),
        (kept.nodes().node(2, 0).err(), "log-node-missing"),
        (MemoryNodes::default().node(0, 0).err(), "log-node-missing"),
        (consistency_roots(3, 4, node, &[node, node, node]).err(), "log-older-root-mismatch"),
        (consistency_roots(1, 2, node, &[]).err(), "log-path-empty"),
        (inclusion_root(node, 0, 1, &[node]).err(), "log-path-too-long"),
        (consistency_roots(1, 2, node, &[node; 2]).err(), "log-path-too-long"),
        (inclusion_root(node, 0, 2, &[]).err(), "log-path-too-short"),
        (consistency_roots(0, 2, node, &[node]).err(), "log-sizes-not-increasing"),
        (consistency_roots(2, 2, node, &[node]).err(), "log-sizes-not-increasing"),
        (parse_hash_tile(&[0; 33], 1).err(), "log-tile-length"),
        (TilePath::parse("tile/0/0").err(), "log-tile-path"),
    ];
    for (error, code) in cases {
        assert_eq!(error.map(|e| e.code()), Some(code));
    }
}
