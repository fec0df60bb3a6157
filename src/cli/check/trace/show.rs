//! `capstan trace show`: the events of a file as a table.

use serde_json::{Value as Json, json};

use crate::cli::Answer;
use crate::cli::output::Out;
use crate::profile::cra::trace::{Event, History};
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

/// What tells most about an event, the first one that it has.
const TELLING: [&str; 8] = [
    "action_id",
    "policy_id",
    "block_id",
    "decision_type",
    "operation",
    "reason",
    "agent_id",
    "resolution_id",
];

pub(super) fn run(history: &History, out: &Out) -> anyhow::Result<Answer> {
    let mut lines = Printable::default();
    let mut session = "";
    for event in &history.events {
        if event.session_id != session {
            session = &event.session_id;
            lines.line(printable!("session {}", session));
        }
        lines.line(line(event));
    }
    if history.events.is_empty() {
        lines.line("none");
    }
    let unread = history.findings.iter().filter(|finding| finding.gating).count();
    if !history.is_whole {
        let what = "some events cannot be read";
        lines.line(printable!("{} ({} errors); see trace verify", what, unread));
    }
    let events: Vec<Json> = history.events.iter().map(object).collect();
    out.answer(&json!({ "events": events, "is_whole": history.is_whole }), lines)?;
    Ok(if history.events.is_empty() { Answer::Unanswered } else { Answer::Yes })
}

/// `   3  2024-12-28T12:00:02Z  action.denied  ticket.delete  82d7fc53…c8a9`
fn line(event: &Event) -> Printable {
    printable!(
        "{:>6}  {:<27}  {:<26}  {:<32}  {}",
        event.sequence,
        event.timestamp,
        event.event_type,
        told(event),
        text::short(&event.hash)
    )
}

/// As much as a column holds.
fn told(event: &Event) -> String {
    let said = TELLING.iter().find_map(|name| event.text(name)).unwrap_or_default();
    said.chars().take(32).collect()
}

fn object(event: &Event) -> Json {
    json!({
        "line": event.line + 1,
        "session": event.session_id,
        "sequence": event.sequence,
        "timestamp": event.timestamp,
        "event_type": event.event_type,
        "about": TELLING.iter().find_map(|name| event.text(name)),
        "hash": event.hash,
        "form": event.form().map(|form| form.name()),
    })
}
