//! COSE Receipts (RFC 9942): issued, read, attached to statements.
//!
//! In: a tree head and the log's key. Out: receipts. Their protected header is
//! the same for every leaf under a head, so one signature serves them all.

#[cfg(test)]
pub(crate) mod fixture;
mod read;
#[cfg(test)]
mod tests;

use crate::envelope::{self, Sign1, SignedStatement, sig_structure};
use crate::key::{self, SigningKey};
use crate::log::{LeafIndex, TreeSize};
use crate::wire::cbor::{self, Value};
use crate::wire::digest::Digest;
use crate::wire::label::{claim, header, proof, vds};
use crate::wire::limits::RECEIPTS_MAX;
use crate::wire::time::UnixSeconds;

pub use read::{CcfConsistency, CcfInclusion, CcfStep, Consistency, Inclusion, Proofs, Receipt};

/// The `sub` of every receipt: constant, so that a head is signed once.
pub const SUBJECT: &str = "capstan.receipt.v1";

/// A tree head: the size and root of the log at a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Head {
    /// The number of leaves.
    pub size: TreeSize,
    /// The Merkle root over them.
    pub root: Digest,
    /// When it was signed; never before the previous head.
    pub time: UnixSeconds,
}

/// A tree head that the log has signed.
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
        self.with_proof(proof::INCLUSION, [self.head.size.get(), index.get()], path)
    }

    /// The receipt that this head extends the tree of size `from`.
    pub fn consistency(&self, from: TreeSize, path: &[Digest]) -> Vec<u8> {
        self.with_proof(proof::CONSISTENCY, [from.get(), self.head.size.get()], path)
    }

    /// Both kinds of proof are two numbers and a path.
    fn with_proof(&self, kind: i64, numbers: [u64; 2], path: &[Digest]) -> Vec<u8> {
        let mut proof = Vec::with_capacity(24 + 34 * path.len());
        cbor::array(&mut proof, 3);
        numbers.iter().for_each(|number| cbor::int(&mut proof, *number));
        cbor::array(&mut proof, path.len());
        path.iter().for_each(|node| cbor::bytes(&mut proof, node.as_bytes()));
        let mut unprotected = Vec::with_capacity(proof.len() + 16);
        cbor::map(&mut unprotected, 1);
        cbor::int(&mut unprotected, header::VDP);
        cbor::map(&mut unprotected, 1);
        cbor::int(&mut unprotected, kind);
        cbor::array(&mut unprotected, 1);
        cbor::bytes(&mut unprotected, &proof);
        let Self { protected, signature, .. } = self;
        Sign1 { protected, unprotected: &unprotected, payload: None, signature }.encode()
    }
}

/// The protected header of every receipt under a head, labels in
/// deterministic order (RFC 8949, 4.2.1).
fn protected(head: &Head, issuer: &str, key: &SigningKey) -> Vec<u8> {
    let mut out = Vec::new();
    cbor::map(&mut out, 4);
    cbor::int(&mut out, header::ALG);
    cbor::int(&mut out, key.algorithm().cose());
    cbor::int(&mut out, header::KID);
    cbor::bytes(&mut out, key.public().id().as_bytes());
    cbor::int(&mut out, header::CWT_CLAIMS);
    cbor::map(&mut out, 3);
    cbor::int(&mut out, claim::ISS);
    cbor::text(&mut out, issuer);
    cbor::int(&mut out, claim::SUB);
    cbor::text(&mut out, SUBJECT);
    cbor::int(&mut out, claim::IAT);
    cbor::int(&mut out, head.time.seconds());
    cbor::int(&mut out, header::VDS);
    cbor::int(&mut out, vds::RFC9162_SHA256);
    out
}

/// The Transparent Statement (RFC 9943, 7): `statement` with `receipt` in
/// front of the receipts it already carries. Only the unprotected map changes.
///
/// ```cddl
/// Transparent_Statement = #6.18([
///   protected: bstr .cbor protected,
///   unprotected: { 394 => [+ bstr .cbor Receipt], * label => any },
///   payload: bstr / nil,
///   signature: bstr
/// ])
/// ```
pub fn attach(statement: &SignedStatement, receipt: &[u8]) -> Result<Vec<u8>, Error> {
    let unprotected = Value::read(statement.unprotected())?;
    let earlier = attached(statement)?;
    let mut receipts = vec![Value::Bytes(receipt)];
    receipts.extend(earlier.iter().filter(|r| r.as_slice() != receipt).map(|r| Value::Bytes(r)));
    let label = Value::Int(header::RECEIPTS.into());
    let mut entries = if let Value::Map(entries) = unprotected { entries } else { Vec::new() };
    entries.retain(|(key, _)| *key != label);
    entries.push((label, Value::Array(receipts)));
    Ok(statement.with_unprotected(&Value::Map(entries).encode()))
}

/// The receipts that a statement carries, in order; it may carry none.
pub fn attached(statement: &SignedStatement) -> Result<Vec<Vec<u8>>, Error> {
    let unprotected = Value::read(statement.unprotected())?;
    let Some(list) = unprotected.get(header::RECEIPTS) else { return Ok(Vec::new()) };
    let list = list.array().filter(|list| !list.is_empty() && list.len() <= RECEIPTS_MAX);
    list.and_then(|list| list.iter().map(|r| r.bytes().map(<[u8]>::to_vec)).collect())
        .ok_or(Error::ReceiptList { limit: RECEIPTS_MAX })
}

/// Why bytes are not a receipt that we can check.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    /// The COSE_Sign1 around the proofs is malformed.
    #[error("the receipt is not a COSE_Sign1: {0}")]
    #[strum(transparent)]
    Envelope(#[source] envelope::Error),
    /// A proof is not strict CBOR.
    #[error("in the receipt, {0}")]
    #[strum(transparent)]
    NotCbor(#[from] cbor::Error),
    /// No kind of proof, or several.
    #[error("a receipt has one kind of proof, this one has {found}")]
    ProofKinds { found: usize },
    /// A proof of the wrong shape for its kind of tree.
    #[error("{what} does not have the shape of its kind of tree")]
    ProofShape { what: &'static str },
    /// Label 396 is absent.
    #[error("the unprotected header has no proofs (label 396)")]
    ProofsMissing,
    /// Label 394 is not a list of byte strings.
    #[error("label 394 must be a list of 1 to {limit} byte strings")]
    ReceiptList { limit: usize },
    /// Label 395 is absent.
    #[error("the protected header names no kind of tree (label 395)")]
    VdsMissing,
    /// Label 395 names a kind of tree that we do not verify.
    #[error("kind of tree {found} (label 395) is not supported")]
    VdsUnsupported { found: i64 },
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
