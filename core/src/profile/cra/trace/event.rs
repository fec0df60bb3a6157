//! One TRACE event (4.2), read by strict grammar.
//!
//! The hash is over the bare concatenation of the members, so it binds them
//! only if each has one form: an event that breaks the grammar is not hashed.

use crate::profile::cra::grammar::{self, Stamp, uuid_version};
use crate::profile::cra::notes::Notes;
use crate::profile::finding::{Finding, Severity};
use crate::wire::json::{Json, pointer_token};

use super::hash::Form;
use super::history::{History, Shape};

/// The members of an event, which are all that the hash covers.
const MEMBERS: [&str; 12] = [
    "trace_version",
    "event_id",
    "trace_id",
    "span_id",
    "parent_span_id",
    "session_id",
    "sequence",
    "timestamp",
    "event_type",
    "payload",
    "event_hash",
    "previous_event_hash",
];

/// The event types of 4.3, each with the payload members it requires.
pub(super) const TYPES: [(&str, &[&str]); 14] = [
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

/// An event whose members follow the grammar.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// Its line, from 0.
    pub line: usize,
    /// JSON pointer of the event in the payload.
    pub at: String,
    pub event_id: String,
    pub trace_id: String,
    pub span_id: String,
    pub parent_span_id: Option<String>,
    pub session_id: String,
    pub sequence: u64,
    /// As received: this text is hashed.
    pub timestamp: String,
    pub event_type: String,
    pub payload: Json,
    /// The hash it claims.
    pub hash: String,
    /// The hash of the event before it.
    pub previous: String,
}

impl Event {
    /// Reads one event; notes everything that breaks the grammar.
    pub(super) fn read(line: usize, at: &str, value: Json, notes: &mut Notes) -> Option<Self> {
        let Json::Object(members) = value else {
            notes.error("trace-not-object", at, format!("a {}, not an event", value.kind()));
            return None;
        };
        for (name, _) in members.iter().filter(|(name, _)| !MEMBERS.contains(&name.as_str())) {
            let detail = "not a member of an event, so not covered by its hash";
            notes.error("trace-member-unknown", at.to_owned() + &pointer_token(name), detail);
        }
        let mut members = Members { members, at, notes };
        let version = members.text("trace_version", "1.0", |text| text == "1.0");
        let event_id = members.uuid("event_id");
        let trace_id = members.uuid("trace_id");
        let span_id = members.uuid("span_id");
        let parent_span_id = members.parent();
        let session_id = members.uuid("session_id");
        let sequence = members.sequence();
        let timestamp = members.timestamp();
        let event_type =
            members.text("event_type", "lowercase words with dots", grammar::is_event_type);
        let payload = members.payload();
        let hash = members.text("event_hash", "64 lowercase hex digits", grammar::is_hash);
        let previous =
            members.text("previous_event_hash", "64 lowercase hex digits", grammar::is_hash);
        version?;
        Some(Self {
            line,
            at: at.to_owned(),
            event_id: event_id?,
            trace_id: trace_id?,
            span_id: span_id?,
            parent_span_id: parent_span_id?,
            session_id: session_id?,
            sequence: sequence?,
            timestamp: timestamp?,
            event_type: event_type?,
            payload: payload?,
            hash: hash?,
            previous: previous?,
        })
    }

    /// The text of a member of the payload.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.payload.get(name)?.text()
    }

    /// The form under which its hash is correct; the normative one first.
    pub fn form(&self) -> Option<Form> {
        let fits = |form: &Form| form.digest(self).is_some_and(|d| d.to_string() == self.hash);
        [Form::CraTraceV1, Form::CraCore].into_iter().find(fits)
    }

    /// Computes its hash and writes it as a line, without the line feed. It
    /// fails if a reader would warn: ids must be of version 7, times have six
    /// fractional digits and `Z`, numbers be whole.
    pub fn seal(&mut self) -> Result<String, Vec<Finding>> {
        let form = Form::CraTraceV1;
        if let Some(digest) = form.digest(self) {
            self.hash = digest.to_string();
        }
        let text = |text: &str| Json::from(text);
        let object = Json::object([
            ("trace_version", text("1.0")),
            ("event_id", text(&self.event_id)),
            ("trace_id", text(&self.trace_id)),
            ("span_id", text(&self.span_id)),
            ("parent_span_id", self.parent_span_id.as_deref().map_or(Json::Null, text)),
            ("session_id", text(&self.session_id)),
            ("sequence", Json::Number(self.sequence.to_string())),
            ("timestamp", text(&self.timestamp)),
            ("event_type", text(&self.event_type)),
            ("payload", self.payload.clone()),
            ("event_hash", text(&self.hash)),
            ("previous_event_hash", text(&self.previous)),
        ]);
        let line = form.payload(&object).unwrap_or_default();
        let (_, notes) = History::collect(line.as_bytes(), Shape::Event, None);
        let mut findings = notes.into_findings();
        findings.retain(|f| f.severity > Severity::Info || f.code == "trace-uuid-not-v7");
        if findings.is_empty() { Ok(line) } else { Err(findings) }
    }

    /// Notes missing payload members. An unknown event type is hashed and
    /// chained like any other.
    pub(super) fn check_payload(&self, notes: &mut Notes) {
        let Some((_, required)) = TYPES.iter().find(|(name, _)| *name == self.event_type) else {
            notes.once(Severity::Info, "trace-event-type-unknown", || {
                let detail =
                    format!("{} is not an event type of 4.3; first such event", self.event_type);
                (format!("{}/event_type", self.at), detail)
            });
            return;
        };
        for name in *required {
            if self.payload.get(name).is_none_or(|value| *value == Json::Null) {
                let detail = format!("{} requires it (4.3)", self.event_type);
                notes.error(
                    "trace-payload-incomplete",
                    format!("{}/payload/{name}", self.at),
                    detail,
                );
            }
        }
    }
}

