//! Merkle trees over the digests of steps, under one of two rules. The tree
//! has as many leaves as the certificate has steps, which `pc_digest` binds:
//! a tree of another size, or an inner node used as a leaf, is refused.

use strum::{EnumString, IntoStaticStr};

use crate::wire::digest::Digest;
use crate::wire::limits::PATH_NODES_MAX;

/// How leaves and nodes are hashed.
#[derive(Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, PartialEq)]
pub enum MerkleRule {
    /// As released: `PLANv1` over `{"left","right"}`; a node without a right
    /// sibling is paired with itself; a single leaf is the root.
    #[strum(serialize = "pca-pairs")]
    Pairs,
    /// RFC 9162, 2.1, over the 32 bytes of each step digest. Preferred.
    #[strum(serialize = "rfc9162-sha256")]
    Rfc9162,
}

/// Proof that one step is in the tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MerkleProof {
    /// Index of the step, from 0.
    pub index: u64,
    pub leaf_count: u64,
    /// The step's digest.
    pub leaf: Digest,
    /// Siblings from the leaf to the root; a node paired with itself has none.
    pub path: Vec<Digest>,
}

impl MerkleRule {
    /// Its name in a certificate's `metadata.merkle_rule`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn node(self, left: &Digest, right: &Digest) -> Digest {
        match self {
            Self::Pairs => {
                let pair = format!("PLANv1:{{\"left\":\"{left}\",\"right\":\"{right}\"}}");
                Digest::of(pair.as_bytes())
            }
            Self::Rfc9162 => Digest::of_parts(&[&[1], left.as_bytes(), right.as_bytes()]),
        }
    }

    fn leaf(self, step: &Digest) -> Digest {
        match self {
            Self::Pairs => *step,
            Self::Rfc9162 => Digest::of_parts(&[&[0], step.as_bytes()]),
        }
    }

    /// The root over these steps.
    pub fn root(self, steps: &[Digest]) -> Digest {
        let mut layer: Vec<Digest> = steps.iter().map(|step| self.leaf(step)).collect();
        while layer.len() > 1 {
            layer = self.above(&layer);
        }
        layer.first().copied().unwrap_or_else(|| match self {
            Self::Pairs => Digest::of(b"PLANv1:{\"empty\":true}"),
            Self::Rfc9162 => Digest::of(b""),
        })
    }

    /// The next layer. A last node without a sibling is promoted unchanged
    /// (RFC 9162) or paired with itself.
    fn above(self, layer: &[Digest]) -> Vec<Digest> {
        let pairs = layer.chunks(2).map(|pair| match (self, pair) {
            (_, [left, right]) => self.node(left, right),
            (Self::Pairs, [only]) => self.node(only, only),
            (_, rest) => rest.first().copied().unwrap_or_else(|| Digest::of(b"")),
        });
        pairs.collect()
    }

    /// The inclusion proof of the step at `index`.
    pub fn prove(self, steps: &[Digest], index: usize) -> Option<MerkleProof> {
        let leaf = *steps.get(index)?;
        let mut layer: Vec<Digest> = steps.iter().map(|step| self.leaf(step)).collect();
        let (mut at, mut path) = (index, Vec::new());
        while layer.len() > 1 {
            path.extend(layer.get(at ^ 1).copied());
            layer = self.above(&layer);
            at /= 2;
        }
        let (index, leaf_count) = (u64::try_from(index).ok()?, u64::try_from(steps.len()).ok()?);
        Some(MerkleProof { index, leaf_count, leaf, path })
    }

    /// Checks a proof against the root of a tree with this many leaves.
    pub fn check(self, proof: &MerkleProof, root: &Digest, leaves: u64) -> Result<(), String> {
        let MerkleProof { index, leaf_count, .. } = *proof;
        if leaf_count != leaves {
            return Err(format!(
                "the proof is for {leaf_count} leaves, the certificate has {leaves} steps"
            ));
        }
        if index >= leaves {
            return Err(format!("the proof is for step {index}, the certificate has {leaves}"));
        }
        if proof.path.len() > PATH_NODES_MAX {
            return Err(format!("the path has {} nodes", proof.path.len()));
        }
        let mut path = proof.path.iter();
        let (mut node, mut at, mut width) = (self.leaf(&proof.leaf), index, leaves);
        while width > 1 {
            let is_alone = at.is_multiple_of(2) && at + 1 == width;
            node = match (self, is_alone) {
                (Self::Pairs, true) => self.node(&node, &node),
                (Self::Rfc9162, true) => node,
                (_, false) => {
                    let sibling = path.next().ok_or("the path is too short")?;
                    let is_left = at.is_multiple_of(2);
                    if is_left { self.node(&node, sibling) } else { self.node(sibling, &node) }
                }
            };
            (at, width) = (at / 2, width.div_ceil(2));
        }
        match (path.next(), node == *root) {
            (Some(_), _) => Err("the path is too long".to_owned()),
            (None, false) => Err("the proof leads to another root".to_owned()),
            (None, true) => Ok(()),
        }
    }
}
