//! The codes of this profile's findings. A code that is here stays here: a
//! logged policy that names it must still be readable.

/// What reading a record can notice, besides JSON or CBOR that is none.
pub const CODES: &[&str] = &[
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

/// What only an import notices. No policy meets these.
pub const IMPORT_CODES: &[&str] =
    &["pacr-id-number-converted", "pacr-id-ulid-converted", "pacr-payload-converted"];
