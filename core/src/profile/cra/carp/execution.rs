//! Whether a resolution covers an execute request (3.6, rules 4 to 6).

use super::exchange::{Conflict, Granted, expiry};
use super::{CarpRecord, Kind};
use crate::profile::cra::schema::to_serde;
use crate::wire::json::Json;
use crate::wire::time::UnixSeconds;

/// Whether `resolution` lets `request` be executed at that time.
pub fn authorises(
    resolution: &CarpRecord,
    request: &CarpRecord,
    at: UnixSeconds,
) -> Result<(), NotAuthorised> {
    let is = |record: &CarpRecord, kind| record.is_ok() && record.kind() == Some(kind);
    let wanted = request.document().get("execution");
    let Some(wanted) = wanted.filter(|_| is(request, Kind::Request)) else {
        return Err(NotAuthorised::NoExecution);
    };
    let named = wanted.get("resolution_id");
    if !is(resolution, Kind::Resolution) || named != resolution.document().get("resolution_id") {
        return Err(NotAuthorised::OtherResolution);
    }
    let expires = expiry(resolution).ok_or(NotAuthorised::OtherResolution)?;
    if at > expires {
        return Err(NotAuthorised::Expired { at, expires });
    }
    let granted = Granted::of(resolution, String::new());
    if granted.against(&action(wanted), Some(at)).iter().any(|found| found == Conflict::Denied) {
        return Err(NotAuthorised::Denied { action: action(wanted) });
    }
    if !granted.allowed.contains(&action(wanted)) {
        return Err(NotAuthorised::NotAllowed { action: action(wanted) });
    }
    let allowed = resolution.document().get("allowed_actions").and_then(Json::array);
    let mut allowed = allowed.unwrap_or_default().iter();
    let Some(entry) = allowed.find(|a| a.get("action_id") == wanted.get("action_id")) else {
        return Err(NotAuthorised::NotAllowed { action: action(wanted) });
    };
    parameters(entry, wanted)
}

fn action(wanted: &Json) -> String {
    wanted.get("action_id").and_then(Json::text).unwrap_or_default().to_owned()
}

fn parameters(entry: &Json, wanted: &Json) -> Result<(), NotAuthorised> {
    let Some(schema) = entry.get("parameters_schema") else { return Ok(()) };
    let wrong = |at: String, why: String| Err(NotAuthorised::Parameters { at, why });
    let validator = match jsonschema::validator_for(&to_serde(schema)) {
        Ok(validator) => validator,
        Err(e) => return wrong(String::new(), format!("the resolution's schema: {e}")),
    };
    let given = wanted.get("parameters").map(to_serde).unwrap_or_default();
    match validator.iter_errors(&given).next() {
        Some(e) => wrong(e.instance_path().to_string(), e.to_string()),
        None => Ok(()),
    }
}

/// Why an execution is not covered.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAuthorised {
    /// The resolution says no.
    #[error("the resolution denies {action:?}")]
    Denied {
        /// The action.
        action: String,
    },
    /// The resolution was no longer valid.
    #[error("the resolution ended at {expires}, asked at {at}")]
    Expired {
        /// When it was asked.
        at: UnixSeconds,
        /// When the resolution ended.
        expires: UnixSeconds,
    },
    /// It is no sound execute request.
    #[error("not a sound execute request")]
    NoExecution,
    /// What no resolution allows is denied.
    #[error("{action:?} is not among the allowed actions")]
    NotAllowed {
        /// The action.
        action: String,
    },
    /// The request is about another resolution, or this one is not sound.
    #[error("the request names another resolution, or this one is not sound")]
    OtherResolution,
    /// The parameters break the schema of the action.
    #[error("parameters at {at:?}: {why}")]
    Parameters {
        /// Where, as a JSON pointer.
        at: String,
        /// What the schema reader says.
        why: String,
    },
}

impl NotAuthorised {
    /// A stable word.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied { .. } => "execution-denied",
            Self::Expired { .. } => "execution-resolution-expired",
            Self::NoExecution => "execution-not-asked",
            Self::NotAllowed { .. } => "execution-not-allowed",
            Self::OtherResolution => "execution-other-resolution",
            Self::Parameters { .. } => "execution-parameters",
        }
    }
}
