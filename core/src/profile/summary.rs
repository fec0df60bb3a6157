//! The few facts of a record that policy, index, API and command line read,
//! the same for every profile.

use serde::{Deserialize, Serialize};

use super::exchange::Part;
use super::session::Span;
use crate::wire::time::UnixSeconds;

/// What a record says of itself. Absent means that the record, or its
/// profile, does not say.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// What others refer to it by: its content address, or its name where the
    /// profile has no more than that.
    pub record_id: Option<String>,
    /// Stable name of the action.
    pub action_id: Option<String>,
    /// What ties the statements of one decision together.
    pub decision_id: Option<String>,
    /// The tenant who answers for the action.
    pub operator: Option<String>,
    /// The agent that acted.
    pub developer: Option<String>,
    /// `fyi` or `decide`.
    pub action_type: Option<String>,
    /// Why it ended as it did.
    pub verdict: Option<String>,
    /// `accept`, `reject`, `needs_input`, `deferred`.
    pub decision: Option<String>,
    /// `human` or `policy`.
    pub approver: Option<String>,
    /// Whether a human acted.
    pub human_disposed: Option<bool>,
    /// The kind of effect.
    pub effect_type: Option<String>,
    /// How far it came, as claimed.
    pub effect_status: Option<String>,
    /// What is known of it, as rederived.
    pub effect_mode: Option<String>,
    /// Who vouches for it.
    pub effect_attestation: Option<String>,
    /// How hard it is to undo.
    pub irreversibility: Option<String>,
    /// What later outcomes are joined by.
    pub external_ref: Option<String>,
    /// When it happened, as the record claims.
    pub claimed_at: Option<UnixSeconds>,
    /// The record it refers to, and how.
    pub parent: Option<Parent>,
    /// Seconds after `claimed_at` at which a deferral runs out.
    pub expires_after: Option<u64>,
    /// Records that this one says came before it, by their record ids.
    pub predecessors: Vec<String>,
    /// The part of a session's event chain that it holds.
    pub session: Option<Span>,
    /// How it relates to the world: `observe`, `counterfactual` and the rest.
    /// A counterfactual never happened.
    pub intervention: Option<String>,
    /// Digest of what the record id names, where an id is only a name: the
    /// same name over something else is equivocation.
    pub content: Option<String>,
    /// What may be used once.
    pub nonce: Option<String>,
    /// Its part in an exchange of request, resolution and response.
    pub exchange: Option<Box<Part>>,
    /// Whether the profile's own checks hold; none when it has none.
    pub ok: Option<bool>,
    /// Whether parts are concealed and were not evaluated.
    pub is_concealed: bool,
}

impl Summary {
    /// The record this one takes the place of. Only a record whose own checks
    /// hold does; what is concealed was not checked.
    pub fn superseded(&self) -> Option<&str> {
        let holds = self.ok == Some(true) && !self.is_concealed;
        let parent = self.parent.as_ref().filter(|parent| parent.relation == "supersedes")?;
        holds.then_some(&parent.record_id)
    }
}

/// A reference to an earlier record.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Parent {
    /// The earlier record's content address.
    pub record_id: String,
    /// How the two relate.
    pub relation: String,
}
