//! The producer's half: what an agent did becomes a Capsule.
//!
//! In: an `Action`, typed so that a policy's approval cannot pass for a
//! human's and a confirmed effect cannot lack its response. Out: the payload,
//! its id and the header claims, after the same checks that a verifier runs.

use strum::IntoStaticStr;

use super::claims::{self, ACTION_TYPE, DECISION_ID, STATEMENT_TYPE};
use super::{CapsuleRecord, EffectMode};
use crate::profile::finding::{Finding, Severity};
use crate::wire::jcs::{self, Suite, SuiteDigest};
use crate::wire::json::Json;
use crate::wire::time::UnixSeconds;

/// The prose this producer follows.
const SPEC_VERSION: &str = "draft-mih-scitt-agent-action-capsule-01";

/// One agent action, ready to be sealed.
///
/// ```
/// use capstan_core::envelope::{Draft, seal_with_claims};
/// use capstan_core::key::{Algorithm, SigningKey};
/// use capstan_core::profile::capsule::{
///     Action, ActionKind, Attested, CONTENT_TYPE, Disposer, Disposition, Effect, EffectState,
/// };
/// use capstan_core::wire::jcs::Suite;
/// use capstan_core::wire::json::Json;
/// use capstan_core::wire::time::UnixSeconds;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let response = Suite::JcsN.digest(&Json::read(br#"{"paid":true}"#)?)?;
/// let action = Action {
///     action_id: "pay-17".to_owned(),
///     decision_id: None,
///     kind: ActionKind::Decide,
///     operator: "acme".to_owned(),
///     developer: "https://agent.example".to_owned(),
///     timestamp: UnixSeconds::new(1_780_272_000),
///     disposition: Some(Disposition {
///         decision: "accept".to_owned(),
///         by: Disposer::Policy { authority: Some("limit-100".to_owned()) },
///         verdict: Some("executed".to_owned()),
///         reason: None,
///         expiry: None,
///     }),
///     effect: Some(Effect {
///         kind: Some("send_payment".to_owned()),
///         external_ref: Some("po-17".to_owned()),
///         irreversibility: None,
///         // A confirmed effect cannot be written down without its response.
///         state: EffectState::Confirmed { request: None, response, by: Attested::GateExecuted },
///     }),
///     constraints: Vec::new(),
///     model_attestation: None,
///     supersedes: None,
/// };
/// let capsule = action.produce()?;
/// let key = SigningKey::generate(Algorithm::Es256)?;
/// let statement = seal_with_claims(
///     &Draft {
///         content_type: CONTENT_TYPE,
///         issuer: &capsule.issuer,
///         subject: &capsule.subject,
///         issued_at: None,
///         payload: &capsule.payload,
///     },
///     &capsule.claims,
///     &key,
/// )?;
/// assert_eq!(capsule.subject, "urn:agent-action-capsule:acme:pay-17");
/// assert!(statement.len() > capsule.payload.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Stable name of the action, unique in one ledger.
    pub action_id: String,
    /// The decision it belongs to, where several actions follow from one; the
    /// action's own name otherwise.
    pub decision_id: Option<String>,
    /// Whether somebody had to decide.
    pub kind: ActionKind,
    /// The tenant who answers for it.
    pub operator: String,
    /// The agent that acted; also `iss` of the statement.
    pub developer: String,
    /// When it happened.
    pub timestamp: UnixSeconds,
    /// How it was decided.
    pub disposition: Option<Disposition>,
    /// What it did to the world.
    pub effect: Option<Effect>,
    /// Constraint Records (8.1), as objects.
    pub constraints: Vec<Json>,
    /// The model behind it, as an object.
    pub model_attestation: Option<Json>,
    /// The Capsule this one closes.
    pub supersedes: Option<String>,
}

/// `action_type`
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "snake_case")]
pub enum ActionKind {
    /// A disposition was required.
    Decide,
    /// For information.
    Fyi,
}

