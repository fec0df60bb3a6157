//! The head record: one small value that is the log.

use crate::log::{Frontier, TreeSize};
use crate::receipt::Head;
use crate::wire::cbor::{self, Value};
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

/// Size, root and frontier after a commit. Everything else in the store is
/// derived from the statements and can be made again.
///
/// `[root, time, frontier, digest of the record before, digest of the four]`;
/// records of early logs have no digest of themselves.
#[derive(Clone, Debug)]
pub struct HeadRecord {
    frontier: Frontier,
    root: Digest,
    time: UnixSeconds,
    previous: Digest,
}

impl HeadRecord {
    /// The record of a log that holds nothing.
    pub fn empty() -> Self {
        let frontier = Frontier::empty();
        let previous = Digest::of(b"");
        Self { root: frontier.root(), frontier, time: UnixSeconds::default(), previous }
    }

    /// The record after this one. Time never runs backwards in a log.
    pub fn next(&self, frontier: Frontier, now: UnixSeconds) -> Self {
        let previous = self.digest();
        Self { root: frontier.root(), frontier, time: self.time.max(now), previous }
    }

    /// The number of leaves.
    pub fn size(&self) -> TreeSize {
        self.frontier.size()
    }

    /// The Merkle root.
    pub fn root(&self) -> Digest {
        self.root
    }

    /// When the commit was made.
    pub fn time(&self) -> UnixSeconds {
        self.time
    }

    /// The peaks the next commit grows from.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// What is signed of it.
    pub fn head(&self) -> Head {
        Head { size: self.size(), root: self.root, time: self.time }
    }

    /// What the next record and the next commit name it by.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.encode())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let fields = self.fields();
        let mut out = Vec::new();
        cbor::array(&mut out, 5);
        out.extend_from_slice(&fields);
        cbor::bytes(&mut out, Digest::of(&fields).as_bytes());
        out
    }

    fn fields(&self) -> Vec<u8> {
        let mut out = Vec::new();
        cbor::bytes(&mut out, self.root.as_bytes());
        cbor::int(&mut out, self.time.seconds());
        cbor::bytes(&mut out, &self.frontier.encode());
        cbor::bytes(&mut out, self.previous.as_bytes());
        out
    }

    /// Reads a record; its root must be the one its frontier gives, and its
    /// digest its own.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let value = Value::read(bytes).ok()?;
        let (root, time, frontier, previous, own) = match value.array()? {
            [root, time, frontier, previous] => (root, time, frontier, previous, None),
            [root, time, frontier, previous, own] => (root, time, frontier, previous, Some(own)),
            _ => return None,
        };
        let record = Self {
            root: Digest::from_slice(root.bytes()?)?,
            time: UnixSeconds::new(time.int()?),
            frontier: Frontier::decode(frontier.bytes()?).ok()?,
            previous: Digest::from_slice(previous.bytes()?)?,
        };
        let digest = Digest::of(&record.fields());
        let is_own = own.is_none_or(|own| own.bytes() == Some(digest.as_bytes().as_slice()));
        (is_own && record.frontier.root() == record.root).then_some(record)
    }
}
