//! The embedded engine under the store: fjall, one synced batch per commit.
//!
//! | keyspace   | key                       | value                       |
//! |------------|---------------------------|-----------------------------|
//! | statements | index, 8 bytes big-endian | `[S, collateral, time]`     |
//! | ids        | statement id, 32 bytes    | index, 8 bytes big-endian   |
//! | tiles      | level, index big-endian   | 256 hashes, 8192 bytes      |
//! | meta       | a word                    | head, keys, control indices |
//! | index      | see `index.rs`            |                             |

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use quick_cache::sync::Cache;

use super::index::{self, GROUP_MAX, Group, Term, statements_in};
use super::{Commit, Counts, Error, HeadRecord, Stored, contain};
use crate::envelope::StatementId;
use crate::key::{self, PublicKey};
use crate::log::{LeafIndex, TileId};
use crate::profile::Control;
use crate::profile::session::Head;
use crate::wire::cbor::Value;
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

/// Journals are replayed at start: 64 MiB take well under a second.
const JOURNAL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Memtables of the three large keyspaces, together under half the journal.
const MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// 1024 tiles of 8 KiB: the upper levels of any tree, and the recent past.
const TILES_CACHED: usize = 1024;

/// Some 6 MB.
const TERMS_CACHED: usize = 65_536;
/// The index has many small rows; the larger its memtable, the less often
/// they are merged.
const INDEX_MEMTABLE_BYTES: u64 = 24 * 1024 * 1024;

/// Typed access to the keyspaces.
pub struct Engine {
    database: Database,
    statements: Keyspace,
    ids: Keyspace,
    tiles: Keyspace,
    meta: Keyspace,
    index: Keyspace,
    tile_cache: Cache<TileId, Arc<[u8]>>,
    /// First statements with terms that are asked for: most are young.
    known: Cache<Term, u64>,
}

