//! The one writer: a batch becomes one durable commit and one signature.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::queue::{Answer, Placed};
use super::recent::Recent;
use crate::envelope::{Authentic, StatementId};
use crate::key::{PublicKey, SigningKey};
use crate::log::{Edge, LeafIndex, Plan, leaf_hash};
use crate::profile::{self, Control};
use crate::receipt::{Receipt, SignedHead};
use crate::service::{Identity, Rules, Shared, Snapshot};
use crate::store::{Commit, Guard, HeadRecord, Lease, Lock, NewEntry, Store, Terms};
use crate::verify::{self, Memo};
use crate::wire::time::UnixSeconds;
use crate::{key, log, store};

/// Owns the head: nothing else appends.
pub struct Writer {
    pub(in crate::service) identity: Identity,
    pub(in crate::service) store: Arc<Store>,
    pub(in crate::service) lease: Lease,
    pub(in crate::service) shared: Arc<Shared>,
    pub(in crate::service) head: HeadRecord,
    pub(in crate::service) edge: Arc<Edge>,
    pub(in crate::service) recent: Recent,
    /// Written with every batch, when the operator pays for the second sync.
    pub(in crate::service) guard: Option<Guard>,
    /// Nobody else writes under the same guard.
    pub(in crate::service) _held: Option<Lock>,
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

