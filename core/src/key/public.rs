//! Public keys.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature as lc;
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::FromDer;
use x509_parser::x509::AlgorithmIdentifier;

use super::{Algorithm, Error, KeyId};
use crate::wire::digest::Digest;
use crate::wire::text;

/// A curve of ECDSA.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Curve {
    /// NIST P-256.
    P256,
    /// NIST P-384.
    P384,
    /// NIST P-521.
    P521,
}

impl Curve {
    /// Bytes of one coordinate.
    pub fn coordinate_len(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    pub(super) fn cose(self) -> i64 {
        match self {
            Self::P256 => 1,
            Self::P384 => 2,
            Self::P521 => 3,
        }
    }

    pub(super) fn from_cose(number: i64) -> Option<Self> {
        [Self::P256, Self::P384, Self::P521].into_iter().find(|c| c.cose() == number)
    }

    /// Its name in a SubjectPublicKeyInfo (RFC 5480, 2.1.1.1).
    fn oid(self) -> &'static str {
        match self {
            Self::P256 => "1.2.840.10045.3.1.7",
            Self::P384 => "1.3.132.0.34",
            Self::P521 => "1.3.132.0.35",
        }
    }

    /// DER up to the point of a SubjectPublicKeyInfo on this curve.
    fn spki_prefix(self) -> &'static str {
        match self {
            Self::P256 => "3059301306072a8648ce3d020106082a8648ce3d030107034200",
            Self::P384 => "3076301006072a8648ce3d020106052b81040022036200",
            Self::P521 => "30819b301006072a8648ce3d020106052b8104002303818600",
        }
    }
}

const ED25519_SPKI_PREFIX: &str = "302a300506032b6570032100";

/// What a public key is made of.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Material {
    /// An uncompressed point, without its 0x04.
    Ec { curve: Curve, x: Vec<u8>, y: Vec<u8> },
    /// An Ed25519 key.
    Ed25519([u8; 32]),
    /// An ML-DSA key of the level its algorithm names.
    MlDsa { algorithm: Algorithm, bytes: Vec<u8> },
    /// Modulus and exponent, big-endian without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
}

/// A public key that the library has accepted as one. Cheap to clone: every
/// statement carries the one it was verified with.
#[derive(Clone)]
pub struct PublicKey {
    material: Arc<Material>,
    id: KeyId,
    parsed: Arc<[(Algorithm, lc::ParsedPublicKey)]>,
}

impl PublicKey {
    /// Checks key material.
    pub fn new(material: Material) -> Result<Self, Error> {
        let invalid = || Error::InvalidMaterial { kind: kind(&material) };
        let encoded = library_form(&material).ok_or_else(invalid)?;
        let parsed: Vec<_> = Algorithm::all()
            .filter_map(|a| a.verifier(&material).map(|v| (a, v)))
            .map(|(a, v)| Ok((a, lc::ParsedPublicKey::new(v, &encoded).map_err(|_| invalid())?)))
            .collect::<Result<_, Error>>()?;
        // A COSE_Key can name an algorithm that its kind does not have.
        if parsed.is_empty() {
            return Err(invalid());
        }
        let id = KeyId(Digest::of(&super::cose_key::required_members(&material)));
        Ok(Self { material: Arc::new(material), id, parsed: parsed.into() })
    }

    /// Takes the raw 32 bytes of an Ed25519 key.
    pub fn from_ed25519(bytes: &[u8]) -> Result<Self, Error> {
        let key = bytes.try_into().map_err(|_| Error::InvalidMaterial { kind: "Ed25519" })?;
        Self::new(Material::Ed25519(key))
    }

    /// Reads a DER SubjectPublicKeyInfo.
    pub fn from_spki(der: &[u8]) -> Result<Self, Error> {
        use x509_parser::public_key::PublicKey as Parsed;
        const EXPECTED: Error = Error::NotPem { expected: "public key" };
        let (rest, spki) =
            x509_parser::x509::SubjectPublicKeyInfo::from_der(der).map_err(|_| EXPECTED)?;
        if !rest.is_empty() || spki.subject_public_key.unused_bits != 0 {
            return Err(EXPECTED);
        }
        let bytes = &*spki.subject_public_key.data;
        match spki.parsed() {
            Ok(Parsed::EC(point)) => Self::from_point(named_curve(&spki.algorithm)?, point.data()),
            Ok(Parsed::RSA(rsa)) => Self::new(Material::Rsa {
                n: strip_zeros(rsa.modulus).to_vec(),
                e: strip_zeros(rsa.exponent).to_vec(),
            }),
            _ => match spki.algorithm.algorithm.to_id_string().as_str() {
                "1.3.101.112" => Self::from_ed25519(bytes),
                "2.16.840.1.101.3.4.3.17" => Self::from_ml_dsa(Algorithm::MlDsa44, bytes),
                "2.16.840.1.101.3.4.3.18" => Self::from_ml_dsa(Algorithm::MlDsa65, bytes),
                other => Err(Error::UnsupportedKind { kind: other.to_owned() }),
            },
        }
    }

    fn from_ml_dsa(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, Error> {
        Self::new(Material::MlDsa { algorithm, bytes: bytes.to_vec() })
    }

    fn from_point(curve: Curve, point: &[u8]) -> Result<Self, Error> {
        let Some((4, xy)) = point.split_first() else { return Err(Error::CompressedPoint) };
        let (x, y) = xy.split_at(xy.len().min(curve.coordinate_len()));
        Self::new(Material::Ec { curve, x: x.to_vec(), y: y.to_vec() })
    }

    /// Reads a PEM `PUBLIC KEY`.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        let spki = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| Error::NotPem { expected: "public key" })?;
        Self::from_spki(&spki)
    }

