//! A plain description of an action, as people and scripts write it.
//!
//! In: a JSON object with the members of a Capsule that only the producer
//! can know, and files to digest. Out: an `Action`, or everything that is
//! wrong with the description. Members that are derived (ids, digests,
//! assurance) may not be given, so they cannot be wrong.

use std::cell::RefCell;

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::produce::{Action, ActionKind, Attested, Disposer, Disposition};
use super::produce::{Effect, EffectState, OnExpiry};
use super::vocabulary::{APPROVERS, EFFECT_STATUSES, ON_EXPIRY};
use crate::wire::jcs::{self, Suite, SuiteDigest};
use crate::wire::json::{self, Json};
use crate::wire::text::did_you_mean;
use crate::wire::time::UnixSeconds;

pub(super) const TOP: &[&str] = &[
    "action_id",
    "decision_id",
    "action_type",
    "operator",
    "developer",
    "timestamp",
    "disposition",
    "effect",
    "constraints",
    "model_attestation",
];
pub(super) const DISPOSITION: &[&str] = &[
    "decision",
    "approver",
    "human_disposed",
    "authority",
    "verdict_class",
    "reason",
    "expiry_policy",
];
pub(super) const EFFECT: &[&str] =
    &["status", "type", "external_ref", "irreversibility_class", "effect_attestation"];
pub(super) const EXPIRY: &[&str] = &["ttl_seconds", "on_expiry"];

/// Where members are that somebody may look for elsewhere.
const PLACES: &[(&str, &[&str])] = &[("", TOP), ("/disposition", DISPOSITION), ("/effect", EFFECT)];

/// Members of a Capsule that are made, and from what.
const DERIVED: &[(&str, &str)] = &[
    ("assurance", "it is derived"),
    ("capsule_id", "it is computed"),
    ("chain", "--supersedes makes it"),
    ("format_version", "it is written for you"),
    ("reason_digest", "give the reason itself as /disposition/reason"),
    ("request", "--request FILE takes it"),
    ("request_digest", "--request FILE makes it"),
    ("response", "--response FILE takes it"),
    ("response_digest", "--response FILE makes it"),
    ("spec_version", "it is written for you"),
    ("supersedes", "--supersedes ID takes it"),
];

/// A complete description to start from, which can be sealed as it is.
#[derive(Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Example {
    /// A policy allowed the action.
    Executed,
    /// A policy blocked the action.
    Blocked,
    /// The action waits for a human.
    Approval,
    /// A later report of the outcome.
    Outcome,
}

impl Example {
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The text of the file.
    pub fn text(self) -> &'static str {
        match self {
            Self::Executed => include_str!("examples/executed.json"),
            Self::Blocked => include_str!("examples/blocked.json"),
            Self::Approval => include_str!("examples/approval.json"),
            Self::Outcome => include_str!("examples/outcome.json"),
        }
    }
}

/// What comes with a description: contents to digest, and what the record
/// cannot make up.
#[derive(Clone, Debug, Default)]
pub struct Attachments {
    /// The request that was sent.
    pub request: Option<Json>,
    /// The response that was observed.
    pub response: Option<Json>,
    /// Evidence by constraint id.
    pub evidence: Vec<(String, Json)>,
    /// The Capsule this one closes.
    pub supersedes: Option<String>,
    /// The decision it belongs to; a description that names another is wrong.
    pub decision_id: Option<String>,
    /// Used where the description names no action.
    pub action_id: String,
    /// Used where the description names no time.
    pub now: UnixSeconds,
}

