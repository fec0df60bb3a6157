//! Reads what a payload says, under the profile its content type names.
//!
//! In: an `Authentic` statement. Out: a `Record` and what we noticed about
//! it. Nothing here says no; that is `policy`.

pub mod capsule;
mod control;
pub mod cra;
pub mod exchange;
mod finding;
pub mod pacr;
pub mod pca;
mod resumption;
pub mod session;
mod succession;
mod summary;
#[cfg(test)]
mod tests;

use crate::envelope::{Authentic, ContentType, HashEnvelope, Header};
use crate::wire::{cbor, json};
use capsule::{CapsuleIdRecord, CapsuleRecord, OutcomeRecord};
use cra::{AtlasRecord, CarpRecord, TraceRecord, atlas, carp, trace};
use pacr::PacrRecord;
use pca::{PcaCertificateRecord, PcaEvidenceRecord};

pub use control::Control;
pub use finding::{Finding, Severity};
pub use resumption::{Compared, Reason, Resumption, Source};
pub use session::Span;
pub use succession::Succession;
pub use summary::{Parent, Summary};

/// The codes of findings about headers alone.
const HEADER_CODES: &[&str] = &["content-type-missing", "hash-algorithm-unknown"];

/// One list for each module that notices something. A profile adds its own.
const CODES: &[&[&str]] =
    &[HEADER_CODES, cbor::CODES, json::CODES, capsule::CODES, pacr::CODES, pca::CODES, cra::CODES];

/// The same for what came with version 2 of the rules at the door: decisions
/// by version 1 do not see these. So what is noticed anew needs a new code.
const CODES_2: &[&[&str]] = &[capsule::CODES_2];

/// Every code that reading a payload can give: what a policy may name.
pub fn codes() -> impl Iterator<Item = &'static str> + Clone {
    CODES.iter().chain(CODES_2).copied().flatten().copied()
}

/// What a payload is.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A manifest of an Atlas.
    Atlas(Box<AtlasRecord>),
    /// An Agent Action Capsule.
    Capsule(Box<CapsuleRecord>),
    /// A bare capsule id.
    CapsuleId(CapsuleIdRecord),
    /// A CARP request, resolution or execute response.
    Carp(Box<CarpRecord>),
    /// A statement by which a log governs itself: policy, trust, succession,
    /// resumption.
    Control(Control),
    /// A digest of something kept elsewhere (RFC 9995).
    Hash(HashEnvelope),
    /// Bytes of a content type we do not interpret.
    Opaque,
    /// What became of an action recorded by a Capsule.
    Outcome(Box<OutcomeRecord>),
    /// A Physically Annotated Causal Record.
    Pacr(Box<PacrRecord>),
    /// A plan certificate (PCA).
    PcaCertificate(Box<PcaCertificateRecord>),
    /// PCA evidence; no Agent Action Capsule.
    PcaEvidence(Box<PcaEvidenceRecord>),
    /// Events of a TRACE session.
    Trace(Box<TraceRecord>),
}

