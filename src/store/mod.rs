//! The log, durably.
//!
//! `Store` gives rows their meaning, over an `Engine` that keeps them and a
//! place for `Objects` (`engine.rs`). One commit is one synced atomic batch of
//! statements, ids, full tiles, index rows and the head record. After any crash
//! the store holds the tree before a commit or the tree after it, never
//! something between.

mod audit;
mod copy;
mod dir;
mod engine;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
mod fjall;
mod guard;
mod head;
mod id_filter;
mod index;
mod lookup;
#[cfg(feature = "memory-store")]
pub mod memory;
mod panics;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quick_cache::sync::Cache;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::envelope::StatementId;
use crate::key::{PublicKey, key_set};
use crate::log::{
    Edge, LeafIndex, Nodes, TILE_WIDTH, TileId, TileNodes, TreeSize, leaf_hash, root_at,
};
use crate::profile::Control;
use crate::receipt::Head;
use crate::wire::cbor::{self, Value};
use crate::wire::digest::Digest;
use crate::wire::text;
use crate::wire::time::UnixSeconds;
use engine::put_object;
use fjall::Fjall;
use id_filter::IdFilter;
use index::{GROUP_MAX, Group};

pub use audit::IndexAudit;
pub use copy::{CHECKPOINT_PUB, Copy, Manifest};
pub use dir::{DataDir, Lock, is_in_use, read_private, write_private, write_public};
pub use engine::{
    CommitError, Created, Direction, Engine, KeyRange, KeyValue, Lease, Objects, Reindex, Row,
    Space, Version,
};
pub use error::Error;
pub use guard::Guard;
pub use head::HeadRecord;
pub use index::{Field, Term, Terms, own};
pub use lookup::{Page, Query, fact_terms};
pub use panics::{catch_panic, on_fatal_panic};

/// 1024 tiles of 8 KiB: the upper levels of any tree, and the recent past.
const TILES_CACHED: usize = 1024;
/// Some 6 MB.
const TERMS_CACHED: usize = 65_536;
/// Rows in one page of a scan, at most.
const PAGE_ROWS: usize = 1024;
const CHECKPOINT: &str = "checkpoint";
const KEYS: &str = "keys";

/// What a log stands on.
pub struct Backend {
    /// Its rows.
    pub engine: Box<dyn Engine>,
    /// What it publishes.
    pub objects: Box<dyn Objects>,
    /// Keys, settings and rules of this machine. Dropped, and with it
    /// unlocked, after the engine: whoever finds it unlocked can open it.
    pub dir: DataDir,
}

impl Backend {
    /// The embedded engine, in a directory that holds a log.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let dir = DataDir::open(path)?;
        dir.check_format()?;
        Self::embedded(dir)
    }

    /// The embedded engine, in a directory that is new or empty.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::embedded(DataDir::create(path)?)
    }

    fn embedded(dir: DataDir) -> Result<Self, Error> {
        let engine = Fjall::open(&dir.store_path())?;
        Ok(Self::new(Box::new(engine), dir))
    }

    /// Any engine, with everything else in a directory.
    pub fn new(engine: Box<dyn Engine>, dir: DataDir) -> Self {
        let objects = Box::new(dir::Directory::at(dir.path()));
        Self { engine, objects, dir }
    }
}

/// An open log: typed access to its rows. Every method may be called from any
/// thread; only `commit` needs the lease, which the writer has.
pub struct Store {
    backend: Backend,
    /// Asked of the engine once.
    reads_may_wait: bool,
    /// Full tiles never change.
    tiles: Cache<TileId, Arc<[u8]>>,
    /// The first statement with each term that is looked up often; it never
    /// changes, but for `reindex`.
    firsts: Cache<Term, u64>,
    /// Which statements are not in the log. Only the process that commits has
    /// it, and sees to it that it is complete.
    id_filter: Option<IdFilter>,
}

/// A statement as it lies in the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stored {
    /// S, the bytes under the leaf.
    pub canonical: Vec<u8>,
    /// What else authentication needed: `{? 1: [certificates], ? 2: key}`.
    pub collateral: Vec<u8>,
    /// When it was registered.
    pub time: UnixSeconds,
}

