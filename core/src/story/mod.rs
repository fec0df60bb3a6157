//! What a log holds, told in its own order.
//!
//! In: records with their places, in log order. Out: which follows which,
//! which are still open, what became of them, and what does not fit. A pure
//! fold, so that any reader of the log gets the same answer.
//!
//! A `supersedes` counts when the record that carries it passes its own
//! checks, has the operator of what it replaces, and is signed by the agent
//! that record names (or, when it names none, by who signed it). Anybody
//! can log a `supersedes`; only such a one closes anything.

mod cast;
mod chain;
mod exchange;
mod outcome;
mod reversal;
mod session;
#[cfg(test)]
mod tests;

use crate::envelope::{Binding, StatementId};
use crate::profile::capsule::OPEN;
use crate::profile::{Severity, Summary};
use crate::wire::time::UnixSeconds;

pub use cast::{Cast, Speaker};
pub use outcome::Correlation;
pub use session::Session;

/// A statement with its place in the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Its leaf.
    pub index: u64,
    /// Its name.
    pub id: StatementId,
    /// Claim 1.
    pub issuer: String,
    /// Claim 2.
    pub subject: String,
    /// When it was registered.
    pub time: UnixSeconds,
    /// The profile of its payload.
    pub profile: &'static str,
    /// What the payload says.
    pub summary: Summary,
    /// Whether the header calls the payload what it is.
    pub is_bound: bool,
    /// How the issuer was known when it was logged; none if nobody asked, or
    /// if it cannot be made out.
    pub binding: Option<Binding>,
}

/// Whether anything still has to happen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State {
    /// Nothing was ever left open.
    Final,
    /// Somebody still has to decide or act.
    Open,
    /// It was open; the record at this index closed it.
    Closed { by: u64 },
    /// Parts are concealed: nobody can tell.
    Concealed,
}

impl State {
    /// Its name in reports and the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Open => "open",
            Self::Closed { .. } => "closed",
            Self::Concealed => "concealed",
        }
    }
}

/// Something that does not fit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Oddity {
    /// The statement it is about.
    pub index: u64,
    /// A stable word, spelt as the capsule profile spells its findings.
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// A sentence for people.
    pub detail: String,
}

/// Records that belong together.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Story {
    /// Every record with its state, in log order.
    pub records: Vec<(Entry, State)>,
    /// Indices of records that several others follow.
    pub forks: Vec<(u64, Vec<u64>)>,
    /// Outcomes, and which record each is about.
    pub outcomes: Vec<(Entry, Correlation)>,
    /// Who takes something back, by index, and the confirmed records it is.
    pub reversals: Vec<(u64, Correlation)>,
    /// Event chains, and whether each is whole.
    pub sessions: Vec<Session>,
    /// What does not fit, in log order.
    pub oddities: Vec<Oddity>,
}

impl Story {
    /// Tells the story of these statements, which must be in log order.
    pub fn tell(entries: Vec<Entry>) -> Self {
        let (outcomes, records): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| entry.profile == OUTCOME);
        let (states, forks, mut oddities) = chain::follow(&records);
        let outcomes = outcome::correlate(outcomes, &records, &mut oddities);
        let reversals = reversal::find(&records, &outcomes, &mut oddities);
        let sessions = session::follow(&records, &mut oddities);
        exchange::follow(&records, &mut oddities);
        oddities.sort_by_key(|oddity| oddity.index);
        let records = records.into_iter().zip(states).collect();
        Self { records, forks, outcomes, reversals, sessions, oddities }
    }

    /// The statement that took the effect of a record back, if one clearly
    /// did; of several the first.
    pub fn reverted_by(&self, index: u64) -> Option<u64> {
        let takes_back = |correlation: &Correlation| matches!(correlation, Correlation::About(found) if found.contains(&index));
        self.reversals.iter().find(|(_, c)| takes_back(c)).map(|(by, _)| *by)
    }

    /// The record or outcome at an index: who told it.
    pub fn teller(&self, index: u64) -> Option<&Entry> {
        let records = self.records.iter().map(|(entry, _)| entry);
        let mut all = records.chain(self.outcomes.iter().map(|(entry, _)| entry));
        all.find(|entry| entry.index == index)
    }

    /// Whether anything in it is open.
    pub fn is_open(&self) -> bool {
        self.records.iter().any(|(_, state)| *state == State::Open)
    }
}

impl Entry {
    /// Whether its verdict leaves something to be done (5.4.4), as long as
    /// nothing supersedes it. What is concealed is never counted, nor what
    /// nothing could supersede.
    pub fn is_opening(&self) -> bool {
        let verdict = self.summary.verdict.as_deref();
        let can_be_closed = self.profile == CAPSULE && !self.summary.is_concealed;
        can_be_closed && verdict.is_some_and(|verdict| OPEN.contains(&verdict))
    }

    /// Whether it tells what became of something: then it matters who does.
    pub fn is_report(&self) -> bool {
        self.profile == OUTCOME || self.summary.effect_status.as_deref() == Some("reverted")
    }

    /// Its issuer, and how he was known.
    pub fn told_by(&self) -> String {
        let binding = self.binding.map_or("not known how", Binding::name);
        format!("{} ({binding})", self.issuer)
    }

    /// Who may take its place.
    pub fn authority(&self) -> &str {
        self.summary.developer.as_deref().unwrap_or(&self.issuer)
    }

    /// Whether this record takes the place of `other`, and if it claims to
    /// and does not, why not.
    pub fn supersedes(&self, other: &Self) -> Result<bool, &'static str> {
        let claims = self.summary.parent.as_ref().is_some_and(|parent| {
            parent.relation == "supersedes" && Some(&parent.record_id) == other.record_id()
        });
        if !claims {
            return Ok(false);
        }
        if self.summary.superseded().is_none() {
            return Err("its own checks do not hold");
        }
        if self.summary.operator.is_none() || self.summary.operator != other.summary.operator {
            return Err("it has another operator");
        }
        if self.issuer != other.authority() {
            return Err("its issuer is not the agent of the record it would replace");
        }
        Ok(true)
    }

    /// When a deferral runs out by its own words. Advisory: only a record
    /// that says so closes anything.
    pub fn expires_at(&self) -> Option<UnixSeconds> {
        let seconds = self.summary.claimed_at?.seconds();
        Some(UnixSeconds::new(seconds.checked_add(self.summary.expires_after?)?))
    }

    fn record_id(&self) -> Option<&String> {
        self.summary.record_id.as_ref().filter(|_| self.profile != BARE)
    }
}

const CAPSULE: &str = "capsule";
const OUTCOME: &str = "capsule-outcome";
/// An id without its record tells nothing.
const BARE: &str = "capsule-id";
