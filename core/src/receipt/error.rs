//! Everything that can be wrong with a receipt's form.

use crate::envelope;
use crate::wire::cbor;

/// Why bytes are not a receipt we can check.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The COSE_Sign1 around the proofs is broken.
    #[error("the receipt is not a COSE_Sign1: {0}")]
    Envelope(#[source] envelope::Error),
    /// A proof is not strict CBOR.
    #[error("in the receipt, {0}")]
    NotCbor(#[from] cbor::Error),
    /// None or several kinds of proof.
    #[error("a receipt has one kind of proof, this one has {found}")]
    ProofKinds { found: usize },
    /// A proof of another shape.
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
    /// Label 395 names a tree we cannot check.
    #[error("kind of tree {found} (label 395) is not supported")]
    VdsUnsupported { found: i64 },
}

impl Error {
    /// The stable word for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Envelope(source) => source.code(),
            Self::NotCbor(source) => source.code(),
            Self::ProofKinds { .. } => "proof-kinds",
            Self::ProofShape { .. } => "proof-shape",
            Self::ProofsMissing => "proofs-missing",
            Self::ReceiptList { .. } => "receipt-list",
            Self::VdsMissing => "vds-missing",
            Self::VdsUnsupported { .. } => "vds-unsupported",
        }
    }
}
