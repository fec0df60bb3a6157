//! Whether a resolution covers an execute request (3.6, rules 4 to 6).

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
    let decision = resolution.text("/decision/type").unwrap_or_default();
    if !["allow", "partial"].contains(&decision) {
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

/// The earlier of the time to live and the decision's own end.
fn expiry(resolution: &CarpRecord) -> Option<UnixSeconds> {
    let ttl = resolution.document().get("ttl_seconds")?.int()?;
    let made = resolution.claimed_at()?.seconds();
    let lived = UnixSeconds::new(made.saturating_add(u64::try_from(ttl).ok()?));
    let ends = resolution.text("/decision/expires_at").and_then(UnixSeconds::from_rfc3339);
    Some(ends.map_or(lived, |ends| ends.min(lived)))
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
            Self::Expired { .. } => "execution-resolution-expired",
            Self::NoExecution => "execution-not-asked",
            Self::NotAllowed { .. } => "execution-not-allowed",
            Self::OtherResolution => "execution-other-resolution",
            Self::Parameters { .. } => "execution-parameters",
        }
    }
}
