//! Receipts read: ours and those of other logs.

use super::Error;
use crate::envelope::SignedStatement;
use crate::wire::cbor::Value;
use crate::wire::digest::Digest;
use crate::wire::label::proof::{CONSISTENCY, INCLUSION};
use crate::wire::label::vds::{CCF_LEDGER_SHA256, RFC9162_SHA256};
use crate::wire::label::{ccf, header};
use crate::wire::limits::PATH_NODES_MAX;

/// A receipt: parsed, nothing verified.
///
/// ```cddl
/// Receipt = #6.18([
///   protected: bstr .cbor { 1 => int, 395 => vds, ? 4 => bstr, ? 15 => claims, * label => any },
///   unprotected: { 396 => { -1 => [+ inclusion] // -2 => [+ consistency] }, * label => any },
///   payload: bstr / nil,             ; the root; ours leave it out
///   signature: bstr                  ; over the root
/// ])
/// vds = 1 / 2                        ; RFC9162_SHA256, CCF ledger
/// inclusion = bstr .cbor (Inclusion / CcfInclusion)
/// consistency = bstr .cbor (Consistency / CcfConsistency)
/// ```
#[derive(Clone, Debug)]
pub struct Receipt {
    envelope: SignedStatement,
    proofs: Proofs,
}

/// The proofs of a receipt, by kind of proof and tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Proofs {
    /// Inclusion in an RFC 9162 tree.
    Inclusion(Vec<Inclusion>),
    /// Growth of an RFC 9162 tree.
    Consistency(Vec<Consistency>),
    /// Inclusion in a CCF ledger.
    CcfInclusion(Vec<CcfInclusion>),
    /// Growth of a CCF ledger.
    CcfConsistency(Vec<CcfConsistency>),
}

/// An inclusion proof of an RFC 9162 tree.
///
/// ```cddl
/// Inclusion = [tree_size: uint, leaf_index: uint, path: [* bstr .size 32]]
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Inclusion {
    /// Leaves in the tree.
    pub size: u64,
    /// The leaf, counted from 0.
    pub index: u64,
    /// Siblings from leaf to root.
    pub path: Vec<Digest>,
}

/// A consistency proof of an RFC 9162 tree.
///
/// ```cddl
/// Consistency = [older_size: uint, newer_size: uint, path: [+ bstr .size 32]]
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Consistency {
    /// Leaves in the older tree.
    pub from: u64,
    /// Leaves in the newer tree.
    pub to: u64,
    /// The nodes of the proof.
    pub path: Vec<Digest>,
}

/// An inclusion proof of a CCF ledger.
///
/// ```cddl
/// CcfInclusion = { 1 => [transaction: bstr .size 32, evidence: tstr, data: bstr .size 32],
///                  2 => [+ CcfStep] }
/// CcfStep = [left: bool, sibling: bstr .size 32]
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CcfInclusion {
    /// Hash of the ledger's own transaction.
    pub transaction: Digest,
    /// Commit evidence, which names the transaction.
    pub evidence: String,
    /// Hash of the statement.
    pub data: Digest,
    /// Siblings, each with its side.
    pub path: Vec<CcfStep>,
}

/// A consistency proof of a CCF ledger.
///
/// ```cddl
/// CcfConsistency = { 1 => bstr .size 32, 2 => [+ CcfStep] }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CcfConsistency {
    /// Root of the last complete subtree of the older tree.
    pub anchor: Digest,
    /// Siblings, each with its side.
    pub path: Vec<CcfStep>,
}

/// Whether the sibling is on the left, and the sibling.
pub type CcfStep = (bool, Digest);

impl Receipt {
    /// Reads a receipt.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Error> {
        let envelope = SignedStatement::parse_any_size(bytes).map_err(Error::Envelope)?;
        let vds = envelope.header().vds.ok_or(Error::VdsMissing)?;
        let proofs = read_proofs(vds, envelope.unprotected())?;
        Ok(Self { envelope, proofs })
    }

    /// The bytes as received.
    pub fn into_bytes(self) -> Vec<u8> {
        self.envelope.into_bytes()
    }

    /// The COSE_Sign1 around the proofs.
    pub fn envelope(&self) -> &SignedStatement {
        &self.envelope
    }

    /// What it proves.
    pub fn proofs(&self) -> &Proofs {
        &self.proofs
    }
}

