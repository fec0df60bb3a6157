//! Whether a batch goes on where a session stopped.

use super::event::GENESIS;
use crate::profile::Span;

/// Where a session's logged chain ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Head {
    /// The sequence number of its last event.
    pub last: u64,
    /// The hash of that event.
    pub hash: String,
}

/// How a batch stands to what is logged of its session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Continuity {
    /// It goes on exactly where the session stopped.
    Extends,
    /// It is another history of the session: two events claim one place.
    Fork,
    /// Events between the session's head and this batch are not logged.
    Gap,
    /// It begins a session.
    New,
    /// It is of a session nobody began.
    NotGenesis,
    /// It begins before the session's head and does not end there, so the
    /// head alone does not tell a repetition from a fork. Ask again with what
    /// the head was at `span.last`, or at `span.first - 1`, where that is
    /// known.
    Overlaps,
    /// It is what is logged already: the last hash binds all before it.
    Repeats,
}

impl Continuity {
    /// Its name in policies and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Extends => "extends",
            Self::Fork => "fork",
            Self::Gap => "gap",
            Self::New => "new",
            Self::NotGenesis => "not-genesis",
            Self::Overlaps => "overlaps",
            Self::Repeats => "repeats",
        }
    }

    /// The continuity with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::Extends,
            Self::Fork,
            Self::Gap,
            Self::New,
            Self::NotGenesis,
            Self::Overlaps,
            Self::Repeats,
        ];
        all.into_iter().find(|one| one.name() == name)
    }

    /// Where the session ends once the batch is logged; none if it ends where
    /// it did. A session goes on after a gap that a policy let pass, and
    /// begins where it was first heard of; a second history moves nothing.
    pub fn head_after(self, span: &Span) -> Option<Head> {
        let moves = matches!(self, Self::Extends | Self::Gap | Self::New | Self::NotGenesis);
        moves.then(|| Head { last: span.last, hash: span.head.clone() })
    }
}

/// Compares a sound batch with the head of its session.
pub fn continuity(head: Option<&Head>, span: &Span) -> Continuity {
    let Some(head) = head else {
        let begins = span.first == 0 && span.previous == GENESIS;
        return if begins { Continuity::New } else { Continuity::NotGenesis };
    };
    match span.first.checked_sub(1) {
        Some(before) if before == head.last && span.previous == head.hash => Continuity::Extends,
        Some(before) if before == head.last => Continuity::Fork,
        Some(before) if before > head.last => Continuity::Gap,
        _ if span.last == head.last && span.head == head.hash => Continuity::Repeats,
        _ if span.last == head.last => Continuity::Fork,
        _ => Continuity::Overlaps,
    }
}
