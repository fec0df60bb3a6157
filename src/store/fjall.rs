//! The embedded engine: fjall, one synced atomic batch per commit. Nothing of
//! fjall is visible outside this file.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use super::engine::{
    CommitError, Direction, Engine, HEAD, KeyRange, KeyValue, Lease, Reindex, Row, Space,
};
use super::{Error, HeadRecord, catch_panic, index};
use crate::wire::digest::Digest;

/// Journals are replayed at start: 64 MiB take well under a second.
const JOURNAL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Memtables of the three large keyspaces, together under half the journal.
const MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;
/// The index has many small rows; the larger its memtable, the less often
/// they are merged.
const INDEX_MEMTABLE_BYTES: u64 = 24 * 1024 * 1024;
const CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// A fjall database. Whoever opens it has locked its directory.
pub(super) struct Fjall {
    database: Database,
    statements: Keyspace,
    ids: Keyspace,
    tiles: Keyspace,
    meta: Keyspace,
    index: Keyspace,
    /// The epoch of the last lease; locked during a commit. Another process
    /// cannot take over: it would need `DATA/LOCK`.
    epoch: Mutex<u64>,
}

impl Fjall {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        catch_panic(|| Ok(Self::open_files(path)?))
    }

    fn open_files(path: &Path) -> fjall::Result<Self> {
        let database = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(1)
            .open()?;
        let keyspace = |space: Space| {
            let is_index = space == Space::Index;
            let bytes = if is_index { INDEX_MEMTABLE_BYTES } else { MEMTABLE_BYTES };
            let options = || KeyspaceCreateOptions::default().max_memtable_size(bytes);
            database.keyspace(space.name(), options)
        };
        Ok(Self {
            statements: keyspace(Space::Statements)?,
            ids: keyspace(Space::Ids)?,
            tiles: keyspace(Space::Tiles)?,
            meta: keyspace(Space::Meta)?,
            index: keyspace(Space::Index)?,
            database,
            epoch: Mutex::new(0),
        })
    }

    fn keyspace(&self, space: Space) -> &Keyspace {
        match space {
            Space::Statements => &self.statements,
            Space::Ids => &self.ids,
            Space::Tiles => &self.tiles,
            Space::Meta => &self.meta,
            Space::Index => &self.index,
        }
    }

    fn sync(&self) -> Result<(), Error> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }
}

impl Engine for Fjall {
    fn head(&self) -> Result<Option<HeadRecord>, Error> {
        let Some(bytes) = self.meta.get(HEAD)? else { return Ok(None) };
        HeadRecord::decode(&bytes).map(Some).ok_or(Error::HeadUnreadable)
    }

    fn get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let keyspace = self.keyspace(space);
        let get = |key: &&[u8]| Ok(keyspace.get(key)?.map(|value| value.to_vec()));
        keys.iter().map(get).collect()
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
        let (keyspace, from) = (self.keyspace(space), range.from.as_slice());
        let mut rows = match &range.to {
            Some(to) => keyspace.range(from..to.as_slice()),
            None => keyspace.range(from..),
        };
        let mut next = || match direction {
            Direction::Forward => rows.next(),
            Direction::Backward => rows.next_back(),
        };
        let mut found = Vec::new();
        while let Some(row) = if found.len() < limit { next() } else { None } {
            let (key, value) = row.into_inner()?;
            found.push((key.to_vec(), value.to_vec()));
        }
        Ok(found)
    }

    fn take_over(&self) -> Result<Lease, Error> {
        let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        *epoch += 1;
        Ok(Lease::new(*epoch))
    }

    fn commit(
        &self,
        lease: &Lease,
        before: &Digest,
        after: &HeadRecord,
        rows: Vec<Row>,
    ) -> Result<(), CommitError> {
        let epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.head().map_err(CommitError::Unknown)?.unwrap_or_else(HeadRecord::empty);
        if lease.epoch() != *epoch || found.digest() != *before {
            return Err(CommitError::Deposed);
        }
        let batch = OwnedWriteBatch::with_capacity(self.database.clone(), rows.len() + 1);
        let mut batch = batch.durability(Some(PersistMode::SyncData));
        for Row { space, key, value } in rows {
            batch.insert(self.keyspace(space), key, value);
        }
        batch.insert(&self.meta, HEAD, after.encode());
        batch.commit().map_err(|error| CommitError::Unknown(error.into()))
    }

    fn reindex(&self, step: Reindex) -> Result<(), Error> {
        match step {
            Reindex::Clear => {
                self.index.remove(index::MARKER)?;
                self.sync()?;
                Ok(self.index.clear()?)
            }
            Reindex::Add(rows) => {
                let mut batch = self.database.batch();
                rows.into_iter().for_each(|(key, value)| batch.insert(&self.index, key, value));
                Ok(batch.commit()?)
            }
            Reindex::Finish((key, value)) => {
                self.index.insert(key, value)?;
                self.sync()
            }
        }
    }

    #[cfg(test)]
    fn tamper(&self, space: Space, key: &[u8], value: Option<&[u8]>) {
        match value {
            Some(value) => self.keyspace(space).insert(key, value).unwrap(),
            None => self.keyspace(space).remove(key).unwrap(),
        }
    }
}

impl From<fjall::Error> for Error {
    fn from(error: fjall::Error) -> Self {
        Self::Engine(Box::new(error))
    }
}
