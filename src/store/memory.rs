//! An engine and objects in memory, and faults on demand, for tests of
//! everything above the storage seam: only with the feature `memory-store`.
//!
//! Clones share what they hold, as processes share a disk: drop a service,
//! open another on a clone, and it finds what was committed.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::engine::{
    CommitError, Created, Direction, Engine, HEAD, KeyRange, KeyValue, Lease, Objects, Reindex,
    Row, Space, Version,
};
use super::{Error, HeadRecord};
use crate::wire::digest::Digest;

/// Rows in memory.
#[derive(Clone, Default)]
pub struct Memory {
    /// Locked for each call.
    rows: Arc<Mutex<Rows>>,
}

#[derive(Clone, Default)]
struct Rows {
    spaces: [BTreeMap<Vec<u8>, Vec<u8>>; Space::ALL.len()],
    /// Of the last lease.
    epoch: u64,
}

impl Rows {
    fn space(&mut self, space: Space) -> &mut BTreeMap<Vec<u8>, Vec<u8>> {
        let [statements, ids, tiles, meta, index] = &mut self.spaces;
        match space {
            Space::Statements => statements,
            Space::Ids => ids,
            Space::Tiles => tiles,
            Space::Meta => meta,
            Space::Index => index,
        }
    }

    fn head(&mut self) -> Result<Option<HeadRecord>, Error> {
        let Some(bytes) = self.space(Space::Meta).get(HEAD.as_bytes()) else { return Ok(None) };
        HeadRecord::decode(bytes).map(Some).ok_or(Error::HeadUnreadable)
    }
}

impl Memory {
    /// The same rows once more, on a disk of their own.
    pub fn copy(&self) -> Self {
        Self { rows: Arc::new(Mutex::new(self.lock().clone())) }
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        lock(&self.rows)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine for Memory {
    fn head(&self) -> Result<Option<HeadRecord>, Error> {
        self.lock().head()
    }

    fn get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut rows = self.lock();
        let space = rows.space(space);
        Ok(keys.iter().map(|key| space.get(*key).cloned()).collect())
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<KeyValue>, Error> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let mut rows = self.lock();
        let to = range.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let found = rows.space(space).range::<[u8], _>((Bound::Included(&*range.from), to));
        let own = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        Ok(match direction {
            Direction::Forward => found.take(limit).map(own).collect(),
            Direction::Backward => found.rev().take(limit).map(own).collect(),
        })
    }

    fn take_over(&self) -> Result<Lease, Error> {
        let mut rows = self.lock();
        rows.epoch += 1;
        Ok(Lease::new(rows.epoch))
    }

    fn commit(
        &self,
        lease: &Lease,
        before: &Digest,
        after: &HeadRecord,
        rows: Vec<Row>,
    ) -> Result<(), CommitError> {
        let mut held = self.lock();
        let head = held.head().map_err(CommitError::Unknown)?.unwrap_or_else(HeadRecord::empty);
        if lease.epoch() != held.epoch || head.digest() != *before {
            return Err(CommitError::Deposed);
        }
        for Row { space, key, value } in rows {
            held.space(space).insert(key, value);
        }
        held.space(Space::Meta).insert(HEAD.into(), after.encode());
        Ok(())
    }

    fn reindex(&self, step: Reindex) -> Result<(), Error> {
        let mut rows = self.lock();
        let index = rows.space(Space::Index);
        match step {
            Reindex::Clear => index.clear(),
            Reindex::Add(rows) => index.extend(rows),
            Reindex::Finish((key, value)) => drop(index.insert(key, value)),
        }
        Ok(())
    }

    #[cfg(test)]
    fn tamper(&self, space: Space, key: &[u8], value: Option<&[u8]>) {
        let mut rows = self.lock();
        match value {
            Some(value) => drop(rows.space(space).insert(key.to_vec(), value.to_vec())),
            None => drop(rows.space(space).remove(key)),
        }
    }
}

/// What goes wrong, and when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The nth commit from now, counted from 0, fails; nothing is written.
    CommitLost(u64),
    /// The nth commit from now fails; everything was written.
    CommitApplied(u64),
    /// Somebody else takes over before the nth commit from now.
    Deposed(u64),
    /// Every read fails.
    Reads,
    /// Every value that is read has a flipped bit, the nth, if it is so long.
    FlippedBit(usize),
}

