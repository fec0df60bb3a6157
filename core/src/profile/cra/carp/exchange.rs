//! The part a document plays in an exchange: what is asked, what is granted,
//! what came of it; and what speaks against it, given what came before.
//!
//! Whether parameters fit their schema is for whoever executes
//! (`authorises`): evaluating a schema costs whatever its author likes.

use super::{CarpRecord, Kind};
use crate::profile::cra::grammar::uuid_version;
use crate::wire::json::Json;
use crate::wire::time::UnixSeconds;

/// The part of one document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Part {
    /// It asks.
    Request(Asked),
    /// It answers what may be done.
    Resolution(Granted),
    /// It says what came of an execution.
    Response(Done),
}

/// What a request asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Asked {
    /// Its `request_id`.
    pub request: String,
    /// The session it belongs to.
    pub session: String,
    /// What is to be executed, if anything is.
    pub execution: Option<Execution>,
    /// When, by its own clock.
    pub at: Option<UnixSeconds>,
}

/// What is to be executed, and on whose word.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Execution {
    /// The resolution that is said to allow it.
    pub resolution: String,
    /// The action.
    pub action: String,
}

/// What a resolution allows. One that breaks the rules of a single document
/// allows nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Granted {
    /// Its `resolution_id`.
    pub resolution: String,
    /// The request it answers.
    pub request: Option<String>,
    /// Whether the whole request was denied.
    pub is_denial: bool,
    /// Actions that may be executed.
    pub allowed: Vec<String>,
    /// Actions that may not.
    pub denied: Vec<String>,
    /// When it ends; none when that cannot be read.
    pub expires: Option<UnixSeconds>,
}

/// What came of an execution.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Done {
    /// The request it answers.
    pub request: String,
    /// Whether it was executed.
    pub is_success: bool,
}

impl Part {
    /// None when the document does not say which exchange it belongs to.
    pub(super) fn of(record: &CarpRecord) -> Option<Box<Self>> {
        let id = |pointer| {
            let text = record.text(pointer)?;
            uuid_version(text).map(|_| text.to_owned())
        };
        let part = match record.kind()? {
            Kind::Request => Self::Request(Asked {
                request: id("/request_id")?,
                session: id("/requester/session_id")?,
                execution: id("/execution/resolution_id").map(|resolution| Execution {
                    resolution,
                    action: record.text("/execution/action_id").unwrap_or_default().to_owned(),
                }),
                at: record.claimed_at(),
            }),
            Kind::Resolution => Self::Resolution(Granted::of(record, id("/resolution_id")?)),
            Kind::Response => Self::Response(Done {
                request: id("/request_id")?,
                is_success: record.text("/status") == Some("success"),
            }),
        };
        Some(Box::new(part))
    }

    /// The request that a resolution or response answers.
    pub fn answers(&self) -> Option<&str> {
        match self {
            Self::Request(_) => None,
            Self::Resolution(granted) => granted.request.as_deref(),
            Self::Response(done) => Some(&done.request),
        }
    }
}

impl Granted {
    pub(super) fn of(record: &CarpRecord, resolution: String) -> Self {
        let ids = |list| {
            let items = record.document().get(list).and_then(Json::array).unwrap_or_default();
            let ids = items.iter().filter_map(|item| item.get("action_id")?.text());
            ids.map(str::to_owned).collect::<Vec<_>>()
        };
        let decision = record.text("/decision/type").unwrap_or_default();
        let may_allow = record.is_ok() && ["allow", "partial"].contains(&decision);
        Self {
            resolution,
            request: record.text("/request_id").map(str::to_owned),
            is_denial: decision == "deny",
            allowed: if may_allow { ids("allowed_actions") } else { Vec::new() },
            denied: ids("denied_actions"),
            expires: expiry(record),
        }
    }

    /// What speaks against executing an action at a time.
    pub fn against(&self, action: &str, at: Option<UnixSeconds>) -> Conflicts {
        let mut conflicts = Conflicts::default();
        let is = |list: &[String]| list.iter().any(|id| id == action);
        if self.is_denial || is(&self.denied) {
            conflicts.add(Conflict::Denied);
        } else if !is(&self.allowed) {
            conflicts.add(Conflict::Unallowed);
        }
        if self.expires.zip(at).is_none_or(|(expires, at)| at > expires) {
            conflicts.add(Conflict::Expired);
        }
        conflicts
    }
}

/// The earlier of the time to live and the decision's own end.
pub(super) fn expiry(resolution: &CarpRecord) -> Option<UnixSeconds> {
    let ttl = resolution.document().get("ttl_seconds")?.int()?;
    let made = resolution.claimed_at()?.seconds();
    let lived = UnixSeconds::new(made.saturating_add(u64::try_from(ttl).ok()?));
    let ends = resolution.text("/decision/expires_at").and_then(UnixSeconds::from_rfc3339);
    Some(ends.map_or(lived, |ends| ends.min(lived)))
}

/// Something that speaks against a document, in the log before it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Conflict {
    /// The resolution denies the action, or everything.
    Denied,
    /// The session has a request of this id already (3.6, rule 1).
    DuplicateRequest,
    /// The resolution had ended (rule 4).
    Expired,
    /// It answers an execute request that is not there.
    NoRequest,
    /// The resolution it names is not there (rule 4).
    NoResolution,
    /// The resolution it names is another issuer's, and was not judged.
    OtherIssuer,
    /// The resolution does not allow the action (rule 5).
    Unallowed,
}

impl Conflict {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Denied,
        Self::DuplicateRequest,
        Self::Expired,
        Self::NoRequest,
        Self::NoResolution,
        Self::OtherIssuer,
        Self::Unallowed,
    ];

    /// Its name in policies and the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::DuplicateRequest => "duplicate-request",
            Self::Expired => "expired",
            Self::NoRequest => "no-request",
            Self::NoResolution => "no-resolution",
            Self::OtherIssuer => "other-issuer",
            Self::Unallowed => "unallowed",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|conflict| conflict.name() == name)
    }

    fn bit(self) -> u8 {
        match self {
            Self::Denied => 1,
            Self::DuplicateRequest => 2,
            Self::Expired => 4,
            Self::NoRequest => 8,
            Self::NoResolution => 16,
            Self::OtherIssuer => 32,
            Self::Unallowed => 64,
        }
    }
}

/// Several of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Conflicts(u8);

impl Conflicts {
    /// One more.
    pub fn add(&mut self, conflict: Conflict) {
        self.0 |= conflict.bit();
    }

    /// Those of another, too.
    pub fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// One by one, in the order of their names.
    pub fn iter(self) -> impl Iterator<Item = Conflict> {
        Conflict::ALL.into_iter().filter(move |conflict| self.0 & conflict.bit() != 0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Conflict> for Conflicts {
    fn from_iter<I: IntoIterator<Item = Conflict>>(conflicts: I) -> Self {
        let mut all = Self::default();
        conflicts.into_iter().for_each(|conflict| all.add(conflict));
        all
    }
}
