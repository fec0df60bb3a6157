//! What the log before a statement says about it.

use crate::profile::exchange::Conflicts;
use crate::profile::session::Continuity;

/// Looked up at the statement's turn, so that anyone who has the log before
/// it can look the same up again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Facts {
    /// Whether the record it refers to is logged; none if it names none.
    pub parent_known: Option<bool>,
    /// Whether that record has the same operator; none if it is not logged.
    pub parent_same_operator: Option<bool>,
    /// Whether another record took that record's place; none if it is not
    /// logged.
    pub parent_superseded: Option<bool>,
    /// Whether another statement with the same record id is logged.
    pub record_id_known: bool,
    /// Whether such a statement stands in another chain.
    pub record_id_other_chain: bool,
    /// Whether the id, being only a name, names something else there.
    pub record_id_other_content: bool,
    /// Whether every predecessor is logged; none if it names none.
    pub predecessors_known: Option<bool>,
    /// How its events follow those its issuer has logged of their session;
    /// none without a session.
    pub session: Option<Continuity>,
    /// Whether what may be used once was used; none if it has no such thing.
    pub nonce_used: Option<bool>,
    /// What speaks against it in the exchange it is part of; nothing if it is
    /// part of none.
    pub conflicts: Conflicts,
}
