//! COSE Receipts (RFC 9942): made, read, attached.
//!
//! In: a tree head and the log's key. Out: receipts whose protected header
//! is the same for a whole head, so one signature serves every leaf under it.

mod attach;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
mod read;
#[cfg(test)]
mod tests;

use crate::envelope::{SIGN1_TAG, sig_structure};
use crate::key::{self, SigningKey};
use crate::log::{LeafIndex, TreeSize};
use crate::wire::cbor;
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

pub use attach::{attach, attached};
pub use error::Error;
pub use read::{CcfConsistency, CcfInclusion, CcfStep, Consistency, Inclusion, Proofs, Receipt};

/// The `sub` of every receipt: constant, so that a head is signed once.
pub const SUBJECT: &str = "capstan.receipt.v1";

const VDS: i64 = 395;
const VDP: i64 = 396;
const RFC9162_SHA256: i64 = 1;
const INCLUSION: i64 = -1;
const CONSISTENCY: i64 = -2;

/// What a log signs: how large it is and what it holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Head {
    /// The number of leaves.
    pub size: TreeSize,
    /// The Merkle root over them.
    pub root: Digest,
    /// When it was signed; never earlier than the head before.
    pub time: UnixSeconds,
}

/// A head under the log's signature.
#[derive(Clone, Debug)]
pub struct SignedHead {
    head: Head,
    protected: Vec<u8>,
    signature: Vec<u8>,
}

impl SignedHead {
    /// Signs a head in the name of `issuer`.
    pub fn sign(head: Head, issuer: &str, key: &SigningKey) -> Result<Self, key::Error> {
        let protected = protected(&head, issuer, key);
        let signature = key.sign(&sig_structure(&protected, head.root.as_bytes()))?;
        Ok(Self { head, protected, signature })
    }

    /// The head that was signed.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The receipt of one leaf. `path` is its inclusion path at this head.
    pub fn receipt(&self, index: LeafIndex, path: &[Digest]) -> Vec<u8> {
        self.assemble(INCLUSION, (self.head.size.get(), index.get()), path)
    }

    /// The receipt that this head extends the tree of size `from`.
    pub fn consistency(&self, from: TreeSize, path: &[Digest]) -> Vec<u8> {
        self.assemble(CONSISTENCY, (from.get(), self.head.size.get()), path)
    }

    /// `#6.18([protected, {396: {kind: [<<[a, b, path]>>]}}, nil, signature])`
    fn assemble(&self, kind: i64, (first, second): (u64, u64), path: &[Digest]) -> Vec<u8> {
        let mut proof = Vec::with_capacity(24 + 34 * path.len());
        cbor::array(&mut proof, 3);
        cbor::int(&mut proof, first);
        cbor::int(&mut proof, second);
        cbor::array(&mut proof, path.len());
        path.iter().for_each(|node| cbor::bytes(&mut proof, node.as_bytes()));
        let mut out = Vec::with_capacity(self.protected.len() + proof.len() + 96);
        cbor::tag(&mut out, SIGN1_TAG);
        cbor::array(&mut out, 4);
        cbor::bytes(&mut out, &self.protected);
        cbor::map(&mut out, 1);
        cbor::int(&mut out, VDP);
        cbor::map(&mut out, 1);
        cbor::int(&mut out, kind);
        cbor::array(&mut out, 1);
        cbor::bytes(&mut out, &proof);
        out.push(0xf6);
        cbor::bytes(&mut out, &self.signature);
        out
    }
}

/// `{1: alg, 4: kid, 395: 1, 15: {1: iss, 2: sub, 6: iat}}`, keys in
/// deterministic order (RFC 8949, 4.2.1: 1, 4, 15, 395).
fn protected(head: &Head, issuer: &str, key: &SigningKey) -> Vec<u8> {
    let mut out = Vec::new();
    cbor::map(&mut out, 4);
    cbor::int(&mut out, 1);
    cbor::int(&mut out, key.algorithm().cose());
    cbor::int(&mut out, 4);
    cbor::bytes(&mut out, key.public().id().as_bytes());
    cbor::int(&mut out, 15);
    cbor::map(&mut out, 3);
    cbor::int(&mut out, 1);
    cbor::text(&mut out, issuer);
    cbor::int(&mut out, 2);
    cbor::text(&mut out, SUBJECT);
    cbor::int(&mut out, 6);
    cbor::int(&mut out, head.time.seconds());
    cbor::int(&mut out, VDS);
    cbor::int(&mut out, RFC9162_SHA256);
    out
}