impl Action {
    /// Reads a description. All mistakes are reported at once.
    pub fn describe(description: &[u8], with: &Attachments) -> Result<Self, Mistakes> {
        let json = Json::read(description).map_err(|e| Mistakes(vec![Error::NotJson(e)]))?;
        let notes = Notes::default();
        let own = Object { json: &json, at: "", notes: &notes };
        own.allow(TOP);
        let kind = match own.word("action_type", &["decide", "fyi"]).as_deref() {
            Some("fyi") => ActionKind::Fyi,
            _ => ActionKind::Decide,
        };
        let timestamp = own.text("timestamp").map(|text| {
            let time = UnixSeconds::from_rfc3339(&text);
            time.unwrap_or_else(|| own.wrong("timestamp", "an RFC 3339 time (5.1)"))
        });
        let action = Self {
            action_id: own.text("action_id").unwrap_or_else(|| with.action_id.clone()),
            decision_id: decision_id(&own, with.decision_id.as_ref()),
            kind,
            operator: own.required("operator", "given: who answers for it (5.1)"),
            developer: own.required("developer", "given: which agent acted (5.1)"),
            timestamp: timestamp.unwrap_or(with.now),
            disposition: own.object("disposition").map(|json| disposition(&json)),
            effect: own.object("effect").and_then(|json| effect(&json, with)),
            constraints: constraints(&own, &with.evidence),
            model_attestation: own.object("model_attestation").map(|model| model.json.clone()),
            supersedes: with.supersedes.clone(),
        };
        notes.into_mistakes().map_or(Ok(action), Err)
    }
}

/// Said in one place, or alike in both.
fn decision_id(own: &Object<'_>, beside: Option<&String>) -> Option<String> {
    let found = own.text("decision_id");
    if found.as_ref().zip(beside).is_some_and(|(own, beside)| own != beside) {
        own.wrong::<()>("decision_id", "the same as --decision-id");
    }
    let found = found.or_else(|| beside.cloned());
    if found.as_deref() == Some("") {
        own.wrong::<()>("decision_id", "not empty; leave it out instead");
    }
    found
}

fn disposition(own: &Object<'_>) -> Disposition {
    own.allow(DISPOSITION);
    let human = own.json.get("human_disposed").is_some_and(|value| {
        value.bool().unwrap_or_else(|| own.wrong("human_disposed", "true or false"))
    });
    let approver = own.word("approver", APPROVERS);
    if own.json.get("approver").is_none() {
        own.wrong::<()>("approver", "given: \"human\" or \"policy\" (5.4)");
    }
    if approver.as_deref() == Some("policy") && human {
        own.wrong::<()>("human_disposed", "false when a policy approved (5.4)");
    }
    let authority = own.text("authority");
    let by = match (approver.as_deref(), human) {
        (Some("human"), true) => Disposer::Human,
        (Some("human"), false) => Disposer::AwaitedHuman,
        _ => Disposer::Policy { authority },
    };
    Disposition {
        decision: own.required("decision", "given (5.4)"),
        by,
        verdict: own.text("verdict_class"),
        reason: own.json.get("reason").and_then(|r| own.digest("/disposition/reason", r)),
        expiry: own.object("expiry_policy").map(|json| expiry(&json)),
    }
}

fn expiry(own: &Object<'_>) -> (u64, OnExpiry) {
    own.allow(EXPIRY);
    let seconds = own.json.get("ttl_seconds").and_then(Json::int);
    let seconds = seconds.and_then(|n| u64::try_from(n).ok());
    let seconds =
        seconds.unwrap_or_else(|| own.wrong("ttl_seconds", "a whole number of seconds (5.4)"));
    let then = match own.word("on_expiry", ON_EXPIRY).as_deref() {
        Some("escalated") => OnExpiry::Escalated,
        _ => OnExpiry::Expired,
    };
    if own.json.get("on_expiry").is_none() {
        own.wrong::<()>("on_expiry", "given: \"expired\" or \"escalated\" (5.4)");
    }
    (seconds, then)
}

