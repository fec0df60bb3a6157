//! Agent Action Capsules (draft-mih-scitt-agent-action-capsule-01).
//!
//! In: a payload and the header it came under. Out: a record, and findings
//! in a fixed order: Class 1 checks as the reference reports them, then the
//! binding of header to payload, then our stricter observations, which never
//! change `ok`. Every check reads the normalised form, because that is what
//! the capsule id commits to.

mod assurance;
mod check;
mod claims;
mod class2;
mod describe;
mod kind;
mod outcome;
mod payload;
mod produce;
mod strict;
#[cfg(test)]
pub(crate) mod tests;
mod vocabulary;

use crate::profile::finding::{Finding, Severity};
use crate::wire::jcs::{self, Suite, SuiteDigest};
use crate::wire::json::Json;

pub use assurance::{AttestationMode, Derived, EffectMode, LedgerMode};
pub use check::{Class1, class1_ledger};
pub use claims::{BINDING, SUBJECT_PREFIX, subject};
pub use class2::{Class2, Evidence, Manifest, ManifestError, class2};
pub use describe::{Attachments, Error as DescriptionError, Example, Mistakes};
pub use kind::{CapsuleIdRecord, ID_KIND, KIND, OUTCOME_KIND};
pub use outcome::OutcomeRecord;
pub use produce::{Action, ActionKind, Attested, Disposer, Disposition, Effect, EffectState};
pub use produce::{Error as ProduceError, OnExpiry, Produced};
pub use vocabulary::{APPROVERS, EFFECT_STATUSES, NEVER_DISPATCH, ON_EXPIRY, OPEN, RESULTS};

use payload::Payload;

/// The content type of a Capsule.
pub const CONTENT_TYPE: &str = "application/agent-action-capsule+json";
/// The content type of an outcome (3.3).
pub const OUTCOME_CONTENT_TYPE: &str = "application/agent-action-capsule-outcome+json";
/// The content type of a bare capsule id, as later drafts sign it.
pub const ID_CONTENT_TYPE: &str = "application/agent-action-capsule-id";

/// The serialisation of a Capsule. Here and nowhere else a format chooses
/// its digest suite and what its identity leaves out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Format {
    /// `"2"`, the one this profile defines.
    Two,
    /// Another one; nothing in it is interpreted.
    Unsupported(String),
}

impl Format {
    /// A Capsule without a readable format_version is judged as format 2 and
    /// fails check 1 for it.
    fn of(payload: &Payload<'_>) -> Self {
        match payload.get("format_version").and_then(Json::text) {
            None | Some("2") => Self::Two,
            Some(other) => Self::Unsupported(other.to_owned()),
        }
    }

    fn identity(payload: &Json) -> Result<SuiteDigest, jcs::Error> {
        Suite::JcsN.digest_without(payload, &["capsule_id", "chain"])
    }
}

/// What a verifier knows besides the payload.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Whether the store holds a Capsule with this id; none without a store.
    pub parents: Option<&'a dyn Fn(&str) -> bool>,
    /// What was verified of the statement around it.
    pub attestation: AttestationMode,
    /// Whether every Capsule its chain leads back to, down to the first, was
    /// seen, and verified to be in a log.
    pub chain_is_logged: bool,
}

impl Known<'_> {
    /// Nothing but the payload.
    pub const NOTHING: Self =
        Self { parents: None, attestation: AttestationMode::SelfAttested, chain_is_logged: false };
}

/// A Capsule as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct CapsuleRecord {
    payload: Json,
    format: Format,
    class1: Class1,
    is_concealed: bool,
    decision_claim: Option<String>,
}

impl CapsuleRecord {
    /// Reads and judges a payload by itself, with our own observations.
    pub fn read(bytes: &[u8]) -> (Self, Vec<Finding>) {
        match Json::read(bytes) {
            Ok(payload) => Self::of(payload),
            Err(e) => {
                let detail = format!("not valid JSON: {e}");
                (Self::unreadable(e.code(), &e.pointer, detail), Vec::new())
            }
        }
    }

    /// The same for a payload that was read already.
    pub fn of(payload: Json) -> (Self, Vec<Finding>) {
        let (kind, absent) = (payload.kind(), strict::first_absent(&payload));
        let normal = jcs::normalise(payload);
        if normal.members().is_none() {
            let detail = format!("a {kind}, not an object");
            return (Self::unreadable("not_an_object", "", detail), Vec::new());
        }
        let view = Payload(&normal);
        let (format, is_concealed) = (Format::of(&view), payload::conceals(&normal));
        let class1 = judge(&view, &format, &Known::NOTHING);
        let mut findings = Vec::new();
        if format == Format::Two && !is_concealed {
            findings = strict::findings(absent, &view);
        }
        let record = Self { payload: normal, format, class1, is_concealed, decision_claim: None };
        (record, findings)
    }

    fn unreadable(code: &'static str, at: &str, detail: String) -> Self {
        let findings = vec![Finding::new(Severity::Error, code, at, detail).of_check(1)];
        Self {
            payload: Json::Null,
            format: Format::Two,
            class1: Class1 { ok: Some(false), findings, derived: None, capsule_id: None },
            is_concealed: false,
            decision_claim: None,
        }
    }

    /// The payload, normalised; null when it could not be read.
    pub fn payload(&self) -> &Json {
        &self.payload
    }

    /// Its serialisation.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// What Class 1 says with nothing else known.
    pub fn class1(&self) -> &Class1 {
        &self.class1
    }

    /// What Class 1 says with more known.
    pub fn class1_knowing(&self, known: &Known<'_>) -> Class1 {
        match self.payload {
            Json::Null => self.class1.clone(),
            _ => judge(&Payload(&self.payload), &self.format, known),
        }
    }

    /// Whether parts are concealed, so that nothing was evaluated.
    pub fn is_concealed(&self) -> bool {
        self.is_concealed
    }

    /// The id that its content has.
    pub fn capsule_id(&self) -> Option<String> {
        self.class1.capsule_id.as_ref().map(SuiteDigest::hex)
    }

    /// The text of a member of a block.
    pub fn text(&self, block: &str, member: &str) -> Option<&str> {
        Payload(&self.payload).text(block, member)
    }
}

/// Concealed members could be any of those the checks read, so none is run.
fn judge(view: &Payload<'_>, format: &Format, known: &Known<'_>) -> Class1 {
    if *format == Format::Two && payload::conceals(view.0) {
        let detail = "selective disclosure: concealed, not evaluated (9.2)";
        let finding = Finding::new(Severity::Info, "concealed_not_evaluated", "", detail);
        let capsule_id = recompute(view.0);
        return Class1 { ok: None, findings: vec![finding], derived: None, capsule_id };
    }
    check::class1(view, format, known)
}

fn recompute(payload: &Json) -> Option<SuiteDigest> {
    Format::identity(payload).ok()
}
