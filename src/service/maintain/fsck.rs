//! Everything recomputed from the bytes, by somebody who believes none of it.
//!
//! In: a data directory nobody else has open. Out: what was found wrong,
//! each with its place. The walk never stops at a finding, and judges every
//! statement by the trust and policy that were in force at its index.

#[cfg(test)]
mod flips;
#[cfg(test)]
pub(in crate::service) mod tests;

use std::path::Path;

use super::ledger::Ledger;
use crate::envelope::{SignedStatement, StatementId};
use crate::log::{Edge, Frontier, LeafIndex, TILE_WIDTH, TileId, parse_hash_tile};
use crate::log::{leaf_hash, tiles_of};
use crate::profile::{Control, Resumption};
use crate::receipt::Head;
use crate::service::ControlError;
use crate::service::Identity;
use crate::service::error::chain;
use crate::service::open::{checkpoint_verifier, guard_of, identity_of, published_head};
use crate::store::{self, Backend, Guard, HeadRecord, IndexAudit, Space, Store, Stored};
use crate::story::{Cast, Speaker};
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

/// Something in the data directory that is not as it must be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The statement it is about, if it is about one.
    pub index: Option<LeafIndex>,
    /// A stable kebab-case word.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
}

/// What a walk through the whole log came to.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The size and root the head record claims.
    pub head: Head,
    /// The root the statements give; none when one of them is gone.
    pub root: Option<Digest>,
    /// Who spoke about what.
    pub cast: Cast,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Walks a log from its first byte. `progress` hears the number of