    /// The key as PEM `PUBLIC KEY`, for the kinds we make ourselves.
    pub fn to_pem(&self) -> Option<String> {
        let (prefix, key) = match &*self.material {
            Material::Ec { curve, x, y } => {
                (curve.spki_prefix(), [&[4], x.as_slice(), y.as_slice()].concat())
            }
            Material::Ed25519(key) => (ED25519_SPKI_PREFIX, key.to_vec()),
            Material::MlDsa { .. } | Material::Rsa { .. } => return None,
        };
        let der = [text::from_hex(prefix)?, key].concat();
        Some(pem("PUBLIC KEY", &der))
    }

    /// The RFC 9679 thumbprint.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// What the key is made of.
    pub fn material(&self) -> &Material {
        &self.material
    }

    /// The 32 bytes of an Ed25519 key.
    pub fn raw_ed25519(&self) -> Option<&[u8]> {
        if let Material::Ed25519(key) = &*self.material { Some(key) } else { None }
    }

    /// The algorithm this kind of key signs with when nothing says otherwise.
    pub fn default_algorithm(&self) -> Option<Algorithm> {
        self.parsed.first().map(|(algorithm, _)| *algorithm)
    }

    /// Verifies a COSE signature (raw r and s for ECDSA).
    pub fn verify(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Error> {
        let (_, key) =
            self.parsed.iter().find(|(a, _)| *a == algorithm).ok_or(Error::AlgorithmMismatch {
                algorithm: algorithm.name(),
                key: kind(&self.material),
            })?;
        key.verify_sig(message, signature).map_err(|_| Error::SignatureInvalid)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", kind(&self.material), self.id)
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.material == other.material
    }
}

impl Eq for PublicKey {}

/// The curve that a key names; its length alone does not determine it.
fn named_curve(algorithm: &AlgorithmIdentifier<'_>) -> Result<Curve, Error> {
    let name = algorithm.parameters.as_ref().and_then(|named| named.as_oid().ok());
    let name = name.map(|oid| oid.to_id_string()).unwrap_or_default();
    let curve = [Curve::P256, Curve::P384, Curve::P521].into_iter().find(|c| c.oid() == name);
    curve.ok_or_else(|| Error::UnsupportedKind { kind: format!("EC {name}") })
}

/// PEM with 64 columns and a final newline.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let body = text::base64(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn kind(material: &Material) -> &'static str {
    match material {
        Material::Ec { curve: Curve::P256, .. } => "P-256",
        Material::Ec { curve: Curve::P384, .. } => "P-384",
        Material::Ec { curve: Curve::P521, .. } => "P-521",
        Material::Ed25519(_) => "Ed25519",
        Material::MlDsa { .. } => "ML-DSA",
        Material::Rsa { .. } => "RSA",
    }
}

/// The key in the encoding the library parses, if it is valid.
fn library_form(material: &Material) -> Option<Vec<u8>> {
    match material {
        Material::Ec { curve, x, y } => {
            let len = curve.coordinate_len();
            (x.len() == len && y.len() == len).then(|| [&[4], x.as_slice(), y.as_slice()].concat())
        }
        Material::Ed25519(key) => is_sound_ed25519(key).then(|| key.to_vec()),
        Material::MlDsa { bytes, .. } => Some(bytes.clone()),
        Material::Rsa { n, e } => {
            // RFC 8230, 4 and RFC 7518, 6.3.1; otherwise the key would have two ids.
            let is_shortest = |number: &[u8]| number.first().is_some_and(|byte| *byte != 0);
            (is_shortest(n) && is_shortest(e))
                .then(|| der(0x30, &[der_unsigned(n), der_unsigned(e)].concat()))
        }
    }
}

/// The y coordinates of the points of order 1, 2, 4 and 8, little-endian. Under
/// such a key anyone can make signatures that verify for many messages.
const SMALL_ORDER: [[u8; 32]; 5] = [
    [0; 32],
    with_ends(1, 0, 0),
    with_ends(0xec, 0xff, 0x7f),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
];

/// 32 bytes, all the same but the first and the last.
const fn with_ends(first: u8, between: u8, last: u8) -> [u8; 32] {
    let mut bytes = [between; 32];
    let [low, .., high] = &mut bytes;
    *low = first;
    *high = last;
    bytes
}

/// Whether an Ed25519 key is encoded as RFC 8032, 5.1.3 requires (y below
/// 2^255 - 19) and is not of small order. The library checks neither.
fn is_sound_ed25519(key: &[u8; 32]) -> bool {
    let mut y = *key;
    let [first, between @ .., last] = &mut y;
    *last &= 0x7f;
    let is_canonical = *last != 0x7f || *first < 0xed || between.iter().any(|byte| *byte != 0xff);
    is_canonical && !SMALL_ORDER.contains(&y)
}

fn der_unsigned(number: &[u8]) -> Vec<u8> {
    let sign: &[u8] = if number.first().is_none_or(|b| b & 0x80 != 0) { &[0] } else { &[] };
    der(2, &[sign, number].concat())
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes();
    let short = strip_zeros(&len);
    let head = match (short, short.len()) {
        ([], _) => vec![tag, 0],
        ([one], _) if *one < 0x80 => vec![tag, *one],
        (short, count) => [&[tag, 0x80 | u8::try_from(count).unwrap_or(4)], short].concat(),
    };
    [head, content.to_vec()].concat()
}

fn strip_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}