    /// Appends statements that are not in the log yet, and finds those that
    /// are, or whose twin is; each comes with the size of the log when neither
    /// was there. One answer for each, in order.
    pub(in crate::service) fn append(
        &mut self,
        statements: &[(Indexed<'_>, log::TreeSize)],
        now: UnixSeconds,
    ) -> Result<Vec<Answer>, Error> {
        let mut fresh: Vec<Indexed<'_>> = Vec::new();
        let mut places: HashMap<StatementId, Place, RandomState> =
            HashMap::with_capacity_and_hasher(statements.len(), RandomState::default());
        for (indexed @ (statement, _), size) in statements {
            if places.contains_key(&statement.id()) {
                continue;
            }
            let place = match (self.logged(&statement.id(), *size)?, statement.twin()) {
                (Some(index), _) => Place::Old(index),
                (None, Some(twin)) if places.contains_key(&twin) => Place::Twin(twin),
                (None, Some(twin)) if self.logged(&twin, *size)?.is_some() => Place::Twin(twin),
                (None, _) => {
                    fresh.push(*indexed);
                    Place::New(fresh.len() - 1)
                }
            };
            places.insert(statement.id(), place);
        }
        let first = self.size().get();
        let mut paths = if fresh.is_empty() { Vec::new() } else { self.commit(&fresh, now, None)? };
        let snapshot = self.shared.snapshot.load_full();
        let mut answers = Vec::with_capacity(statements.len());
        for ((statement, _), _) in statements {
            let (index, path) = match places.get(&statement.id()) {
                Some(Place::New(nth)) => {
                    // A second copy in one batch gets its path from the tiles.
                    (place_of(first, *nth), paths.get_mut(*nth).and_then(Option::take))
                }
                Some(Place::Old(index)) => (*index, None),
                Some(Place::Twin(id)) => {
                    let index = match places.get(id) {
                        Some(Place::New(nth)) => Some(place_of(first, *nth)),
                        _ => self.store.find(id)?,
                    };
                    let index = index.unwrap_or(LeafIndex::new(u64::MAX));
                    answers.push(Answer::Twin(crate::service::Entry { id: *id, index }));
                    continue;
                }
                None => (LeafIndex::new(u64::MAX), None),
            };
            answers.push(Answer::Placed(Placed { index, path, snapshot: snapshot.clone() }));
        }
        Ok(answers)
    }

    /// Where a statement stands that was not there at this size.
    fn logged(&self, id: &StatementId, size: log::TreeSize) -> Result<Option<LeafIndex>, Error> {
        let may_hold = self.recent.may_hold(id, size);
        Ok(if may_hold { self.store.find(id)? } else { None })
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
        self.commit(&[(statement, &terms)], now, Some(change)).map(drop)
    }

    /// Plan, gate, commit, sign, publish: in this order and no other.
    fn commit(
        &mut self,
        fresh: &[Indexed<'_>],
        now: UnixSeconds,
        change: Option<Change>,
    ) -> Result<Vec<Option<Vec<crate::wire::digest::Digest>>>, Error> {
        let leaves: Vec<_> = fresh.iter().map(|(s, _)| leaf_hash(s.id().entry())).collect();
        let plan = Plan::extend(self.head.frontier(), &leaves);
        let mut edge = Edge::clone(&self.edge);
        let tiles: Vec<_> = leaves.iter().flat_map(|leaf| edge.append(*leaf)).collect();
        self.gate(fresh, &plan)?;
        let first = LeafIndex::new(self.size().get());
        let head = self.head.next(plan.after, now);
        let entries: Vec<NewEntry<'_>> = fresh
            .iter()
            .map(|(s, terms)| NewEntry {
                id: s.id(),
                canonical: s.canonical(),
                collateral: s.collateral(),
                terms,
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
        self.recent.hear(before, fresh.iter().map(|(s, terms)| (s.id(), *terms)));
        self.head = head;
        self.edge = Arc::new(edge);
        if let Some(change) = change {
            self.take_effect(change, keys);
        }
        self.publish(fresh.last().map(|(s, _)| s.canonical()), plan.paths.last())?;
        Ok(plan.paths.into_iter().map(Some).collect())
    }

    /// Computes the new root a second time, from the bytes that will be
    /// stored instead of the ids that came along. A bit that flipped in
    /// memory ends here, before it is signed.
    fn gate(&self, fresh: &[Indexed<'_>], plan: &Plan) -> Result<(), Error> {
        let mut frontier = self.head.frontier().clone();
        for (statement, _) in fresh {
            let id = StatementId::of_canonical(statement.canonical());
            frontier.append(leaf_hash(id.entry()));
        }
        if frontier.root() == plan.root { Ok(()) } else { Err(Error::Gate) }
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

    /// Signs the head once, sees the signature verify through the only
    /// verifier, and shows it to everybody.
    pub(in crate::service) fn publish(
        &self,
        last: Option<&[u8]>,
        path: Option<&Vec<crate::wire::digest::Digest>>,
    ) -> Result<(), Error> {
        let key = self.key();
        let signed = SignedHead::sign(self.head.head(), &self.identity.issuer, &key)?;
        let mut memo = Memo::default();
        // A tree of one leaf has no encodable receipt; it is only ever the
        // step before the second entry of a new log.
        if let (Some(canonical), Some(path)) = (last, path)
            && !path.is_empty()
        {
            let index = LeafIndex::new(self.size().get().saturating_sub(1));
            let receipt = Receipt::parse(signed.receipt(index, path)).map_err(Error::Receipt)?;
            let keys = std::slice::from_ref(key.public());
            verify::inclusion(&receipt, canonical, keys, &mut memo).map_err(Error::Verify)?;
        }
        if let Some(guard) = &self.guard {
            guard.write(&self.head.head())?;
        }
        let snapshot = Snapshot { signed, edge: self.edge.clone(), memo };
        self.shared.snapshot.store(Arc::new(snapshot));
        Ok(())
    }
}

/// A statement and what it will be found by.
pub(in crate::service) type Indexed<'a> = (&'a Authentic, &'a Terms);

enum Place {
    Old(LeafIndex),
    New(usize),
    /// Not logged, because this one is, before or in the same batch.
    Twin(StatementId),
}

/// The leaf of the nth new statement of a commit.
fn place_of(first: u64, nth: usize) -> LeafIndex {
    LeafIndex::new(first.saturating_add(u64::try_from(nth).unwrap_or(u64::MAX)))
}

/// Why a commit did not happen, or may not be signed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The two computations of the root differ.
    #[error("the root computed twice came out different: memory cannot be trusted")]
    Gate,
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
    /// The stable word.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Key(e) => e.code(),
            Self::Receipt(e) => e.code(),
            Self::Store(e) => e.code(),
            Self::Verify(e) => e.code(),
        }
    }
}
