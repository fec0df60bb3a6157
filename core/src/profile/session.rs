//! Sessions: chains of events that one issuer logs piece by piece, and whether
//! a piece continues where the chain in the log ends.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// The hash that the first event of a session follows.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A run of consecutive events of one session.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Span {
    /// The session.
    pub session: String,
    /// Sequence number of the first event.
    pub first: u64,
    /// Sequence number of the last event.
    pub last: u64,
    /// The hash that the first event follows.
    pub previous: String,
    /// The hash of the last event.
    pub head: String,
}

/// The last logged event of a session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Head {
    /// Its sequence number.
    pub last: u64,
    /// Its hash.
    pub hash: String,
}

/// How a span relates to what is logged of its session.
#[derive(Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum Continuity {
    /// It continues exactly at the session's head.
    Extends,
    /// It is another history of the session: two events have one sequence
    /// number.
    Fork,
    /// Events between the session's head and this span are not logged.
    Gap,
    /// It starts a session.
    New,
    /// Nothing of its session is logged, and it is not the start.
    NotGenesis,
    /// It starts before the session's head and ends elsewhere, so the head
    /// alone does not distinguish a repetition from a fork. Compare again with
    /// the head as it was at `span.last` or `span.first - 1`, where known.
    Overlaps,
    /// It is logged already: the last hash commits to all before it.
    Repeats,
}

impl Continuity {
    /// Its name in policies and reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The continuity with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// The session's head once the span is logged; none if it does not change.
    /// A gap that a policy admitted moves the head, and so does the first span
    /// seen of a session; a fork does not.
    pub fn head_after(self, span: &Span) -> Option<Head> {
        let moves = matches!(self, Self::Extends | Self::Gap | Self::New | Self::NotGenesis);
        moves.then(|| Head { last: span.last, hash: span.head.clone() })
    }
}

/// Compares a sound span with the head of its session.
pub fn continuity(head: Option<&Head>, span: &Span) -> Continuity {
    let Some(head) = head else {
        let is_start = span.first == 0 && span.previous == GENESIS;
        return if is_start { Continuity::New } else { Continuity::NotGenesis };
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
