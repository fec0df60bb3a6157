//! Statements with any part changed, for tests here and in other crates.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use ciborium::Value;

use super::sig_structure;
use crate::key::{Algorithm, PublicKey, SigningKey};
use crate::wire::time::UnixSeconds;

/// 2026-06-01T00:00:00Z.
pub const NOW: UnixSeconds = UnixSeconds::new(1_780_272_000);
pub const ISSUER: &str = "https://agent.example";
pub const SUBJECT: &str = "urn:example:run:1";

/// A statement before it is signed, every part open to change.
#[derive(Clone)]
pub struct Sketch {
    pub protected: Vec<(Value, Value)>,
    pub unprotected: Vec<(Value, Value)>,
    pub payload: Value,
}

/// A new ES256 key.
pub fn es256() -> SigningKey {
    SigningKey::generate(Algorithm::Es256).unwrap()
}

/// A new Ed25519 key.
pub fn ed25519() -> SigningKey {
    SigningKey::generate(Algorithm::EdDsa).unwrap()
}

impl Sketch {
    /// A good statement with only a kid, for a key somebody has pinned.
    pub fn new(key: &SigningKey) -> Self {
        let claims = vec![(1.into(), ISSUER.into()), (2.into(), SUBJECT.into())];
        Self {
            protected: vec![
                (1.into(), key.algorithm().cose().into()),
                (3.into(), "application/json".into()),
                (4.into(), bytes(key.public().id().as_bytes())),
                (15.into(), Value::Map(claims)),
            ],
            unprotected: Vec::new(),
            payload: bytes(b"{}"),
        }
    }

    /// The same with the key in the confirmation claim.
    pub fn self_certified(key: &SigningKey) -> Self {
        Self::new(key).claim(8, cnf(key.public()))
    }

    /// With another value under a protected label.
    pub fn with(mut self, label: impl Into<Value>, value: impl Into<Value>) -> Self {
        put(&mut self.protected, label.into(), Some(value.into()));
        self
    }

    /// Without a protected label.
    pub fn without(mut self, label: i64) -> Self {
        put(&mut self.protected, label.into(), None);
        self
    }

    /// With another value for a CWT claim.
    pub fn claim(mut self, claim: i64, value: impl Into<Value>) -> Self {
        put(self.claims(), claim.into(), Some(value.into()));
        self
    }

    /// With a CWT claim labelled by text, before all others.
    pub fn named(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.claims().insert(0, (name.into(), value.into()));
        self
    }

    /// Without a CWT claim.
    pub fn without_claim(mut self, claim: i64) -> Self {
        put(self.claims(), claim.into(), None);
        self
    }

    fn claims(&mut self) -> &mut Vec<(Value, Value)> {
        let claims = self.protected.iter_mut().find(|(label, _)| *label == 15.into());
        claims.and_then(|(_, claims)| claims.as_map_mut()).unwrap()
    }

    /// With an unprotected label.
    pub fn unprotected(mut self, label: impl Into<Value>, value: impl Into<Value>) -> Self {
        put(&mut self.unprotected, label.into(), Some(value.into()));
        self
    }

    /// With another payload.
    pub fn payload(mut self, payload: &[u8]) -> Self {
        self.payload = bytes(payload);
        self
    }

    pub fn sign(&self, key: &SigningKey) -> Vec<u8> {
        self.sign_with(|message| key.sign(message).unwrap())
    }

    pub fn sign_with(&self, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
        self.assemble(encode(&Value::Map(self.protected.clone())), sign)
    }

    /// With protected bytes of any kind, signed as they are.
    pub fn assemble(&self, protected: Vec<u8>, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let payload = self.payload.as_bytes().cloned().unwrap_or_default();
        let signature = sign(&sig_structure(&protected, &payload));
        let parts = vec![
            Value::Bytes(protected),
            Value::Map(self.unprotected.clone()),
            self.payload.clone(),
            Value::Bytes(signature),
        ];
        encode(&Value::Tag(18, Box::new(Value::Array(parts))))
    }
}

fn put(map: &mut Vec<(Value, Value)>, label: Value, value: Option<Value>) {
    let place = map.iter().position(|(l, _)| *l == label);
    match (place, value) {
        (Some(at), Some(value)) => map[at].1 = value,
        (Some(at), None) => drop(map.remove(at)),
        (None, Some(value)) => map.push((label, value)),
        (None, None) => panic!("there is no {label:?} to remove"),
    }
}

/// A confirmation claim with this key.
pub fn cnf(key: &PublicKey) -> Value {
    Value::Map(vec![(1.into(), decode(&key.to_cose_key()))])
}

/// A byte string.
pub fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.to_vec())
}

pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    ciborium::into_writer(value, &mut out).unwrap();
    out
}

pub fn decode(bytes: &[u8]) -> Value {
    ciborium::from_reader(bytes).unwrap()
}
