//! COSE_Key (RFC 9052, 7), read and written.
//!
//! EC2 `{1: 2, ? 2: kid, ? 3: alg, -1: crv, -2: x, -3: y}`,
//! OKP `{1: 1, ? 2: kid, ? 3: alg, -1: 6, -2: x}`,
//! RSA `{1: 3, -1: n, -2: e}`, AKP `{1: 7, 3: alg, -1: pub}`.

use super::public::{Curve, Material, PublicKey};
use super::{Algorithm, Error};
use crate::wire::cbor::{self, Value};

const ED25519: i64 = 6;

impl PublicKey {
    /// Reads a COSE_Key.
    pub fn from_cose_key(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_cose_value(&Value::read(bytes).map_err(Error::CoseKey)?)
    }

    /// Reads a COSE_Key that is already decoded.
    pub fn from_cose_value(key: &Value<'_>) -> Result<Self, Error> {
        let missing = |member| Error::CoseKeyMember { member };
        let bytes = |label: i64, member| {
            key.get(label).and_then(Value::bytes).map(<[u8]>::to_vec).ok_or(missing(member))
        };
        let curve = || key.get(-1).and_then(Value::int::<i64>).ok_or(missing("curve (-1)"));
        match key.get(1).and_then(Value::int::<i64>).ok_or(missing("key type (1)"))? {
            1 if curve()? == ED25519 => Self::from_ed25519(&bytes(-2, "x (-2)")?),
            2 => {
                let curve = Curve::from_cose(curve()?).ok_or(missing("curve (-1)"))?;
                if matches!(key.get(-3), Some(Value::Bool(_))) {
                    return Err(Error::CompressedPoint);
                }
                Self::new(Material::Ec { curve, x: bytes(-2, "x (-2)")?, y: bytes(-3, "y (-3)")? })
            }
            3 => Self::new(Material::Rsa { n: bytes(-1, "n (-1)")?, e: bytes(-2, "e (-2)")? }),
            7 => {
                let algorithm = key
                    .get(3)
                    .and_then(Value::int::<i64>)
                    .and_then(Algorithm::from_cose)
                    .ok_or(missing("algorithm (3)"))?;
                Self::new(Material::MlDsa { algorithm, bytes: bytes(-1, "pub (-1)")? })
            }
            other => Err(Error::UnsupportedKind { kind: format!("COSE {other}") }),
        }
    }

    /// Writes the key with its thumbprint as `kid` and its algorithm.
    pub fn to_cose_key(&self) -> Vec<u8> {
        let mut entries = members(self.material());
        let id = self.id();
        entries.insert(1, (Value::Int(2), Value::Bytes(id.as_bytes())));
        if !matches!(self.material(), Material::MlDsa { .. })
            && let Some(algorithm) = self.default_algorithm()
        {
            entries.insert(2, (Value::Int(3), Value::Int(algorithm.cose().into())));
        }
        Value::Map(entries).encode()
    }
}

/// The members a thumbprint covers, in deterministic order (RFC 9679, 4).
pub(super) fn required_members(material: &Material) -> Vec<u8> {
    Value::Map(members(material)).encode()
}

fn members(material: &Material) -> Vec<(Value<'_>, Value<'_>)> {
    let int = |label: i64, value: i64| (Value::Int(label.into()), Value::Int(value.into()));
    match material {
        Material::Ec { curve, x, y } => vec![
            int(1, 2),
            int(-1, curve.cose()),
            (Value::Int(-2), Value::Bytes(x)),
            (Value::Int(-3), Value::Bytes(y)),
        ],
        Material::Ed25519(x) => {
            vec![int(1, 1), int(-1, ED25519), (Value::Int(-2), Value::Bytes(x))]
        }
        Material::MlDsa { algorithm, bytes } => {
            vec![int(1, 7), int(3, algorithm.cose()), (Value::Int(-1), Value::Bytes(bytes))]
        }
        Material::Rsa { n, e } => {
            vec![int(1, 3), (Value::Int(-1), Value::Bytes(n)), (Value::Int(-2), Value::Bytes(e))]
        }
    }
}

/// A COSE_KeySet (RFC 9052, 7): an array of keys.
pub fn key_set<'a>(keys: impl ExactSizeIterator<Item = &'a PublicKey>) -> Vec<u8> {
    let mut out = Vec::new();
    cbor::array(&mut out, keys.len());
    for key in keys {
        out.extend(key.to_cose_key());
    }
    out
}
