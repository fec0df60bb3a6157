//! Statements that wait for records they refer to.
//!
//! A policy may let a statement wait for predecessors that are not logged yet,
//! instead of refusing it at once. Pending statements are kept in memory only;
//! the policy bounds their number and how long they wait.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::register::Candidate;
use crate::envelope::StatementId;
use crate::policy::Pending as PendingLimits;
use crate::store::Term;

/// A statement the policy would admit if its predecessors were logged.
pub struct Pending {
    pub(super) candidate: Candidate,
    pub(super) slot: PendingSlot,
}

impl Pending {
    /// The statement id.
    pub fn id(&self) -> StatementId {
        self.slot.id
    }
}

/// One of the places for pending statements; free again when dropped.
pub(super) struct PendingSlot {
    table: Arc<PendingTable>,
    id: StatementId,
    pub(super) until: Instant,
}

/// All pending statements.
#[derive(Default)]
pub(in crate::service) struct PendingTable {
    /// Locked by request tasks, and by the committer only when `subscribed` is
    /// not 0.
    inner: Mutex<Inner>,
    /// The number of terms in `inner.subscribers`, read without the lock after
    /// every commit.
    subscribed: AtomicUsize,
}

#[derive(Default)]
struct Inner {
    ids: HashSet<StatementId>,
    subscribers: HashMap<Term, Vec<Arc<Notify>>>,
}

impl PendingTable {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot, unless all are taken or the statement is pending already.
    pub(super) fn acquire(
        self: &Arc<Self>,
        id: StatementId,
        limits: PendingLimits,
    ) -> Option<PendingSlot> {
        let mut inner = self.inner();
        let has_room = inner.ids.len() < limits.statements && inner.ids.insert(id);
        let until = Instant::now() + Duration::from_secs(limits.seconds);
        has_room.then(|| PendingSlot { table: self.clone(), id, until })
    }

    /// Whether a statement is pending.
    pub(in crate::service) fn contains(&self, id: &StatementId) -> bool {
        self.inner().ids.contains(id)
    }

    /// How many statements are pending.
    pub(in crate::service) fn len(&self) -> usize {
        self.inner().ids.len()
    }

    /// Notifies once a statement with one of these terms is logged. Subscribe
    /// before looking into the log, or a commit in between goes unnoticed.
    pub(super) fn subscribe(&self, terms: impl Iterator<Item = Term>) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        let is_live = |subscriber: &Arc<Notify>| Arc::strong_count(subscriber) > 1;
        let mut inner = self.inner();
        for term in terms {
            let subscribers = inner.subscribers.entry(term).or_default();
            subscribers.retain(is_live);
            subscribers.push(notify.clone());
        }
        inner.subscribers.retain(|_, all| all.iter().any(is_live));
        self.subscribed.store(inner.subscribers.len(), Ordering::Release);
        notify
    }

    /// Wakes the subscribers of terms that were just logged.
    pub(super) fn notify<'a>(&self, terms: impl Iterator<Item = &'a Term>) {
        if self.subscribed.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut inner = self.inner();
        for term in terms {
            for subscriber in inner.subscribers.remove(term).into_iter().flatten() {
                subscriber.notify_one();
            }
        }
        self.subscribed.store(inner.subscribers.len(), Ordering::Release);
    }
}

impl Drop for PendingSlot {
    fn drop(&mut self) {
        self.table.inner().ids.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Field;

    #[tokio::test]
    async fn slots_are_bounded_and_freed() {
        let table = Arc::new(PendingTable::default());
        let id = |n: u8| StatementId::of_canonical(&[n]);
        let acquire =
            |n, statements| table.acquire(id(n), PendingLimits { seconds: 9, statements });
        let first = acquire(1, 2).unwrap();
        let _second = acquire(2, 2).unwrap();
        assert!(acquire(3, 2).is_none(), "full");
        assert!(table.contains(&id(1)) && !table.contains(&id(3)));
        drop(first);
        assert_eq!((table.contains(&id(1)), table.len()), (false, 1));
        assert!(acquire(2, 9).is_none(), "pending already");
    }

    #[tokio::test]
    async fn subscribers_are_notified_once_and_removed() {
        let table = PendingTable::default();
        let term = |name: &str| Term::new(Field::RecordId, name);
        let gone = table.subscribe([term("a")].into_iter());
        drop(gone);
        let woken = table.subscribe([term("a"), term("b")].into_iter());
        table.notify([&term("c")].into_iter());
        table.notify([&term("a")].into_iter());
        woken.notified().await;
        drop(woken);
        let _other = table.subscribe([term("x")].into_iter());
        assert_eq!(table.inner().subscribers.len(), 1, "dropped subscribers are removed");
    }
}
