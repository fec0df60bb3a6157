//! CARP/1.0 (section 3): requests, resolutions and execute responses.
//!
//! In: one document. Out: the document and findings; `authorises` checks two
//! documents at a time.

mod execution;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use jsonschema::Validator;
use strum::IntoStaticStr;

use super::grammar::{Stamp, uuid_version};
use super::notes::{NOTES_CODES, Notes};
use super::schema;
use crate::profile::Summary;
use crate::profile::finding::{Finding, Severity};
use crate::profile::kind::{Codes, Record, RecordKind, Role, boxed};
use crate::wire::digest::Digest;
use crate::wire::json::{self, Json};
use crate::wire::time::UnixSeconds;

pub use execution::{NotAuthorised, authorises};

/// The content type of all CARP documents.
pub const CONTENT_TYPE: &str = "application/vnd.cra.carp+json";

/// CARP requests, resolutions and execute responses.
pub static KIND: RecordKind = RecordKind {
    name: "carp",
    role: Role::Record,
    content_types: &[CONTENT_TYPE],
    read: |_, payload| boxed(CarpRecord::read(payload)),
    codes: &[Codes::new(CODES), Codes::new(NOTES_CODES), Codes::new(json::CODES)],
    later_codes: &[],
    page: "docs/profiles/cra.md",
};

const CODES: &[&str] = &[
    "carp-action-conflict",
    "carp-clock-skew",
    "carp-decision-conflict",
    "carp-decision-doubtful",
    "carp-kind-unknown",
    "carp-schema-violation",
    "carp-uuid-not-v7",
];

static REQUEST: LazyLock<Option<Validator>> =
    LazyLock::new(|| schema::compile(include_str!("request.schema.json")));
static RESOLUTION: LazyLock<Option<Validator>> =
    LazyLock::new(|| schema::compile(include_str!("resolution.schema.json")));
static RESPONSE: LazyLock<Option<Validator>> =
    LazyLock::new(|| schema::compile(include_str!("response.schema.json")));

/// Which document it is.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// 3.2 and 3.4
    Request,
    /// 3.3
    Resolution,
    /// 3.5
    #[strum(serialize = "execute response")]
    Response,
}

impl Kind {
    /// All have one media type, so the members that only one kind has decide.
    fn of(document: &Json) -> Option<Self> {
        let has = |name| document.get(name).is_some();
        let kinds = [
            (has("operation") || has("requester"), Self::Request),
            (has("decision") || has("allowed_actions"), Self::Resolution),
            (has("execution_id") || has("status"), Self::Response),
        ];
        let mut fitting = kinds.into_iter().filter(|(fits, _)| *fits).map(|(_, kind)| kind);
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// JSON pointer of its id.
    fn id(self) -> &'static str {
        match self {
            Self::Request => "/request_id",
            Self::Resolution => "/resolution_id",
            Self::Response => "/execution_id",
        }
    }

    fn schema(self) -> Option<&'static Validator> {
        match self {
            Self::Request => REQUEST.as_ref(),
            Self::Resolution => RESOLUTION.as_ref(),
            Self::Response => RESPONSE.as_ref(),
        }
    }
}

/// A CARP document.
#[derive(Clone, Debug, PartialEq)]
pub struct CarpRecord {
    document: Json,
    kind: Option<Kind>,
    content: Digest,
    ok: bool,
}

impl CarpRecord {
    /// Reads and judges a document.
    pub fn read(payload: &[u8]) -> (Self, Vec<Finding>) {
        let mut notes = Notes::default();
        let document = Json::read(payload).unwrap_or_else(|e| {
            notes.error(e.code(), e.pointer.clone(), format!("not JSON: {e}"));
            Json::Null
        });
        let kind = Kind::of(&document);
        match kind {
            Some(kind) => {
                let value = schema::to_serde(&document);
                schema::check(kind.schema(), &value, "carp-schema-violation", &mut notes);
                note_versions(&document, &mut notes);
                if kind == Kind::Resolution {
                    check_decision(&document, &mut notes);
                    check_actions(&document, &mut notes);
                }
            }
            None if document != Json::Null => {
                let detail = "neither a request, nor a resolution, nor an execute response";
                notes.error("carp-kind-unknown", "", detail);
            }
            None => {}
        }
        let record = Self { document, kind, content: Digest::of(payload), ok: !notes.is_broken() };
        (record, notes.into_findings())
    }

    /// The document; null if it could not be read.
    pub fn document(&self) -> &Json {
        &self.document
    }

