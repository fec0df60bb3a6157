//! Proof-Carrying Autonomy (PCA-SPEC v1.0): plan certificates and evidence.
//!
//! In: a payload, or a certificate with constraints and observations. Out: a
//! record with findings, or the result of every check of the certified
//! execution protocol and a verdict. The signature of a certificate is that of
//! the statement around it.

mod certificate;
mod digest;
mod evidence;
mod execute;
mod inputs;
mod merkle;
mod reason;
mod shape;
#[cfg(test)]
mod tests;

pub use certificate::{PcaCertificateRecord, STEPS_MAX};
pub use digest::{Label, StepInputs, pc_digest, plan_digest, step_digest};
pub use evidence::{PROOFS_MAX, PcaEvidenceRecord};
pub use execute::{Check, Checked, Demand, Evaluation, Level, Outcome, Request, Source, Verdict};
pub use execute::{NonceMemory, Nonces, check};
pub use inputs::{Constraints, Observations};
pub use merkle::{MerkleProof, MerkleRule};
pub use reason::{Decision, Imported, ReasonCode};

use crate::profile::kind::{Codes, RecordKind, Role, boxed};
use crate::wire::json;

/// The content type of a plan certificate.
pub const CERTIFICATE_CONTENT_TYPE: &str = "application/pca-certificate+json";
/// The content type of PCA evidence.
pub const EVIDENCE_CONTENT_TYPE: &str = "application/pca-evidence+json";

const PAGE: &str = "docs/profiles/pca.md";

/// Plan certificates.
pub static CERTIFICATE_KIND: RecordKind = RecordKind {
    name: "pca-certificate",
    role: Role::Record,
    content_types: &[CERTIFICATE_CONTENT_TYPE],
    read: |header, payload| boxed(certificate::read(header, payload)),
    codes: &[Codes::new(CODES), Codes::new(json::CODES)],
    later_codes: &[],
    page: PAGE,
};

/// PCA evidence.
pub static EVIDENCE_KIND: RecordKind = RecordKind {
    name: "pca-evidence",
    role: Role::Record,
    content_types: &[EVIDENCE_CONTENT_TYPE],
    read: |_, payload| {
        let record = PcaEvidenceRecord::read(payload);
        let findings = record.findings().to_vec();
        boxed((record, findings))
    },
    codes: &[Codes::new(CODES), Codes::new(json::CODES)],
    later_codes: &[],
    page: PAGE,
};

/// About a certificate or evidence, and also about constraints and observations.
const CODES: &[&str] = &[
    "pca_canonical_divergent",
    "pca_capability_repeated",
    "pca_digest_malformed",
    "pca_digest_mismatch",
    "pca_findings_left_out",
    "pca_issuer_not_planner",
    "pca_limit_exceeded",
    "pca_member_missing",
    "pca_member_type",
    "pca_member_unknown",
    "pca_no_proofs",
    "pca_no_steps",
    "pca_not_an_object",
    "pca_number_unsafe",
    "pca_plan_unverified",
    "pca_signature_not_checked",
    "pca_text_empty",
    "pca_time_malformed",
    "pca_version_unsupported",
    "pca_window_inverted",
];
