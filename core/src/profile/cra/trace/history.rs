//! The events of a file or a statement.

use super::chain::Chain;
use super::event::Event;
use crate::profile::cra::notes::Notes;
use crate::profile::finding::{Finding, Severity};
use crate::wire::json::Json;

/// The readable events, split by session.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// In the order of the file.
    pub events: Vec<Event>,
    /// One for each session, in the order of their first events.
    pub chains: Vec<Chain>,
    /// Whether every event could be read.
    pub is_whole: bool,
    pub findings: Vec<Finding>,
}

/// How events are laid out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    /// One JSON text is one event.
    Event,
    /// One event on each line (6.2).
    Lines,
}

impl History {
    /// Reads a file: lines of events, one event, or an array of events, as
    /// `GET /v1/traces/{session_id}` answers. Several sessions are split.
    pub fn read(bytes: &[u8]) -> Self {
        let (mut history, notes) = match Json::read(bytes) {
            Ok(Json::Array(items)) => {
                let items = items.into_iter().enumerate();
                let values = items.map(|(i, value)| (i, format!("/{i}"), Ok(value)));
                Self::of_values(values, Notes::default())
            }
            Ok(value) => {
                Self::of_values([(0, String::new(), Ok(value))].into_iter(), Notes::default())
            }
            Err(_) => Self::collect(bytes, Shape::Lines, None),
        };
        history.findings = notes.into_findings();
        history
    }

    /// The events of one statement, at most `most`; the caller may add notes.
    pub(super) fn collect(bytes: &[u8], shape: Shape, most: Option<usize>) -> (Self, Notes) {
        let mut notes = Notes::default();
        if shape == Shape::Event {
            let value = Json::read(bytes);
            return Self::of_values([(0, String::new(), value)].into_iter(), notes);
        }
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if bytes.is_empty() {
            return Self::of_values(std::iter::empty(), notes);
        }
        let count = bytes.split(|b| *b == b'\n').count();
        if let Some(most) = most.filter(|most| count > *most) {
            let detail = format!("{count} events, at most {most} are allowed");
            notes.error("trace-too-many-events", "", detail);
            let nothing =
                Self { events: Vec::new(), chains: Vec::new(), is_whole: false, findings: vec![] };
            return (nothing, notes);
        }
        let lines = bytes.split(|b| *b == b'\n').enumerate();
        let values = lines.map(|(i, line)| (i, format!("/{i}"), Json::read(line)));
        Self::of_values(values, notes)
    }

    fn of_values(
        values: impl Iterator<Item = (usize, String, Result<Json, crate::wire::json::Error>)>,
        mut notes: Notes,
    ) -> (Self, Notes) {
        let (mut events, mut unread) = (Vec::new(), Vec::new());
        for (line, at, value) in values {
            let event = match value {
                Ok(value) => Event::read(line, &at, value, &mut notes),
                Err(e) => {
                    notes.error(e.code(), at + &e.pointer, format!("not JSON: {e}"));
                    None
                }
            };
            match event {
                Some(event) => events.push(event),
                None => unread.push(line),
            }
        }
        if events.is_empty() && unread.is_empty() {
            notes.error("trace-empty", "", "there is no event");
        }
        for event in &events {
            event.check_payload(&mut notes);
        }
        let chains = Chain::split(&events, &unread);
        for broken in chains.iter().flat_map(|chain| &chain.breaks) {
            notes.error(broken.code, broken.at.clone(), broken.detail.clone());
        }
        if let Some(at) = chains.iter().find_map(|chain| chain.cra_core.clone()) {
            let detail = "the hash of cra-core, not the normative one of Appendix B";
            notes.once(Severity::Info, "hash-cra-core", || (at, detail.to_owned()));
        }
        Chain::observe(&events, &mut notes);
        (Self { events, chains, is_whole: unread.is_empty(), findings: Vec::new() }, notes)
    }
}
