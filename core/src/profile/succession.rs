//! The statement by which a log's key names the next one.
//!
//! `{1: new COSE_Key, 2: old kid, 3: signature of the new key}`; the signature
//! covers both kids, so neither key can be put in another's place.

use crate::key::{self, KeyId, PublicKey, SigningKey};
use crate::wire::cbor::{self, Value};

/// A succession to which the new key has agreed. Whether the old key has is
/// told by the signature of the statement around it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Succession {
    old: [u8; 32],
    /// The key that takes over.
    pub new: PublicKey,
}

impl Succession {
    /// The payload by which `new` follows `old`.
    pub fn encode(old: KeyId, new: &SigningKey) -> Result<Vec<u8>, key::Error> {
        let mut out = Vec::new();
        cbor::map(&mut out, 3);
        cbor::int(&mut out, 1);
        out.extend(new.public().to_cose_key());
        cbor::int(&mut out, 2);
        cbor::bytes(&mut out, old.as_bytes());
        cbor::int(&mut out, 3);
        cbor::bytes(&mut out, &new.sign(&message(old.as_bytes(), new.public().id()))?);
        Ok(out)
    }

    /// Reads a payload; the detail says what is wrong with it.
    pub fn read(payload: &[u8]) -> Result<Self, &'static str> {
        let value = Value::read(payload).map_err(|_| "it is not strict CBOR")?;
        let new = value.get(1).ok_or("it names no key")?;
        let new = PublicKey::from_cose_value(new).map_err(|_| "its key cannot be read")?;
        let bytes = |label: i64| value.get(label).and_then(Value::bytes).unwrap_or_default();
        let old = bytes(2).try_into().map_err(|_| "it names no key to follow")?;
        let algorithm = new.default_algorithm().ok_or("its key cannot sign")?;
        let agreed = new.verify(algorithm, &message(&old, new.id()), bytes(3));
        agreed.map_err(|_| "the new key does not agree")?;
        Ok(Self { old, new })
    }

    /// Whether it goes on from this key.
    pub fn follows(&self, key: &PublicKey) -> bool {
        self.old == *key.id().as_bytes()
    }
}

/// What a new key signs to show that it agrees.
fn message(old: &[u8; 32], new: KeyId) -> Vec<u8> {
    [b"capstan succession v1".as_slice(), old, new.as_bytes()].concat()
}
