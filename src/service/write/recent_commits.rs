//! What the last commits contained, in memory.
//!
//! Every statement was looked up in the store before it was queued. The writer
//! looks again only for what may have been committed since; this table says
//! what that is. It may say "maybe" too often, but never "no" wrongly.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::envelope::StatementId;
use crate::log::TreeSize;
use crate::store::{Term, Terms};

/// Statements in a generation. A statement that waits in the queue while two
/// generations pass is looked up again in the store.
const GENERATION: u64 = 16_384;
/// A generation ends with a whole commit, so it may be a little larger.
const GENERATION_ROOM: usize = 18_000;

/// The last two generations of commits.
pub(in crate::service) struct RecentCommits {
    older: Generation,
    newer: Generation,
}

struct Generation {
    since: TreeSize,
    ids: HashSet<StatementId, RandomState>,
    /// By term, the size of the tree before the last commit that had it.
    terms: HashMap<Term, TreeSize, RandomState>,
}

impl Generation {
    fn from(since: TreeSize) -> Self {
        // Allocated at once: growing step by step costs twice the memory.
        let ids = HashSet::with_capacity_and_hasher(GENERATION_ROOM, RandomState::default());
        Self { since, ids, terms: HashMap::default() }
    }
}

impl RecentCommits {
    /// Knows the commits from this size on.
    pub(in crate::service) fn new(size: TreeSize) -> Self {
        Self { older: Generation::from(size), newer: Generation::from(size) }
    }

    /// Records a commit to a tree of this size.
    pub(in crate::service) fn record<'a>(
        &mut self,
        size: TreeSize,
        committed: impl Iterator<Item = (StatementId, &'a Terms)>,
    ) {
        if size.get() - self.newer.since.get() >= GENERATION {
            self.older = std::mem::replace(&mut self.newer, Generation::from(size));
        }
        for (id, terms) in committed {
            self.newer.ids.insert(id);
            self.newer.terms.extend(terms.affecting().map(|term| (term.clone(), size)));
        }
    }

    /// Whether the statement may have been committed since `size`.
    pub(in crate::service) fn may_contain(&self, id: &StatementId, size: TreeSize) -> bool {
        size < self.older.since || self.newer.ids.contains(id) || self.older.ids.contains(id)
    }

    /// Whether a statement with the term may have been committed since `size`.
    pub(in crate::service) fn may_contain_term(&self, term: &Term, size: TreeSize) -> bool {
        let last = [&self.newer, &self.older].map(|generation| generation.terms.get(term));
        size < self.older.since || last.into_iter().flatten().any(|at| *at >= size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::digest::Digest;

    #[test]
    fn forgotten_commits_are_looked_up_again() {
        let size = TreeSize::new;
        let id = |n: u64| StatementId::of_canonical(&n.to_be_bytes());
        let terms = Terms::default();
        let mut recent = RecentCommits::new(size(5));
        assert!(recent.may_contain(&id(1), size(4)), "before the first recorded commit");
        assert!(!recent.may_contain(&id(1), size(5)));
        recent.record(size(5), [(id(1), &terms)].into_iter());
        assert!(recent.may_contain(&id(1), size(5)));
        let mut at = 6;
        while at < 5 + 3 * GENERATION {
            recent.record(size(at), (at..at + 100).map(|n| (id(n), &terms)));
            at += 100;
        }
        assert!(recent.may_contain(&id(1), size(5)), "forgotten, so looked up");
        assert!(recent.may_contain(&id(at - 1), size(at)), "remembered");
        assert!(
            !recent.may_contain(&StatementId::of_canonical(Digest::of(b"x").as_bytes()), size(at))
        );
        assert!(recent.newer.ids.len() + recent.older.ids.len() <= 40_000);
    }
}