/// Who disposed. There is no way to say that a human acted and a policy
/// approved (5.4).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Disposer {
    /// A human acted.
    Human,
    /// It waits for a human, who has not acted.
    AwaitedHuman,
    /// A policy decided, under an authority it may name.
    Policy { authority: Option<String> },
}

/// The disposition block (5.4).
#[derive(Clone, Debug, PartialEq)]
pub struct Disposition {
    /// `accept`, `reject`, `needs_input` or `deferred`.
    pub decision: String,
    /// Who disposed.
    pub by: Disposer,
    /// Why it ended as it did.
    pub verdict: Option<String>,
    /// The private reason; only its digest is published.
    pub reason: Option<SuiteDigest>,
    /// When a deferral runs out, and into what.
    pub expiry: Option<(u64, OnExpiry)>,
}

/// What a deferral becomes.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "snake_case")]
pub enum OnExpiry {
    /// It goes to somebody else.
    Escalated,
    /// It ends.
    Expired,
}

/// The effect record (5.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// What kind of effect.
    pub kind: Option<String>,
    /// What later outcomes are joined by.
    pub external_ref: Option<String>,
    /// How hard it is to undo.
    pub irreversibility: Option<String>,
    /// How far it came.
    pub state: EffectState,
}

/// How far an effect came, with exactly the digests that state may carry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EffectState {
    /// Intended, not sent.
    Planned,
    /// Sent; nothing observed.
    Dispatched { request: Option<SuiteDigest>, by: Attested },
    /// The response was observed.
    Confirmed { request: Option<SuiteDigest>, response: SuiteDigest, by: Attested },
    /// It ran and said that it failed.
    Failed { request: Option<SuiteDigest>, response: Option<SuiteDigest>, by: Attested },
    /// A committed effect was undone.
    Reverted { request: Option<SuiteDigest>, response: Option<SuiteDigest>, by: Attested },
}

/// Who vouches for the effect (5.2).
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "snake_case")]
pub enum Attested {
    /// The gate saw the effect's boundary.
    GateExecuted,
    /// The runtime says so.
    RuntimeClaimed,
}

/// A Capsule that passed its own checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Produced {
    /// The payload, in canonical form.
    pub payload: Vec<u8>,
    /// Its content address.
    pub capsule_id: String,
    /// `sub` of the statement.
    pub subject: String,
    /// `iss` of the statement.
    pub issuer: String,
    /// The `capsule_*` claims of the header.
    pub claims: Vec<(&'static str, String)>,
}

impl Action {
    /// Builds the Capsule, or says which clause stands against it.
    pub fn produce(&self) -> Result<Produced, Error> {
        let mut members = self.members();
        let id = Suite::JcsN
            .digest_without(&Json::object(members.clone()), &["chain"])
            .map_err(Error::Number)?;
        members.push(("capsule_id", text(&id.hex())));
        let (record, strict) = CapsuleRecord::of(Json::object(members));
        let against: Vec<Finding> = record
            .class1()
            .findings
            .iter()
            .chain(&strict)
            .filter(|finding| finding.severity > Severity::Info)
            .cloned()
            .collect();
        if !against.is_empty() {
            return Err(Error::Forbidden { findings: against });
        }
        let canonical = jcs::canonical(record.payload()).map_err(Error::Number)?;
        Ok(Produced {
            payload: canonical.into_bytes(),
            capsule_id: id.hex(),
            subject: claims::subject(&self.operator, &self.action_id),
            issuer: self.developer.clone(),
            claims: vec![
                (STATEMENT_TYPE, "agent_action".to_owned()),
                (ACTION_TYPE, <&str>::from(self.kind).to_owned()),
                (DECISION_ID, self.decision_id.as_ref().unwrap_or(&self.action_id).clone()),
            ],
        })
    }

