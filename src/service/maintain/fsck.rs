//! Recomputes everything in a data directory from the statements' bytes.
//!
//! In: a data directory that no other process has open. Out: findings, each
//! with its index. The walk does not stop at a finding, and decides about every
//! statement by the trust and policy in force at its index.

#[cfg(test)]
mod flips;
#[cfg(test)]
pub(in crate::service) mod tests;

use std::path::Path;

use super::admission_replay::{AdmissionError, AdmissionReplay};
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
use crate::story::Threads;
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

/// The result of a walk through the whole log.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The size and root the head record claims.
    pub head: Head,
    /// The root computed from the statements; none if one is missing.
    pub root: Option<Digest>,
    /// The pairs of issuer and subject.
    pub threads: Threads,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Checks a whole log. `progress` gets the statements done and their total.
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
    walk.read_signed_heads(guard, &identity);
    let size = head.size().get();
    for index in 0..size {
        walk.check_entry(LeafIndex::new(index));
        progress(index + 1, size);
    }
    walk.finish(&identity)
}

/// A head that was signed, and the root computed at its size.
struct SignedBefore {
    source: &'static str,
    head: Head,
    computed: Option<Digest>,
}

impl SignedBefore {
    fn new(source: &'static str, head: Head) -> Self {
        Self { source, head, computed: None }
    }
}

struct Walk<'a> {
    store: &'a Store,
    head: &'a HeadRecord,
    admission: AdmissionReplay,
    frontier: Frontier,
    edge: Edge,
    /// Whether a leaf is unknown, so that no root can be computed.
    broken: bool,
    time: UnixSeconds,
    signed: Vec<SignedBefore>,
    threads: Threads,
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
            admission: AdmissionReplay::new(identity, store.keys()?)
                .ok_or(store::Error::KeysUnreadable)?,
            store,
            head,
            frontier: Frontier::empty(),
            edge: Edge::empty(),
            broken: false,
            time: UnixSeconds::default(),
            signed: Vec::new(),
            threads: Threads::default(),
            index: IndexAudit::default(),
            findings: Vec::new(),
        })
    }

    fn found(&mut self, index: Option<LeafIndex>, code: &'static str, detail: impl ToString) {
        self.findings.push(Finding { index, code, detail: detail.to_string() });
    }

    /// The guard and the published checkpoint must be prefixes of the tree.
    fn read_signed_heads(&mut self, guard: &Guard, identity: &Identity) {
        match guard.read() {
            Ok(head) => self.signed.extend(head.map(|head| SignedBefore::new("guard", head))),
            Err(e) => self.found(None, "guard-unreadable", chain(&e)),
        }
        let published = || -> Result<Option<Head>, ControlError> {
            let Some(note) = self.store.checkpoint()? else { return Ok(None) };
            let key = checkpoint_verifier(self.store.dir(), identity)?;
            published_head(&note, &key).map(Some)
        };
        let source = "published checkpoint";
        match published() {
            Ok(head) => self.signed.extend(head.map(|head| SignedBefore::new(source, head))),
            Err(e) => self.found(None, "checkpoint-unusable", chain(&e)),
        }
    }

    /// Checks the statement at an index and appends its leaf.
    fn check_entry(&mut self, index: LeafIndex) {
        let leaf = match self.store.statement(index) {
            Ok(Some(stored)) => Some(self.check_statement(index, &stored)),
            Ok(None) => {
                self.found(Some(index), "statement-missing", "no statement is stored here");
                None
            }
            Err(e) => {
                self.found(Some(index), e.code(), chain(&e));
                None
            }
        };
        // With the leaf from its tile the rest can still be checked.
        match leaf.or_else(|| self.leaf_from_tile(index)) {
            Some(leaf) if !self.broken => self.append(leaf),
            Some(_) => {}
            None => self.broken = true,
        }
    }

    /// Checks the bytes, id, time, index rows and admission of a statement;
    /// its leaf.
    fn check_statement(&mut self, index: LeafIndex, stored: &Stored) -> Digest {
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
                self.threads.add(&statement);
                let decision = self.admission.replay(index, &statement, stored);
                if let Err(AdmissionError { code, detail }) = decision {
                    self.found(Some(index), code, detail);
                }
                self.check_resumption(index, &statement);
            }
            Ok(_) => {
                self.found(Some(index), "not-canonical", "the unprotected map is not empty");
            }
            Err(e) => self.found(Some(index), e.code(), e),
        }
        leaf_hash(id.entry())
    }

    /// A resumption must name the root of the tree before it.
    fn check_resumption(&mut self, index: LeafIndex, statement: &SignedStatement) {
        let is_own = self.admission.control(statement) == Some(Control::Resumption);
        let payload = statement.payload().unwrap_or_default();
        if let Some(Ok(resumption)) = is_own.then(|| Resumption::read(payload))
            && !self.broken
            && resumption.root != self.frontier.root()
        {
            let detail =
                format!("it names root {}, which is not the root before it", resumption.root);
            self.found(Some(index), "resumption-invalid", detail);
        }
    }

    fn leaf_from_tile(&self, index: LeafIndex) -> Option<Digest> {
        let width = u64::from(TILE_WIDTH);
        let bytes = self.store.full_tile(TileId::full(0, index.get() / width)).ok()?;
        let leaves = parse_hash_tile(&bytes, TILE_WIDTH).ok()?;
        leaves.get(usize::try_from(index.get() % width).ok()?).copied()
    }

    /// Appends a leaf, and compares every tile it fills with the stored one.
    fn append(&mut self, leaf: Digest) {
        self.frontier.append(leaf);
        for (tile, bytes) in self.edge.append(leaf) {
            match self.store.full_tile(tile) {
                Ok(stored) if *stored == *bytes => {}
                Ok(_) => self.found(None, "tile-differs", format!("{} differs", tile.path())),
                Err(e) => self.found(None, e.code(), chain(&e)),
            }
        }
        let (size, root) = (self.frontier.size(), self.frontier.root());
        for signed in self.signed.iter_mut().filter(|signed| signed.head.size == size) {
            signed.computed = Some(root);
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
        for signed in std::mem::take(&mut self.signed) {
            self.compare(&signed);
        }
        for what in std::mem::take(&mut self.index).finish(self.store)? {
            self.found(None, "index-differs", format!("the search index: {what}"));
        }
        self.check_counts()?;
        for control in Control::ALL {
            let (seen, recorded) = (self.admission.last(control), self.store.control(control)?);
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
        if let Some(detail) = self.admission.keys_left_over() {
            self.found(None, "keys-differ", format!("{detail} ({})", identity.issuer));
        }
        let Self { head, threads, findings, .. } = self;
        Ok(Checked { head: head.head(), root, threads, findings })
    }

    fn compare(&mut self, signed: &SignedBefore) {
        let (what, Head { size, root, .. }) = (signed.source, signed.head);
        if size > self.head.size() {
            let found = self.head.size();
            let detail = format!("the {what} says {size} leaves were signed, {found} are here");
            self.found(None, "rolled-back", detail);
        } else if size.get() > 0 && !self.broken && signed.computed != Some(root) {
            let detail = format!("at {size} leaves the {what} has another root: {root}");
            self.found(None, "forked", detail);
        }
    }

    /// The store may hold no rows beyond those that the walk checked.
    fn check_counts(&mut self) -> Result<(), store::Error> {
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
