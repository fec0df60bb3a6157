//! COSE_Key (RFC 9052, 7), read and written.
//!
//! ```cddl
//! COSE_Key = EC2 / OKP / RSA / AKP
//! EC2 = { 1 => 2, ? 2 => bstr, ? 3 => int, -1 => 1..3, -2 => bstr, -3 => bstr }  ; crv, x, y
//! OKP = { 1 => 1, ? 2 => bstr, ? 3 => int, -1 => 6, -2 => bstr }                 ; crv, x
//! RSA = { 1 => 3, ? 2 => bstr, ? 3 => int, -1 => bstr, -2 => bstr }              ; n, e
//! AKP = { 1 => 7, ? 2 => bstr, 3 => int, -1 => bstr }                            ; pub
//! COSE_KeySet = [+ COSE_Key]
//! ```
//! Labels 2 and 3 are the key id and the algorithm.

use super::public::{Curve, Material, PublicKey};
use super::{Algorithm, Error};
use crate::wire::cbor::{self, Value};
use crate::wire::label::cose_key as label;

/// The number of the curve.
const ED25519: i64 = 6;

impl PublicKey {
    /// Reads a COSE_Key.
    pub fn from_cose_key(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_cose_value(&Value::read(bytes).map_err(Error::CoseKey)?)
    }

    /// Reads a COSE_Key that is already decoded.
    pub fn from_cose_value(key: &Value<'_>) -> Result<Self, Error> {
        let missing = |member| Error::CoseKeyMember { member };
        let bytes = |at: i64, member| {
            key.get(at).and_then(Value::bytes).map(<[u8]>::to_vec).ok_or(missing(member))
        };
        let curve = || key.get(label::CRV).and_then(Value::int::<i64>).ok_or(missing("curve (-1)"));
        match key.get(label::KTY).and_then(Value::int::<i64>).ok_or(missing("key type (1)"))? {
            label::KTY_OKP if curve()? == ED25519 => {
                Self::from_ed25519(&bytes(label::X, "x (-2)")?)
            }
            label::KTY_EC2 => {
                let curve = Curve::from_cose(curve()?).ok_or(missing("curve (-1)"))?;
                if matches!(key.get(label::Y), Some(Value::Bool(_))) {
                    return Err(Error::CompressedPoint);
                }
                Self::new(Material::Ec {
                    curve,
                    x: bytes(label::X, "x (-2)")?,
                    y: bytes(label::Y, "y (-3)")?,
                })
            }
            label::KTY_RSA => Self::new(Material::Rsa {
                n: bytes(label::N, "n (-1)")?,
                e: bytes(label::E, "e (-2)")?,
            }),
            label::KTY_AKP => {
                let algorithm = key
                    .get(label::ALG)
                    .and_then(Value::int::<i64>)
                    .and_then(Algorithm::from_cose)
                    .ok_or(missing("algorithm (3)"))?;
                Self::new(Material::MlDsa { algorithm, bytes: bytes(label::PUB, "pub (-1)")? })
            }
            other => Err(Error::UnsupportedKind { kind: format!("COSE {other}") }),
        }
    }

    /// Writes the key with its thumbprint as `kid` and its algorithm.
    pub fn to_cose_key(&self) -> Vec<u8> {
        let mut entries = members(self.material());
        let id = self.id();
        entries.insert(1, (Value::Int(label::KID.into()), Value::Bytes(id.as_bytes())));
        if !matches!(self.material(), Material::MlDsa { .. })
            && let Some(algorithm) = self.default_algorithm()
        {
            entries.insert(2, (Value::Int(label::ALG.into()), Value::Int(algorithm.cose().into())));
        }
        Value::Map(entries).encode()
    }
}

/// The members a thumbprint covers, in deterministic order (RFC 9679, 4).
pub(super) fn required_members(material: &Material) -> Vec<u8> {
    Value::Map(members(material)).encode()
}

fn members(material: &Material) -> Vec<(Value<'_>, Value<'_>)> {
    fn int<'a>(label: i64, value: i64) -> (Value<'a>, Value<'a>) {
        (Value::Int(label.into()), Value::Int(value.into()))
    }
    fn bytes(label: i64, value: &[u8]) -> (Value<'_>, Value<'_>) {
        (Value::Int(label.into()), Value::Bytes(value))
    }
    let kty = |number| int(label::KTY, number);
    match material {
        Material::Ec { curve, x, y } => vec![
            kty(label::KTY_EC2),
            int(label::CRV, curve.cose()),
            bytes(label::X, x),
            bytes(label::Y, y),
        ],
        Material::Ed25519(x) => {
            vec![kty(label::KTY_OKP), int(label::CRV, ED25519), bytes(label::X, x)]
        }
        Material::MlDsa { algorithm, bytes: key } => {
            vec![kty(label::KTY_AKP), int(label::ALG, algorithm.cose()), bytes(label::PUB, key)]
        }
        Material::Rsa { n, e } => {
            vec![kty(label::KTY_RSA), bytes(label::N, n), bytes(label::E, e)]
        }
    }
}

/// A COSE_KeySet.
pub fn key_set<'a>(keys: impl ExactSizeIterator<Item = &'a PublicKey>) -> Vec<u8> {
    let mut out = Vec::new();
    cbor::array(&mut out, keys.len());
    for key in keys {
        out.extend(key.to_cose_key());
    }
    out
}