/// The members not yet taken.
struct Members<'a> {
    members: Vec<(String, Json)>,
    at: &'a str,
    notes: &'a mut Notes,
}

impl Members<'_> {
    fn take(&mut self, name: &str) -> Option<Json> {
        let place = self.members.iter().position(|(n, _)| n == name);
        place.map(|place| self.members.swap_remove(place).1)
    }

    fn required(&mut self, name: &str) -> Option<Json> {
        let value = self.take(name);
        if value.is_none() {
            self.notes.error("trace-member-missing", format!("{}/{name}", self.at), "required");
        }
        value
    }

    fn malformed(&mut self, name: &str, wanted: &str) {
        let detail = format!("not {wanted}");
        self.notes.error("trace-member-malformed", format!("{}/{name}", self.at), detail);
    }

    fn text(&mut self, name: &str, wanted: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
        match self.required(name)? {
            Json::Text(text) if fits(&text) => Some(text),
            _ => {
                self.malformed(name, wanted);
                None
            }
        }
    }

    fn uuid(&mut self, name: &str) -> Option<String> {
        let text = self.text(name, "a lowercase hyphenated UUID", |t| uuid_version(t).is_some())?;
        self.note_version(name, &text);
        Some(text)
    }

    fn note_version(&mut self, name: &str, uuid: &str) {
        if uuid_version(uuid) != Some(7) {
            let at = self.at;
            self.notes.once(Severity::Info, "trace-uuid-not-v7", || {
                (format!("{at}/{name}"), "not of version 7; first such id".to_owned())
            });
        }
    }

    /// Absent and null give the same hash. So would `""`, which is refused.
    fn parent(&mut self) -> Option<Option<String>> {
        match self.take("parent_span_id") {
            None | Some(Json::Null) => Some(None),
            Some(Json::Text(text)) if uuid_version(&text).is_some() => {
                self.note_version("parent_span_id", &text);
                Some(Some(text))
            }
            Some(_) => {
                self.malformed("parent_span_id", "null or a lowercase hyphenated UUID");
                None
            }
        }
    }

    fn sequence(&mut self) -> Option<u64> {
        let sequence = match self.required("sequence")? {
            Json::Number(token) => grammar::sequence(&token),
            _ => None,
        };
        if sequence.is_none() {
            self.malformed("sequence", "a whole number from 0, in plain digits");
        }
        sequence
    }

    fn timestamp(&mut self) -> Option<String> {
        let wanted = "a time of RFC 3339 with `T`, seconds and a zone";
        let text = self.text("timestamp", wanted, |text| Stamp::parse(text).is_some())?;
        if Stamp::parse(&text).is_some_and(|stamp| !stamp.is_exact()) {
            let at = self.at;
            self.notes.once(Severity::Warning, "trace-time-not-exact", || {
                let detail = "not six fractional digits and `Z`; first such time";
                (format!("{at}/timestamp"), detail.to_owned())
            });
        }
        Some(text)
    }

    fn payload(&mut self) -> Option<Json> {
        let payload = self.required("payload")?;
        if payload.members().is_none() {
            self.malformed("payload", "an object");
            return None;
        }
        let at = format!("{}/payload", self.at);
        numbers(&at, &payload, self.notes).then_some(payload)
    }
}

/// Notes numbers that are not plain integers (6.1.1) or are hashed in another
/// spelling. False if one cannot be hashed.
fn numbers(at: &str, value: &Json, notes: &mut Notes) -> bool {
    match value {
        Json::Number(token) => number(at, token, notes),
        Json::Array(items) => {
            let each = items.iter().enumerate();
            each.fold(true, |ok, (i, item)| within(at, &format!("/{i}"), item, notes) && ok)
        }
        Json::Object(members) => members
            .iter()
            .fold(true, |ok, (name, item)| within(at, &pointer_token(name), item, notes) && ok),
        Json::Null | Json::Bool(_) | Json::Text(_) => true,
    }
}

fn within(at: &str, step: &str, value: &Json, notes: &mut Notes) -> bool {
    match value {
        Json::Null | Json::Bool(_) | Json::Text(_) => true,
        Json::Number(token) if is_plain(token) => true,
        other => numbers(&format!("{at}{step}"), other, notes),
    }
}

fn is_plain(token: &str) -> bool {
    token != "-0" && !token.contains(['.', 'e', 'E'])
}

fn number(at: &str, token: &str, notes: &mut Notes) -> bool {
    let Some(hashed) = Form::CraTraceV1.number(token) else {
        notes.error("trace-number-beyond-double", at, "a number this large cannot be hashed");
        return false;
    };
    if hashed != token {
        notes.warning(
            "trace-number-respelt",
            at,
            format!("{} is hashed as {hashed}", short(token)),
        );
    } else if !is_plain(token) {
        notes.once(Severity::Warning, "trace-number-not-plain", || {
            let shown = short(token);
            (at.to_owned(), format!("{shown} is not a plain integer (6.1.1); first such number"))
        });
    }
    true
}

/// A token can be as long as its payload.
fn short(token: &str) -> &str {
    token.get(..40).unwrap_or(token)
}