impl Engine {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        contain(|| Self::open_files(path))
    }

    fn open_files(path: &Path) -> Result<Self, Error> {
        let database = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .worker_threads(1)
            .open()?;
        let keyspace = |name: &str| {
            let bytes = if name == "index" { INDEX_MEMTABLE_BYTES } else { MEMTABLE_BYTES };
            let options = || KeyspaceCreateOptions::default().max_memtable_size(bytes);
            database.keyspace(name, options)
        };
        Ok(Self {
            statements: keyspace("statements")?,
            ids: keyspace("ids")?,
            tiles: keyspace("tiles")?,
            meta: keyspace("meta")?,
            index: keyspace("index")?,
            database,
            tile_cache: Cache::new(TILES_CACHED),
            known: Cache::new(TERMS_CACHED),
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

    /// Ids that begin with these bytes, and where they stand.
    pub(super) fn ids_from(
        &self,
        bytes: &[u8],
        limit: usize,
    ) -> Result<Vec<(StatementId, LeafIndex)>, Error> {
        let mut found = Vec::new();
        for row in self.ids.prefix(bytes).take(limit) {
            let (key, value) = row.into_inner()?;
            let Some(id) = Digest::from_slice(&key).map(StatementId::from_digest) else { continue };
            found.push((id, read_index(&value).ok_or(Error::IdDamaged { id })?));
        }
        Ok(found)
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

    /// A tile as it lies on the disk now, not as it was read once.
    pub(super) fn tile_again(&self, tile: TileId) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.tiles.get(tile_key(tile))?.map(|bytes| bytes.to_vec()))
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
        let keys = keys.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
        // What a key's reader passes over must be as we wrote it, too.
        if key::key_set(keys.iter()) == *bytes { Ok(keys) } else { Err(Error::KeysUnreadable) }
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
        // A statement, its id, and most often a row of the index of its own.
        let room = commit.entries.len() * 4 + 16;
        let batch = OwnedWriteBatch::with_capacity(self.database.clone(), room);
        let mut batch = batch.durability(Some(PersistMode::SyncData));
        // One row for a second, however many commits it has: a row that says
        // nothing new would be one whose damage nobody could see.
        let is_new_second = self.head()?.is_none_or(|last| last.time() != commit.head.time());
        if count > 0 && is_new_second {
            batch.insert(&self.index, Term::time(commit.head.time()).at(first), []);
        }
        for (index, entry) in (first..).zip(commit.entries) {
            let value = Stored::encode(entry, commit.head.time());
            batch.insert(&self.statements, index.to_be_bytes(), value);
            batch.insert(&self.ids, *entry.id.entry().as_bytes(), index.to_be_bytes());
        }
        let mut firsts: HashMap<Term, u64> = HashMap::new();
        for (at, entries) in (first..).step_by(GROUP_MAX).zip(commit.entries.chunks(GROUP_MAX)) {
            let terms = entries.iter().map(|entry| entry.terms);
            let is_known =
                |term: &Term| Ok::<_, Error>(firsts.contains_key(term) || self.knows(term)?);
            let group = Group::new(at, terms, is_known)?;
            let new: Vec<_> = group.firsts().collect();
            group.into_rows().for_each(|(key, value)| batch.insert(&self.index, key, value));
            firsts.extend(new);
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
        for (term, at) in firsts {
            self.known.insert(term, at);
        }
        Ok(())
    }
}

/// The index, which can be thrown away.
impl Engine {
    /// Whether the index is of this version and complete.
    pub(super) fn index_is_current(&self) -> Result<bool, Error> {
        let marker = self.index.get(index::MARKER)?;
        Ok(marker.is_some_and(|version| *version == [index::VERSION]))
    }

    /// Whether an earlier program made the index: the next start makes it
    /// again, and until then it is neither used nor damaged.
    pub(super) fn index_is_of_earlier(&self) -> Result<bool, Error> {
        let marker = self.index.get(index::MARKER)?;
        Ok(marker.is_some_and(|version| matches!(*version, [one] if index::EARLIER.contains(&one))))
    }

    /// Says that the index is complete. From here every commit keeps it so.
    pub(super) fn mark_index(&self) -> Result<(), Error> {
        self.index.insert(index::MARKER, [index::VERSION])?;
        Ok(self.database.persist(PersistMode::SyncData)?)
    }

    /// Empties the index. The marker goes first, and for good: an index that
    /// was half emptied is never taken for a whole one.
    pub(super) fn clear_index(&self) -> Result<(), Error> {
        self.known.clear();
        self.index.remove(index::MARKER)?;
        self.database.persist(PersistMode::SyncData)?;
        Ok(self.index.clear()?)
    }

    /// Adds the rows of statements that are logged already.
    pub(super) fn fill_index(
        &self,
        group: Group<'_>,
        times: impl Iterator<Item = (LeafIndex, UnixSeconds)>,
    ) -> Result<(), Error> {
        let mut batch = self.database.batch();
        group.into_rows().for_each(|(key, value)| batch.insert(&self.index, key, value));
        for (index, time) in times {
            batch.insert(&self.index, Term::time(time).at(index.get()), []);
        }
        Ok(batch.commit()?)
    }

    /// Whether any statement has the term; only for terms that are asked for.
    pub(super) fn knows(&self, term: &Term) -> Result<bool, Error> {
        Ok(self.first_with(term)?.is_some())
    }

    /// The first statement that has a term that is asked for.
    fn first_with(&self, term: &Term) -> Result<Option<u64>, Error> {
        if !term.is_asked_for() {
            return Ok(None);
        }
        if let Some(first) = self.known.get(term) {
            return Ok(Some(first));
        }
        let Some(bytes) = self.index.get(term.alone())? else { return Ok(None) };
        let first = read_index(&bytes).map(LeafIndex::get);
        if let Some(first) = first {
            self.known.insert(term.clone(), first);
        }
        Ok(first)
    }

    /// Whether the index has a row under exactly this key.
    pub(super) fn has_row(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.index.contains_key(key)?)
    }

    /// Every row of the index.
    pub(super) fn index_rows(&self) -> fjall::Iter {
        self.index.iter()
    }

    /// Puts another row in the place of one, behind everybody's back.
    #[cfg(test)]
    pub(super) fn replace_row(&self, key: &[u8], row: Option<(&[u8], &[u8])>) {
        self.known.clear();
        self.index.remove(key).unwrap();
        if let Some((key, value)) = row {
            self.index.insert(key, value).unwrap();
        }
    }

    /// Where a session ends.
    pub(super) fn session_end(&self, session: &Term) -> Result<Option<Head>, Error> {
        let Some(end) = self.index.get(session.alone())? else { return Ok(None) };
        let read = || {
            let (last, hash) = end.split_first_chunk::<8>()?;
            let hash = std::str::from_utf8(hash).ok()?.to_owned();
            Some(Head { last: u64::from_be_bytes(*last), hash })
        };
        Ok(read())
    }

    /// The last statement before `bound` that has the term.
    pub(super) fn last_before(&self, term: &Term, bound: u64) -> Result<Option<u64>, Error> {
        for row in self.index.range(term.at(0)..term.at(bound)).rev() {
            let (key, offsets) = row.into_inner()?;
            let Some(first) = term.index_in(&key) else { continue };
            let last = statements_in(first, &offsets).rfind(|index| *index < bound);
            if last.is_some() {
                return Ok(last);
            }
        }
        Ok(self.first_with(term)?.filter(|first| *first < bound))
    }

    /// The first `limit` statements before `bound` that have the term.
    pub(super) fn with_term(
        &self,
        term: &Term,
        bound: u64,
        limit: usize,
    ) -> Result<Vec<u64>, Error> {
        let first = self.first_with(term)?.filter(|first| *first < bound);
        let mut found: Vec<u64> = first.into_iter().collect();
        if found.len() >= limit {
            return Ok(found);
        }
        for row in self.index.range(term.at(0)..term.at(bound)) {
            let (key, offsets) = row.into_inner()?;
            let Some(first) = term.index_in(&key) else { continue };
            found.extend(statements_in(first, &offsets).filter(|index| *index < bound));
            if found.len() >= limit {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Whether the statement at `index` has the term.
    pub(super) fn has_term(&self, term: &Term, index: u64) -> Result<bool, Error> {
        Ok(self.last_before(term, index.saturating_add(1))? == Some(index))
    }

    /// The first statement registered at or after a time.
    pub(super) fn first_since(&self, time: UnixSeconds) -> Result<Option<u64>, Error> {
        let end = Term::time(UnixSeconds::new(u64::MAX)).at(u64::MAX);
        let Some(row) = self.index.range(Term::time(time).at(0)..=end).next() else {
            return Ok(None);
        };
        let key = row.key()?;
        let (_, index) = key.split_last_chunk::<8>().ok_or(Error::HeadUnreadable)?;
        Ok(Some(u64::from_be_bytes(*index)))
    }
}

fn tile_key(tile: TileId) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = tile.index.to_be_bytes();
    [tile.level, a, b, c, d, e, f, g, h]
}

fn read_index(bytes: &[u8]) -> Option<LeafIndex> {
    bytes.try_into().ok().map(u64::from_be_bytes).map(LeafIndex::new)
}
