//! How the records of a log relate.
//!
//! In: records with their indices, in log order. Out: which follows which,
//! which are still open, their outcomes, and what is inconsistent. A pure
//! fold, so that every reader of the log gets the same result.
//!
//! Anybody can log a `supersedes`. It closes a record only if its own record
//! passes its checks, has the same operator, and is signed by the agent that
//! the closed record names (or by its signer, when it names none).

mod chain;
mod exchange;
mod outcome;
mod reversal;
mod session;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use strum::IntoStaticStr;

use crate::envelope::{Binding, SignedStatement, StatementId};
use crate::profile::{Severity, Summary};
use crate::wire::time::UnixSeconds;

pub use outcome::Correlation;
pub use session::Session;

/// A statement of the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Its leaf index.
    pub index: u64,
    /// Its id.
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
    /// Whether the header claims match the payload.
    pub is_bound: bool,
    /// How the issuer was authenticated when it was logged; none if that was
    /// not looked up or cannot be determined.
    pub binding: Option<Binding>,
}

/// Whether something is still to be done.
#[derive(Clone, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum State {
    /// It was never open.
    Final,
    /// A decision or an action is pending.
    Open,
    /// The record at this index closed it.
    Closed { by: u64 },
    /// Unknown, because parts are concealed.
    Concealed,
}

impl State {
    /// Its name in reports and the API.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// An inconsistency between records.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Anomaly {
    /// The statement it is about.
    pub index: u64,
    /// A stable word, spelt as the capsule profile spells its findings.
    pub code: &'static str,
    /// How serious it is.
    pub severity: Severity,
    /// A sentence for people.
    pub detail: String,
}

/// Records that belong together.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Story {
    /// Every record with its state, in log order.
    pub records: Vec<(Entry, State)>,
    /// Records that several others follow, and those others, by index.
    pub forks: Vec<(u64, Vec<u64>)>,
    /// Outcomes, and which record each is about.
    pub outcomes: Vec<(Entry, Correlation)>,
    /// Statements that revert an effect, by index, and the confirmed records
    /// they revert.
    pub reversals: Vec<(u64, Correlation)>,
    /// Event chains, and whether each is complete.
    pub sessions: Vec<Session>,
    /// Inconsistencies, in log order.
    pub anomalies: Vec<Anomaly>,
}

impl Story {
    /// Relates these statements, which must be in log order.
    pub fn new(entries: Vec<Entry>) -> Self {
        let (outcomes, records): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| entry.summary.is_outcome);
        let (states, forks, mut anomalies) = chain::follow(&records);
        let outcomes = outcome::correlate(outcomes, &records, &mut anomalies);
        let reversals = reversal::find(&records, &outcomes, &mut anomalies);
        let sessions = session::follow(&records, &mut anomalies);
        exchange::follow(&records, &mut anomalies);
        anomalies.sort_by_key(|oddity| oddity.index);
        let records = records.into_iter().zip(states).collect();
        Self { records, forks, outcomes, reversals, sessions, anomalies }
    }

    /// The first statement that unambiguously reverts the effect of a record.
    pub fn reverted_by(&self, index: u64) -> Option<u64> {
        let reverts = |correlation: &Correlation| matches!(correlation, Correlation::About(found) if found.contains(&index));
        self.reversals.iter().find(|(_, c)| reverts(c)).map(|(by, _)| *by)
    }

    /// The record or outcome at an index.
    pub fn entry(&self, index: u64) -> Option<&Entry> {
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
    /// Whether it reports on another record: then its issuer matters.
    pub fn is_report(&self) -> bool {
        self.summary.is_outcome || self.summary.effect_status.as_deref() == Some("reverted")
    }

    /// Its issuer, and how the issuer was authenticated.
    pub fn signed_by(&self) -> String {
        let binding = self.binding.map_or("binding not known", Binding::name);
        format!("{} ({binding})", self.issuer)
    }

    /// The issuer who may supersede it.
    pub fn authority(&self) -> &str {
        self.summary.developer.as_deref().unwrap_or(&self.issuer)
    }

    /// Whether this record supersedes `other`; an error says why a claim to do
    /// so does not count.
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

    /// When a deferral expires by its own clock. Advisory: only a superseding
    /// record closes anything.
    pub fn expires_at(&self) -> Option<UnixSeconds> {
        let seconds = self.summary.claimed_at?.seconds();
        Some(UnixSeconds::new(seconds.checked_add(self.summary.expires_after?)?))
    }

    fn record_id(&self) -> Option<&String> {
        self.summary.record_id.as_ref().filter(|_| !self.summary.is_id_only)
    }
}

/// The threads of a log: the pairs of issuer and subject.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Threads(BTreeSet<(String, String)>);

impl Threads {
    /// Adds the next statement of the log.
    pub fn add(&mut self, statement: &SignedStatement) {
        let claims = &statement.header().claims;
        let text = |claim: &Option<String>| claim.clone().unwrap_or_default();
        self.0.insert((text(&claims.issuer), text(&claims.subject)));
    }

    /// The number of threads.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The number of issuers.
    pub fn issuers(&self) -> usize {
        self.0.iter().map(|(issuer, _)| issuer).collect::<BTreeSet<_>>().len()
    }
}
