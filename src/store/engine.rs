//! The embedded engine under the store: fjall, one synced batch per commit.
//!
//! | keyspace   | key                       | value                       |
//! |------------|---------------------------|-----------------------------|
//! | statements | index, 8 bytes big-endian | `[S, collateral, time]`     |
//! | ids        | statement id, 32 bytes    | index, 8 bytes big-endian   |
//! | tiles      | level, index big-endian   | 256 hashes, 8192 bytes      |
//! | meta       | a word                    | head, keys, control indices |

use std::path::Path;
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use quick_cache::sync::Cache;

use super::{Commit, Counts, Error, HeadRecord, Stored};
use crate::envelope::StatementId;
use crate::key::{self, PublicKey};
use crate::log::{LeafIndex, TileId};
use crate::profile::Control;
use crate::wire::cbor::Value;

/// Journals are replayed at start: 64 MiB take well under a second.
const JOURNAL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Memtables of the two large keyspaces, together under half the journal.
const MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// 1024 tiles of 8 KiB: the upper levels of any tree, and the recent past.
const TILES_CACHED: usize = 1024;

/// Typed access to the keyspaces.
pub struct Engine {
    database: Database,
    statements: Keyspace,
    ids: Keyspace,
    tiles: Keyspace,
    meta: Keyspace,
    tile_cache: Cache<TileId, Arc<[u8]>>,
}

impl Engine {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let database = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(1)
            .open()?;
        let keyspace = |name: &str| {
            let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
            database.keyspace(name, options)
        };
        Ok(Self {
            statements: keyspace("statements")?,
            ids: keyspace("ids")?,
            tiles: keyspace("tiles")?,
            meta: keyspace("meta")?,
            database,
            tile_cache: Cache::new(TILES_CACHED),
        })
    }

    pub(super) fn head(&self) -> Result<Option<HeadRecord>, Error> {
        let Some(bytes) = self.meta.get("head")? else { return Ok(None) };
        HeadRecord::decode(&bytes).map(Some).ok_or(Error::HeadUnreadable)
    }

    pub(super) fn find(&self, id: &StatementId) -> Result<Option<LeafIndex>, Error> {
        let found = self.ids.get(id.entry().as_bytes())?;
        found.map(|bytes| read_index(&bytes).ok_or(Error::IdDamaged { id: *id })).transpose()
    }

    pub(super) fn statement(&self, index: LeafIndex) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.statements.get(index.get().to_be_bytes())?.map(|bytes| bytes.to_vec()))
    }

    pub(super) fn tile(&self, tile: TileId) -> Result<Option<Arc<[u8]>>, Error> {
        if let Some(cached) = self.tile_cache.get(&tile) {
            return Ok(Some(cached));
        }
        let Some(bytes) = self.tiles.get(tile_key(tile))? else { return Ok(None) };
        let bytes: Arc<[u8]> = Arc::from(&*bytes);
        self.tile_cache.insert(tile, bytes.clone());
        Ok(Some(bytes))
    }

    pub(super) fn control(&self, control: Control) -> Result<Option<LeafIndex>, Error> {
        let found = self.meta.get(control.subject())?;
        found.map(|bytes| read_index(&bytes).ok_or(Error::HeadUnreadable)).transpose()
    }

    pub(super) fn keys(&self) -> Result<Vec<PublicKey>, Error> {
        let bytes = self.meta.get("keys")?.ok_or(Error::KeysUnreadable)?;
        let set = Value::read(&bytes).map_err(|_| Error::KeysUnreadable)?;
        let keys = set.array().ok_or(Error::KeysUnreadable)?;
        let read = |key| PublicKey::from_cose_value(key).map_err(|_| Error::KeysUnreadable);
        keys.iter().map(read).collect()
    }

    pub(super) fn counts(&self) -> Result<Counts, Error> {
        let count = |keyspace: &Keyspace| -> Result<u64, Error> {
            Ok(u64::try_from(keyspace.len()?).unwrap_or(u64::MAX))
        };
        Ok(Counts {
            statements: count(&self.statements)?,
            ids: count(&self.ids)?,
            tiles: count(&self.tiles)?,
        })
    }

    pub(super) fn commit(&self, commit: &Commit<'_>) -> Result<(), Error> {
        let count = u64::try_from(commit.entries.len()).unwrap_or(u64::MAX);
        let first = commit.head.size().get() - count;
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for (index, entry) in (first..).zip(commit.entries) {
            let value = Stored::encode(entry, commit.head.time());
            batch.insert(&self.statements, index.to_be_bytes(), value);
            batch.insert(&self.ids, *entry.id.entry().as_bytes(), index.to_be_bytes());
        }
        for (tile, hashes) in commit.tiles {
            batch.insert(&self.tiles, tile_key(*tile), hashes.as_slice());
        }
        for (control, index) in commit.controls {
            batch.insert(&self.meta, control.subject(), index.get().to_be_bytes());
        }
        if let Some(keys) = commit.keys {
            batch.insert(&self.meta, "keys", key::key_set(keys.iter()));
        }
        batch.insert(&self.meta, "head", commit.head.encode());
        batch.commit()?;
        Ok(())
    }
}

fn tile_key(tile: TileId) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = tile.index.to_be_bytes();
    [tile.level, a, b, c, d, e, f, g, h]
}

fn read_index(bytes: &[u8]) -> Option<LeafIndex> {
    bytes.try_into().ok().map(u64::from_be_bytes).map(LeafIndex::new)
}