/// statements done and the number there are.
pub fn fsck(
    path: &Path,
    guard: Option<&Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Checked, ControlError> {
    store::catch_panic(|| {
        let backend = Backend::open(path)?;
        let guard = guard_of(&backend.dir, guard);
        fsck_on(backend, &guard, progress)
    })
}

/// The same on any backend.
pub fn fsck_on(
    backend: Backend,
    guard: &Guard,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Checked, ControlError> {
    let identity = identity_of(backend.dir.path())?;
    let (store, head) = Store::open_unchecked(backend)?;
    let mut walk = Walk::new(&store, &head, &identity)?;
    walk.remember_known_heads(guard, &identity);
    let size = head.size().get();
    for index in 0..size {
        walk.step(LeafIndex::new(index));
        progress(index + 1, size);
    }
    walk.finish(&identity)
}

/// A head that somebody holds on to, and the root we find at its size.
struct Known {
    what: &'static str,
    head: Head,
    found: Option<Digest>,
}

struct Walk<'a> {
    store: &'a Store,
    head: &'a HeadRecord,
    ledger: Ledger,
    frontier: Frontier,
    edge: Edge,
    /// Whether a leaf is unknown: no root can be computed any more.
    broken: bool,
    time: UnixSeconds,
    known: Vec<Known>,
    cast: Cast,
    index: IndexAudit,
    findings: Vec<Finding>,
}

impl<'a> Walk<'a> {
    fn new(
        store: &'a Store,
        head: &'a HeadRecord,
        identity: &Identity,
    ) -> Result<Self, ControlError> {
        Ok(Self {
            ledger: Ledger::new(identity, store.keys()?).ok_or(store::Error::KeysUnreadable)?,
            store,
            head,
            frontier: Frontier::empty(),
            edge: Edge::empty(),
            broken: false,
            time: UnixSeconds::default(),
            known: Vec::new(),
            cast: Cast::default(),
            index: IndexAudit::default(),
            findings: Vec::new(),
        })
    }

    fn found(&mut self, index: Option<LeafIndex>, code: &'static str, detail: impl ToString) {
        self.findings.push(Finding { index, code, detail: detail.to_string() });
    }

    /// The guard and the published checkpoint must be prefixes of the tree.
    fn remember_known_heads(&mut self, guard: &Guard, identity: &Identity) {
        match guard.read() {
            Ok(head) => {
                self.known.extend(head.map(|head| Known { what: "guard", head, found: None }));
            }
            Err(e) => self.found(None, "guard-unreadable", chain(&e)),
        }
        let published = || -> Result<Option<Head>, ControlError> {
            let Some(note) = self.store.checkpoint()? else { return Ok(None) };
            let key = checkpoint_verifier(self.store.dir(), identity)?;
            published_head(&note, &key).map(Some)
        };
        let what = "published checkpoint";
        match published() {
            Ok(head) => self.known.extend(head.map(|head| Known { what, head, found: None })),
            Err(e) => self.found(None, "checkpoint-unusable", chain(&e)),
        }
    }

    /// One statement: its bytes, its name, its leaf, its time, its author.
    fn step(&mut self, index: LeafIndex) {
        let leaf = match self.store.statement(index) {
            Ok(Some(stored)) => Some(self.statement(index, &stored)),
            Ok(None) => {
                self.found(Some(index), "statement-missing", "no statement is stored here");
                None
            }
            Err(e) => {
                self.found(Some(index), e.code(), chain(&e));
                None
            }
        };
        // A tile may still know the leaf, so that the rest can be checked.
        match leaf.or_else(|| self.leaf_from_tile(index)) {
            Some(leaf) if !self.broken => self.grow(leaf),
            Some(_) => {}
            None => self.broken = true,
        }
    }

    fn statement(&mut self, index: LeafIndex, stored: &Stored) -> Digest {
        let id = StatementId::of_canonical(&stored.canonical);
        match self.store.find(&id) {
            Ok(Some(at)) if at == index => {}
            Ok(Some(at)) => {
                self.found(Some(index), "id-mismatch", format!("id {id} points to index {at}"));
            }
            Ok(None) => self.found(Some(index), "id-missing", format!("id {id} is not indexed")),
            Err(e) => self.found(Some(index), e.code(), chain(&e)),
        }
        if stored.time < self.time {
            let (now, before) = (stored.time, self.time);
            self.found(Some(index), "time-runs-back", format!("{now} after {before}"));
        }
        self.time = self.time.max(stored.time);
        match self.index.check(self.store, index, stored) {
            Ok(lacks) => {
                lacks.into_iter().for_each(|what| self.found(Some(index), "index-differs", what));
            }
            Err(e) => self.found(Some(index), e.code(), chain(&e)),
        }
        match SignedStatement::parse_any_size(stored.canonical.clone()) {
            Ok(statement) if statement.canonical() == stored.canonical => {
                self.cast.hear(Speaker::of(&statement));
                for (code, detail) in self.ledger.judge(index, &statement, stored) {
                    self.found(Some(index), code, detail);
                }
                self.went_on_from(index, &statement);
            }
            Ok(_) => {
                self.found(Some(index), "not-canonical", "the unprotected map is not empty");
            }
            Err(e) => self.found(Some(index), e.code(), e),
        }
        leaf_hash(id.entry())
    }

    /// A log that went on after a restore names the root it had before.
    fn went_on_from(&mut self, index: LeafIndex, statement: &SignedStatement) {
        let is_own = self.ledger.control(statement) == Some(Control::Resumption);
        let payload = statement.payload().unwrap_or_default();
        if let Some(Ok(said)) = is_own.then(|| Resumption::read(payload))
            && !self.broken
            && said.root != self.frontier.root()
        {
            let detail = format!("it goes on from root {}, which is not the one here", said.root);
            self.found(Some(index), "resumption-invalid", detail);
        }
    }

    fn leaf_from_tile(&self, index: LeafIndex) -> Option<Digest> {
        let width = u64::from(TILE_WIDTH);
        let bytes = self.store.full_tile(TileId::full(0, index.get() / width)).ok()?;
        let leaves = parse_hash_tile(&bytes, TILE_WIDTH).ok()?;
        leaves.get(usize::try_from(index.get() % width).ok()?).copied()
    }

    /// Adds a leaf, and compares every tile it fills with the stored one.
    fn grow(&mut self, leaf: Digest) {
        self.frontier.append(leaf);
        for (tile, bytes) in self.edge.append(leaf) {
            match self.store.full_tile(tile) {
                Ok(stored) if *stored == *bytes => {}
                Ok(_) => self.found(None, "tile-differs", format!("{} differs", tile.path())),
                Err(e) => self.found(None, e.code(), chain(&e)),
            }
        }
        let (size, root) = (self.frontier.size(), self.frontier.root());
        for known in self.known.iter_mut().filter(|known| known.head.size == size) {
            known.found = Some(root);
        }
    }

    fn finish(mut self, identity: &Identity) -> Result<Checked, ControlError> {
        let root = (!self.broken).then(|| self.frontier.root());
        if root.is_some_and(|root| root != self.head.root()) {
            let detail = format!("the statements do not give the root {}", self.head.root());
            self.found(None, "root-differs", detail);
        }
        if self.time != self.head.time() {
            let (recorded, last) = (self.head.time(), self.time);
            let detail = format!("the head is of {recorded}, the last statement of {last}");
            self.found(None, "head-time-differs", detail);
        }
        for known in std::mem::take(&mut self.known) {
            self.compare(&known);
        }
        for what in std::mem::take(&mut self.index).finish(self.store)? {
            self.found(None, "index-differs", format!("the search index: {what}"));
        }
        self.count()?;
        for control in Control::ALL {
            let (seen, recorded) = (self.ledger.last(control), self.store.control(control)?);
            if seen != recorded {
                let name = |index: Option<LeafIndex>| {
                    index.map_or("none".to_owned(), |index| format!("#{index}"))
                };
                let (seen, recorded) = (name(seen), name(recorded));
                let subject = control.subject();
                let detail = format!("{subject}: {recorded} is in force, {seen} is the last one");
                self.found(None, "control-not-last", detail);
            }
        }
        if let Some(detail) = self.ledger.keys_left_over() {
            self.found(None, "keys-differ", format!("{detail} ({})", identity.issuer));
        }
        let Self { head, cast, findings, .. } = self;
        Ok(Checked { head: head.head(), root, cast, findings })
    }

    fn compare(&mut self, known: &Known) {
        let (what, Head { size, root, .. }) = (known.what, known.head);
        if size > self.head.size() {
            let found = self.head.size();
            let detail = format!("the {what} says {size} leaves were signed, {found} are here");
            self.found(None, "rolled-back", detail);
        } else if size.get() > 0 && !self.broken && known.found != Some(root) {
            let detail = format!("at {size} leaves the {what} has another root: {root}");
            self.found(None, "forked", detail);
        }
    }

    /// Nothing may lie in the store that the walk did not meet.
    fn count(&mut self) -> Result<(), store::Error> {
        let size = self.head.size();
        let full = tiles_of(size).filter(TileId::is_full).count();
        let full = u64::try_from(full).unwrap_or(u64::MAX);
        let covered =
            [(Space::Statements, size.get()), (Space::Ids, size.get()), (Space::Tiles, full)];
        for (space, expected) in covered {
            let found = self.store.count(space)?;
            if found != expected {
                let what = space.name();
                let detail = format!("{found} {what} are stored, the head covers {expected}");
                self.found(None, "count-differs", detail);
            }
        }
        Ok(())
    }
}
