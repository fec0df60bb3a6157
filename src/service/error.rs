//! Why a registration did not happen: the sender's bytes, the policy, or us.

use super::Entry;
use crate::policy::Refusal;
use crate::{envelope, resolve, store};

/// A registration that ended without a receipt.
#[derive(Debug, thiserror::Error)]
pub enum Rejected {
    /// The bytes are wrong; sending them again is useless.
    #[error("{0}")]
    Invalid(#[from] envelope::Error),
    /// The bytes are fine, the policy says no.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// A record is larger than the operator takes.
    #[error("the causal record has {saw} {what}, this log takes at most {limit} ({setting})")]
    OverLimit { what: &'static str, saw: usize, limit: usize, setting: &'static str },
    /// It is logged with the other ECDSA signature that verifies. Its receipt
    /// would not verify for these bytes.
    #[error(
        "entry #{} ({}) is this statement with the other ECDSA signature that verifies (s and n - s \
         both do); use that one and its receipt", entry.index, entry.id
    )]
    Twin { entry: Entry },
    /// The issuer's key could not be looked up.
    #[error("the issuer's did:web document cannot be used: {0}")]
    Unresolved(#[from] resolve::Error),
    /// Ours.
    #[error("{0}")]
    Fault(#[from] Fault),
}

impl Rejected {
    /// The stable word.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(e) => e.code(),
            Self::Refused(refusal) => refusal.code(),
            Self::OverLimit { .. } => "limit-exceeded",
            Self::Twin { .. } => "signature-twin",
            Self::Unresolved(e) => e.code(),
            Self::Fault(fault) => fault.code(),
        }
    }
}

/// Something on our side.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The queue is full.
    #[error("the log is busy: {waiting} statements wait already")]
    Busy { waiting: usize },
    /// Not enough room on the disk.
    #[error("the log is read-only: its disk is nearly full")]
    DiskFull,
    /// A receipt we made does not verify. Nothing is released.
    #[error("a receipt failed its own verification and was withheld")]
    SelfCheck,
    /// The writer has stopped.
    #[error("the log is shutting down")]
    ShuttingDown,
    /// One issuer too often.
    #[error("issuer {issuer} registers more than {per_minute} statements a minute")]
    IssuerRate { issuer: String, per_minute: u32, retry_seconds: u64 },
    /// Nothing is written, for a reason that does not go away by itself.
    #[error("the log is read-only: {why}")]
    ReadOnly { why: &'static str },
    /// The store failed to read.
    #[error("the store failed")]
    Store(#[from] store::Error),
}

impl Fault {
    /// The stable word.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "busy",
            Self::DiskFull => "disk-full",
            Self::SelfCheck => "self-check",
            Self::ShuttingDown => "shutting-down",
            Self::IssuerRate { .. } => "issuer-rate",
            Self::ReadOnly { .. } => "read-only",
            Self::Store(e) => e.code(),
        }
    }
}

/// An error with all its causes, on one line of the log.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    line
}
