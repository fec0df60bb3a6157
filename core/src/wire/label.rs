//! Registered numbers, each named once: map labels, tags and algorithm
//! numbers of COSE, CWT and COSE Receipts.

/// The tag of a COSE_Sign1 (RFC 9052, 2).
pub const COSE_SIGN1_TAG: u64 = 18;

/// COSE header parameters.
pub mod header {
    pub const ALG: i64 = 1;
    pub const CRIT: i64 = 2;
    pub const CONTENT_TYPE: i64 = 3;
    pub const KID: i64 = 4;
    /// CWT claims (RFC 9597).
    pub const CWT_CLAIMS: i64 = 15;
    /// The type of the whole object (RFC 9596).
    pub const TYP: i64 = 16;
    /// Certificates, leaf first (RFC 9360).
    pub const X5CHAIN: i64 = 33;
    /// The hash of the leaf certificate (RFC 9360).
    pub const X5T: i64 = 34;
    /// The hash algorithm of a hash envelope (RFC 9995), as the next two.
    pub const PAYLOAD_HASH_ALG: i64 = 258;
    pub const PREIMAGE_CONTENT_TYPE: i64 = 259;
    pub const PAYLOAD_LOCATION: i64 = 260;
    /// The receipts of a Transparent Statement (RFC 9942).
    pub const RECEIPTS: i64 = 394;
    /// The kind of tree, "verifiable data structure" (RFC 9942).
    pub const VDS: i64 = 395;
    /// The proofs of a receipt (RFC 9942).
    pub const VDP: i64 = 396;
}

/// CWT claims (RFC 8392, RFC 8747).
pub mod claim {
    pub const ISS: i64 = 1;
    pub const SUB: i64 = 2;
    pub const IAT: i64 = 6;
    /// Confirmation: the key that the issuer holds.
    pub const CNF: i64 = 8;
    /// The COSE_Key inside `CNF`.
    pub const CNF_COSE_KEY: i64 = 1;
}

/// Members and key types of a COSE_Key (RFC 9052, 7; RFC 9053, 7; RFC 8230;
/// RFC 9964).
pub mod cose_key {
    pub const KTY: i64 = 1;
    pub const KID: i64 = 2;
    pub const ALG: i64 = 3;

    pub const KTY_OKP: i64 = 1;
    pub const KTY_EC2: i64 = 2;
    pub const KTY_RSA: i64 = 3;
    pub const KTY_AKP: i64 = 7;

    /// The curve, of OKP and EC2.
    pub const CRV: i64 = -1;
    pub const X: i64 = -2;
    pub const Y: i64 = -3;
    /// The modulus, of RSA.
    pub const N: i64 = -1;
    pub const E: i64 = -2;
    /// The public key, of AKP.
    pub const PUB: i64 = -1;
}

/// COSE hash algorithms (RFC 9054).
pub mod hash {
    pub const SHA_256: i64 = -16;
    pub const SHA_384: i64 = -43;
    pub const SHA_512: i64 = -44;
}

/// Kinds of tree, values of `header::VDS`.
pub mod vds {
    pub const RFC9162_SHA256: i64 = 1;
    /// Requested by draft-ietf-scitt-receipts-ccf-profile.
    pub const CCF_LEDGER_SHA256: i64 = 2;
}

/// Kinds of proof, labels inside `header::VDP`.
pub mod proof {
    pub const INCLUSION: i64 = -1;
    pub const CONSISTENCY: i64 = -2;
}

/// Members of a CCF proof.
pub mod ccf {
    /// The leaf of an inclusion proof.
    pub const LEAF: i64 = 1;
    /// The subtree that a consistency proof starts from.
    pub const ANCHOR: i64 = 1;
    pub const PATH: i64 = 2;
}

/// Concise problem details (RFC 9290).
pub mod problem {
    pub const TITLE: i64 = -1;
    pub const DETAIL: i64 = -2;
}

/// What a log keeps beside a statement to authenticate it again.
pub mod collateral {
    /// Certificates that stood in the unprotected header.
    pub const CERTIFICATES: i64 = 1;
    /// The resolved COSE_Key, encoded.
    pub const KEY: i64 = 2;
}
