//! Reads what a payload says, under the profile its content type names.
//!
//! In: an `Authentic` statement. Out: a record and findings about it. Nothing
//! here refuses anything; that is `policy`.

pub mod capsule;
mod control;
pub mod cra;
pub mod exchange;
mod finding;
mod kind;
pub mod pacr;
pub mod pca;
pub mod session;
mod summary;
#[cfg(test)]
pub(crate) mod tests;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::envelope::{Authentic, Header};

pub use control::{Compared, Control, Reason, Resumption, Source, Succession};
pub use finding::{Finding, Severity};
pub use kind::{Codes, Reading, Record, RecordKind, Role, Size};
pub use session::Span;
pub use summary::{Parent, PayloadForm, Summary};

use kind::{boxed, media_type};

/// Every kind of record, by name.
pub const KINDS: &[&RecordKind] = &[
    &cra::atlas::KIND,
    &capsule::KIND,
    &capsule::ID_KIND,
    &capsule::OUTCOME_KIND,
    &cra::carp::KIND,
    &control::KIND,
    &HASH,
    &OPAQUE,
    &pacr::KIND,
    &pca::CERTIFICATE_KIND,
    &pca::EVIDENCE_KIND,
    #[cfg(test)]
    &tests::toy::KIND,
    &cra::trace::KIND,
];

/// The names a policy may use: of every kind it decides about.
pub fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let decided = KINDS.iter().filter(|kind| kind.role != Role::Control);
        decided.map(|kind| kind.name).collect()
    });
    &NAMES
}

/// Every code that reading a payload can give, once: what a policy may name.
pub fn codes() -> impl Iterator<Item = &'static str> + Clone {
    static CODES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        let lists = KINDS.iter().flat_map(|kind| kind.codes);
        lists.flat_map(|codes| codes.list).copied().collect()
    });
    CODES.iter().copied()
}

/// A record and what its reader noticed.
#[derive(Debug)]
pub struct Read {
    /// The kind of record.
    pub kind: &'static RecordKind,
    /// The record as that kind reads it.
    pub record: Box<dyn Record>,
    /// What the reader noticed, in the order of the checks.
    pub findings: Vec<Finding>,
    /// The facts that all kinds share.
    pub summary: Summary,
}

impl Read {
    /// The name of its kind.
    pub fn profile(&self) -> &'static str {
        self.kind.name
    }

    /// The record, if it is of this type.
    pub fn get<R: Record>(&self) -> Option<&R> {
        let record: &dyn Any = self.record.as_ref();
        record.downcast_ref()
    }

    /// The record by value and its findings, if it is of this type.
    pub fn into_record<R: Record>(self) -> Option<(Box<R>, Vec<Finding>)> {
        let record: Box<dyn Any> = self.record;
        Some((record.downcast().ok()?, self.findings))
    }
}

/// Reads the payload of an authentic statement.
pub fn read(statement: &Authentic) -> Read {
    read_payload(statement.statement().header(), statement.payload())
}

/// The same for a payload whose signature is checked elsewhere.
pub fn read_payload(header: &Header, payload: &[u8]) -> Read {
    kind_of(header).read(header, payload)
}

fn kind_of(header: &Header) -> &'static RecordKind {
    if header.hash_envelope.is_some() {
        return &HASH;
    }
    let Some(name) = media_type(header) else { return &OPAQUE };
    KINDS.iter().find(|kind| kind.content_types.contains(&name)).copied().unwrap_or(&OPAQUE)
}

impl RecordKind {
    /// Reads a payload as a record of this kind.
    pub fn read(&'static self, header: &Header, payload: &[u8]) -> Read {
        let (record, findings) = (self.read)(header, payload);
        #[cfg(test)]
        tests::are_listed(self, &findings);
        Read { kind: self, summary: record.summary(), record, findings }
    }
}

/// Bytes that are not interpreted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Opaque;

impl Record for Opaque {
    fn summary(&self) -> Summary {
        Summary::default()
    }
}

/// Payloads of any other content type.
pub static OPAQUE: RecordKind = RecordKind {
    name: "opaque",
    role: Role::Opaque,
    content_types: &[],
    read: |header, _| {
        let missing = header.content_type.is_none().then(|| {
            let detail = "nothing says how to read the payload";
            Finding::new(Severity::Info, "content-type-missing", "label 3", detail)
        });
        boxed((Opaque, missing.into_iter().collect()))
    },
    codes: &[Codes::new(&["content-type-missing"])],
    later_codes: &[],
    page: "",
};

/// A digest of something kept elsewhere (RFC 9995), which the header says.
static HASH: RecordKind = RecordKind {
    name: "hash",
    role: Role::Opaque,
    content_types: &[],
    read: |header, _| {
        let envelope = header.hash_envelope.as_ref();
        let unknown = envelope.filter(|envelope| envelope.digest_len().is_none()).map(|envelope| {
            let algorithm = envelope.algorithm;
            let detail = format!("hash algorithm {algorithm} has no length we could check");
            Finding::new(Severity::Info, "hash-algorithm-unknown", "label 258", detail)
        });
        boxed((Opaque, unknown.into_iter().collect()))
    },
    codes: &[Codes::new(&["hash-algorithm-unknown"])],
    later_codes: &[],
    page: "",
};