fn read_proofs(vds: i64, unprotected: &[u8]) -> Result<Proofs, Error> {
    let unprotected = Value::read(unprotected)?;
    let proofs = unprotected.get(header::VDP).ok_or(Error::ProofsMissing)?;
    let Value::Map(kinds) = proofs else { return Err(Error::ProofShape { what: "label 396" }) };
    let [(kind, list)] = kinds.as_slice() else {
        return Err(Error::ProofKinds { found: kinds.len() });
    };
    let list = list
        .array()
        .filter(|l| !l.is_empty())
        .ok_or(Error::ProofShape { what: "the proof list" })?;
    let items = || list.iter().map(|p| p.bytes().ok_or(Error::ProofShape { what: "a proof" }));
    match (vds, kind.int()) {
        (RFC9162_SHA256, Some(INCLUSION)) => {
            let read = |bytes| {
                let (size, index, path) = rfc9162(bytes, true)?;
                Ok(Inclusion { size, index, path })
            };
            items().map(|b| read(b?)).collect::<Result<_, _>>().map(Proofs::Inclusion)
        }
        (RFC9162_SHA256, Some(CONSISTENCY)) => {
            let read = |bytes| {
                let (from, to, path) = rfc9162(bytes, false)?;
                Ok(Consistency { from, to, path })
            };
            items().map(|b| read(b?)).collect::<Result<_, _>>().map(Proofs::Consistency)
        }
        (CCF_LEDGER_SHA256, Some(INCLUSION)) => {
            items().map(|b| ccf_inclusion(b?)).collect::<Result<_, _>>().map(Proofs::CcfInclusion)
        }
        (CCF_LEDGER_SHA256, Some(CONSISTENCY)) => items()
            .map(|b| ccf_consistency(b?))
            .collect::<Result<_, _>>()
            .map(Proofs::CcfConsistency),
        (RFC9162_SHA256 | CCF_LEDGER_SHA256, _) => {
            Err(Error::ProofShape { what: "the kind of proof" })
        }
        (found, _) => Err(Error::VdsUnsupported { found }),
    }
}

/// The two numbers and the path of a proof. The path is empty only for the one
/// leaf of a tree of size 1.
fn rfc9162(bytes: &[u8], may_be_single: bool) -> Result<(u64, u64, Vec<Digest>), Error> {
    let wrong = Error::ProofShape { what: "an RFC 9162 proof" };
    let value = Value::read(bytes)?;
    let Some([first, second, path]) = value.array() else { return Err(wrong) };
    let (Some(first), Some(second), Some(path)) = (first.int(), second.int(), path.array()) else {
        return Err(wrong);
    };
    if path.len() > PATH_NODES_MAX || (path.is_empty() && !(may_be_single && first == 1)) {
        return Err(wrong);
    }
    let path: Option<_> = path.iter().map(|n| n.bytes().and_then(Digest::from_slice)).collect();
    Ok((first, second, path.ok_or(wrong)?))
}

fn ccf_inclusion(bytes: &[u8]) -> Result<CcfInclusion, Error> {
    let wrong = || Error::ProofShape { what: "a CCF inclusion proof" };
    let value = Value::read(bytes)?;
    let Some([transaction, evidence, data]) = value.get(ccf::LEAF).and_then(Value::array) else {
        return Err(wrong());
    };
    let digest = |v: &Value<'_>| v.bytes().and_then(Digest::from_slice).ok_or_else(wrong);
    let evidence = evidence.text().filter(|t| (1..=1024).contains(&t.len())).ok_or_else(wrong)?;
    Ok(CcfInclusion {
        transaction: digest(transaction)?,
        evidence: evidence.to_owned(),
        data: digest(data)?,
        path: ccf_path(&value).ok_or_else(wrong)?,
    })
}

fn ccf_consistency(bytes: &[u8]) -> Result<CcfConsistency, Error> {
    let wrong = || Error::ProofShape { what: "a CCF consistency proof" };
    let value = Value::read(bytes)?;
    if !matches!(&value, Value::Map(entries) if entries.len() == 2) {
        return Err(wrong());
    }
    let anchor = value.get(ccf::ANCHOR).and_then(Value::bytes).and_then(Digest::from_slice);
    Ok(CcfConsistency {
        anchor: anchor.ok_or_else(wrong)?,
        path: ccf_path(&value).ok_or_else(wrong)?,
    })
}

fn ccf_path(proof: &Value<'_>) -> Option<Vec<CcfStep>> {
    let path = proof.get(ccf::PATH)?.array()?;
    if path.is_empty() || path.len() > PATH_NODES_MAX {
        return None;
    }
    let step = |step: &Value<'_>| match step.array()? {
        [Value::Bool(left), hash] => Some((*left, hash.bytes().and_then(Digest::from_slice)?)),
        _ => None,
    };
    path.iter().map(step).collect()
}
