//! What was found, as the JSON that the API and the command line both show.

use serde_json::{Map, Value, json};

use crate::envelope::Binding;
use crate::profile::{Span, Summary};
use crate::story::{self, State, Story};

/// What was imagined is marked wherever it is told.
const COUNTERFACTUAL: &str = "counterfactual";

pub(in crate::service) fn entry_json(entry: &story::Entry) -> Value {
    let id = entry.id.to_string();
    json!({
        "index": entry.index,
        "id": id,
        "issuer": entry.issuer,
        "subject": entry.subject,
        "registered_at": entry.time.to_string(),
        "profile": entry.profile,
        "record": summary_json(&entry.summary),
        "receipt": format!("/entries/{id}"),
        "statement": format!("/entries/{id}/statement"),
    })
}

pub(in crate::service) fn item_json(entry: &story::Entry) -> Value {
    let mut object = entry_json(entry);
    if let Some(fields) = object.as_object_mut() {
        let expires = entry.expires_at().map(|at| at.to_string());
        fields.insert("expires_at_by_its_own_clock".to_owned(), json!(expires));
    }
    object
}

/// Only what the record says: an absent member is not a null.
pub(crate) fn summary_json(summary: &Summary) -> Value {
    let texts = [
        ("record_id", &summary.record_id),
        ("action_id", &summary.action_id),
        ("decision_id", &summary.decision_id),
        ("operator", &summary.operator),
        ("developer", &summary.developer),
        ("action_type", &summary.action_type),
        ("verdict", &summary.verdict),
        ("decision", &summary.decision),
        ("approver", &summary.approver),
        ("effect_type", &summary.effect_type),
        ("effect_status", &summary.effect_status),
        ("effect_mode", &summary.effect_mode),
        ("effect_attestation", &summary.effect_attestation),
        ("irreversibility", &summary.irreversibility),
        ("external_ref", &summary.external_ref),
        ("intervention", &summary.intervention),
        ("content", &summary.content),
        ("nonce", &summary.nonce),
    ];
    let mut fields = Map::new();
    for (name, text) in texts {
        fields.extend(text.as_ref().map(|text| (name.to_owned(), json!(text))));
    }
    let human = summary.human_disposed.map(|human| ("human_disposed".to_owned(), json!(human)));
    let at = summary.claimed_at.map(|at| ("claimed_at".to_owned(), json!(at.to_string())));
    let ok = summary.ok.map(|ok| ("ok".to_owned(), json!(ok)));
    let parent = summary.parent.as_ref().map(|parent| {
        let parent = json!({ "record_id": parent.record_id, "relation": parent.relation });
        ("parent".to_owned(), parent)
    });
    fields.extend([human, at, ok, parent].into_iter().flatten());
    if !summary.predecessors.is_empty() {
        fields.insert("predecessors".to_owned(), json!(summary.predecessors));
    }
    if let Some(span) = &summary.session {
        let Span { session, first, last, previous, head } = span;
        let span = json!({
            "session": session, "first": first, "last": last, "previous": previous, "head": head,
        });
        fields.insert("session".to_owned(), span);
    }
    if summary.intervention.as_deref() == Some(COUNTERFACTUAL) {
        fields.insert("happened".to_owned(), json!(false));
    }
    if summary.is_concealed {
        fields.insert("is_concealed".to_owned(), json!(true));
    }
    Value::Object(fields)
}

/// Who tells something, and how he was known; null where that is not known.
fn teller(story: &Story, index: u64) -> Value {
    let Some(entry) = story.entry(index) else { return Value::Null };
    json!({ "issuer": entry.issuer, "binding": entry.binding.map(Binding::name) })
}

pub(in crate::service) fn story_json(story: &Story) -> Value {
    let record = |(entry, state): &(story::Entry, State)| {
        let mut object = item_json(entry);
        if let Some(fields) = object.as_object_mut() {
            fields.insert("state".to_owned(), json!(state.name()));
            if let State::Closed { by } = state {
                fields.insert("closed_by".to_owned(), json!(by));
            }
            if let Some(by) = story.reverted_by(entry.index) {
                fields.insert("reverted_by".to_owned(), json!(by));
                fields.insert("reverted_says".to_owned(), teller(story, by));
            }
        }
        object
    };
    let outcome = |(entry, correlation): &(story::Entry, story::Correlation)| {
        let mut object = entry_json(entry);
        if let Some(fields) = object.as_object_mut() {
            fields.insert("correlation".to_owned(), json!(correlation.name()));
            fields.insert("about".to_owned(), json!(correlation.records()));
            fields.insert("says".to_owned(), teller(story, entry.index));
        }
        object
    };
    let session = |told: &story::Session| {
        json!({
            "session": told.session,
            "issuer": told.issuer,
            "statements": told.statements,
            "last": told.head.as_ref().map(|head| head.last),
            "head": told.head.as_ref().map(|head| &head.hash),
            "is_gap_free": told.is_gap_free,
        })
    };
    let odd = |odd: &story::Anomaly| {
        let severity = odd.severity.name();
        json!({ "index": odd.index, "code": odd.code, "severity": severity, "detail": odd.detail })
    };
    json!({
        "state": if story.is_open() { "open" } else { "closed" },
        "chain": story.records.iter().map(record).collect::<Vec<_>>(),
        "forks": story.forks.iter().map(|(parent, children)| {
            json!({ "index": parent, "children": children })
        }).collect::<Vec<_>>(),
        "outcomes": story.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        "reversals": story.reversals.iter().map(|(index, correlation)| {
            let (name, about) = (correlation.name(), correlation.records());
            let says = teller(story, *index);
            json!({ "index": index, "correlation": name, "about": about, "says": says })
        }).collect::<Vec<_>>(),
        "sessions": story.sessions.iter().map(session).collect::<Vec<_>>(),
        "findings": story.anomalies.iter().map(odd).collect::<Vec<_>>(),
    })
}
