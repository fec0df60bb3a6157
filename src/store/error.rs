//! What can be wrong with a data directory.

use std::path::PathBuf;

use crate::envelope::StatementId;
use crate::log::{self, LeafIndex, TreeSize};
use crate::wire::digest::Digest;

/// Why the store cannot be used, or one thing in it cannot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Statements lie beyond the head.
    #[error(
        "statements lie beyond the head of {size} leaves: the head record is older than the data"
    )]
    BeyondHead { size: TreeSize },
    /// The statements do not give the tree they were copied from.
    #[error("the copy has root {found} at {size} leaves, its source says {expected}")]
    CopyDiffers { size: TreeSize, expected: Digest, found: Digest },
    /// Somebody else commits to this log, or has committed.
    #[error("another writer has taken this log over; nothing was written")]
    Deposed,
    /// The engine failed.
    #[error("the embedded store failed")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The engine panicked over its files.
    #[error("the embedded store panicked over its files: {message}")]
    EnginePanicked { message: String },
    /// A data directory is there already.
    #[error("{} holds a log already", path.display())]
    Exists { path: PathBuf },
    /// The tree is not the one that was signed.
    #[error("the tree of {size} leaves is not the one recorded in the {what}: the log was forked")]
    Forked { what: &'static str, size: TreeSize },
    /// Made by a newer version.
    #[error("the data directory has format {found:?}; this version reads {known:?}")]
    Format { found: String, known: &'static str },
    /// Another process writes under the same guard.
    #[error("{} is the guard of a log that another process writes", path.display())]
    GuardInUse { path: PathBuf },
    /// A new log where another one left its guard.
    #[error(
        "{} is the guard of a log of {size} leaves: a new log would replace it", path.display()
    )]
    GuardLeft { path: PathBuf, size: TreeSize },
    /// A log without its guard.
    #[error(
        "there is no guard at {}: nothing shows that this copy of the log, of {size} leaves, \
         is the newest. Writing could fork the log", path.display()
    )]
    GuardMissing { path: PathBuf, size: TreeSize },
    /// The head record and the tree disagree.
    #[error("the head record says root {recorded} at {size} leaves, the tiles give {found}")]
    HeadDamaged { size: TreeSize, recorded: Digest, found: Digest },
    /// The operator named another head than the log has.
    #[error("the head typed in is {typed}, the log has {found}")]
    HeadDiffers { typed: String, found: String },
    /// A directory without a head.
    #[error("the data directory has no head record; it was never initialised")]
    HeadMissing,
    /// The head record is not one.
    #[error("the head record cannot be read")]
    HeadUnreadable,
    /// An id that points nowhere.
    #[error("the index entry of statement {id} is damaged")]
    IdDamaged { id: StatementId },
    /// A file could not be read or written.
    #[error("{}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The public keys are not readable.
    #[error("the service's public keys cannot be read")]
    KeysUnreadable,
    /// Another process has the directory.
    #[error("{} is in use by another process; one log has one writer", path.display())]
    Locked { path: PathBuf },
    /// Somebody else wrote an object in between.
    #[error("{} was changed by somebody else since it was read", path.display())]
    ObjectChanged { path: PathBuf },
    /// There is no log here.
    #[error("{} holds no log; `capstan init` makes one", path.display())]
    NotFound { path: PathBuf },
    /// Somebody else writes the same log.
    #[error("{at} is this log and takes registrations: a second writer would fork it")]
    OtherWriter { at: String },
    /// The store is older than something that was signed.
    #[error(
        "the data directory holds {found} leaves, but the {what} says {known} were signed: \
         it was rolled back (an old copy restored?). Writing would fork the log"
    )]
    RolledBack { what: &'static str, known: TreeSize, found: TreeSize },
    /// A statement is not what was stored.
    #[error("the statement at index {index} is damaged")]
    StatementDamaged { index: LeafIndex },
    /// A statement that must be there is not.
    #[error("the statement at index {index} is missing")]
    StatementMissing { index: LeafIndex },
    /// A tile that must be there is not.
    #[error("{path} is missing")]
    TileMissing { path: String },
    /// The tree cannot be computed from what is stored.
    #[error("the tree cannot be computed: {0}")]
    Tree(#[from] log::Error),
    /// A copy that nobody has shown to be the newest.
    #[error(
        "this log of {size} leaves was made from a copy, and nothing shows that the copy is the \
         newest{compared}. Writing could fork the log"
    )]
    Unproven { size: TreeSize, compared: String },
    /// A private key that others can read.
    #[error("{} can be read by others; `chmod 600` it", path.display())]
    WorldReadable { path: PathBuf },
}

impl Error {
    /// The stable word for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BeyondHead { .. } => "store-beyond-head",
            Self::CopyDiffers { .. } => "store-copy-differs",
            Self::Deposed => "store-deposed",
            Self::Engine(_) | Self::EnginePanicked { .. } => "store-engine",
            Self::Exists { .. } => "store-exists",
            Self::Forked { .. } => "store-forked",
            Self::Format { .. } => "store-format",
            Self::GuardInUse { .. } => "store-guard-in-use",
            Self::GuardLeft { .. } => "store-guard-left",
            Self::GuardMissing { .. } => "store-guard-missing",
            Self::HeadDamaged { .. } => "store-head-damaged",
            Self::HeadDiffers { .. } => "store-head-differs",
            Self::HeadMissing => "store-head-missing",
            Self::HeadUnreadable => "store-head-unreadable",
            Self::IdDamaged { .. } => "store-id-damaged",
            Self::Io { .. } => "store-io",
            Self::KeysUnreadable => "store-keys-unreadable",
            Self::Locked { .. } => "store-locked",
            Self::ObjectChanged { .. } => "store-object-changed",
            Self::NotFound { .. } => "store-not-found",
            Self::OtherWriter { .. } => "store-other-writer",
            Self::RolledBack { .. } => "store-rolled-back",
            Self::StatementDamaged { .. } => "store-statement-damaged",
            Self::StatementMissing { .. } => "store-statement-missing",
            Self::TileMissing { .. } => "store-tile-missing",
            Self::Tree(source) => source.code(),
            Self::Unproven { .. } => "store-unproven",
            Self::WorldReadable { .. } => "store-world-readable",
        }
    }
}
