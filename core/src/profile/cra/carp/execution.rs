//! The part of a document in its exchange, and whether a resolution authorises
//! an execute request (3.6, rules 4 to 6).

use strum::IntoStaticStr;

use super::{CarpRecord, Kind};
use crate::profile::cra::grammar::uuid_version;
use crate::profile::cra::schema::to_serde;
use crate::profile::exchange::{Conflict, Execution, Part, Request, Resolution, Response};
use crate::wire::json::Json;
use crate::wire::time::UnixSeconds;

/// None if the document does not state its exchange.
pub(super) fn part(record: &CarpRecord) -> Option<Box<Part>> {
    let id = |pointer| {
        let text = record.text(pointer)?;
        uuid_version(text).map(|_| text.to_owned())
    };
    let part = match record.kind()? {
        Kind::Request => Part::Request(Request {
            request: id("/request_id")?,
            session: id("/requester/session_id")?,
            execution: id("/execution/resolution_id").map(|resolution| Execution {
                resolution,
                action: record.text("/execution/action_id").unwrap_or_default().to_owned(),
            }),
            at: record.claimed_at(),
        }),
        Kind::Resolution => Part::Resolution(resolved(record, id("/resolution_id")?)),
        Kind::Response => Part::Response(Response {
            request: id("/request_id")?,
            is_success: record.text("/status") == Some("success"),
        }),
    };
    Some(Box::new(part))
}

fn resolved(record: &CarpRecord, resolution: String) -> Resolution {
    let ids = |list| {
        let items = record.document().get(list).and_then(Json::array).unwrap_or_default();
        let ids = items.iter().filter_map(|item| item.get("action_id")?.text());
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    let decision = record.text("/decision/type").unwrap_or_default();
    let may_allow = record.is_ok() && ["allow", "partial"].contains(&decision);
    Resolution {
        resolution,
        request: record.text("/request_id").map(str::to_owned),
        is_denial: decision == "deny",
        allowed: if may_allow { ids("allowed_actions") } else { Vec::new() },
        denied: ids("denied_actions"),
        expires: expiry(record),
    }
}

/// The earlier of the end of its time to live and the decision's own expiry.
fn expiry(resolution: &CarpRecord) -> Option<UnixSeconds> {
    let ttl = resolution.document().get("ttl_seconds")?.int()?;
    let made = resolution.claimed_at()?.seconds();
    let lived = UnixSeconds::new(made.saturating_add(u64::try_from(ttl).ok()?));
    let ends = resolution.text("/decision/expires_at").and_then(UnixSeconds::from_rfc3339);
    Some(ends.map_or(lived, |ends| ends.min(lived)))
}

/// Whether `resolution` authorises executing `request` at this time.
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
    let granted = resolved(resolution, String::new());
    if granted.conflicts(&action(wanted), Some(at)).iter().any(|found| found == Conflict::Denied) {
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

/// Why an execution is not authorised.
#[derive(Clone, Debug, Eq, IntoStaticStr, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "execution-")]
pub enum NotAuthorised {
    #[error("the resolution denies {action:?}")]
    Denied { action: String },
    #[error("the resolution expired at {expires}, before {at}")]
    #[strum(serialize = "resolution-expired")]
    Expired { at: UnixSeconds, expires: UnixSeconds },
    #[error("not a valid execute request")]
    #[strum(serialize = "not-asked")]
    NoExecution,
    /// Anything that no resolution allows is denied.
    #[error("{action:?} is not among the allowed actions")]
    NotAllowed { action: String },
    #[error("the request names another resolution, or this one is not valid")]
    OtherResolution,
    /// The parameters break the schema of the action, at a JSON pointer.
    #[error("parameters at {at:?}: {why}")]
    Parameters { at: String, why: String },
}

impl NotAuthorised {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
