//! Physically Annotated Causal Records (draft-aevum-causal-intervention-record-00).
//!
//! In: a payload in either encoding. Out: a record, and all findings in a fixed
//! order: what cannot be read, then rules 2 to 9 over what can. Violations of
//! rules 6 and 7 are warnings, all others errors. A record whose tag cannot be
//! read never counts as an observation.

pub mod dag;
mod describe;
mod fields;
mod form;
mod hashed;
mod import;
mod kind;
mod prov;
mod rules;
mod tag;
#[cfg(test)]
mod tests;
mod tuple;

use strum::IntoStaticStr;

use crate::profile::PayloadForm;
use crate::profile::finding::{Finding, Severity};
use crate::wire::cbor::Value;
use crate::wire::digest::Digest;
use crate::wire::json::Json;

pub use describe::{Error as DescriptionError, describe, describe_hashed};
pub use hashed::{Disclosure, SALT_BYTES};
pub use kind::KIND;
pub use prov::{mark_cut, prov, prov_bytes};
pub use tag::{Error as TagError, Kind, Tag};
pub use tuple::{CausalId, CognitiveSplit, Compared, Comparison, Estimate, Estimates};
pub use tuple::{Resources, SixTuple};

use fields::Parts;

/// The content type of a record in JSON.
pub const JSON_CONTENT_TYPE: &str = "application/pacr+json";
/// The content type of a record in CBOR.
pub const CBOR_CONTENT_TYPE: &str = "application/pacr+cbor";

/// Predecessors of one record. Typical records have one to four; each takes a
/// row of the index, and this many fill a third of the largest statement.
pub const PREDECESSORS_MAX: usize = 1024;

/// Bytes of one payload: the largest statement less 12 KiB for the envelope
/// and the rest of the record.
pub const PAYLOAD_BYTES_MAX: usize = 48 * 1024;

/// How a record is encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Encoding {
    /// 7.2: byte strings, Estimates as `[point, lower, upper]`.
    Cbor,
    /// 7.1: hex, base64, Estimates as objects.
    Json,
}

impl Encoding {
    /// The content type that names it.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Cbor => CBOR_CONTENT_TYPE,
            Self::Json => JSON_CONTENT_TYPE,
        }
    }
}

/// The verdict of the draft's rules; whether the log admits the record is for
/// its policy to decide.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// Every rule holds.
    Valid,
    /// Only rule 6 or 7 is broken: the record is flagged and may be stored.
    Flagged,
    /// Another rule is broken.
    Refused,
}

impl Verdict {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn of(findings: &[Finding]) -> Self {
        let is_flag = |f: &Finding| f.severity == Severity::Warning && f.check.is_some();
        if findings.iter().any(|f| f.severity == Severity::Error) {
            Self::Refused
        } else if findings.iter().any(is_flag) {
            Self::Flagged
        } else {
            Self::Valid
        }
    }
}

/// A record and the verdict about it.
#[derive(Clone, Debug, PartialEq)]
pub struct PacrRecord {
    content: Digest,
    parts: Parts,
    tuple: Option<SixTuple>,
    verdict: Verdict,
}

impl PacrRecord {
    /// Reads and judges a record.
    pub fn read(encoding: Encoding, bytes: &[u8]) -> (Self, Vec<Finding>) {
        let content = Digest::of(bytes);
        match encoding {
            Encoding::Json => match Json::read(bytes) {
                Ok(json) => Self::of(&json, content, Vec::new()),
                Err(e) => {
                    let detail = format!("not valid JSON: {e}");
                    Self::unreadable(content, violation(e.code(), e.pointer.clone(), detail))
                }
            },
            Encoding::Cbor => match Value::read(bytes) {
                Ok(value) => Self::of(&value, content, Vec::new()),
                Err(e) => {
                    let detail = format!("not valid CBOR: {e}");
                    Self::unreadable(content, violation(e.code(), "", detail))
                }
            },
        }
    }

    /// Reads JSON that the draft does not define but its authors write: ids
    /// as ULIDs or numbers, a payload as an array of bytes. Every conversion
    /// is a finding. Statements are never read this way.
    pub fn import(bytes: &[u8]) -> (Self, Vec<Finding>) {
        match Json::read(bytes) {
            Ok(mut json) => {
                let converted = import::convert(&mut json);
                Self::of(&json, Digest::of(bytes), converted)
            }
            Err(_) => Self::read(Encoding::Json, bytes),
        }
    }

    fn of(form: &impl form::Form, content: Digest, noticed: Vec<Finding>) -> (Self, Vec<Finding>) {
        let mut findings = noticed;
        let parts = fields::read(form, &mut findings);
        let is_whole = findings.iter().all(|f| f.severity != Severity::Error);
        rules::check(&parts, &mut findings);
        let tuple = parts.tuple().filter(|_| is_whole);
        let verdict = Verdict::of(&findings);
        (Self { content, parts, tuple, verdict }, findings)
    }

    fn unreadable(content: Digest, finding: Finding) -> (Self, Vec<Finding>) {
        let parts = Parts::default();
        (Self { content, parts, tuple: None, verdict: Verdict::Refused }, vec![finding])
    }

    /// The six fields, if all could be read; they may still break rules.
    pub fn tuple(&self) -> Option<&SixTuple> {
        self.tuple.as_ref()
    }

    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Its identity, which is chosen and not derived from its content; none if
    /// it is the genesis sentinel.
    pub fn id(&self) -> Option<CausalId> {
        self.parts.id.filter(|id| !id.is_sentinel())
    }

    /// The number of predecessors listed, readable or not.
    pub fn predecessors_written(&self) -> usize {
        self.parts.predecessors_written
    }

    /// The length of its payload; 0 if unreadable.
    pub fn payload_bytes(&self) -> usize {
        self.parts.payload.as_ref().map_or(0, Vec::len)
    }

    /// Whether its payload is in clear, hashed or empty.
    pub fn payload_form(&self) -> PayloadForm {
        hashed::form(self.parts.payload.as_deref())
    }

    /// Whether its payload is the digest of this disclosure; none if the
    /// payload is not hashed.
    pub fn discloses(&self, disclosure: &[u8]) -> Option<bool> {
        hashed::discloses(self.parts.payload.as_deref()?, disclosure)
    }

    /// The name of its kind of intervention, or `unknown`. A tag that starts as
    /// a counterfactual counts as one even if it is cut short.
    pub fn intervention(&self) -> &'static str {
        match self.parts.payload.as_deref().map(Tag::read) {
            Some(Ok(tag)) => tag.kind.name(),
            Some(Err(TagError::CorrelationTruncated { .. })) => Kind::Counterfactual.name(),
            Some(Err(_)) | None => "unknown",
        }
    }

    /// How well the simulation behind a counterfactual matches reality.
    pub fn sim_real_corr(&self) -> Option<f64> {
        Tag::read(self.parts.payload.as_deref()?).ok()?.sim_real_corr
    }

    /// The record as JSON, if it is complete.
    pub fn to_json(&self) -> Option<Vec<u8>> {
        self.tuple().map(SixTuple::to_json)
    }

    /// The record as deterministic CBOR, if it is complete.
    pub fn to_cbor(&self) -> Option<Vec<u8>> {
        self.tuple().map(SixTuple::to_cbor)
    }
}

/// A violation of the draft outside its numbered rules, or of a limit.
fn violation(code: &'static str, at: impl Into<String>, detail: impl Into<String>) -> Finding {
    Finding { gating: true, ..Finding::new(Severity::Error, code, at, detail) }
}
