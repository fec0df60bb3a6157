//! The codes of this profile's findings. A code that is here stays here: a
//! logged policy that names it must still be readable.

/// What reading a certificate, PCA evidence, constraints or observations can
/// notice, besides JSON that is none.
pub const CODES: &[&str] = &[
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