fn effect(own: &Object<'_>, with: &Attachments) -> Option<Effect> {
    own.allow(EFFECT);
    let of = |at, content: &Option<Json>| content.as_ref().and_then(|c| own.digest(at, c));
    let (request, response) = (of("--request", &with.request), of("--response", &with.response));
    let by = match own.word("effect_attestation", &["gate_executed", "runtime_claimed"]).as_deref()
    {
        Some("gate_executed") => Attested::GateExecuted,
        _ => Attested::RuntimeClaimed,
    };
    let status = own.word("status", EFFECT_STATUSES);
    let (has_request, has_response) = (with.request.is_some(), with.response.is_some());
    let state = match (status.as_deref(), response) {
        (Some("planned"), _) if has_request || has_response => {
            own.wrong("status", "more than planned once there is a request or response (5.2)")
        }
        (Some("planned"), _) => Some(EffectState::Planned),
        (Some("dispatched"), _) if has_response => {
            own.wrong("status", "\"confirmed\" or \"failed\" once there is a response (5.2)")
        }
        (Some("dispatched"), _) => Some(EffectState::Dispatched { request, by }),
        (Some("confirmed"), Some(response)) => {
            Some(EffectState::Confirmed { request, response, by })
        }
        (Some("confirmed"), None) if has_response => None,
        (Some("confirmed"), None) => {
            own.wrong("status", "backed by --response: confirmed means observed (5.2)")
        }
        (Some("failed"), response) => Some(EffectState::Failed { request, response, by }),
        (Some("reverted"), response) => Some(EffectState::Reverted { request, response, by }),
        _ if own.json.get("status").is_none() => {
            own.wrong("status", "given: how far the effect came (5.2)")
        }
        _ => None,
    };
    let kind = own.text("type");
    let (external_ref, irreversibility) =
        (own.text("external_ref"), own.text("irreversibility_class"));
    Some(Effect { kind, external_ref, irreversibility, state: state? })
}

/// The Constraint Records, each with the digest of its evidence.
fn constraints(own: &Object<'_>, evidence: &[(String, Json)]) -> Vec<Json> {
    let records = match own.json.get("constraints").map(Json::array) {
        None => &[],
        Some(Some(records)) => records,
        Some(None) => own.wrong("constraints", "a list (8.1)"),
    };
    let id_of = |record: &Json| record.get("id").and_then(Json::text).map(str::to_owned);
    for (id, _) in evidence {
        if !records.iter().any(|record| id_of(record).as_ref() == Some(id)) {
            own.notes.note(Error::Evidence { id: id.clone() });
        }
    }
    let with_digest = |(place, record): (usize, &Json)| {
        let Some(members) = record.members() else {
            own.wrong::<()>(&format!("constraints/{place}"), "an object (8.1)");
            return Json::Null;
        };
        let mut members = members.to_vec();
        let content = evidence.iter().find(|(id, _)| id_of(record).as_ref() == Some(id));
        if let Some(digest) = content.and_then(|(_, content)| own.digest("--evidence", content)) {
            members.push(("evidence_digest".to_owned(), Json::Text(digest.hex())));
        }
        Json::Object(members)
    };
    records.iter().enumerate().map(with_digest).collect()
}

/// What was found wrong so far.
#[derive(Default)]
struct Notes(RefCell<Vec<Error>>);

impl Notes {
    fn note(&self, error: Error) {
        self.0.borrow_mut().push(error);
    }

    fn into_mistakes(self) -> Option<Mistakes> {
        let found = self.0.into_inner();
        (!found.is_empty()).then_some(Mistakes(found))
    }
}

/// An object of the description. Whatever is wrong with a member is noted,
/// and something harmless stands in for it: where there are notes, nobody
/// gets to see the action.
struct Object<'a> {
    json: &'a Json,
    at: &'static str,
    notes: &'a Notes,
}

impl<'a> Object<'a> {
    /// Notes every member that is none of `names`.
    fn allow(&self, names: &[&'static str]) {
        let Some(members) = self.json.members() else {
            let at = self.at.to_owned();
            return self.notes.note(Error::Wrong { at, expected: "an object".to_owned() });
        };
        for (name, _) in members.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
            // A JSON pointer (RFC 6901).
            let at = format!("{}/{}", self.at, name.replace('~', "~0").replace('/', "~1"));
            self.notes.note(Error::Unknown { at, hint: hint(name, names) });
        }
    }

