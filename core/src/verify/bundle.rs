//! A bundle: a statement with everything needed to see, without any network,
//! that it was logged and why it was admitted.
//!
//! `{0: "capstan-bundle-1", 1: statement, 2: policy entry, 3: trust entry,
//! 4: [earlier records], 5: checkpoint, 6: collateral, 7: registration time}`;
//! all statements are Transparent Statements, each with its own receipt. All
//! receipts are of the head that the checkpoint is of, so that parts of two logs,
//! or of two histories of one, cannot be put together.

mod admission;
mod judge;

use crate::wire::cbor::{self, Value};
use crate::wire::time::UnixSeconds;

pub(super) use judge::report;

const KIND: &str = "capstan-bundle-1";

/// What a bundle holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bundle {
    /// The Transparent Statement it is about.
    pub statement: Vec<u8>,
    /// The policy entry in force at its turn.
    pub policy: Vec<u8>,
    /// The trust entry in force at its turn.
    pub trust: Vec<u8>,
    /// The records its chain leads back to, its predecessors, and the batch
    /// its session goes on from, oldest first.
    pub chain: Vec<Vec<u8>>,
    /// A checkpoint of the head that all receipts are of.
    pub checkpoint: String,
    /// What else authentication needed. Nobody signed it.
    pub collateral: Vec<u8>,
    /// When the log says it registered it. Nobody signed it.
    pub time: UnixSeconds,
}

impl Bundle {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        cbor::map(&mut out, 8);
        cbor::int(&mut out, 0);
        cbor::text(&mut out, KIND);
        for (label, bytes) in [(1, &self.statement), (2, &self.policy), (3, &self.trust)] {
            cbor::int(&mut out, label);
            cbor::bytes(&mut out, bytes);
        }
        cbor::int(&mut out, 4);
        cbor::array(&mut out, self.chain.len());
        self.chain.iter().for_each(|record| cbor::bytes(&mut out, record));
        cbor::int(&mut out, 5);
        cbor::text(&mut out, &self.checkpoint);
        cbor::int(&mut out, 6);
        cbor::bytes(&mut out, &self.collateral);
        cbor::int(&mut out, 7);
        cbor::int(&mut out, self.time.seconds());
        out
    }

    /// Reads a file that is one, without judging it.
    pub fn open(bytes: &[u8]) -> Option<Self> {
        let value = Value::read(bytes).ok()?;
        if Self::is_one(&value) { Self::read(&value) } else { None }
    }

    /// Whether a file says that it is one.
    pub(super) fn is_one(value: &Value<'_>) -> bool {
        value.get(0).and_then(Value::text) == Some(KIND)
    }

    fn read(value: &Value<'_>) -> Option<Self> {
        let bytes = |label: i64| Some(value.get(label)?.bytes()?.to_vec());
        let chain = value.get(4)?.array()?.iter().map(|one| Some(one.bytes()?.to_vec()));
        Some(Self {
            statement: bytes(1)?,
            policy: bytes(2)?,
            trust: bytes(3)?,
            chain: chain.collect::<Option<_>>()?,
            checkpoint: value.get(5)?.text()?.to_owned(),
            collateral: bytes(6)?,
            time: UnixSeconds::new(value.get(7)?.int()?),
        })
    }
}