    /// Which document it is.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// Whether it follows the rules of a single document.
    pub fn is_ok(&self) -> bool {
        self.ok
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.document.pointer(pointer)?.text()
    }

    /// Its own timestamp.
    pub fn claimed_at(&self) -> Option<UnixSeconds> {
        Stamp::parse(self.text("/timestamp")?)?.time
    }
}

impl Record for CarpRecord {
    fn summary(&self) -> Summary {
        let own = |pointer| self.text(pointer).map(str::to_owned);
        let Some(kind) = self.kind else {
            return Summary { ok: Some(self.ok), ..Summary::default() };
        };
        let id = |pointer| own(pointer).filter(|text| uuid_version(text).is_some());
        let record_id = id(kind.id());
        let (status, is_response) = (self.text("/status"), kind == Kind::Response);
        let asks = self.text("/decision/type") == Some("requires_approval")
            || (is_response && status == Some("pending_approval"));
        let is_done = is_response && status == Some("success");
        let verdict = if asks { Some("hitl_dispatched") } else { is_done.then_some("executed") };
        Summary {
            content: record_id.as_ref().map(|_| self.content.to_string()),
            action_id: id("/execution_id"),
            decision_id: id("/resolution_id").or_else(|| id("/execution/resolution_id")),
            developer: own("/requester/agent_id"),
            verdict: verdict.map(str::to_owned),
            decision: self.text("/decision/type").and_then(decision).map(str::to_owned),
            claimed_at: self.claimed_at(),
            ok: Some(self.ok),
            exchange: execution::part(self),
            record_id,
            ..Summary::default()
        }
    }
}

/// A decision type in the words of the summary, which has none for a partial
/// resolution.
pub(super) fn decision(decision_type: &str) -> Option<&'static str> {
    match decision_type {
        "allow" => Some("accept"),
        "deny" => Some("reject"),
        "requires_approval" => Some("needs_input"),
        _ => None,
    }
}

/// Ids of other versions than 7 are common, also upstream.
fn note_versions(document: &Json, notes: &mut Notes) {
    const IDS: [&str; 7] = [
        "/request_id",
        "/resolution_id",
        "/execution_id",
        "/trace_id",
        "/requester/session_id",
        "/requester/parent_session_id",
        "/execution/resolution_id",
    ];
    for at in IDS {
        let version = document.pointer(at).and_then(Json::text).and_then(uuid_version);
        if version.is_some_and(|version| version != 7) {
            let detail = "not of version 7; first such id";
            notes.once(Severity::Info, "carp-uuid-not-v7", || (at.to_owned(), detail.to_owned()));
        }
    }
}

/// The decision types of 3.3.1. Anything not allowed is denied, so an `allow`
/// without actions allows nothing.
fn check_decision(document: &Json, notes: &mut Notes) {
    let count = |name| document.get(name).and_then(Json::array).map_or(0, <[Json]>::len);
    let (allowed, denied) = (count("allowed_actions"), count("denied_actions"));
    let approval = document.pointer("/decision/approval_id").and_then(Json::text);
    let at = "/decision/type";
    match document.pointer(at).and_then(Json::text).unwrap_or_default() {
        "deny" if allowed > 0 => {
            let detail = format!("a denial allows no action, but {allowed} are listed (3.3.1)");
            notes.error("carp-decision-conflict", at, detail);
        }
        "partial" if allowed == 0 || denied == 0 => {
            let detail = "partial, but no action is allowed or none is denied (3.3.1)";
            notes.warning("carp-decision-doubtful", at, detail);
        }
        "allow" if allowed == 0 => {
            let detail = "an allow without actions: nothing may be executed";
            notes.warning("carp-decision-doubtful", at, detail);
        }
        "requires_approval" if approval.is_none() => {
            let detail = "the approval it asks for has no id";
            notes.warning("carp-decision-doubtful", at, detail);
        }
        _ => {}
    }
}

fn check_actions(document: &Json, notes: &mut Notes) {
    let ids = |name| {
        let items = document.get(name).and_then(Json::array).unwrap_or_default();
        items.iter().map(|item| item.get("action_id").and_then(Json::text))
    };
    let denied: std::collections::HashSet<&str> = ids("denied_actions").flatten().collect();
    for (i, id) in ids("allowed_actions").enumerate() {
        if id.is_some_and(|id| denied.contains(id)) {
            let at = format!("/allowed_actions/{i}/action_id");
            notes.error("carp-action-conflict", at, "both allowed and denied");
        }
    }
}
