//! Causal records as one of the kinds of records.

use serde_json::Value;

use super::{CBOR_CONTENT_TYPE, Encoding, JSON_CONTENT_TYPE, PacrRecord, Verdict, tuple};
use crate::profile::Summary;
use crate::profile::kind::{Codes, Record, RecordKind, Role, Size, boxed, media_type};
use crate::wire::{cbor, json};

/// Physically Annotated Causal Records.
pub static KIND: RecordKind = RecordKind {
    name: "pacr",
    role: Role::Record,
    content_types: &[CBOR_CONTENT_TYPE, JSON_CONTENT_TYPE],
    read: |header, payload| {
        let is_cbor = media_type(header) == Some(CBOR_CONTENT_TYPE);
        let encoding = if is_cbor { Encoding::Cbor } else { Encoding::Json };
        boxed(PacrRecord::read(encoding, payload))
    },
    codes: &[Codes::new(CODES), Codes::new(cbor::CODES), Codes::new(json::CODES)],
    later_codes: IMPORT_CODES,
    page: "docs/profiles/pacr.md",
};

impl Record for PacrRecord {
    /// A record states no agent and no time; it is never its own predecessor.
    fn summary(&self) -> Summary {
        let causes = tuple::as_set(&self.parts.predecessors);
        let others = causes.into_iter().filter(|cause| Some(*cause) != self.parts.id);
        Summary {
            record_id: self.id().map(|id| id.to_string()),
            predecessors: others.map(|id| id.to_string()).collect(),
            intervention: Some(self.intervention().to_owned()),
            content: Some(self.content.to_string()),
            payload_form: Some(self.payload_form()),
            ok: Some(self.verdict != Verdict::Refused),
            ..Summary::default()
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let correlation = self.sim_real_corr().map(|n| ("sim_real_corr", n.into()));
        let mut fields = vec![("verdict_by_draft", self.verdict().name().into())];
        fields.extend(correlation);
        fields
    }

    fn sizes(&self) -> Vec<Size> {
        vec![
            Size {
                what: "predecessors",
                setting: "pacr.predecessors",
                count: self.predecessors_written(),
            },
            Size {
                what: "bytes of payload",
                setting: "pacr.payload_bytes",
                count: self.payload_bytes(),
            },
        ]
    }
}

/// Findings of reading a record, besides those of JSON and CBOR.
const CODES: &[&str] = &[
    "pacr-correlation-out-of-range",
    "pacr-energy-below-landauer",
    "pacr-estimate-malformed",
    "pacr-estimate-out-of-order",
    "pacr-field-malformed",
    "pacr-field-missing",
    "pacr-field-null",
    "pacr-id-malformed",
    "pacr-id-zero",
    "pacr-kind-reserved",
    "pacr-kind-unknown",
    "pacr-limit-payload",
    "pacr-limit-predecessors",
    "pacr-lower-negative",
    "pacr-member-unknown",
    "pacr-not-a-map",
    "pacr-not-finite",
    "pacr-payload-malformed",
    "pacr-point-negative",
    "pacr-predecessor-duplicate",
    "pacr-self-reference",
    "pacr-sentinel-mixed",
    "pacr-sentinel-predecessor",
    "pacr-tag-truncated",
    "pacr-time-below-quantum-limit",
    "pacr-time-not-positive",
];

/// Findings of an import alone, which no policy sees.
const IMPORT_CODES: &[&str] =
    &["pacr-id-number-converted", "pacr-id-ulid-converted", "pacr-payload-converted"];