/// Any engine, with faults on demand.
#[derive(Clone)]
pub struct Faulty {
    engine: Arc<dyn Engine>,
    /// Locked for each call.
    fault: Arc<Mutex<Option<Fault>>>,
}

impl Faulty {
    /// Without a fault at first.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, fault: Arc::default() }
    }

    /// From here on this goes wrong, or nothing.
    pub fn set(&self, fault: Option<Fault>) {
        *lock(&self.fault) = fault;
    }

    fn failed() -> Error {
        Error::Engine("injected".into())
    }

    /// Fails a read, or tells which bit of it to flip.
    fn reads(&self) -> Result<Option<usize>, Error> {
        match *lock(&self.fault) {
            Some(Fault::Reads) => Err(Self::failed()),
            Some(Fault::FlippedBit(bit)) => Ok(Some(bit)),
            _ => Ok(None),
        }
    }

    /// Counts commits down; the fault that is due.
    fn commits(&self) -> Option<Fault> {
        let mut fault = lock(&self.fault);
        let (Fault::CommitLost(n) | Fault::CommitApplied(n) | Fault::Deposed(n)) =
            fault.as_mut()?
        else {
            return None;
        };
        match n.checked_sub(1) {
            Some(fewer) => {
                *n = fewer;
                None
            }
            None => fault.take(),
        }
    }
}

fn flip(value: &mut [u8], bit: Option<usize>) {
    if let Some(bit) = bit
        && let Some(byte) = value.get_mut(bit / 8)
    {
        *byte ^= 1 << (bit % 8);
    }
}

impl Engine for Faulty {
    fn head(&self) -> Result<Option<HeadRecord>, Error> {
        self.reads()?;
        self.engine.head()
    }

    fn get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let bit = self.reads()?;
        let mut values = self.engine.get(space, keys)?;
        values.iter_mut().flatten().for_each(|value| flip(value, bit));
        Ok(values)
    }

    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<KeyValue>, Error> {
        let bit = self.reads()?;
        let mut rows = self.engine.scan(space, range, direction, limit)?;
        rows.iter_mut().for_each(|(_, value)| flip(value, bit));
        Ok(rows)
    }

    fn take_over(&self) -> Result<Lease, Error> {
        self.engine.take_over()
    }

    fn commit(
        &self,
        lease: &Lease,
        before: &Digest,
        after: &HeadRecord,
        rows: Vec<Row>,
    ) -> Result<(), CommitError> {
        match self.commits() {
            Some(Fault::CommitLost(_)) => return Err(CommitError::Unknown(Self::failed())),
            Some(Fault::CommitApplied(_)) => {
                self.engine.commit(lease, before, after, rows)?;
                return Err(CommitError::Unknown(Self::failed()));
            }
            Some(Fault::Deposed(_)) => {
                let _newer = self.take_over().map_err(CommitError::Unknown)?;
            }
            _ => {}
        }
        self.engine.commit(lease, before, after, rows)
    }

    fn reindex(&self, step: Reindex) -> Result<(), Error> {
        self.engine.reindex(step)
    }

    /// True, so that tests take the way of an engine behind a network.
    fn reads_may_wait(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn tamper(&self, space: Space, key: &[u8], value: Option<&[u8]>) {
        self.engine.tamper(space, key, value);
    }
}

/// Objects in memory.
#[derive(Clone, Default)]
pub struct MemoryObjects {
    /// Locked for each call.
    objects: Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>,
}

impl Objects for MemoryObjects {
    fn get(&self, path: &Path) -> Result<Option<(Vec<u8>, Version)>, Error> {
        let objects = lock(&self.objects);
        Ok(objects.get(path).map(|bytes| (bytes.clone(), Version::of(bytes))))
    }

    fn create(&self, path: &Path, bytes: &[u8]) -> Result<Created, Error> {
        let mut objects = lock(&self.objects);
        if objects.contains_key(path) {
            return Ok(Created::Exists);
        }
        objects.insert(path.to_owned(), bytes.to_vec());
        Ok(Created::New(Version::of(bytes)))
    }

    fn replace(&self, path: &Path, bytes: &[u8], seen: &Version) -> Result<Version, Error> {
        let mut objects = lock(&self.objects);
        match objects.get_mut(path) {
            Some(held) if Version::of(held) == *seen => *held = bytes.to_vec(),
            _ => return Err(Error::ObjectChanged { path: path.to_owned() }),
        }
        Ok(Version::of(bytes))
    }
}
