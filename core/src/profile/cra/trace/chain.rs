//! The chain of one session's events (4.4).
//!
//! Every event is checked, also the first; the loop in the specification starts
//! at the second. There is no empty chain.

use std::collections::{HashMap, HashSet};

use super::event::Event;
use super::hash::Form;
use crate::profile::cra::grammar::Stamp;
use crate::profile::cra::notes::Notes;
use crate::profile::session::{GENESIS, Span};

/// The events of one session, and where their chain breaks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Chain {
    /// What its events claim, sound or not.
    pub span: Span,
    /// The number of events.
    pub count: usize,
    /// In the order of events.
    pub breaks: Vec<Break>,
    /// JSON pointer of the first hash that is that of cra-core.
    pub cra_core: Option<String>,
}

/// A place where a chain breaks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Break {
    /// `hash-mismatch`, `chain-broken`, `sequence-gap` or `invalid-genesis`.
    pub code: &'static str,
    /// The event's line, from 0.
    pub line: usize,
    /// The sequence number the event claims.
    pub sequence: u64,
    /// The member, as a JSON pointer.
    pub at: String,
    pub detail: String,
}

impl Chain {
    /// One chain for each session. The link between two events around an
    /// unreadable line is not checked.
    pub(super) fn split(events: &[Event], unread: &[usize]) -> Vec<Self> {
        let mut chains: Vec<Self> = Vec::new();
        let mut open: HashMap<&str, (usize, &Event)> = HashMap::new();
        for event in events {
            let session = event.session_id.as_str();
            match open.get(session).copied() {
                None => {
                    open.insert(session, (chains.len(), event));
                    chains.push(Self::begin(event));
                }
                Some((place, before)) => {
                    let next_unread = unread.partition_point(|line| *line < before.line);
                    let is_torn = unread.get(next_unread).is_some_and(|line| *line < event.line);
                    if let Some(chain) = chains.get_mut(place) {
                        chain.extend((!is_torn).then_some(before), event);
                    }
                    open.insert(session, (place, event));
                }
            }
        }
        chains
    }

    fn begin(event: &Event) -> Self {
        let span = Span {
            session: event.session_id.clone(),
            first: event.sequence,
            last: event.sequence,
            previous: event.previous.clone(),
            head: event.hash.clone(),
        };
        let mut chain = Self { span, count: 1, breaks: Vec::new(), cra_core: None };
        chain.hash(event);
        if (event.sequence == 0) != (event.previous == GENESIS) {
            let detail = "sequence 0 and a previous hash of 64 zeros belong together: they mark \
                          the first event of a session (4.4.1)";
            chain.push("invalid-genesis", event, "previous_event_hash", detail.to_owned());
        }
        chain
    }

    fn extend(&mut self, before: Option<&Event>, event: &Event) {
        self.hash(event);
        if let Some(before) = before {
            if event.previous != before.hash {
                let detail = format!(
                    "event {} does not follow the hash of event {}",
                    event.sequence, before.sequence
                );
                self.push("chain-broken", event, "previous_event_hash", detail);
            }
            if before.sequence.checked_add(1) != Some(event.sequence) {
                let detail = format!("{} after {}", event.sequence, before.sequence);
                self.push("sequence-gap", event, "sequence", detail);
            }
        }
        self.count += 1;
        self.span.last = event.sequence;
        self.span.head.clone_from(&event.hash);
    }

    fn hash(&mut self, event: &Event) {
        let detail = match event.form() {
            Some(Form::CraTraceV1) => return,
            Some(Form::CraCore) => {
                self.cra_core.get_or_insert_with(|| format!("{}/event_hash", event.at));
                format!("event {} has the hash of cra-core, not of Appendix B", event.sequence)
            }
            None => format!("the hash of event {} is wrong", event.sequence),
        };
        self.push("hash-mismatch", event, "event_hash", detail);
    }

    fn push(&mut self, code: &'static str, event: &Event, member: &str, detail: String) {
        let at = format!("{}/{member}", event.at);
        let (line, sequence) = (event.line, event.sequence);
        self.breaks.push(Break { code, line, sequence, at, detail });
    }

    /// Findings about events that do not break their chain.
    pub(super) fn observe(events: &[Event], notes: &mut Notes) {
        let mut ids = HashSet::new();
        let mut latest: HashMap<&str, &Event> = HashMap::new();
        for event in events {
            if !ids.insert(event.event_id.as_str()) {
                let detail = "two events have this id";
                notes.error("trace-event-id-repeated", format!("{}/event_id", event.at), detail);
            }
            let before = latest.insert(&event.session_id, event);
            if before.is_some_and(|before| instant(before) > instant(event)) {
                let detail = "earlier than the event before it";
                notes.warning("trace-time-regression", format!("{}/timestamp", event.at), detail);
            }
        }
    }
}

fn instant(event: &Event) -> Option<jiff::Timestamp> {
    Stamp::parse(&event.timestamp)?;
    event.timestamp.parse().ok()
}
