//! What the last commits were about, so that the writer need not ask the disk
//! what a statement's own journey asked a moment ago.
//!
//! In: what is committed. Out: whether anything since some size could matter
//! to a statement. "Maybe" is always a right answer; "no" never is by chance.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::envelope::StatementId;
use crate::log::TreeSize;
use crate::store::{Term, Terms};

/// Statements remembered before the older half is forgotten. A statement that
/// waits in the queue for longer than this many others is asked about again.
const GENERATION: u64 = 16_384;
/// The commit that ends a generation may be a large one.
const GENERATION_ROOM: usize = 18_000;

/// Two generations of commits.
pub(in crate::service) struct Recent {
    older: Generation,
    newer: Generation,
}

struct Generation {
    since: TreeSize,
    ids: HashSet<StatementId, RandomState>,
    /// With the size of the tree that last came to have it.
    told: HashMap<Term, TreeSize, RandomState>,
}

impl Generation {
    fn from(since: TreeSize) -> Self {
        // Room for all of it: growing step by step costs twice the memory.
        let ids = HashSet::with_capacity_and_hasher(GENERATION_ROOM, RandomState::default());
        Self { since, ids, told: HashMap::default() }
    }
}

impl Recent {
    /// Remembers from this size on.
    pub(in crate::service) fn new(size: TreeSize) -> Self {
        Self { older: Generation::from(size), newer: Generation::from(size) }
    }

    /// Takes what was committed to a tree of this size.
    pub(in crate::service) fn hear<'a>(
        &mut self,
        size: TreeSize,
        committed: impl Iterator<Item = (StatementId, &'a Terms)>,
    ) {
        if size.get() - self.newer.since.get() >= GENERATION {
            self.older = std::mem::replace(&mut self.newer, Generation::from(size));
        }
        for (id, terms) in committed {
            self.newer.ids.insert(id);
            self.newer.told.extend(terms.telling().map(|term| (term.clone(), size)));
        }
    }

    /// Whether the statement may have been committed to a tree of `size` or
    /// a later one.
    pub(in crate::service) fn may_hold(&self, id: &StatementId, size: TreeSize) -> bool {
        size < self.older.since || self.newer.ids.contains(id) || self.older.ids.contains(id)
    }

    /// The same for a statement that has the term.
    pub(in crate::service) fn may_tell(&self, term: &Term, size: TreeSize) -> bool {
        let told = [&self.newer, &self.older].map(|generation| generation.told.get(term));
        size < self.older.since || told.into_iter().flatten().any(|at| *at >= size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::digest::Digest;

    #[test]
    fn what_is_forgotten_is_never_denied() {
        let size = TreeSize::new;
        let id = |n: u64| StatementId::of_canonical(&n.to_be_bytes());
        let terms = Terms::default();
        let mut recent = Recent::new(size(5));
        assert!(recent.may_hold(&id(1), size(4)), "from before we listened");
        assert!(!recent.may_hold(&id(1), size(5)));
        recent.hear(size(5), [(id(1), &terms)].into_iter());
        assert!(recent.may_hold(&id(1), size(5)));
        let mut at = 6;
        while at < 5 + 3 * GENERATION {
            recent.hear(size(at), (at..at + 100).map(|n| (id(n), &terms)));
            at += 100;
        }
        assert!(recent.may_hold(&id(1), size(5)), "forgotten, so asked about");
        assert!(recent.may_hold(&id(at - 1), size(at)), "remembered");
        assert!(
            !recent.may_hold(&StatementId::of_canonical(Digest::of(b"x").as_bytes()), size(at))
        );
        assert!(recent.newer.ids.len() + recent.older.ids.len() <= 40_000);
    }
}
