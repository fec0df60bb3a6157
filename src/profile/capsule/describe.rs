//! A plain description of an action, as people and scripts write it.
//!
//! In: a JSON object with the members of a Capsule that only the producer
//! can know, and files to digest. Out: an `Action`. Members that are derived
//! (ids, digests, assurance) may not be given, so they cannot be wrong.

use super::produce::{Action, ActionKind, Attested, Disposer, Disposition};
use super::produce::{Effect, EffectState, OnExpiry};
use crate::wire::jcs::{self, Suite, SuiteDigest};
use crate::wire::json::{self, Json};
use crate::wire::text::did_you_mean;
use crate::wire::time::UnixSeconds;

const TOP: &[&str] = &[
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
const DISPOSITION: &[&str] = &[
    "decision",
    "approver",
    "human_disposed",
    "authority",
    "verdict_class",
    "reason",
    "expiry_policy",
];
const EFFECT: &[&str] =
    &["status", "type", "external_ref", "irreversibility_class", "effect_attestation"];

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
    /// Reads a description.
    pub fn describe(description: &[u8], with: &Attachments) -> Result<Self, Error> {
        let json = Json::read(description).map_err(Error::NotJson)?;
        known("", &json, TOP)?;
        let own = |name: &'static str| member(&json, "", name);
        let kind = match own("action_type")?.as_deref() {
            Some("decide") | None => ActionKind::Decide,
            Some("fyi") => ActionKind::Fyi,
            Some(_) => return Err(wrong("/action_type", "\"decide\" or \"fyi\" (5.1)")),
        };
        let timestamp = match own("timestamp")? {
            None => with.now,
            Some(text) => UnixSeconds::from_rfc3339(&text)
                .ok_or(wrong("/timestamp", "an RFC 3339 time (5.1)"))?,
        };
        Ok(Self {
            action_id: own("action_id")?.unwrap_or_else(|| with.action_id.clone()),
            decision_id: decision_id(own("decision_id")?, with.decision_id.clone())?,
            kind,
            operator: own("operator")?
                .ok_or(wrong("/operator", "given: who answers for it (5.1)"))?,
            developer: own("developer")?
                .ok_or(wrong("/developer", "given: which agent acted (5.1)"))?,
            timestamp,
            disposition: json.get("disposition").map(disposition).transpose()?,
            effect: json.get("effect").map(|e| effect(e, with)).transpose()?,
            constraints: constraints(json.get("constraints"), &with.evidence)?,
            model_attestation: json.get("model_attestation").cloned(),
            supersedes: with.supersedes.clone(),
        })
    }
}

/// Said in one place, or alike in both.
fn decision_id(own: Option<String>, beside: Option<String>) -> Result<Option<String>, Error> {
    match (&own, &beside) {
        (Some(own), Some(beside)) if own != beside => {
            Err(wrong("/decision_id", "the same as --decision-id"))
        }
        _ if own.as_deref().or(beside.as_deref()) == Some("") => {
            Err(wrong("/decision_id", "not empty; leave it out instead"))
        }
        _ => Ok(own.or(beside)),
    }
}

fn disposition(json: &Json) -> Result<Disposition, Error> {
    const AT: &str = "/disposition";
    known(AT, json, DISPOSITION)?;
    let own = |name: &'static str| member(json, AT, name);
    let human = match json.get("human_disposed") {
        None => false,
        Some(value) => value.bool().ok_or(wrong("/disposition/human_disposed", "true or false"))?,
    };
    let by = match (own("approver")?.as_deref(), human) {
        (Some("human"), true) => Disposer::Human,
        (Some("human"), false) => Disposer::AwaitedHuman,
        (Some("policy"), false) => Disposer::Policy { authority: own("authority")? },
        (Some("policy"), true) => {
            return Err(wrong("/disposition/human_disposed", "false when a policy approved (5.4)"));
        }
        _ => return Err(wrong("/disposition/approver", "\"human\" or \"policy\" (5.4)")),
    };
    Ok(Disposition {
        decision: own("decision")?.ok_or(wrong("/disposition/decision", "given (5.4)"))?,
        by,
        verdict: own("verdict_class")?,
        reason: json.get("reason").map(|r| digest("/disposition/reason", r)).transpose()?,
        expiry: json.get("expiry_policy").map(expiry).transpose()?,
    })
}

fn expiry(json: &Json) -> Result<(u64, OnExpiry), Error> {
    let at = "/disposition/expiry_policy";
    known(at, json, &["ttl_seconds", "on_expiry"])?;
    let seconds = json.get("ttl_seconds").and_then(Json::int).and_then(|n| u64::try_from(n).ok());
    let then = match json.get("on_expiry").and_then(Json::text) {
        Some("expired") => OnExpiry::Expired,
        Some("escalated") => OnExpiry::Escalated,
        _ => return Err(wrong(at, "an on_expiry of \"expired\" or \"escalated\" (5.4)")),
    };
    Ok((seconds.ok_or(wrong(at, "a ttl_seconds that is a whole number (5.4)"))?, then))
}

