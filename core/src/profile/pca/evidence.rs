//! PCA evidence: digests of proofs that are kept elsewhere. The specification
//! calls it "Evidence Capsule"; it is not an Agent Action Capsule.

use super::shape::Shape;
use crate::profile::finding::{Finding, Severity};
use crate::profile::{Record, Summary};
use crate::wire::digest::Digest;
use crate::wire::json::Json;

/// Proofs in one evidence record.
pub const PROOFS_MAX: usize = 4096;

const OPTIONAL: [&str; 3] = ["legal_digest", "attestation_digest", "test_suite_digest"];

/// PCA evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct PcaEvidenceRecord {
    payload: Json,
    bytes_digest: Digest,
    findings: Vec<Finding>,
}

impl PcaEvidenceRecord {
    /// Reads and judges a payload; never fails.
    pub fn read(bytes: &[u8]) -> Self {
        let mut shape = Shape::default();
        let payload = shape
            .json(bytes)
            .filter(|payload| shape.object(payload, "", &["capsule_version", "proofs"], &OPTIONAL));
        if let Some(payload) = &payload {
            members(&mut shape, payload);
        }
        let (payload, bytes_digest) = (payload.unwrap_or(Json::Null), Digest::of(bytes));
        Self { payload, bytes_digest, findings: shape.findings }
    }

    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The payload; null if it is not an object.
    pub fn payload(&self) -> &Json {
        &self.payload
    }

    /// Type and digest of each proof.
    pub fn proofs(&self) -> impl Iterator<Item = (&str, &str)> {
        let proofs = self.payload.get("proofs").and_then(Json::array).unwrap_or_default().iter();
        proofs.filter_map(|proof| Some((proof.get("type")?.text()?, proof.get("digest")?.text()?)))
    }
}

impl Record for PcaEvidenceRecord {
    /// Evidence has no id, so its record id is the digest of its bytes.
    fn summary(&self) -> Summary {
        Summary {
            record_id: Some(self.bytes_digest.to_string()),
            ok: Some(!self.findings.iter().any(|finding| finding.gating)),
            ..Summary::default()
        }
    }
}

fn members(shape: &mut Shape, payload: &Json) {
    shape.constant(payload, "capsule_version", "1.0");
    for name in OPTIONAL {
        shape.digest(payload, "", name);
    }
    for (i, proof) in shape.array(payload, "", "proofs", PROOFS_MAX).iter().enumerate() {
        let at = format!("/proofs/{i}");
        if shape.object(proof, &at, &["type", "digest"], &["uri"]) {
            shape.text(proof, &at, "type");
            shape.text(proof, &at, "uri");
            shape.digest(proof, &at, "digest");
        }
    }
    if payload.get("proofs").and_then(Json::array).is_some_and(<[Json]>::is_empty) {
        shape.note(Severity::Info, "pca_no_proofs", "/proofs", "the evidence has no proofs");
    }
    shape.numbers(payload);
}
