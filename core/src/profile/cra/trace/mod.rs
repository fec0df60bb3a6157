//! TRACE/1.0 (section 4): events of a session, each bound to the one before
//! by its hash.
//!
//! In: one event, or lines of them. Out: the events, findings, and whether
//! the chain among them is sound. What a session's chain looked like before
//! is the store's to know: see `profile::session`.

mod chain;
mod compare;
mod event;
mod hash;
mod history;
mod produce;
mod required;
mod summary;
#[cfg(test)]
pub(crate) mod tests;

use crate::profile::finding::Finding;
use crate::profile::{Span, Summary};

pub use chain::{Break, Chain};
pub use compare::{Difference, Parting, compare};
pub use event::Event;
pub use hash::Form;
pub use history::History;

pub use crate::profile::session::GENESIS;

use history::Shape;

/// The content type of one event.
pub const CONTENT_TYPE: &str = "application/vnd.cra.trace+json";
/// The content type of a batch: one event on each line.
pub const BATCH_CONTENT_TYPE: &str = "application/vnd.cra.trace+jsonl";

/// Events in one statement. An event has some 500 bytes, so a statement of
/// ordinary size holds 120; this bounds what a larger one may cost.
pub const EVENTS_MAX: usize = 4096;

/// The events of one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRecord {
    events: Vec<Event>,
    span: Option<Span>,
    ok: bool,
}

impl TraceRecord {
    /// Reads a single event.
    pub fn read(payload: &[u8]) -> (Self, Vec<Finding>) {
        Self::of(payload, Shape::Event)
    }

    /// Reads lines of events, which must be of one session.
    pub fn read_batch(payload: &[u8]) -> (Self, Vec<Finding>) {
        Self::of(payload, Shape::Lines)
    }

    fn of(payload: &[u8], shape: Shape) -> (Self, Vec<Finding>) {
        let (history, mut notes) = History::collect(payload, shape, Some(EVENTS_MAX));
        if let [_, other, ..] = history.chains.as_slice() {
            let line = history.events.iter().find(|e| e.session_id == other.span.session);
            let at = line.map_or(String::new(), |event| format!("{}/session_id", event.at));
            let detail = format!("{} sessions in one batch", history.chains.len());
            notes.error("trace-sessions-mixed", at, detail);
        }
        let span = match history.chains.as_slice() {
            [chain] if history.is_whole && chain.breaks.is_empty() => Some(chain.span.clone()),
            _ => None,
        };
        let record = Self { events: history.events, span, ok: !notes.is_broken() };
        (record, notes.into_findings())
    }

    /// The events that could be read.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The part of a session it holds; none unless its own chain is sound.
    pub fn span(&self) -> Option<&Span> {
        self.span.as_ref()
    }

    /// What policy, index and readers need to know.
    pub fn summary(&self) -> Summary {
        summary::of(&self.events, self.span.clone(), self.ok)
    }
}