fn effect(json: &Json, with: &Attachments) -> Result<Effect, Error> {
    const AT: &str = "/effect";
    known(AT, json, EFFECT)?;
    let own = |name: &'static str| member(json, AT, name);
    let of = |at, content: &Option<Json>| content.as_ref().map(|c| digest(at, c)).transpose();
    let (request, response) = (of("--request", &with.request)?, of("--response", &with.response)?);
    let by = match own("effect_attestation")?.as_deref() {
        Some("gate_executed") => Attested::GateExecuted,
        Some("runtime_claimed") | None => Attested::RuntimeClaimed,
        Some(_) => {
            return Err(wrong(
                "/effect/effect_attestation",
                "\"gate_executed\" or \"runtime_claimed\" (5.2)",
            ));
        }
    };
    let state = match (own("status")?.as_deref(), response) {
        (Some("planned"), None) if request.is_none() => EffectState::Planned,
        (Some("planned"), _) => {
            return Err(wrong(
                "/effect/status",
                "more than planned once there is a request or response (5.2)",
            ));
        }
        (Some("dispatched"), None) => EffectState::Dispatched { request, by },
        (Some("dispatched"), Some(_)) => {
            return Err(wrong(
                "/effect/status",
                "\"confirmed\" or \"failed\" once there is a response (5.2)",
            ));
        }
        (Some("confirmed"), Some(response)) => EffectState::Confirmed { request, response, by },
        (Some("confirmed"), None) => {
            return Err(wrong(
                "/effect/status",
                "backed by --response: confirmed means observed (5.2)",
            ));
        }
        (Some("failed"), response) => EffectState::Failed { request, response, by },
        (Some("reverted"), response) => EffectState::Reverted { request, response, by },
        _ => {
            return Err(wrong(
                "/effect/status",
                "planned, dispatched, confirmed, failed or reverted (5.2)",
            ));
        }
    };
    Ok(Effect {
        kind: own("type")?,
        external_ref: own("external_ref")?,
        irreversibility: own("irreversibility_class")?,
        state,
    })
}

/// The Constraint Records, each with the digest of its evidence.
fn constraints(json: Option<&Json>, evidence: &[(String, Json)]) -> Result<Vec<Json>, Error> {
    let Some(json) = json else {
        return match evidence.first() {
            None => Ok(Vec::new()),
            Some((id, _)) => Err(Error::Evidence { id: id.clone() }),
        };
    };
    let records = json.array().ok_or(wrong("/constraints", "a list (8.1)"))?;
    let id_of = |record: &Json| record.get("id").and_then(Json::text).map(str::to_owned);
    if let Some((id, _)) =
        evidence.iter().find(|(id, _)| !records.iter().any(|r| id_of(r).as_ref() == Some(id)))
    {
        return Err(Error::Evidence { id: id.clone() });
    }
    let with_digest = |record: &Json| {
        let content = evidence.iter().find(|(id, _)| id_of(record).as_ref() == Some(id));
        let mut members =
            record.members().ok_or(wrong("/constraints", "a list of objects (8.1)"))?.to_vec();
        if let Some((_, content)) = content {
            let digest = digest("--evidence", content)?;
            members.push(("evidence_digest".to_owned(), Json::Text(digest.hex())));
        }
        Ok(Json::Object(members))
    };
    records.iter().map(with_digest).collect()
}

fn digest(at: &'static str, content: &Json) -> Result<SuiteDigest, Error> {
    Suite::JcsN.digest(content).map_err(|source| Error::Number { at, source })
}

fn member(json: &Json, at: &'static str, name: &'static str) -> Result<Option<String>, Error> {
    let text = |value: &Json| value.text().map(str::to_owned);
    let place = || Error::Wrong { at: format!("{at}/{name}"), expected: "text" };
    json.get(name).map(|value| text(value).ok_or_else(place)).transpose()
}

fn known(at: &'static str, json: &Json, names: &[&'static str]) -> Result<(), Error> {
    let members =
        json.members().ok_or(Error::Wrong { at: at.to_owned(), expected: "an object" })?;
    match members.iter().find(|(name, _)| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => {
            let hint = did_you_mean(name, names.iter().copied());
            let hint = hint.map_or(String::new(), |near| format!("; did you mean {near}?"));
            Err(Error::Unknown { at: format!("{at}/{name}"), hint })
        }
    }
}

fn wrong(at: &'static str, expected: &'static str) -> Error {
    Error::Wrong { at: at.to_owned(), expected }
}

/// Why a description is not one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
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
    Wrong { at: String, expected: &'static str },
}

impl Error {
    /// The stable word for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Evidence { .. } => "description-evidence",
            Self::NotJson(_) => "description-not-json",
            Self::Number { .. } => "description-number",
            Self::Unknown { .. } => "description-unknown",
            Self::Wrong { .. } => "description-wrong",
        }
    }
}
