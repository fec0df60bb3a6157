//! Reads what a payload says, under the profile its content type names.
//!
//! In: an `Authentic` statement. Out: a `Record` and what we noticed about
//! it. Nothing here says no; that is `policy`.

mod control;
mod finding;
mod summary;

use crate::envelope::{Authentic, ContentType, HashEnvelope};

pub use control::Control;
pub use finding::{Finding, Severity};
pub use summary::{Parent, Summary};

/// What a payload is.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A statement by which a log governs itself: policy, trust, succession.
    Control(Control),
    /// A digest of something kept elsewhere (RFC 9995).
    Hash(HashEnvelope),
    /// Bytes of a content type we do not interpret.
    Opaque,
}

impl Record {
    /// The profile's name in policies, reports and metrics.
    pub fn profile(&self) -> &'static str {
        match self {
            Self::Control(_) => "control",
            Self::Hash(_) => "hash",
            Self::Opaque => "opaque",
        }
    }

    /// What policy, index and readers need to know of it.
    pub fn summary(&self) -> Summary {
        match self {
            Self::Control(_) | Self::Hash(_) | Self::Opaque => Summary::default(),
        }
    }
}

/// A record and what we noticed while reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// What the payload is.
    pub record: Record,
    /// What we noticed, in the order of the checks.
    pub findings: Vec<Finding>,
}

/// Reads the payload of an authentic statement.
pub fn read(statement: &Authentic) -> Read {
    let header = statement.statement().header();
    if let Some(envelope) = &header.hash_envelope {
        let unknown = envelope.digest_len().is_none().then(|| Finding {
            code: "hash-algorithm-unknown",
            severity: Severity::Info,
            at: "label 258".to_owned(),
            detail: format!("hash algorithm {} has no length we could check", envelope.algorithm),
        });
        return Read {
            record: Record::Hash(envelope.clone()),
            findings: unknown.into_iter().collect(),
        };
    }
    let control = match &header.content_type {
        Some(ContentType::Media(name)) => Control::from_content_type(name),
        _ => None,
    };
    let missing = header.content_type.is_none().then(|| Finding {
        code: "content-type-missing",
        severity: Severity::Info,
        at: "label 3".to_owned(),
        detail: "nothing says how to read the payload".to_owned(),
    });
    Read {
        record: control.map_or(Record::Opaque, Record::Control),
        findings: missing.into_iter().collect(),
    }
}
