//! Exchanges of request, resolution and response: what each document says of
//! the exchange it belongs to, and the conflicts between one document and what
//! was logged before it.
//!
//! Whether parameters match their schema is for the executor to check
//! (`cra::carp::authorises`): evaluating a schema costs what its author likes.

use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

use super::finding::{Finding, Severity};
use crate::wire::time::UnixSeconds;

/// How far the clock of a request may be off (CRA 3.6, rule 2).
pub const CLOCK_SKEW_SECONDS_MAX: u64 = 5 * 60;

/// The role of one document in an exchange.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Part {
    /// It asks.
    Request(Request),
    /// It says what may be done.
    Resolution(Resolution),
    /// It reports the result of an execution.
    Response(Response),
}

/// What is requested.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// Its `request_id`.
    pub request: String,
    /// The session it belongs to.
    pub session: String,
    /// What is to be executed, if anything is.
    pub execution: Option<Execution>,
    /// When, by its own clock.
    pub at: Option<UnixSeconds>,
}

/// What is to be executed, and under which resolution.
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
pub struct Resolution {
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
    /// When it expires; none when that cannot be read.
    pub expires: Option<UnixSeconds>,
}

/// The result of an execution.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Response {
    /// The request it answers.
    pub request: String,
    /// Whether it was executed.
    pub is_success: bool,
}

impl Part {
    /// The request that a resolution or response answers.
    pub fn answers(&self) -> Option<&str> {
        match self {
            Self::Request(_) => None,
            Self::Resolution(resolution) => resolution.request.as_deref(),
            Self::Response(response) => Some(&response.request),
        }
    }
}

impl Request {
    /// Whether its clock was further off than it may be when it was received.
    /// An old record that is read again is not late.
    pub fn clock_skew(&self, received: UnixSeconds, seconds_max: u64) -> Option<Finding> {
        let skew = self.at?.seconds().abs_diff(received.seconds());
        (skew > seconds_max).then(|| {
            let detail = format!("its clock is {skew} s off, more than {seconds_max} (3.6)");
            let finding = Finding::new(Severity::Error, "carp-clock-skew", "/timestamp", detail);
            Finding { gating: true, ..finding }
        })
    }
}

impl Resolution {
    /// The conflicts of executing an action at a time.
    pub fn conflicts(&self, action: &str, at: Option<UnixSeconds>) -> Conflicts {
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

/// A conflict between a document and what was logged before it.
#[derive(
    Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, PartialEq, VariantArray, VariantNames,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Conflict {
    /// The resolution denies the action, or everything.
    Denied,
    /// The session has a request with this id already (3.6, rule 1).
    DuplicateRequest,
    /// The resolution had expired (rule 4).
    Expired,
    /// It answers an execute request that is not logged.
    NoRequest,
    /// The resolution it names is not logged (rule 4).
    NoResolution,
    /// The resolution it names is another issuer's, and was not checked.
    OtherIssuer,
    /// The resolution does not allow the action (rule 5).
    Unallowed,
}

impl Conflict {
    /// All of them, by name.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Their names.
    pub const NAMES: &[&'static str] = <Self as VariantNames>::VARIANTS;

    /// Its name in policies and the API.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
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

/// A set of conflicts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Conflicts(u8);

impl Conflicts {
    /// Adds one.
    pub fn add(&mut self, conflict: Conflict) {
        self.0 |= conflict.bit();
    }

    /// Adds those of another set.
    pub fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// One by one, in the order of their names.
    pub fn iter(self) -> impl Iterator<Item = Conflict> {
        Conflict::ALL.iter().copied().filter(move |conflict| self.0 & conflict.bit() != 0)
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
