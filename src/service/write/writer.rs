//! The one writer: a batch becomes one durable commit and one signed head.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::committer::Placement;
use super::recent_commits::RecentCommits;
use crate::envelope::{Authentic, StatementId};
use crate::key::{PublicKey, SigningKey};
use crate::log::{Edge, LeafIndex, Plan, leaf_hash};
use crate::profile::{self, Control};
use crate::receipt::{Receipt, SignedHead};
use crate::service::{Entry, Identity, Rules, Shared, Snapshot};
use crate::store::{Commit, Guard, HeadRecord, Lease, Lock, NewEntry, Store, Terms};
use crate::verify::{self, Memo};
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;
use crate::{key, log, store};

/// Owns the head: nothing else appends. While the log is served, the
/// committer's thread owns the writer, so its fields need no locks.
pub struct Writer {
    pub(in crate::service) identity: Identity,
    pub(in crate::service) store: Arc<Store>,
    pub(in crate::service) lease: Lease,
    pub(in crate::service) shared: Arc<Shared>,
    pub(in crate::service) head: HeadRecord,
    pub(in crate::service) edge: Arc<Edge>,
    pub(in crate::service) recent: RecentCommits,
    /// Written with every batch, when the operator pays for the second sync.
    pub(in crate::service) guard: Option<Guard>,
    /// Nobody else writes under the same guard.
    pub(in crate::service) _guard_lock: Option<Lock>,
}

/// Something that changes how the log itself works.
pub(in crate::service) struct Change {
    pub(in crate::service) control: Control,
    pub(in crate::service) rules: Option<Rules>,
    pub(in crate::service) successor: Option<SigningKey>,
}

impl Writer {
    /// The number of leaves.
    pub fn size(&self) -> log::TreeSize {
        self.head.size()
    }

    /// The key that signs now.
    pub(in crate::service) fn key(&self) -> Arc<SigningKey> {
        self.shared.signer.load_full()
    }

