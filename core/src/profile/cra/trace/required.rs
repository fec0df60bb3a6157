//! What the payload of each kind of event must hold (4.3).

use super::event::Event;
use crate::profile::cra::notes::Notes;
use crate::profile::finding::Severity;
use crate::wire::json::Json;

/// The kinds of events the text names, each with the members it requires.
pub(super) const KINDS: [(&str, &[&str]); 14] = [
    ("action.approved", &["action_id", "resolution_id"]),
    ("action.denied", &["action_id", "reason", "policy_id"]),
    ("action.executed", &["action_id", "execution_id", "duration_ms"]),
    ("action.failed", &["action_id", "error_code", "error_message"]),
    ("action.requested", &["action_id", "parameters_hash"]),
    ("carp.request.received", &["request_id", "operation", "goal"]),
    ("carp.resolution.cached", &["resolution_id", "cache_hit"]),
    (
        "carp.resolution.completed",
        &["resolution_id", "decision_type", "allowed_count", "denied_count"],
    ),
    ("context.injected", &["block_id", "source", "token_count"]),
    ("context.redacted", &["block_id", "redaction_reason"]),
    ("policy.evaluated", &["policy_id", "result"]),
    ("policy.violated", &["policy_id", "violation_type", "details"]),
    ("session.ended", &["reason", "duration_ms"]),
    ("session.started", &["agent_id", "goal"]),
];

/// Notes what is missing. A kind nobody named is hashed and chained like any
/// other.
pub(super) fn check(event: &Event, notes: &mut Notes) {
    let Some((_, required)) = KINDS.iter().find(|(kind, _)| *kind == event.event_type) else {
        notes.once(Severity::Info, "trace-event-type-unknown", || {
            let detail = format!("{} is no kind of 4.3; the first such event", event.event_type);
            (format!("{}/event_type", event.at), detail)
        });
        return;
    };
    for name in *required {
        if event.payload.get(name).is_none_or(|value| *value == Json::Null) {
            let detail = format!("{} requires it (4.3)", event.event_type);
            notes.error("trace-payload-incomplete", format!("{}/payload/{name}", event.at), detail);
        }
    }
}
