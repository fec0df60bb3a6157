//! Statements that wait for the records they name.
//!
//! A policy may let a statement whose predecessors are not logged wait for
//! them, instead of refusing it at once. What waits is in memory, bounded in
//! number by the policy and in time too; who was told to wait asks again.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::envelope::StatementId;
use crate::store::Term;

/// Everything that waits.
#[derive(Default)]
pub(in crate::service) struct Held {
    inner: Mutex<Inner>,
    /// Looked at by the writer after every commit, without the lock.
    listeners: AtomicUsize,
}

#[derive(Default)]
struct Inner {
    ids: HashSet<StatementId>,
    listeners: HashMap<Term, Vec<Arc<Notify>>>,
}

/// A place among those that wait; given back when dropped.
pub(in crate::service) struct Place {
    held: Arc<Held>,
    id: StatementId,
}

impl Held {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, unless `limit` are taken or the statement has one.
    pub(in crate::service) fn place(
        self: &Arc<Self>,
        id: StatementId,
        limit: usize,
    ) -> Option<Place> {
        let mut inner = self.inner();
        let has_room = inner.ids.len() < limit && inner.ids.insert(id);
        has_room.then(|| Place { held: self.clone(), id })
    }

    /// Whether a statement waits.
    pub(in crate::service) fn holds(&self, id: &StatementId) -> bool {
        self.inner().ids.contains(id)
    }

    /// How many wait.
    pub(in crate::service) fn len(&self) -> usize {
        self.inner().ids.len()
    }

    /// Wakes when a statement with one of these terms is logged. To miss
    /// nothing, listen first and look into the log after.
    pub(in crate::service) fn listen(&self, terms: impl Iterator<Item = Term>) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        let mut inner = self.inner();
        for term in terms {
            let listeners = inner.listeners.entry(term).or_default();
            // Those who went away have left only this list behind.
            listeners.retain(|listener| Arc::strong_count(listener) > 1);
            listeners.push(notify.clone());
        }
        inner.listeners.retain(|_, all| all.iter().any(|one| Arc::strong_count(one) > 1));
        self.listeners.store(inner.listeners.len(), Ordering::Release);
        notify
    }

    /// Wakes those who wait for any of these terms.
    pub(in crate::service) fn tell<'a>(&self, terms: impl Iterator<Item = &'a Term>) {
        if self.listeners.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut inner = self.inner();
        for term in terms {
            for listener in inner.listeners.remove(term).into_iter().flatten() {
                listener.notify_one();
            }
        }
        self.listeners.store(inner.listeners.len(), Ordering::Release);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.held.inner().ids.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Field;

    #[tokio::test]
    async fn places_are_bounded_and_given_back() {
        let held = Arc::new(Held::default());
        let id = |n: u8| StatementId::of_canonical(&[n]);
        let first = held.place(id(1), 2).unwrap();
        let _second = held.place(id(2), 2).unwrap();
        assert!(held.place(id(3), 2).is_none(), "full");
        assert!(held.holds(&id(1)) && !held.holds(&id(3)));
        drop(first);
        assert_eq!((held.holds(&id(1)), held.len()), (false, 1));
        assert!(held.place(id(2), 9).is_none(), "it has one");
    }

    #[tokio::test]
    async fn who_listens_is_told_once_and_forgotten() {
        let held = Held::default();
        let term = |name: &str| Term::new(Field::RecordId, name);
        let gone = held.listen([term("a")].into_iter());
        drop(gone);
        let heard = held.listen([term("a"), term("b")].into_iter());
        held.tell([&term("c")].into_iter());
        held.tell([&term("a")].into_iter());
        heard.notified().await;
        drop(heard);
        let _other = held.listen([term("x")].into_iter());
        assert_eq!(held.inner().listeners.len(), 1, "nothing is left behind");
    }
}