    /// Notes that a member must be something else.
    fn wrong<T: Default>(&self, name: &str, expected: &str) -> T {
        let at = format!("{}/{name}", self.at);
        self.notes.note(Error::Wrong { at, expected: expected.to_owned() });
        T::default()
    }

    /// A member that is an object.
    fn object(&self, name: &'static str) -> Option<Self> {
        let json = self.json.get(name)?;
        let at = match (self.at, name) {
            ("", "disposition") => "/disposition",
            ("", "effect") => "/effect",
            ("", _) => "/model_attestation",
            _ => "/disposition/expiry_policy",
        };
        if json.members().is_none() {
            return self.wrong(name, "an object");
        }
        Some(Self { json, at, notes: self.notes })
    }

    /// A member that is text.
    fn text(&self, name: &'static str) -> Option<String> {
        let value = self.json.get(name)?;
        let text = value.text().map(str::to_owned);
        text.or_else(|| self.wrong(name, "text"))
    }

    fn required(&self, name: &'static str, expected: &str) -> String {
        if self.json.get(name).is_none() {
            return self.wrong(name, expected);
        }
        self.text(name).unwrap_or_default()
    }

    /// A member that is one of these words.
    fn word(&self, name: &'static str, words: &[&'static str]) -> Option<String> {
        let found = self.text(name)?;
        if words.contains(&found.as_str()) {
            return Some(found);
        }
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let near = did_you_mean(&found, words.iter().copied());
        let near = near.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
        self.wrong(name, &format!("one of {}{near}", quoted.join(", ")))
    }

    fn digest(&self, at: &'static str, content: &Json) -> Option<SuiteDigest> {
        let digest = Suite::JcsN.digest(content);
        digest.map_err(|source| self.notes.note(Error::Number { at, source })).ok()
    }
}

/// What somebody may have meant who wrote this member.
fn hint(name: &str, names: &[&'static str]) -> String {
    if let Some((_, how)) = DERIVED.iter().find(|(derived, _)| *derived == name) {
        return format!("; {how}");
    }
    if let Some((at, _)) = PLACES.iter().find(|(_, names)| names.contains(&name)) {
        return format!("; did you mean {at}/{name}?");
    }
    let part = |whole: &&&str| {
        whole.starts_with(&format!("{name}_")) || whole.ends_with(&format!("_{name}"))
    };
    let own = did_you_mean(name, names.iter().copied());
    if let Some(near) = own.or_else(|| names.iter().find(part).copied()) {
        return format!("; did you mean {near}?");
    }
    let elsewhere = PLACES.iter().find_map(|(at, names)| {
        let near = did_you_mean(name, names.iter().copied());
        Some((at, near.or_else(|| names.iter().find(part).copied())?))
    });
    elsewhere.map_or(String::new(), |(at, near)| format!("; did you mean {at}/{near}?"))
}

/// Everything that is wrong with a description, in its own order.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Mistakes(Vec<Error>);

impl Mistakes {
    /// One by one; there is at least one.
    pub fn all(&self) -> &[Error] {
        &self.0
    }

    /// The stable word of the first.
    pub fn code(&self) -> &'static str {
        self.0.first().map_or("description-wrong", Error::code)
    }
}

/// A mistake in a description.
#[derive(Clone, Debug, IntoStaticStr, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "description-")]
pub enum Error {
    /// Evidence for a constraint that is not there.
    #[error("evidence was given for constraint {id:?}, which the description does not have")]
    Evidence { id: String },
    /// Not JSON.
    #[error("the description cannot be read: {0}")]
    NotJson(#[source] json::Error),
    /// A number that has no digest.
    #[error("{at}: amounts are written as text: {source}")]
    Number { at: &'static str, source: jcs::Error },
    /// A member nobody reads, or one that is derived.
    #[error("{at} is not part of a description{hint}")]
    Unknown { at: String, hint: String },
    /// A member of another kind or value.
    #[error("{at} must be {expected}")]
    Wrong { at: String, expected: String },
}

impl Error {
    /// The stable word for this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
