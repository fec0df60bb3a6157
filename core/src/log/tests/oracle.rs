//! The tree as RFC 9162 defines it, word for word, and two foreign trees.

use super::*;

/// One leaf more than a tile: both sides of the tile's edge are in reach.
pub(super) const LARGEST: u64 = 257;

/// Section 2.1 as recursion over ranges, with a memory for speed.
pub(super) struct Naive<'a> {
    leaves: &'a [Digest],
    known: RefCell<HashMap<(u64, u64), Digest>>,
}

fn largest_power_below(n: u64) -> u64 {
    let mut k = 1;
    while k * 2 < n {
        k *= 2;
    }
    k
}

impl<'a> Naive<'a> {
    pub(super) fn new(leaves: &'a [Digest]) -> Self {
        Self { leaves, known: RefCell::default() }
    }

    /// MTH(D[start:end]).
    pub(super) fn root(&self, start: u64, end: u64) -> Digest {
        if let Some(known) = self.known.borrow().get(&(start, end)) {
            return *known;
        }
        let hash = match end - start {
            0 => Digest::of(b""),
            1 => self.leaves[at(start)],
            n => {
                let middle = start + largest_power_below(n);
                let (left, right) = (self.root(start, middle), self.root(middle, end));
                Digest::of_parts(&[&[1], left.as_bytes(), right.as_bytes()])
            }
        };
        self.known.borrow_mut().insert((start, end), hash);
        hash
    }

    /// PATH(m, D_n).
    pub(super) fn inclusion(&self, m: u64, n: u64) -> Vec<Digest> {
        self.path(m, 0, n)
    }

    fn path(&self, m: u64, start: u64, n: u64) -> Vec<Digest> {
        if n == 1 {
            return Vec::new();
        }
        let k = largest_power_below(n);
        let (mut path, last) = if m < k {
            (self.path(m, start, k), self.root(start + k, start + n))
        } else {
            (self.path(m - k, start + k, n - k), self.root(start, start + k))
        };
        path.push(last);
        path
    }

    /// PROOF(m, D_n).
    pub(super) fn consistency(&self, m: u64, n: u64) -> Vec<Digest> {
        self.subproof(m, 0, n, true)
    }

    fn subproof(&self, m: u64, start: u64, n: u64, whole: bool) -> Vec<Digest> {
        if m == n {
            return if whole { Vec::new() } else { vec![self.root(start, start + n)] };
        }
        let k = largest_power_below(n);
        let (mut path, last) = if m <= k {
            (self.subproof(m, start, k, whole), self.root(start + k, start + n))
        } else {
            (self.subproof(m - k, start + k, n - k, false), self.root(start, start + k))
        };
        path.push(last);
        path
    }
}

/// The side of each node of PATH(m, D_n), which a verifier computes from the
/// two numbers.
pub(super) fn inclusion_sides(m: u64, n: u64) -> Vec<char> {
    if n == 1 {
        return Vec::new();
    }
    let k = largest_power_below(n);
    let (mut sides, last) =
        if m < k { (inclusion_sides(m, k), 'r') } else { (inclusion_sides(m - k, n - k), 'l') };
    sides.push(last);
    sides
}

/// The same for PROOF(m, D_n), starting with the origin of its seed.
pub(super) fn consistency_sides(m: u64, n: u64) -> Vec<char> {
    fn sides(m: u64, n: u64, whole: bool) -> Vec<char> {
        if m == n {
            return vec![if whole { 'o' } else { 'p' }];
        }
        let k = largest_power_below(n);
        let (mut out, last) =
            if m <= k { (sides(m, k, whole), 'r') } else { (sides(m - k, n - k, false), 'l') };
        out.push(last);
        out
    }
    sides(m, n, true)
}

#[derive(Clone)]
struct Inner;

impl rs_merkle::Hasher for Inner {
    type Hash = [u8; 32];

    fn hash(data: &[u8]) -> [u8; 32] {
        *Digest::of_parts(&[&[1], data]).as_bytes()
    }
}

/// A foreign tree over leaf hashes, for roots and inclusion.
pub(super) struct RsMerkle(rs_merkle::MerkleTree<Inner>);

impl RsMerkle {
    pub(super) fn new(leaves: &[Digest]) -> Self {
        let leaves: Vec<[u8; 32]> = leaves.iter().map(|leaf| *leaf.as_bytes()).collect();
        Self(rs_merkle::MerkleTree::from_leaves(&leaves))
    }

    pub(super) fn root(&self) -> Digest {
        Digest::from_bytes(self.0.root().unwrap())
    }

    pub(super) fn inclusion(&self, index: u64) -> Vec<Digest> {
        let proof = self.0.proof(&[at(index)]);
        proof.proof_hashes().iter().copied().map(Digest::from_bytes).collect()
    }

    /// Whether its verifier accepts a path.
    pub(super) fn accepts(
        root: Digest,
        leaf: Digest,
        index: u64,
        size: u64,
        path: &[Digest],
    ) -> bool {
        let path = path.iter().map(|node| *node.as_bytes()).collect();
        let proof = rs_merkle::MerkleProof::<Inner>::new(path);
        proof.verify(*root.as_bytes(), &[at(index)], &[*leaf.as_bytes()], at(size))
    }
}

/// A foreign tree over entries, for roots, inclusion and consistency.
pub(super) struct CtMerkle(ct_merkle::mem_backed_tree::MemoryBackedTree<sha2::Sha256, Vec<u8>>);

impl CtMerkle {
    pub(super) fn new() -> Self {
        Self(ct_merkle::mem_backed_tree::MemoryBackedTree::new())
    }

    pub(super) fn append(&mut self, entry: &Digest) {
        self.0.push(entry.as_bytes().to_vec());
    }

    pub(super) fn root(&self) -> Digest {
        Digest::from_slice(self.0.root().as_bytes()).unwrap()
    }

    pub(super) fn inclusion(&self, index: u64) -> Vec<Digest> {
        digests(self.0.prove_inclusion(at(index)).as_bytes())
    }

    /// What its verifier says of a path for an entry of this tree.
    pub(super) fn accepts_inclusion(&self, entry: &Digest, index: u64, path: &[Digest]) -> bool {
        let proof = ct_merkle::InclusionProof::try_from_bytes(concatenated(path)).unwrap();
        let entry = entry.as_bytes().to_vec();
        self.0.root().verify_inclusion(&entry, index, &proof).is_ok()
    }

    /// What its verifier says of a path from an older root to this tree's.
    pub(super) fn accepts_consistency(&self, older: Digest, from: u64, path: &[Digest]) -> bool {
        let proof = ct_merkle::ConsistencyProof::try_from_bytes(concatenated(path)).unwrap();
        let older = ct_merkle::RootHash::new((*older.as_bytes()).into(), from);
        self.0.root().verify_consistency(&older, &proof).is_ok()
    }

    /// From size `from` to its present size.
    pub(super) fn consistency(&self, from: u64) -> Vec<Digest> {
        digests(self.0.prove_consistency(at(self.0.len() - from)).as_bytes())
    }
}

fn digests(bytes: &[u8]) -> Vec<Digest> {
    bytes.chunks(32).map(|hash| Digest::from_slice(hash).unwrap()).collect()
}

fn concatenated(path: &[Digest]) -> Vec<u8> {
    path.iter().flat_map(|node| node.as_bytes()).copied().collect()
}
