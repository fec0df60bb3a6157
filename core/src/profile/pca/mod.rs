//! Proof-Carrying Autonomy (PCA-SPEC v1.0): plan certificates and evidence.
//!
//! In: a payload, or a certificate with constraints and observations. Out: a
//! record with findings, or what every check of the certified execution
//! protocol says, and the verdict that follows. Signatures are those of the
//! statement around a certificate.

mod certificate;
mod constraints;
mod digest;
mod evidence;
mod execute;
mod kind;
mod memory;
mod merkle;
mod moment;
mod observations;
mod reason;
mod shape;
#[cfg(test)]
mod tests;

pub use certificate::{PcaCertificateRecord, STEPS_MAX};
pub use constraints::Constraints;
pub use digest::{Label, StepInputs, pc_digest, plan_digest, step_digest};
pub use evidence::{PROOFS_MAX, PcaEvidenceRecord};
pub use execute::check;
pub use execute::{Check, Checked, Demand, Evaluation, Level, Outcome, Request, Source, Verdict};
pub use kind::{CERTIFICATE_KIND, EVIDENCE_KIND};
pub use memory::{NonceMemory, Nonces};
pub use merkle::{MerkleProof, MerkleRule};
pub use observations::Observations;
pub use reason::{Decision, Imported, ReasonCode};

/// The content type of a plan certificate.
pub const CERTIFICATE_CONTENT_TYPE: &str = "application/pca-certificate+json";
/// The content type of PCA evidence.
pub const EVIDENCE_CONTENT_TYPE: &str = "application/pca-evidence+json";
