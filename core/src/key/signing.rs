//! Private keys.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self as lc, KeyPair as _};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;

use super::public::{PublicKey, pem};
use super::{Algorithm, Error};

/// A private key that signs with one algorithm.
pub struct SigningKey {
    pair: Pair,
    algorithm: Algorithm,
    public: PublicKey,
}

enum Pair {
    Ecdsa(lc::EcdsaKeyPair),
    Ed25519(lc::Ed25519KeyPair),
}

impl SigningKey {
    /// Makes a new key. This and ECDSA nonces are the only randomness of the
    /// pure half; both come from inside the library.
    pub fn generate(algorithm: Algorithm) -> Result<Self, Error> {
        let unsupported = || Error::UnsupportedKind { kind: algorithm.name().to_owned() };
        let pair = match algorithm {
            Algorithm::Es256 => {
                lc::EcdsaKeyPair::generate(&lc::ECDSA_P256_SHA256_FIXED_SIGNING).map(Pair::Ecdsa)
            }
            Algorithm::Es384 => {
                lc::EcdsaKeyPair::generate(&lc::ECDSA_P384_SHA384_FIXED_SIGNING).map(Pair::Ecdsa)
            }
            Algorithm::EdDsa => lc::Ed25519KeyPair::generate().map(Pair::Ed25519),
            _ => return Err(unsupported()),
        };
        Self::new(pair.map_err(|_| unsupported())?, algorithm)
    }

    /// Reads a PKCS#8 `PRIVATE KEY` in PEM.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| Error::NotPem { expected: "PKCS#8 private key" })?;
        Self::from_pkcs8(der.secret_pkcs8_der())
    }

    /// Reads a PKCS#8 key in DER.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, Error> {
        let ecdsa = [
            (&lc::ECDSA_P256_SHA256_FIXED_SIGNING, Algorithm::Es256),
            (&lc::ECDSA_P384_SHA384_FIXED_SIGNING, Algorithm::Es384),
        ];
        for (signing, algorithm) in ecdsa {
            if let Ok(pair) = lc::EcdsaKeyPair::from_pkcs8(signing, der) {
                return Self::new(Pair::Ecdsa(pair), algorithm);
            }
        }
        match lc::Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            Ok(pair) => Self::new(Pair::Ed25519(pair), Algorithm::EdDsa),
            Err(_) => {
                Err(Error::NotPem { expected: "PKCS#8 private key of P-256, P-384 or Ed25519" })
            }
        }
    }

    fn new(pair: Pair, algorithm: Algorithm) -> Result<Self, Error> {
        let public = match &pair {
            Pair::Ecdsa(pair) => {
                let point = pair.public_key().as_ref().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                let curve = match algorithm {
                    Algorithm::Es384 => super::Curve::P384,
                    _ => super::Curve::P256,
                };
                PublicKey::new(super::Material::Ec { curve, x: x.to_vec(), y: y.to_vec() })?
            }
            Pair::Ed25519(pair) => PublicKey::from_ed25519(pair.public_key().as_ref())?,
        };
        Ok(Self { pair, algorithm, public })
    }

    /// The key as PKCS#8 PEM; a secret.
    pub fn to_pem(&self) -> Result<String, Error> {
        let der = match &self.pair {
            Pair::Ecdsa(pair) => pair.to_pkcs8v1(),
            Pair::Ed25519(pair) => pair.to_pkcs8v1(),
        };
        let der = der.map_err(|_| Error::InvalidMaterial { kind: "private" })?;
        Ok(pem("PRIVATE KEY", der.as_ref()))
    }

    /// The public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The algorithm it signs with.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// A COSE signature over `message`.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        match &self.pair {
            Pair::Ecdsa(pair) => pair
                .sign(&SystemRandom::new(), message)
                .map(|s| s.as_ref().to_vec())
                .map_err(|_| Error::InvalidMaterial { kind: "private" }),
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

/// Secrets do not print.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.id())
    }
}
