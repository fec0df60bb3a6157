//! `capstan trace show`: the events of a file as a table.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::cli::Answer;
use crate::cli::output::Out;
use crate::profile::cra::trace::{Event, History};
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
    let mut lines = String::new();
    let mut session = "";
    for event in &history.events {
        if event.session_id != session {
            session = &event.session_id;
            let _infallible = writeln!(lines, "session {session}");
        }
        lines += &line(event);
    }
    let unread = history.findings.iter().filter(|finding| finding.gating).count();
    if !history.is_whole {
        let _infallible =
            writeln!(lines, "some events cannot be read ({unread} errors); see trace verify");
    }
    let events: Vec<Json> = history.events.iter().map(object).collect();
    out.answer(&json!({ "events": events, "is_whole": history.is_whole }), &lines)?;
    Ok(if history.events.is_empty() { Answer::Unanswered } else { Answer::Yes })
}

/// `   3  2024-12-28T12:00:02Z  action.denied  ticket.delete  82d7fc53…c8a9`
fn line(event: &Event) -> String {
    let hash = text::short(&event.hash);
    let told = told(event);
    format!(
        "{:>6}  {:<27}  {:<26}  {told:<32}  {hash}\n",
        event.sequence, event.timestamp, event.event_type
    )
}

/// Payloads are anybody's: what could steer a screen is escaped.
fn told(event: &Event) -> String {
    let said = TELLING.iter().find_map(|name| event.text(name)).unwrap_or_default();
    said.chars().take(32).flat_map(char::escape_debug).collect()
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
