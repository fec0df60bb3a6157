//! TRACE/1.0 (section 4): events of a session, each bound to the one before
//! by its hash.
//!
//! In: one event, or lines of them. Out: the events, findings, and whether the
//! chain among them is sound. How it continues what is already logged of the
//! session is checked by `profile::session`.

mod chain;
mod compare;
mod event;
mod hash;
mod history;
#[cfg(test)]
pub(crate) mod tests;

use super::grammar::Stamp;
use super::notes::NOTES_CODES;
use crate::profile::finding::Finding;
use crate::profile::kind::{Codes, Record, RecordKind, Role, boxed, media_type};
use crate::profile::{Span, Summary};
use crate::wire::json;

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

/// Events in one statement. An event has about 500 bytes, so a statement of
/// ordinary size holds 120; this bounds the cost of a larger one.
pub const EVENTS_MAX: usize = 4096;

/// Events of a TRACE session, one or a batch.
pub static KIND: RecordKind = RecordKind {
    name: "trace",
    role: Role::Record,
    content_types: &[CONTENT_TYPE, BATCH_CONTENT_TYPE],
    read: |header, payload| {
        let is_batch = media_type(header) == Some(BATCH_CONTENT_TYPE);
        let read = if is_batch { TraceRecord::read_batch } else { TraceRecord::read };
        boxed(read(payload))
    },
    codes: &[Codes::new(CODES), Codes::new(NOTES_CODES), Codes::new(json::CODES)],
    later_codes: &[],
    page: "docs/profiles/cra.md",
};

const CODES: &[&str] = &[
    "chain-broken",
    "hash-cra-core",
    "hash-mismatch",
    "invalid-genesis",
    "sequence-gap",
    "trace-empty",
    "trace-event-id-repeated",
    "trace-event-type-unknown",
    "trace-member-malformed",
    "trace-member-missing",
    "trace-member-unknown",
    "trace-not-object",
    "trace-number-beyond-double",
    "trace-number-not-plain",
    "trace-number-respelt",
    "trace-payload-incomplete",
    "trace-sessions-mixed",
    "trace-time-not-exact",
    "trace-time-regression",
    "trace-too-many-events",
    "trace-uuid-not-v7",
];

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

    /// Reads lines of events, all of one session.
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

    /// The readable events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The part of a session it holds; none unless its own chain is sound.
    pub fn span(&self) -> Option<&Span> {
        self.span.as_ref()
    }
}

impl Record for TraceRecord {
    /// Takes over only what an event states outright. A denied action may be
    /// `denied` or `blocked`, a failed one `executed` or `errored`: where the
    /// vocabularies have no common word, the summary says nothing.
    fn summary(&self) -> Summary {
        let Some(last) = self.events.last() else {
            return Summary { ok: Some(self.ok), ..Summary::default() };
        };
        let own = |name| last.text(name).map(str::to_owned);
        let is = |kind: &str| last.event_type == kind;
        let is_carried_out = is("action.executed") || is("action.failed");
        Summary {
            // Here `action_id` names a kind of action; `execution_id` names the
            // one that happened.
            action_id: own("execution_id").filter(|_| is_carried_out),
            effect_type: own("action_id").filter(|_| is_carried_out),
            decision_id: only(&self.events, "resolution_id").map(str::to_owned),
            developer: only(&self.events, "agent_id").map(str::to_owned),
            verdict: is("action.executed").then(|| "executed".to_owned()),
            decision: decision(last).map(str::to_owned),
            claimed_at: Stamp::parse(&last.timestamp).and_then(|stamp| stamp.time),
            session: self.span.clone(),
            ok: Some(self.ok),
            ..Summary::default()
        }
    }
}

fn decision(event: &Event) -> Option<&'static str> {
    match event.event_type.as_str() {
        "action.approved" => Some("accept"),
        "action.denied" => Some("reject"),
        "carp.resolution.completed" => {
            super::carp::decision(event.text("decision_type").unwrap_or_default())
        }
        _ => None,
    }
}

/// The value of a payload member, if all events that have it agree.
fn only<'a>(events: &'a [Event], name: &str) -> Option<&'a str> {
    let mut values = events.iter().filter_map(|event| event.text(name));
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}
