//! COSE signature algorithms and the kind of key each needs.

use aws_lc_rs::signature as lc;

use super::public::{Curve, Material};

/// A COSE signature algorithm we verify.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Algorithm {
    /// ECDSA with SHA-256 on P-256.
    Es256,
    /// ECDSA with SHA-384 on P-384.
    Es384,
    /// ECDSA with SHA-512 on P-521.
    Es512,
    /// The fully specified ES256 (RFC 9864).
    Esp256,
    /// The fully specified ES384 (RFC 9864).
    Esp384,
    /// The fully specified ES512 (RFC 9864).
    Esp512,
    /// EdDSA; Ed25519 is the curve we take.
    EdDsa,
    /// The fully specified Ed25519 (RFC 9864).
    Ed25519,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ML-DSA-44 (FIPS 204).
    MlDsa44,
    /// ML-DSA-65 (FIPS 204).
    MlDsa65,
}

/// Each algorithm with its COSE number and name.
const TABLE: &[(Algorithm, i64, &str)] = &[
    (Algorithm::Es256, -7, "ES256"),
    (Algorithm::Es384, -35, "ES384"),
    (Algorithm::Es512, -36, "ES512"),
    (Algorithm::Esp256, -9, "ESP256"),
    (Algorithm::Esp384, -51, "ESP384"),
    (Algorithm::Esp512, -52, "ESP512"),
    (Algorithm::EdDsa, -8, "EdDSA"),
    (Algorithm::Ed25519, -19, "Ed25519"),
    (Algorithm::Ps256, -37, "PS256"),
    (Algorithm::Ps384, -38, "PS384"),
    (Algorithm::Ps512, -39, "PS512"),
    (Algorithm::MlDsa44, -48, "ML-DSA-44"),
    (Algorithm::MlDsa65, -49, "ML-DSA-65"),
];

impl Algorithm {
    /// Every algorithm we verify.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(algorithm, ..)| *algorithm)
    }

    /// The algorithm with this number in the COSE registry.
    pub fn from_cose(number: i64) -> Option<Self> {
        TABLE.iter().find(|(_, n, _)| *n == number).map(|(a, ..)| *a)
    }

    /// The algorithm with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|(.., n)| *n == name).map(|(a, ..)| *a)
    }

    /// Its number in the COSE registry.
    pub fn cose(self) -> i64 {
        self.row().0
    }

    /// Its name in the COSE registry.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    fn row(self) -> (i64, &'static str) {
        TABLE.iter().find(|(a, ..)| *a == self).map_or((0, "?"), |(_, n, name)| (*n, *name))
    }

    /// The verifier for this algorithm, if keys of this material go with it.
    pub(super) fn verifier(
        self,
        material: &Material,
    ) -> Option<&'static dyn lc::VerificationAlgorithm> {
        Some(match (self, material) {
            (Self::Es256 | Self::Esp256, Material::Ec { curve: Curve::P256, .. }) => {
                &lc::ECDSA_P256_SHA256_FIXED
            }
            (Self::Es384 | Self::Esp384, Material::Ec { curve: Curve::P384, .. }) => {
                &lc::ECDSA_P384_SHA384_FIXED
            }
            (Self::Es512 | Self::Esp512, Material::Ec { curve: Curve::P521, .. }) => {
                &lc::ECDSA_P521_SHA512_FIXED
            }
            (Self::EdDsa | Self::Ed25519, Material::Ed25519(_)) => &lc::ED25519,
            (Self::Ps256, Material::Rsa { .. }) => &lc::RSA_PSS_2048_8192_SHA256,
            (Self::Ps384, Material::Rsa { .. }) => &lc::RSA_PSS_2048_8192_SHA384,
            (Self::Ps512, Material::Rsa { .. }) => &lc::RSA_PSS_2048_8192_SHA512,
            (Self::MlDsa44, Material::MlDsa { algorithm: Self::MlDsa44, .. }) => &lc::ML_DSA_44,
            (Self::MlDsa65, Material::MlDsa { algorithm: Self::MlDsa65, .. }) => &lc::ML_DSA_65,
            _ => return None,
        })
    }
}
