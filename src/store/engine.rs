//! The seam under `Store`: an engine that keeps rows, and a place for objects.
//!
//! What a row means is known only above the seam, so `fsck`, `scrub` and every
//! lookup run on any engine. Calls are synchronous; an engine whose reads wait
//! for something slower than a disk says so, and `Store` keeps such waits away
//! from the threads of the async runtime.

use std::path::Path;

use super::{Error, HeadRecord};
use crate::wire::digest::Digest;

/// Where an engine that has no better place keeps the head record, in
/// `Space::Meta`.
pub(super) const HEAD: &str = "head";

/// One table of an engine.
///
/// | space      | key                       | value                       |
/// |------------|---------------------------|-----------------------------|
/// | statements | index, 8 bytes big-endian | `[S, collateral, time]`     |
/// | ids        | statement id, 32 bytes    | index, 8 bytes big-endian   |
/// | tiles      | level, index big-endian   | 256 hashes, 8192 bytes      |
/// | meta       | a word                    | head, keys, control indices |
/// | index      | see `index.rs`            |                             |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Space {
    /// Statements by index.
    Statements,
    /// Indices by statement id.
    Ids,
    /// Full tiles.
    Tiles,
    /// Keys of the service and control statements in force.
    Meta,
    /// The search index, which can be made again from the statements.
    Index,
}

impl Space {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Statements, Self::Ids, Self::Tiles, Self::Meta, Self::Index];

    /// Its name on disk and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Statements => "statements",
            Self::Ids => "ids",
            Self::Tiles => "tiles",
            Self::Meta => "meta",
            Self::Index => "index",
        }
    }
}

/// A row to be written.
pub struct Row {
    /// Where.
    pub space: Space,
    /// Under which key.
    pub key: Vec<u8>,
    /// What.
    pub value: Vec<u8>,
}

impl Row {
    /// A row that takes over the bytes it is given.
    pub fn new(space: Space, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self { space, key: key.into(), value: value.into() }
    }
}

/// A key and its value, as read.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// Keys from `from` up to, and without, `to`; to the last key without one.
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    /// The first key, inclusive.
    pub from: Vec<u8>,
    /// The end, exclusive.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self::default()
    }

    /// Keys that begin with these bytes.
    pub fn prefix(bytes: &[u8]) -> Self {
        let last = bytes.iter().rposition(|byte| *byte != u8::MAX);
        let to = last.map(|last| {
            let mut to: Vec<u8> = bytes.iter().take(last + 1).copied().collect();
            to.iter_mut().skip(last).for_each(|byte| *byte += 1);
            to
        });
        Self { from: bytes.to_vec(), to }
    }

    /// Whether no key can be in it.
    pub fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }
}

/// The order in which a scan returns rows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// The right to commit. Only `Engine::take_over` makes one, and the newest
/// one alone is valid.
#[derive(Debug)]
pub struct Lease {
    epoch: u64,
}

impl Lease {
    pub(super) fn new(epoch: u64) -> Self {
        Self { epoch }
    }

    /// Counts the leases of an engine.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// Why a commit is not known to be durable.
#[derive(Debug)]
pub enum CommitError {
    /// Another lease is in force, or the head is not the one the commit was
    /// made for. Nothing was written.
    Deposed,
    /// Nobody knows whether it was written: the process must end, and the next
    /// start find out.
    Unknown(Error),
}

/// A step in making the search index again.
pub enum Reindex {
    /// Empties the index. Its marker goes first, durably: an index that was
    /// emptied in part is never taken for a whole one.
    Clear,
    /// Adds rows, which need not be durable yet.
    Add(Vec<KeyValue>),
    /// Adds a last row, and makes it and everything before it durable.
    Finish(KeyValue),
}

/// What keeps the rows of one log.
///
/// Reads see every commit that returned. All methods may be called from several
/// threads at once.
pub trait Engine: Send + Sync {
    /// The head record of the last commit; none before the first.
    fn head(&self) -> Result<Option<HeadRecord>, Error>;

    /// The values of some keys, in their order.
    fn get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error>;

    /// The first `limit` rows of a range in a direction.
    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<KeyValue>, Error>;

    /// Makes the caller the one who commits. Leases given before are void.
    fn take_over(&self) -> Result<Lease, Error>;

    /// Writes all rows and the head `after`, or nothing, and returns once they
    /// are durable. `before` is the digest of the head record they follow.
    fn commit(
        &self,
        lease: &Lease,
        before: &Digest,
        after: &HeadRecord,
        rows: Vec<Row>,
    ) -> Result<(), CommitError>;

    /// Changes the search index outside a commit: its rows can be made again
    /// from the statements.
    fn reindex(&self, step: Reindex) -> Result<(), Error>;

    /// Whether reads wait for something slower than a local disk.
    fn reads_may_wait(&self) -> bool {
        false
    }

    /// Replaces or removes a row outside every rule, as damage does.
    #[cfg(test)]
    fn tamper(&self, space: Space, key: &[u8], value: Option<&[u8]>);
}

/// What an object was when it was read; only for comparing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Version(Digest);

impl Version {
    /// For places that have no versions of their own: the content tells.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Digest::of(bytes))
    }
}

/// What became of an object that was to be created.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Created {
    /// It is there now, durably.
    New(Version),
    /// There was one already, which was left alone.
    Exists,
}

/// A place for small objects: the guard, the published checkpoint.
pub trait Objects: Send + Sync {
    /// An object and its version; none when there is none. One that cannot be
    /// read is an error, never an absent one.
    fn get(&self, path: &Path) -> Result<Option<(Vec<u8>, Version)>, Error>;

    /// Writes an object that is not there yet.
    fn create(&self, path: &Path, bytes: &[u8]) -> Result<Created, Error>;

    /// Replaces an object atomically and durably, if it still is the one that
    /// was seen.
    fn replace(&self, path: &Path, bytes: &[u8], seen: &Version) -> Result<Version, Error>;
}

/// Creates an object or replaces the one that is there.
pub(super) fn put_object(objects: &dyn Objects, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    match objects.get(path)? {
        Some((_, seen)) => objects.replace(path, bytes, &seen).map(drop),
        None => match objects.create(path, bytes)? {
            Created::New(_) => Ok(()),
            Created::Exists => Err(Error::ObjectChanged { path: path.to_owned() }),
        },
    }
}