/// A statement on its way into the log.
pub struct NewEntry<'a> {
    /// Its name and leaf entry.
    pub id: StatementId,
    /// S.
    pub canonical: &'a [u8],
    /// What else an auditor needs.
    pub collateral: Vec<u8>,
    /// What it will be found by.
    pub terms: &'a Terms,
}

/// Everything one commit changes.
pub struct Commit<'a> {
    /// The head it was made for; it fails on any other.
    pub before: &'a HeadRecord,
    /// The statements, the first at the old size.
    pub entries: &'a [NewEntry<'a>],
    /// Tiles that became full.
    pub tiles: &'a [(TileId, Vec<u8>)],
    /// The head after it.
    pub head: &'a HeadRecord,
    /// Control statements among the entries, and where they stand.
    pub controls: &'a [(Control, LeafIndex)],
    /// The service's public keys from here on, the active one first.
    pub keys: Option<&'a [PublicKey]>,
}

impl Store {
    /// Makes an empty store.
    pub fn create(backend: Backend) -> Result<Self, Error> {
        let store = Self::over(backend);
        store.finish_index()?;
        Ok(store)
    }

    /// Opens a store and checks what it finds against itself: the head record
    /// against the tiles and the last statements it must cover.
    pub fn open(backend: Backend) -> Result<(Self, HeadRecord, Edge), Error> {
        let (store, head) = Self::open_unchecked(backend)?;
        let edge = store.rebuild_edge(head.size())?;
        let root = root_at(&store.nodes(&edge), head.size())?;
        if root != head.root() {
            return Err(Error::HeadDamaged {
                size: head.size(),
                recorded: head.root(),
                found: root,
            });
        }
        if store.get(Space::Statements, &head.size().get().to_be_bytes())?.is_some() {
            return Err(Error::BeyondHead { size: head.size() });
        }
        if !store.index_is_current()? {
            tracing::warn!(
                statements = head.size().get(),
                "the search index is missing or of another version; making it again"
            );
            store.reindex(head.size(), &mut |_| {})?;
        }
        Ok((store, head, edge))
    }

    /// Opens a store without checking anything: for `fsck`, and for whoever
    /// checks each statement anyway.
    pub fn open_unchecked(backend: Backend) -> Result<(Self, HeadRecord), Error> {
        let store = Self::over(backend);
        let head = store.head()?.ok_or(Error::HeadMissing)?;
        Ok((store, head))
    }

    fn over(backend: Backend) -> Self {
        let reads_may_wait = backend.engine.reads_may_wait();
        let (tiles, firsts) = (Cache::new(TILES_CACHED), Cache::new(TERMS_CACHED));
        Self { backend, reads_may_wait, tiles, firsts, id_filter: None }
    }

    /// Makes this the store that commits.
    pub fn take_over(&self) -> Result<Lease, Error> {
        self.backend.engine.take_over()
    }

    /// Keeps in memory which statements are not in the log, so that most need
    /// no lookup. Only for the process that commits, while no other can.
    pub fn filter_ids(&mut self, edge: &Edge) -> Result<(), Error> {
        let size = edge.size().get();
        let filter = IdFilter::new(size);
        for index in 0..size / u64::from(TILE_WIDTH) {
            let tile = self.full_tile_uncached(TileId::full(0, index))?;
            let (leaves, _) = tile.as_chunks::<32>();
            leaves.iter().for_each(|leaf| filter.insert(&Digest::from_bytes(*leaf)));
        }
        edge.partial(0).iter().for_each(|leaf| filter.insert(leaf));
        self.id_filter = Some(filter);
        Ok(())
    }

    /// Runs reads. Where they may wait, the async runtime moves its other tasks
    /// off this thread first, so that no request waits for the reads of
    /// another. Every read does this by itself; around several of them it costs
    /// once.
    pub fn reading<T>(&self, reads: impl FnOnce() -> T) -> T {
        let is_worker = |runtime: &Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
        if self.reads_may_wait && Handle::try_current().as_ref().is_ok_and(is_worker) {
            tokio::task::block_in_place(reads)
        } else {
            reads()
        }
    }

