//! The data directory: what the log is, durably.
//!
//! One commit is one synced atomic batch that carries statements, ids, full
//! tiles and the head record together. After any crash the store holds the
//! tree before a commit or the tree after it, never something between.

mod audit;
mod contain;
mod copy;
mod dir;
mod engine;
mod error;
mod guard;
mod head;
mod index;
mod lookup;
#[cfg(test)]
mod tests;

use crate::envelope::StatementId;
use crate::key::PublicKey;
use crate::log::{Edge, LeafIndex, Nodes, TileId, TileNodes, TreeSize, leaf_hash, root_at};
use crate::profile::Control;
use crate::receipt::Head;
use crate::wire::cbor::{self, Value};
use crate::wire::digest::Digest;
use crate::wire::text;
use crate::wire::time::UnixSeconds;

pub use audit::IndexAudit;
pub use contain::{contain, when_hopeless};
pub use copy::{CHECKPOINT_PUB, Copy, Manifest};
pub use dir::{DataDir, Lock, write_private, write_public};
pub use engine::Engine;
pub use error::Error;
pub use guard::Guard;
pub use head::HeadRecord;
pub use index::{Field, Term, Terms, own};
pub use lookup::{Page, Query, fact_terms};

/// An open log: the engine, and the head it was left at.
pub struct Store {
    engine: Engine,
    /// Let go of after the engine: whoever finds the directory free can open it.
    dir: DataDir,
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

/// How many rows the store has of each kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counts {
    /// Statements.
    pub statements: u64,
    /// Ids that name one.
    pub ids: u64,
    /// Full tiles.
    pub tiles: u64,
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
    /// Makes an empty store in a fresh data directory.
    pub fn create(dir: DataDir) -> Result<Self, Error> {
        let engine = Engine::open(&dir.store_path())?;
        engine.mark_index()?;
        Ok(Self { dir, engine })
    }

    /// Opens the store and checks what it finds against itself: the head
    /// record against the tiles and the last statements it must cover.
    pub fn open(dir: DataDir) -> Result<(Self, HeadRecord, Edge), Error> {
        let (store, head) = Self::open_as_found(dir)?;
        let edge = store.rebuild_edge(head.size())?;
        let root = root_at(&store.nodes(&edge), head.size())?;
        if root != head.root() {
            return Err(Error::HeadDamaged {
                size: head.size(),
                recorded: head.root(),
                found: root,
            });
        }
        if store.engine.statement(LeafIndex::new(head.size().get()))?.is_some() {
            return Err(Error::BeyondHead { size: head.size() });
        }
        if !store.engine.index_is_current()? {
            tracing::warn!(
                statements = head.size().get(),
                "the search index is missing or of another version; making it again"
            );
            store.reindex(head.size(), &mut |_| {})?;
        }
        Ok((store, head, edge))
    }

    /// Opens the store and believes nothing it finds: for `fsck`.
    pub fn open_as_found(dir: DataDir) -> Result<(Self, HeadRecord), Error> {
        dir.check_format()?;
        let store = Self { engine: Engine::open(&dir.store_path())?, dir };
        let head = store.engine.head()?.ok_or(Error::HeadMissing)?;
        Ok((store, head))
    }

    /// How much lies in the store, counted one by one.
    pub fn counts(&self) -> Result<Counts, Error> {
        self.engine.counts()
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

    /// The directory around the store.
    pub fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// A full tile: 256 hashes.
    pub fn full_tile(&self, tile: TileId) -> Result<std::sync::Arc<[u8]>, Error> {
        self.engine.tile(tile)?.ok_or_else(|| Error::TileMissing { path: tile.path() })
    }

    /// A full tile read anew.
    pub fn full_tile_again(&self, tile: TileId) -> Result<Vec<u8>, Error> {
        self.engine.tile_again(tile)?.ok_or_else(|| Error::TileMissing { path: tile.path() })
    }

    /// Where a statement stands, if it was logged.
    pub fn find(&self, id: &StatementId) -> Result<Option<LeafIndex>, Error> {
        self.engine.find(id)
    }

    /// Statements whose ids begin with these hex digits, at most so many.
    pub fn ids_from(
        &self,
        hex: &str,
        limit: usize,
    ) -> Result<Vec<(StatementId, LeafIndex)>, Error> {
        let whole = hex.len() - hex.len() % 2;
        let bytes = hex.get(..whole).and_then(text::from_hex).unwrap_or_default();
        // Half a byte more leaves one in sixteen.
        let found = self.engine.ids_from(&bytes, limit.saturating_mul(16))?;
        let fits = |(id, _): &(StatementId, LeafIndex)| id.to_string().starts_with(hex);
        Ok(found.into_iter().filter(fits).take(limit).collect())
    }

    /// The statement at an index.
    pub fn statement(&self, index: LeafIndex) -> Result<Option<Stored>, Error> {
        let Some(bytes) = self.engine.statement(index)? else { return Ok(None) };
        Stored::decode(&bytes).map(Some).ok_or(Error::StatementDamaged { index })
    }

    /// The statement at an index, as it lies there.
    pub fn row(&self, index: LeafIndex) -> Result<Vec<u8>, Error> {
        self.engine.statement(index)?.ok_or(Error::StatementMissing { index })
    }

    /// The leaf entries from `first`, at most `count`, for an entry bundle.
    pub fn entries(&self, first: LeafIndex, count: usize) -> Result<Vec<Digest>, Error> {
        let indices = (first.get()..).take(count).map(LeafIndex::new);
        indices
            .map(|index| {
                let stored = self.statement(index)?.ok_or(Error::StatementMissing { index })?;
                Ok(*StatementId::of_canonical(&stored.canonical).entry())
            })
            .collect()
    }

    /// Where the control statement of this kind in force stands.
    pub fn control(&self, control: Control) -> Result<Option<LeafIndex>, Error> {
        self.engine.control(control)
    }

    /// The service's public keys, the active one first.
    pub fn keys(&self) -> Result<Vec<PublicKey>, Error> {
        self.engine.keys()
    }

    /// Makes a commit durable. On an error nothing is known about the disk:
    /// the caller must stop writing.
    pub fn commit(&self, commit: &Commit<'_>) -> Result<(), Error> {
        self.engine.commit(commit)
    }

    /// Refuses to go on when the store is older than `known`, a head that was
    /// signed once, or disagrees with it.
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
