//! Keys: what they are, how they are named, how they sign and verify.
//!
//! In: COSE_Key, PEM, SPKI or raw bytes. Out: `PublicKey` and `SigningKey`,
//! named by `KeyId`. Both use the fast library; tests compare it with a
//! second one.

mod algorithm;
mod cose_key;
mod public;
mod signing;
#[cfg(test)]
mod tests;
mod twin;

use std::fmt;

use crate::wire::digest::Digest;

pub use algorithm::Algorithm;
pub use cose_key::key_set;
pub use public::{Curve, Material, PublicKey};
pub use signing::SigningKey;
pub use twin::twin;

/// The RFC 9679 thumbprint of a key: SHA-256 of its required members in
/// deterministic CBOR.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct KeyId(Digest);

impl KeyId {
    /// The thumbprint as the 32 raw bytes that `kid` carries.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Why bytes are not a key, or a signature is not one.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    /// The algorithm belongs to another kind of key.
    #[error("algorithm {algorithm} does not go with {key}")]
    #[strum(serialize = "key-algorithm-mismatch")]
    AlgorithmMismatch { algorithm: &'static str, key: &'static str },
    /// A point given by one coordinate and a sign.
    #[error("compressed curve points are not accepted")]
    #[strum(serialize = "key-compressed-point")]
    CompressedPoint,
    /// The CBOR of a COSE_Key is broken.
    #[error("the COSE_Key is not readable")]
    #[strum(serialize = "key-cose-key")]
    CoseKey(#[source] crate::wire::cbor::Error),
    /// A member is missing or of the wrong kind.
    #[error("the COSE_Key has no usable {member}")]
    #[strum(serialize = "key-cose-key-member")]
    CoseKeyMember { member: &'static str },
    /// The key material is not a key (off the curve, wrong length).
    #[error("the bytes are not a valid {kind} key")]
    #[strum(serialize = "key-invalid-material")]
    InvalidMaterial { kind: &'static str },
    /// PEM or DER that cannot be read.
    #[error("not a {expected} in PEM or DER form")]
    #[strum(serialize = "key-not-pem")]
    NotPem { expected: &'static str },
    /// The signature does not verify.
    #[error("the signature does not verify")]
    SignatureInvalid,
    /// A kind of key we do not know.
    #[error("keys of kind {kind} are not supported")]
    #[strum(serialize = "key-unsupported-kind")]
    UnsupportedKind { kind: String },
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