    fn head(&self) -> Result<Option<HeadRecord>, Error> {
        self.reading(|| self.backend.engine.head())
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut values = self.reading(|| self.backend.engine.get(space, &[key]))?;
        Ok(values.pop().flatten())
    }

    /// Shows the rows of a range until `visit` breaks. The first page is one
    /// row, because most look-ups need no more; each further one is larger.
    fn scan<T>(
        &self,
        space: Space,
        mut range: KeyRange,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut limit = 1;
        loop {
            let page =
                self.reading(|| self.backend.engine.scan(space, &range, direction, limit))?;
            for (key, value) in &page {
                if let ControlFlow::Break(found) = visit(key, value)? {
                    return Ok(Some(found));
                }
            }
            let is_last = page.len() < limit;
            let Some((mut key, _)) = page.into_iter().next_back().filter(|_| !is_last) else {
                return Ok(None);
            };
            match direction {
                Direction::Backward => range.to = Some(key),
                Direction::Forward => {
                    key.push(0);
                    range.from = key;
                }
            }
            limit = (limit * 8).min(PAGE_ROWS);
        }
    }

    /// Counts all rows of a space.
    pub fn count(&self, space: Space) -> Result<u64, Error> {
        let mut count = 0_u64;
        self.scan::<()>(space, KeyRange::all(), Direction::Forward, |_, _| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    fn rebuild_edge(&self, size: TreeSize) -> Result<Edge, Error> {
        let leaf = |index: LeafIndex| {
            let stored = self.statement(index)?.ok_or(Error::StatementMissing { index })?;
            Ok(leaf_hash(StatementId::of_canonical(&stored.canonical).entry()))
        };
        Edge::rebuild(size, |tile| self.full_tile(tile), leaf)
    }

    /// The hashes of every complete subtree, from tiles and the right edge.
    pub fn nodes<'a>(&'a self, edge: &'a Edge) -> impl Nodes<Error = Error> + 'a {
        TileNodes::new(edge, |tile| self.full_tile(tile))
    }

    /// The directory of this machine.
    pub fn dir(&self) -> &DataDir {
        &self.backend.dir
    }

    /// The last published checkpoint; none before the first.
    pub fn checkpoint(&self) -> Result<Option<String>, Error> {
        let Some((bytes, _)) = self.backend.objects.get(Path::new(CHECKPOINT))? else {
            return Ok(None);
        };
        let not_text = |_| Error::Io {
            path: PathBuf::from(CHECKPOINT),
            source: std::io::Error::other("the published checkpoint is not text"),
        };
        String::from_utf8(bytes).map(Some).map_err(not_text)
    }

    /// Publishes a checkpoint in place of the last one.
    pub fn publish_checkpoint(&self, note: &str) -> Result<(), Error> {
        put_object(&*self.backend.objects, Path::new(CHECKPOINT), note.as_bytes())
    }

    /// A full tile: 256 hashes.
    pub fn full_tile(&self, tile: TileId) -> Result<Arc<[u8]>, Error> {
        if let Some(cached) = self.tiles.get(&tile) {
            return Ok(cached);
        }
        let bytes: Arc<[u8]> = self.full_tile_uncached(tile)?.into();
        self.tiles.insert(tile, bytes.clone());
        Ok(bytes)
    }

    /// A full tile as it is in the engine now.
    pub fn full_tile_uncached(&self, tile: TileId) -> Result<Vec<u8>, Error> {
        let missing = || Error::TileMissing { path: tile.path() };
        self.get(Space::Tiles, &tile_key(tile))?.ok_or_else(missing)
    }

    /// The index of a statement, if it was logged.
    pub fn find(&self, id: &StatementId) -> Result<Option<LeafIndex>, Error> {
        let filter = self.id_filter.as_ref();
        if filter.is_some_and(|filter| !filter.may_contain(&leaf_hash(id.entry()))) {
            return Ok(None);
        }
        let found = self.get(Space::Ids, id.entry().as_bytes())?;
        found.map(|bytes| read_index(&bytes).ok_or(Error::IdDamaged { id: *id })).transpose()
    }

    /// Statements whose ids begin with these hex digits, at most so many.
    pub fn ids_from(
        &self,
        hex: &str,
        limit: usize,
    ) -> Result<Vec<(StatementId, LeafIndex)>, Error> {
        let whole = hex.len() - hex.len() % 2;
        let prefix = hex.get(..whole).and_then(text::from_hex).unwrap_or_default();
        let (mut found, mut seen) = (Vec::new(), 0_usize);
        self.scan::<()>(
            Space::Ids,
            KeyRange::prefix(&prefix),
            Direction::Forward,
            |key, value| {
                // Half a byte more leaves one in sixteen.
                if found.len() >= limit || seen >= limit.saturating_mul(16) {
                    return Ok(ControlFlow::Break(()));
                }
                seen += 1;
                if let Some(id) = Digest::from_slice(key).map(StatementId::from_digest) {
                    let index = read_index(value).ok_or(Error::IdDamaged { id })?;
                    if id.to_string().starts_with(hex) {
                        found.push((id, index));
                    }
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        Ok(found)
    }

    /// The statement at an index.
    pub fn statement(&self, index: LeafIndex) -> Result<Option<Stored>, Error> {
        let Some(bytes) = self.get(Space::Statements, &index.get().to_be_bytes())? else {
            return Ok(None);
        };
        Stored::decode(&bytes).map(Some).ok_or(Error::StatementDamaged { index })
    }

    /// The row of the statement at an index, undecoded.
    pub fn row(&self, index: LeafIndex) -> Result<Vec<u8>, Error> {
        let row = self.get(Space::Statements, &index.get().to_be_bytes())?;
        row.ok_or(Error::StatementMissing { index })
    }

    /// The leaf entries from `first`, at most `count`, for an entry bundle.
    pub fn entries(&self, first: LeafIndex, count: usize) -> Result<Vec<Digest>, Error> {
        let indices: Vec<u64> = (first.get()..).take(count).collect();
        let keys: Vec<[u8; 8]> = indices.iter().map(|index| index.to_be_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
        let rows = self.reading(|| self.backend.engine.get(Space::Statements, &keys))?;
        let entry = |(index, row): (u64, Option<Vec<u8>>)| {
            let index = LeafIndex::new(index);
            let row = row.ok_or(Error::StatementMissing { index })?;
            let stored = Stored::decode(&row).ok_or(Error::StatementDamaged { index })?;
            Ok(*StatementId::of_canonical(&stored.canonical).entry())
        };
        indices.into_iter().zip(rows).map(entry).collect()
    }

    /// The index of the control statement of this kind that is in force.
    pub fn control(&self, control: Control) -> Result<Option<LeafIndex>, Error> {
        let found = self.get(Space::Meta, control.subject().as_bytes())?;
        found.map(|bytes| read_index(&bytes).ok_or(Error::HeadUnreadable)).transpose()
    }

    /// The service's public keys, the active one first.
    pub fn keys(&self) -> Result<Vec<PublicKey>, Error> {
        let bytes = self.get(Space::Meta, KEYS.as_bytes())?.ok_or(Error::KeysUnreadable)?;
        let set = Value::read(&bytes).map_err(|_| Error::KeysUnreadable)?;
        let keys = set.array().ok_or(Error::KeysUnreadable)?;
        let read = |key| PublicKey::from_cose_value(key).map_err(|_| Error::KeysUnreadable);
        let keys = keys.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
        // Parts of a key that its reader ignores must be as we wrote them, too.
        if key_set(keys.iter()) == bytes { Ok(keys) } else { Err(Error::KeysUnreadable) }
    }

    /// Makes a commit durable. After an error, unless it is `Deposed`, nobody
    /// knows what is on the disk: the caller must stop writing.
    pub fn commit(&self, lease: &Lease, commit: &Commit<'_>) -> Result<(), Error> {
        let Commit { before, entries, tiles, head, controls, keys } = commit;
        let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        let first = head.size().get() - count;
        // A statement, its id, and most often a row of the index of its own.
        let mut rows = Vec::with_capacity(entries.len() * 4 + 16);
        // One row for each second, however many commits it has: nobody could
        // see damage in a row that says nothing new.
        if count > 0 && (before.size().get() == 0 || before.time() != head.time()) {
            rows.push(Row::new(Space::Index, Term::time(head.time()).at(first), []));
        }
        for (index, entry) in (first..).zip(*entries) {
            let (key, value) = (index.to_be_bytes(), Stored::encode(entry, head.time()));
            rows.push(Row::new(Space::Statements, key, value));
            rows.push(Row::new(Space::Ids, *entry.id.entry().as_bytes(), key));
            if let Some(filter) = &self.id_filter {
                filter.insert(&leaf_hash(entry.id.entry()));
            }
        }
        let mut firsts: HashMap<Term, u64> = HashMap::new();
        for (at, entries) in (first..).step_by(GROUP_MAX).zip(entries.chunks(GROUP_MAX)) {
            let terms = entries.iter().map(|entry| entry.terms);
            let is_known =
                |term: &Term| Ok::<_, Error>(firsts.contains_key(term) || self.has_first(term)?);
            let group = Group::new(at, terms, is_known)?;
            let new: Vec<_> = group.firsts().collect();
            rows.extend(group.into_rows().map(|(key, value)| Row::new(Space::Index, key, value)));
            firsts.extend(new);
        }
        for (tile, hashes) in *tiles {
            rows.push(Row::new(Space::Tiles, tile_key(*tile), hashes.as_slice()));
        }
        for (control, index) in *controls {
            rows.push(Row::new(Space::Meta, control.subject(), index.get().to_be_bytes()));
        }
        if let Some(keys) = keys {
            rows.push(Row::new(Space::Meta, KEYS, key_set(keys.iter())));
        }
        let done = self.backend.engine.commit(lease, &before.digest(), head, rows);
        done.map_err(|error| match error {
            CommitError::Deposed => Error::Deposed,
            CommitError::Unknown(error) => error,
        })?;
        for (term, at) in firsts {
            self.firsts.insert(term, at);
        }
        Ok(())
    }

    /// Fails when the store is older than `known`, a head that was signed once,
    /// or disagrees with it.
    pub fn check_extends(
        &self,
        head: &HeadRecord,
        edge: &Edge,
        known: &Head,
        what: &'static str,
    ) -> Result<(), Error> {
        if known.size > head.size() {
            return Err(Error::RolledBack { what, known: known.size, found: head.size() });
        }
        let root = root_at(&self.nodes(edge), known.size)?;
        if root == known.root { Ok(()) } else { Err(Error::Forked { what, size: known.size }) }
    }
}

impl Stored {
    /// `[S, collateral, time]`
    fn encode(entry: &NewEntry<'_>, time: UnixSeconds) -> Vec<u8> {
        let mut out = Vec::with_capacity(entry.canonical.len() + entry.collateral.len() + 20);
        cbor::array(&mut out, 3);
        cbor::bytes(&mut out, entry.canonical);
        cbor::bytes(&mut out, &entry.collateral);
        cbor::int(&mut out, time.seconds());
        out
    }

    /// Reads a row of a statement.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let value = Value::read(bytes).ok()?;
        let [canonical, collateral, time] = value.array()? else { return None };
        Some(Self {
            canonical: canonical.bytes()?.to_vec(),
            collateral: collateral.bytes()?.to_vec(),
            time: UnixSeconds::new(time.int()?),
        })
    }
}

fn tile_key(tile: TileId) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = tile.index.to_be_bytes();
    [tile.level, a, b, c, d, e, f, g, h]
}

fn read_index(bytes: &[u8]) -> Option<LeafIndex> {
    bytes.try_into().ok().map(u64::from_be_bytes).map(LeafIndex::new)
}