    fn members(&self) -> Vec<(&'static str, Json)> {
        let mut members = vec![
            ("spec_version", text(SPEC_VERSION)),
            ("format_version", text("2")),
            ("action_id", text(&self.action_id)),
            ("action_type", text(self.kind.into())),
            ("operator", text(&self.operator)),
            ("developer", text(&self.developer)),
            ("timestamp", text(&self.timestamp.to_string())),
            ("constraints", Json::Array(self.constraints.clone())),
        ];
        let decision = self.decision_id.as_deref();
        let effect = self.effect.as_ref().map(|effect| effect.json(decision));
        let mode = EffectMode::derive(effect.as_ref());
        let ledger = if self.supersedes.is_some() { "chained" } else { "standalone" };
        let assurance = [
            ("attestation_mode", text("self_attested")),
            ("effect_mode", text(mode.name())),
            ("ledger_mode", text(ledger)),
        ];
        members.push(("assurance", Json::object(assurance)));
        members.extend(self.disposition.as_ref().map(|d| ("disposition", d.json())));
        members.extend(effect.map(|e| ("effect", e)));
        members.extend(self.model_attestation.clone().map(|m| ("model_attestation", m)));
        members.extend(self.supersedes.as_ref().map(|parent| {
            let chain = [("parent_capsule_id", text(parent)), ("relation", text("supersedes"))];
            ("chain", Json::object(chain))
        }));
        members
    }
}

impl Disposition {
    fn json(&self) -> Json {
        let (approver, human, authority) = match &self.by {
            Disposer::Human => ("human", true, None),
            Disposer::AwaitedHuman => ("human", false, None),
            Disposer::Policy { authority } => ("policy", false, authority.as_deref()),
        };
        let mut members = vec![
            ("decision", text(&self.decision)),
            ("approver", text(approver)),
            ("human_disposed", Json::Bool(human)),
        ];
        members.extend(authority.map(|a| ("authority", text(a))));
        members.extend(self.verdict.as_deref().map(|v| ("verdict_class", text(v))));
        members.extend(self.reason.map(|digest| ("reason_digest", text(&digest.hex()))));
        members.extend(self.expiry.map(|(seconds, then)| {
            let policy = [
                ("ttl_seconds", Json::Number(seconds.to_string())),
                ("on_expiry", text(then.into())),
            ];
            ("expiry_policy", Json::object(policy))
        }));
        Json::object(members)
    }
}

impl Effect {
    /// The draft calls the decision id a field of the Effect Record (5.2); an
    /// action without an effect has it in its header alone.
    fn json(&self, decision_id: Option<&str>) -> Json {
        use EffectState as S;
        let (status, request, response, by) = match self.state {
            S::Planned => ("planned", None, None, None),
            S::Dispatched { request, by } => ("dispatched", request, None, Some(by)),
            S::Confirmed { request, response, by } => {
                ("confirmed", request, Some(response), Some(by))
            }
            S::Failed { request, response, by } => ("failed", request, response, Some(by)),
            S::Reverted { request, response, by } => ("reverted", request, response, Some(by)),
        };
        let mut members = vec![("status", text(status))];
        members.extend(self.kind.as_deref().map(|kind| ("type", text(kind))));
        members.extend(self.external_ref.as_deref().map(|r| ("external_ref", text(r))));
        members.extend(decision_id.map(|id| ("decision_id", text(id))));
        members.extend(self.irreversibility.as_deref().map(|c| ("irreversibility_class", text(c))));
        members.extend(request.map(|digest| ("request_digest", text(&digest.hex()))));
        members.extend(response.map(|digest| ("response_digest", text(&digest.hex()))));
        members.extend(by.map(|by| ("effect_attestation", text(by.into()))));
        Json::object(members)
    }
}

fn text(value: &str) -> Json {
    Json::Text(value.to_owned())
}

/// Why there is no Capsule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The profile forbids it.
    #[error("the profile forbids this Capsule: {}", list(.findings))]
    Forbidden { findings: Vec<Finding> },
    /// A number that has no digest.
    #[error("amounts are written as text: {0}")]
    Number(#[source] jcs::Error),
}

impl Error {
    /// The stable word for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "capsule-forbidden",
            Self::Number(source) => source.code(),
        }
    }
}

fn list(findings: &[Finding]) -> String {
    let line = |f: &Finding| format!("{} ({}): {}", f.at, f.code, f.detail);
    findings.iter().map(line).collect::<Vec<_>>().join("; ")
}
