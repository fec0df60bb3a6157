//! A bundle: a statement with everything needed to check offline that it was
//! logged and why it was admitted.
//!
//! ```cddl
//! bundle = {
//!   0 => "capstan-bundle-1",
//!   1 => bstr,       ; the statement
//!   2 => bstr,       ; the policy entry
//!   3 => bstr,       ; the trust entry
//!   4 => [* bstr],   ; earlier records, oldest first
//!   5 => tstr,       ; a checkpoint
//!   6 => bstr,       ; collateral
//!   7 => uint,       ; the registration time, seconds since 1970
//! }
//! ```
//!
//! Every statement is a Transparent Statement with a receipt of its own. All
//! receipts are for the tree head of the checkpoint, so parts of two logs, or
//! of two histories of one log, cannot be combined.

mod admission;
mod check;

use crate::wire::cbor::{self, Value};
use crate::wire::time::UnixSeconds;

pub(super) use check::report;

const KIND: &str = "capstan-bundle-1";

mod label {
    pub(super) const KIND: i64 = 0;
    pub(super) const STATEMENT: i64 = 1;
    pub(super) const POLICY: i64 = 2;
    pub(super) const TRUST: i64 = 3;
    pub(super) const CHAIN: i64 = 4;
    pub(super) const CHECKPOINT: i64 = 5;
    pub(super) const COLLATERAL: i64 = 6;
    pub(super) const TIME: i64 = 7;
}

/// The content of a bundle.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bundle {
    /// The Transparent Statement it is about.
    pub statement: Vec<u8>,
    /// The policy entry in effect when it was registered.
    pub policy: Vec<u8>,
    /// The trust entry in effect when it was registered.
    pub trust: Vec<u8>,
    /// The records of its chain, its predecessors, and the batch its session
    /// continues, oldest first.
    pub chain: Vec<Vec<u8>>,
    /// A checkpoint of the tree head that all receipts are for.
    pub checkpoint: String,
    /// What else authentication needed. Unsigned.
    pub collateral: Vec<u8>,
    /// When the log claims to have registered it. Unsigned.
    pub time: UnixSeconds,
}

impl Bundle {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        cbor::map(&mut out, 8);
        cbor::int(&mut out, label::KIND);
        cbor::text(&mut out, KIND);
        cbor::int(&mut out, label::STATEMENT);
        cbor::bytes(&mut out, &self.statement);
        cbor::int(&mut out, label::POLICY);
        cbor::bytes(&mut out, &self.policy);
        cbor::int(&mut out, label::TRUST);
        cbor::bytes(&mut out, &self.trust);
        cbor::int(&mut out, label::CHAIN);
        cbor::array(&mut out, self.chain.len());
        self.chain.iter().for_each(|record| cbor::bytes(&mut out, record));
        cbor::int(&mut out, label::CHECKPOINT);
        cbor::text(&mut out, &self.checkpoint);
        cbor::int(&mut out, label::COLLATERAL);
        cbor::bytes(&mut out, &self.collateral);
        cbor::int(&mut out, label::TIME);
        cbor::int(&mut out, self.time.seconds());
        out
    }

    /// Reads a bundle without verifying it.
    pub fn open(bytes: &[u8]) -> Option<Self> {
        let value = Value::read(bytes).ok()?;
        if Self::is_bundle(&value) { Self::read(&value) } else { None }
    }

    /// Whether this is a map that says it is a bundle.
    pub(super) fn is_bundle(value: &Value<'_>) -> bool {
        value.get(label::KIND).and_then(Value::text) == Some(KIND)
    }

    fn read(value: &Value<'_>) -> Option<Self> {
        let bytes = |label: i64| Some(value.get(label)?.bytes()?.to_vec());
        let chain = value.get(label::CHAIN)?.array()?.iter().map(|one| Some(one.bytes()?.to_vec()));
        Some(Self {
            statement: bytes(label::STATEMENT)?,
            policy: bytes(label::POLICY)?,
            trust: bytes(label::TRUST)?,
            chain: chain.collect::<Option<_>>()?,
            checkpoint: value.get(label::CHECKPOINT)?.text()?.to_owned(),
            collateral: bytes(label::COLLATERAL)?,
            time: UnixSeconds::new(value.get(label::TIME)?.int()?),
        })
    }
}