impl Record {
    /// The profile's name in policies, reports and metrics.
    pub fn profile(&self) -> &'static str {
        match self {
            Self::Atlas(_) => "atlas",
            Self::Capsule(_) => "capsule",
            Self::CapsuleId(_) => "capsule-id",
            Self::Carp(_) => "carp",
            Self::Control(_) => "control",
            Self::Hash(_) => "hash",
            Self::Opaque => "opaque",
            Self::Outcome(_) => "capsule-outcome",
            Self::Pacr(_) => "pacr",
            Self::PcaCertificate(_) => "pca-certificate",
            Self::PcaEvidence(_) => "pca-evidence",
            Self::Trace(_) => "trace",
        }
    }

    /// What policy, index and readers need to know of it.
    pub fn summary(&self) -> Summary {
        match self {
            Self::Atlas(record) => record.summary(),
            Self::Capsule(record) => record.summary(),
            Self::CapsuleId(record) => record.summary(),
            Self::Carp(record) => record.summary(),
            Self::Outcome(record) => record.summary(),
            Self::Pacr(record) => record.summary(),
            Self::PcaCertificate(record) => record.summary(),
            Self::PcaEvidence(record) => record.summary(),
            Self::Trace(record) => record.summary(),
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
    /// The record in the words all profiles share.
    pub summary: Summary,
}

impl Read {
    fn new(record: Record, findings: Vec<Finding>) -> Self {
        Self { summary: record.summary(), record, findings }
    }
}

/// Reads the payload of an authentic statement.
pub fn read(statement: &Authentic) -> Read {
    read_payload(statement.statement().header(), statement.payload())
}

/// The same for a payload whose signature is judged elsewhere.
pub fn read_payload(header: &Header, payload: &[u8]) -> Read {
    if let Some(envelope) = &header.hash_envelope {
        return hash(envelope);
    }
    let Some(content_type) = &header.content_type else {
        let detail = "nothing says how to read the payload";
        let finding = Finding::new(Severity::Info, "content-type-missing", "label 3", detail);
        return Read::new(Record::Opaque, vec![finding]);
    };
    let ContentType::Media(name) = content_type else {
        return Read::new(Record::Opaque, Vec::new());
    };
    let (record, findings) = match name.as_str() {
        atlas::CONTENT_TYPE => boxed(AtlasRecord::read(payload), Record::Atlas),
        capsule::CONTENT_TYPE => {
            let (record, findings) = capsule::read(header, payload);
            (Record::Capsule(Box::new(record)), findings)
        }
        capsule::OUTCOME_CONTENT_TYPE => {
            let (record, findings) = OutcomeRecord::read(header, payload);
            (Record::Outcome(Box::new(record)), findings)
        }
        capsule::ID_CONTENT_TYPE => {
            let (record, findings) = CapsuleIdRecord::read(payload);
            (Record::CapsuleId(record), findings)
        }
        pacr::CBOR_CONTENT_TYPE => causal(pacr::Encoding::Cbor, payload),
        pacr::JSON_CONTENT_TYPE => causal(pacr::Encoding::Json, payload),
        pca::CERTIFICATE_CONTENT_TYPE => {
            let (record, findings) = pca::read(header, payload);
            (Record::PcaCertificate(Box::new(record)), findings)
        }
        pca::EVIDENCE_CONTENT_TYPE => {
            let (record, findings) = pca::read_evidence(payload);
            (Record::PcaEvidence(Box::new(record)), findings)
        }
        carp::CONTENT_TYPE => boxed(CarpRecord::read(payload), Record::Carp),
        trace::CONTENT_TYPE => boxed(TraceRecord::read(payload), Record::Trace),
        trace::BATCH_CONTENT_TYPE => boxed(TraceRecord::read_batch(payload), Record::Trace),
        name => {
            let control = Control::from_content_type(name);
            (control.map_or(Record::Opaque, Record::Control), Vec::new())
        }
    };
    Read::new(record, findings)
}

fn causal(encoding: pacr::Encoding, payload: &[u8]) -> (Record, Vec<Finding>) {
    let (record, findings) = PacrRecord::read(encoding, payload);
    (Record::Pacr(Box::new(record)), findings)
}

fn boxed<R>(
    (record, findings): (R, Vec<Finding>),
    kind: fn(Box<R>) -> Record,
) -> (Record, Vec<Finding>) {
    (kind(Box::new(record)), findings)
}

fn hash(envelope: &HashEnvelope) -> Read {
    let unknown = envelope.digest_len().is_none().then(|| {
        let detail = format!("hash algorithm {} has no length we could check", envelope.algorithm);
        Finding::new(Severity::Info, "hash-algorithm-unknown", "label 258", detail)
    });
    Read::new(Record::Hash(envelope.clone()), unknown.into_iter().collect())
}
