//! Why a receipt or checkpoint does not prove what it says.

use crate::wire::digest::Digest;
use crate::{envelope, log};

/// What stands between an artefact and its proof.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    /// The root inside the receipt is not the one its path gives.
    #[error("the root attached to the receipt is not the one its path leads to")]
    AttachedRoot,
    /// A CCF consistency path that starts on the wrong side.
    #[error("the CCF consistency path starts on the left, so its anchor is not canonical")]
    CcfPathStart,
    /// A CCF receipt for another statement.
    #[error("the receipt is for a statement with hash {found}, not for this one")]
    DataHash { found: Digest },
    /// The receipt's envelope cannot be verified.
    #[error("{0}")]
    #[strum(transparent)]
    Envelope(#[source] envelope::Error),
    /// The log's signature is not over the root that statement and path give.
    #[error(
        "the log's signature does not verify over the root that the statement and the path give"
    )]
    HeadSignature,
    /// No key of that log is trusted.
    #[error("no trusted key for the log that issued the receipt")]
    LogUnknown,
    /// An inclusion receipt where growth was to be shown.
    #[error("the receipt shows inclusion, not consistency")]
    NotConsistency,
    /// A consistency receipt where inclusion was to be shown.
    #[error("the receipt shows consistency, not inclusion")]
    NotInclusion,
    /// The older tree is not the one we hold.
    #[error("the proof starts from a tree with root {found}, not from the one given")]
    OlderRoot { found: Digest },
    /// The path does not fit index and size.
    #[error("{0}")]
    #[strum(transparent)]
    Path(#[source] log::Error),
    /// Several proofs, several roots.
    #[error("the proofs of the receipt lead to different roots")]
    RootsDiffer,
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
