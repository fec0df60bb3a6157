//! The index compared with the statements it is made from.
//!
//! In: every statement, in order. Out: what the index lacks of each, and at
//! the end what it has that no statement accounts for. Every pair of term and
//! statement and every second is looked up, and all are counted, so that no
//! surplus row goes unnoticed.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::index::{Term, Terms, statements_in};
use super::{Direction, Error, KeyRange, Space, Store, Stored, index};
use crate::log::LeafIndex;
use crate::profile::session::{Head, continuity};
use crate::wire::time::UnixSeconds;

/// An audit under way.
#[derive(Default)]
pub struct IndexAudit {
    ends: HashMap<Term, Head>,
    time: Option<UnixSeconds>,
    seconds: u64,
    pairs: u64,
    is_of_earlier: Option<bool>,
}

impl IndexAudit {
    /// Looks up the next statement; what the index lacks of it.
    pub fn check(
        &mut self,
        store: &Store,
        index: LeafIndex,
        stored: &Stored,
    ) -> Result<Vec<&'static str>, Error> {
        let mut lacks = Vec::new();
        if self.is_of_earlier(store)? {
            return Ok(lacks);
        }
        let (terms, session) = Terms::of_canonical(&stored.canonical);
        for term in terms.iter() {
            self.pairs += 1;
            if !store.has_term(term, index.get())? {
                lacks.push("it cannot be found by one of its values");
            }
            if term.has_first_row() && !store.has_first(term)? {
                lacks.push("one of its values counts as unknown");
            }
        }
        if self.time.replace(stored.time) != Some(stored.time) {
            self.seconds += 1;
            if !store.has_index_row(&Term::time(stored.time).at(index.get()))? {
                lacks.push("it cannot be found by its time");
            }
        }
        if let Some((session, span)) = session
            && let Some(end) = continuity(self.ends.get(&session), &span).head_after(&span)
        {
            self.ends.insert(session, end);
        }
        Ok(lacks)
    }

    /// An index that an earlier program made has other rows.
    fn is_of_earlier(&mut self, store: &Store) -> Result<bool, Error> {
        let known = match self.is_of_earlier {
            Some(known) => known,
            None => store.index_is_of_earlier()?,
        };
        self.is_of_earlier = Some(known);
        Ok(known)
    }

    /// What the index has that no statement accounts for.
    pub fn finish(mut self, store: &Store) -> Result<Vec<String>, Error> {
        let mut differences = Vec::new();
        if self.is_of_earlier(store)? {
            return Ok(differences);
        }
        if !store.index_is_current()? {
            differences
                .push("it has no marker of this version; the next start makes it again".into());
            return Ok(differences);
        }
        let ends = self.ends.iter().map(|(session, end)| (session.alone(), Terms::end_value(end)));
        let mut ends: HashMap<Vec<u8>, Vec<u8>> = ends.collect();
        let (mut pairs, mut seconds) = (0_u64, 0_u64);
        store.scan::<()>(Space::Index, KeyRange::all(), Direction::Forward, |key, value| {
            if *key == index::MARKER {
            } else if let Some(end) = ends.remove(key) {
                if end != *value {
                    differences.push("the end of a session differs".to_owned());
                }
            } else if Term::is_time(key) && value.is_empty() {
                seconds = seconds.saturating_add(1);
            } else if Term::is_alone(key) && value.len() == 8 {
                pairs = pairs.saturating_add(1);
            } else if Term::is_alone(key) || value.is_empty() || value.len() % 2 == 1 {
                differences.push("a row cannot be read".to_owned());
            } else {
                let count = statements_in(0, value).count();
                pairs = pairs.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if !ends.is_empty() {
            differences.push(format!("{} sessions have no end", ends.len()));
        }
        if seconds != self.seconds {
            differences
                .push(format!("it has {seconds} seconds, the statements give {}", self.seconds));
        }
        if pairs != self.pairs {
            differences.push(format!("it has {pairs} entries, the statements give {}", self.pairs));
        }
        Ok(differences)
    }
}