    /// Appends the statements that are not in the log yet and finds those that
    /// are, or whose twin is. One placement for each, in order.
    pub(in crate::service) fn append(
        &mut self,
        statements: &[NewStatement<'_>],
        now: UnixSeconds,
    ) -> Result<Vec<Placement>, Error> {
        let mut fresh: Vec<NewStatement<'_>> = Vec::new();
        let mut placed: HashMap<StatementId, LeafIndex, RandomState> =
            HashMap::with_capacity_and_hasher(statements.len(), RandomState::default());
        let mut plans = Vec::with_capacity(statements.len());
        for new in statements {
            let id = new.statement.id();
            let find = |id: &StatementId| match placed.get(id) {
                Some(index) => Ok(Some(*index)),
                None => self.logged(id, new.size),
            };
            let plan = if let Some(index) = find(&id)? {
                PlannedPlacement::Known(index)
            } else if let Some(twin) = new.statement.twin()
                && let Some(index) = find(&twin)?
            {
                PlannedPlacement::Twin(Entry { id: twin, index })
            } else {
                let nth = u64::try_from(fresh.len()).unwrap_or(u64::MAX);
                let index = LeafIndex::new(self.size().get().saturating_add(nth));
                fresh.push(*new);
                placed.insert(id, index);
                PlannedPlacement::Append(index)
            };
            plans.push(plan);
        }
        let paths = if fresh.is_empty() { Vec::new() } else { self.commit(&fresh, now, None)? };
        let (snapshot, mut paths) = (self.shared.snapshot.load_full(), paths.into_iter());
        let placement = |plan| match plan {
            PlannedPlacement::Append(index) => {
                // One path for each appended statement, in their order; without
                // its path a receipt would fail its verification.
                let path = paths.next().unwrap_or_default();
                Placement::Appended { index, path, snapshot: snapshot.clone() }
            }
            PlannedPlacement::Known(index) => Placement::Known(index),
            PlannedPlacement::Twin(entry) => Placement::Twin(entry),
        };
        Ok(plans.into_iter().map(placement).collect())
    }

    /// Where a statement is logged that was not there at this size.
    fn logged(&self, id: &StatementId, size: log::TreeSize) -> Result<Option<LeafIndex>, Error> {
        let is_possible = self.recent.may_contain(id, size);
        Ok(if is_possible { self.store.find(id)? } else { None })
    }

    /// Appends a control statement and lets the change take effect with it.
    pub(in crate::service) fn append_control(
        &mut self,
        statement: &Authentic,
        change: Change,
        now: UnixSeconds,
    ) -> Result<(), Error> {
        let read = profile::read(statement);
        let terms = Terms::of(statement.statement().header(), &read);
        let new = NewStatement { statement, terms: &terms, size: self.size() };
        self.commit(&[new], now, Some(change)).map(drop)
    }

    /// Plan, check, commit, sign, publish: in this order and no other. The
    /// inclusion paths of the statements, in their order.
    fn commit(
        &mut self,
        fresh: &[NewStatement<'_>],
        now: UnixSeconds,
        change: Option<Change>,
    ) -> Result<Vec<Vec<Digest>>, Error> {
        let leaves: Vec<_> =
            fresh.iter().map(|new| leaf_hash(new.statement.id().entry())).collect();
        let plan = Plan::extend(self.head.frontier(), &leaves);
        let mut edge = Edge::clone(&self.edge);
        let tiles: Vec<_> = leaves.iter().flat_map(|leaf| edge.append(*leaf)).collect();
        self.check_root(fresh, &plan)?;
        let first = LeafIndex::new(self.size().get());
        let head = self.head.next(plan.after, now);
        let entries: Vec<NewEntry<'_>> = fresh
            .iter()
            .map(|new| NewEntry {
                id: new.statement.id(),
                canonical: new.statement.canonical(),
                collateral: new.statement.collateral(),
                terms: new.terms,
            })
            .collect();
        let keys = self.keys_after(change.as_ref());
        let controls: Vec<_> = change.iter().map(|c| (c.control, first)).collect();
        let commit = Commit {
            before: &self.head,
            entries: &entries,
            tiles: &tiles,
            head: &head,
            controls: &controls,
            keys: keys.as_deref(),
        };
        self.store.commit(&self.lease, &commit)?;
        let before = self.size();
        self.recent.record(before, fresh.iter().map(|new| (new.statement.id(), new.terms)));
        self.head = head;
        self.edge = Arc::new(edge);
        if let Some(change) = change {
            self.take_effect(change, keys);
        }
        self.publish(fresh.last().map(|new| new.statement.canonical()), plan.paths.last())?;
        Ok(plan.paths)
    }

    /// Computes the new root a second time, from the bytes that will be stored
    /// and not from the ids. A bit that flipped in memory is noticed here,
    /// before it is signed.
    fn check_root(&self, fresh: &[NewStatement<'_>], plan: &Plan) -> Result<(), Error> {
        let mut frontier = self.head.frontier().clone();
        for new in fresh {
            let id = StatementId::of_canonical(new.statement.canonical());
            frontier.append(leaf_hash(id.entry()));
        }
        if frontier.root() == plan.root { Ok(()) } else { Err(Error::RootMismatch) }
    }

    /// The public keys after a succession: the new one first, all others kept.
    fn keys_after(&self, change: Option<&Change>) -> Option<Vec<PublicKey>> {
        let change = change?;
        let mut keys: Vec<PublicKey> = self.shared.keys.load().as_ref().clone();
        let active = change.successor.as_ref().unwrap_or(&self.key()).public().clone();
        keys.retain(|key| *key != active);
        keys.insert(0, active);
        Some(keys)
    }

    fn take_effect(&mut self, change: Change, keys: Option<Vec<PublicKey>>) {
        if let Some(key) = change.successor {
            self.shared.signer.store(Arc::new(key));
        }
        if let Some(keys) = keys {
            self.shared.keys.store(Arc::new(keys));
        }
        if let Some(rules) = change.rules {
            self.shared.rules.store(Arc::new(rules));
        }
    }

    /// Signs the head, checks the signature with the verifier, and makes the
    /// head visible to readers.
    pub(in crate::service) fn publish(
        &self,
        last: Option<&[u8]>,
        path: Option<&Vec<Digest>>,
    ) -> Result<(), Error> {
        let key = self.key();
        let signed = SignedHead::sign(self.head.head(), &self.identity.issuer, &key)?;
        let mut memo = Memo::default();
        // A tree of one leaf has no encodable receipt. It exists only while a
        // new log is made, before its second entry.
        if let (Some(canonical), Some(path)) = (last, path)
            && !path.is_empty()
        {
            let index = LeafIndex::new(self.size().get().saturating_sub(1));
            let receipt = Receipt::parse(signed.receipt(index, path)).map_err(Error::Receipt)?;
            let keys = std::slice::from_ref(key.public());
            verify::inclusion(&receipt, canonical, keys, &mut memo).map_err(Error::Verify)?;
        }
        if let Some(guard) = &self.guard {
            guard.advance(&self.head.head())?;
        }
        let snapshot = Snapshot { signed, edge: self.edge.clone(), memo };
        self.shared.snapshot.store(Arc::new(snapshot));
        Ok(())
    }
}

/// A statement to append.
#[derive(Clone, Copy)]
pub(in crate::service) struct NewStatement<'a> {
    pub(in crate::service) statement: &'a Authentic,
    /// Its index terms.
    pub(in crate::service) terms: &'a Terms,
    /// A size at which neither it nor its twin was in the log.
    pub(in crate::service) size: log::TreeSize,
}

/// Where a statement goes, before the commit.
enum PlannedPlacement {
    Append(LeafIndex),
    Known(LeafIndex),
    Twin(Entry),
}

/// Why a commit did not happen, or may not be signed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The two computations of the root differ.
    #[error("two computations of the new root differ: the machine's memory may be faulty")]
    RootMismatch,
    /// The head could not be signed.
    #[error("the head could not be signed")]
    Key(#[from] key::Error),
    /// Our own receipt cannot be read.
    #[error("our own receipt cannot be read")]
    Receipt(#[source] crate::receipt::Error),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] store::Error),
    /// Our own receipt does not verify.
    #[error("our own receipt does not verify")]
    Verify(#[source] verify::Error),
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RootMismatch => "gate",
            Self::Key(e) => e.code(),
            Self::Receipt(e) => e.code(),
            Self::Store(e) => e.code(),
            Self::Verify(e) => e.code(),
        }
    }
}
