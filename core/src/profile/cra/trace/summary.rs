//! The facts of a batch that every profile shares.
//!
//! Only what events say outright is taken over. A denied action is `denied`
//! or `blocked`, a failed one `executed` or `errored`, an approved one none of
//! these: where the vocabularies do not meet in one word, nothing is said.

use super::event::Event;
use crate::profile::cra::grammar::Stamp;
use crate::profile::{Span, Summary};

pub(super) fn of(events: &[Event], session: Option<Span>, ok: bool) -> Summary {
    let Some(last) = events.last() else { return Summary { ok: Some(ok), ..Summary::default() } };
    let own = |name| last.text(name).map(str::to_owned);
    let is = |kind: &str| last.event_type == kind;
    let is_carried_out = is("action.executed") || is("action.failed");
    Summary {
        // `action_id` names a kind of action; the execution is the one that
        // happened.
        action_id: own("execution_id").filter(|_| is_carried_out),
        effect_type: own("action_id").filter(|_| is_carried_out),
        decision_id: only(events, "resolution_id").map(str::to_owned),
        developer: only(events, "agent_id").map(str::to_owned),
        verdict: is("action.executed").then(|| "executed".to_owned()),
        decision: decision(last).map(str::to_owned),
        claimed_at: Stamp::parse(&last.timestamp).and_then(|stamp| stamp.time),
        session,
        ok: Some(ok),
        ..Summary::default()
    }
}

/// A partial resolution is neither accepted nor rejected.
fn decision(event: &Event) -> Option<&'static str> {
    match event.event_type.as_str() {
        "action.approved" => Some("accept"),
        "action.denied" => Some("reject"),
        "carp.resolution.completed" => {
            super::super::carp::decision(event.text("decision_type").unwrap_or_default())
        }
        _ => None,
    }
}

/// What all events that have this member agree on.
fn only<'a>(events: &'a [Event], name: &str) -> Option<&'a str> {
    let mut said = events.iter().filter_map(|event| event.text(name));
    let first = said.next()?;
    said.all(|other| other == first).then_some(first)
}
