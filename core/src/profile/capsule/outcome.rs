//! Outcomes (3.3): what became of an action, reported later.
//!
//! The draft defines the media type, the claim and that `sub` equals the
//! action's. The payload is anybody's: we take any JSON and note what makes
//! it hard to correlate.

use serde_json::Value;

use super::claims;
use super::{EFFECT_STATUSES, SUBJECT_PREFIX};
use crate::envelope::Header;
use crate::profile::finding::{Finding, Severity};
use crate::profile::{Record, Summary};
use crate::wire::json::Json;
use crate::wire::time::UnixSeconds;

/// An outcome as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeRecord {
    payload: Json,
    subject: Option<String>,
    decision_claim: Option<String>,
}

/// Members that tell which action is meant.
const REFERENCES: [&str; 4] = ["decision_id", "action_id", "capsule_id", "external_ref"];

impl OutcomeRecord {
    pub(super) fn read(header: &Header, bytes: &[u8]) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let payload = Json::read(bytes).unwrap_or_else(|e| {
            let detail = format!("not JSON: {e}");
            let finding = Finding::new(Severity::Error, e.code(), e.pointer.clone(), detail);
            findings.push(finding.of_check(1));
            Json::Null
        });
        findings.extend(claims::header(header, "outcome"));
        let subject = header.claims.subject.clone();
        if !subject.as_deref().is_some_and(|sub| sub.starts_with(SUBJECT_PREFIX)) {
            let detail = format!("the subject of an action starts with {SUBJECT_PREFIX} (3.3)");
            findings.push(Finding::new(Severity::Error, "subject_not_action", "sub", detail));
        }
        let decision_claim = claims::decision_id(header).map(str::to_owned);
        let record = Self { payload, subject, decision_claim };
        findings.extend(record.observe());
        (record, findings)
    }

    fn observe(&self) -> Option<Finding> {
        let warn = |code, detail: String| Finding::new(Severity::Warning, code, "", detail);
        match &self.payload {
            Json::Null => None,
            payload if payload.members().is_none() => {
                let detail = format!("a {}, not an object", payload.kind());
                Some(warn("outcome_not_object", detail))
            }
            _ if self.decision_claim.is_some() => None,
            _ if REFERENCES.iter().any(|name| self.text(name).is_some()) => None,
            _ => {
                let detail = "nothing but the subject tells which action is meant".to_owned();
                Some(warn("outcome_reference_missing", detail))
            }
        }
    }

    /// How far the effect came, if the payload says it in the words and at
    /// the place of a Capsule, or in a `status` of its own.
    fn effect_status(&self) -> Option<&str> {
        let inner = self.payload.pointer("/effect/status").and_then(Json::text);
        inner.or(self.text("status")).filter(|status| EFFECT_STATUSES.contains(status))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.payload.get(name)?.text()
    }

    /// The payload; null when it could not be read.
    pub fn payload(&self) -> &Json {
        &self.payload
    }

    /// The subject, equal to that of the action it is about.
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }
}

impl Record for OutcomeRecord {
    /// The action is found by subject and decision id, so nothing here is taken
    /// from the subject.
    fn summary(&self) -> Summary {
        let own = |name| self.text(name).map(str::to_owned);
        Summary {
            is_outcome: true,
            action_id: own("action_id"),
            decision_id: self.decision_claim.clone().or_else(|| own("decision_id")),
            operator: own("operator"),
            developer: own("developer"),
            effect_status: self.effect_status().map(str::to_owned),
            external_ref: own("external_ref"),
            claimed_at: own("timestamp").and_then(|at| UnixSeconds::from_rfc3339(&at)),
            ok: Some(self.payload != Json::Null),
            ..Summary::default()
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.subject().map(|subject| ("about", subject.into())).into_iter().collect()
    }
}
