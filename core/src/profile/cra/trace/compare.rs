//! Where two histories of the same sessions differ.

use super::event::Event;
use super::history::History;
use crate::wire::json::{Json, pointer_token};

/// How two histories of one session differ.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Difference {
    pub session: String,
    pub parting: Parting,
}

/// The first difference between two histories.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Parting {
    /// The first ends before this event of the second.
    FirstEnds { sequence: u64 },
    /// The second ends before this event of the first.
    SecondEnds { sequence: u64 },
    /// Both continue with different events. The sequence number is that in the
    /// first; lines count from 0; `at` are JSON pointers of the differences.
    Forks { sequence: u64, first_line: usize, second_line: usize, at: Vec<String> },
}

/// One difference for each session that is not the same in both.
pub fn compare(first: &History, second: &History) -> Vec<Difference> {
    let mut sessions: Vec<&str> = Vec::new();
    for chain in first.chains.iter().chain(&second.chains) {
        if !sessions.contains(&chain.span.session.as_str()) {
            sessions.push(&chain.span.session);
        }
    }
    let part = |session: &str| {
        let parting = parting(of(first, session), of(second, session))?;
        Some(Difference { session: session.to_owned(), parting })
    };
    sessions.into_iter().filter_map(part).collect()
}

fn of<'a>(history: &'a History, session: &'a str) -> impl Iterator<Item = &'a Event> {
    history.events.iter().filter(move |event| event.session_id == session)
}

fn parting<'a>(
    mut first: impl Iterator<Item = &'a Event>,
    mut second: impl Iterator<Item = &'a Event>,
) -> Option<Parting> {
    loop {
        match (first.next(), second.next()) {
            (None, None) => return None,
            (None, Some(b)) => return Some(Parting::FirstEnds { sequence: b.sequence }),
            (Some(a), None) => return Some(Parting::SecondEnds { sequence: a.sequence }),
            (Some(a), Some(b)) => {
                let at = members(a, b);
                if !at.is_empty() {
                    let (first_line, second_line) = (a.line, b.line);
                    let sequence = a.sequence;
                    return Some(Parting::Forks { sequence, first_line, second_line, at });
                }
            }
        }
    }
}

fn members(a: &Event, b: &Event) -> Vec<String> {
    let texts = [
        ("event_id", &a.event_id, &b.event_id),
        ("trace_id", &a.trace_id, &b.trace_id),
        ("span_id", &a.span_id, &b.span_id),
        ("timestamp", &a.timestamp, &b.timestamp),
        ("event_type", &a.event_type, &b.event_type),
        ("event_hash", &a.hash, &b.hash),
        ("previous_event_hash", &a.previous, &b.previous),
    ];
    let mut at: Vec<String> = Vec::new();
    at.extend(texts.iter().filter(|(_, a, b)| a != b).map(|(name, ..)| format!("/{name}")));
    at.extend((a.parent_span_id != b.parent_span_id).then(|| "/parent_span_id".to_owned()));
    at.extend((a.sequence != b.sequence).then(|| "/sequence".to_owned()));
    values("/payload", &a.payload, &b.payload, &mut at);
    at
}

fn values(at: &str, a: &Json, b: &Json, found: &mut Vec<String>) {
    match (a, b) {
        (Json::Object(first), Json::Object(second)) => {
            for (name, value) in first {
                let at = format!("{at}{}", pointer_token(name));
                match b.get(name) {
                    Some(other) => values(&at, value, other, found),
                    None => found.push(at),
                }
            }
            let added = second.iter().filter(|(name, _)| a.get(name).is_none());
            found.extend(added.map(|(name, _)| format!("{at}{}", pointer_token(name))));
        }
        (Json::Array(first), Json::Array(second)) if first.len() == second.len() => {
            for (i, (a, b)) in first.iter().zip(second).enumerate() {
                values(&format!("{at}/{i}"), a, b, found);
            }
        }
        _ if a != b => found.push(at.to_owned()),
        _ => {}
    }
}
