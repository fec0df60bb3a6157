//! The registration policy: who may register what.
//!
//! In: an `Authentic` statement, what was read from it, and what the log
//! before it says. Out: `Admitted`, or a `Refusal` that lists every rule and
//! whether it held. A decision depends on nothing else, so anyone can replay
//! it from the log.

mod case;
mod cases;
mod condition;
mod explain;
mod facts;
mod file;
mod history;
#[cfg(feature = "rego")]
mod rego;
mod rule;
mod table;
#[cfg(test)]
mod tests;

use crate::envelope::{Authentic, Binding};
use crate::profile::exchange::Part;
use crate::profile::{Control, Read, Record};
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

pub use cases::certificate::certify;
pub use cases::{Cases, Outcome as CaseOutcome};
pub use explain::{ConditionTrace, Refusal, RuleTrace};
pub use facts::Facts;
pub use file::Error;
pub use history::{Earlier, History, Memory, RECORDS_MAX, SUPERSEDES_MAX, conflicts};
pub use rule::Rule;

use case::Case;

/// A policy that parsed is a policy that can run.
#[derive(Clone, Debug)]
pub struct Policy {
    name: String,
    refuse: Vec<Rule>,
    allow: Vec<Rule>,
    rate: Option<Rate>,
    pending: Option<Pending>,
    clock: Option<Clock>,
    text: String,
}

/// How often one issuer may register. It decides when, never whether, so it
/// stands outside the replayable decision.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    /// Statements per minute and issuer.
    pub per_minute: u32,
}

/// How long, and how many, statements wait for predecessors that are not
/// logged. Like the rate it decides when, never whether.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pending {
    /// Seconds after which one is refused.
    pub seconds: u64,
    /// How many may wait.
    pub statements: usize,
}

/// How far the clock of a CARP request may be off when it comes in. The log
/// keeps the time of a commit and not that of a question, so this cannot be
/// decided again: like the rate it stands outside the replayable decision.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Clock {
    /// Seconds, either way.
    pub skew_seconds: u64,
}

/// Proof that the registration policy said yes. Only `Policy::decide` and
/// `Policy::own` make one; only the writer takes one.
#[derive(Debug)]
pub struct Admitted {
    statement: Authentic,
}

impl Admitted {
    /// The statement that may be logged.
    pub fn statement(&self) -> &Authentic {
        &self.statement
    }

    /// The statement alone.
    pub fn into_statement(self) -> Authentic {
        self.statement
    }
}

/// What a policy said.
#[derive(Debug)]
pub enum Decision {
    /// Yes.
    Admit(Box<Admitted>),
    /// No, and why.
    Refuse(Refusal),
}

impl Policy {
    /// Reads a policy file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        file::parse(text)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text it was read from: what is registered on the log.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The digest of its text.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// How often one issuer may register.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Whether statements wait for their predecessors.
    pub fn pending(&self) -> Option<Pending> {
        self.pending
    }

    /// Why a request that comes in now is refused for its clock.
    pub fn refuses_clock(&self, read: &Read, now: UnixSeconds) -> Option<Refusal> {
        let Some(Part::Request(asked)) = read.summary.exchange.as_deref() else { return None };
        let most = self.clock?.skew_seconds;
        let late = asked.clock_skew(now, most)?;
        let condition = ConditionTrace {
            condition: "skew_seconds",
            held: true,
            wanted: format!("at most {most}"),
            saw: late.detail,
        };
        let rule = "clock".to_owned();
        let trace = RuleTrace { rule, refuses: true, conditions: vec![condition] };
        Some(Refusal::new(&self.name, vec![trace]))
    }

    /// Whether a statement is refused for nothing but predecessors that are
    /// not logged, and may wait for them.
    pub fn may_wait(&self, statement: &Authentic, read: &Read, facts: &Facts) -> Option<Pending> {
        let pending = self.pending.filter(|_| facts.predecessors_known == Some(false))?;
        let then = Facts { predecessors_known: Some(true), ..*facts };
        let waits = !self.admits(statement, read, facts) && self.admits(statement, read, &then);
        waits.then_some(pending)
    }

    /// The rules that refuse, then those that allow.
    pub fn rules(&self) -> (&[Rule], &[Rule]) {
        (&self.refuse, &self.allow)
    }

    /// Decides. A rule that refuses goes first; otherwise a statement is
    /// admitted when all conditions of one rule hold, and no rule means no.
    /// Control statements are the log's own.
    pub fn decide(&self, statement: Authentic, read: &Read, facts: &Facts) -> Decision {
        if let Record::Control(control) = &read.record {
            return Decision::Refuse(Refusal::reserved(&self.name, control.content_type()));
        }
        if self.admits(&statement, read, facts) {
            return Decision::Admit(Box::new(Admitted { statement }));
        }
        Decision::Refuse(Refusal::new(&self.name, self.explain(&statement, read, facts)))
    }

    /// The same question without the proof: for those who only ask.
    pub fn admits(&self, statement: &Authentic, read: &Read, facts: &Facts) -> bool {
        let case = Case::new(statement, read, facts);
        !matches!(read.record, Record::Control(_))
            && !self.refuse.iter().any(|rule| rule.holds(&case))
            && self.allow.iter().any(|rule| rule.holds(&case))
    }

    /// Every rule and condition, whatever comes of it.
    pub fn explain(&self, statement: &Authentic, read: &Read, facts: &Facts) -> Vec<RuleTrace> {
        let case = Case::new(statement, read, facts);
        let refuse = self.refuse.iter().map(|rule| rule.trace(&case, true));
        refuse.chain(self.allow.iter().map(|rule| rule.trace(&case, false))).collect()
    }

    /// Admits a control statement of the log itself: signed under its own
    /// name with a key it has pinned.
    pub fn own(statement: Authentic, log: &str) -> Option<(Admitted, Control)> {
        let issuer = statement.issuer();
        let Record::Control(control) = crate::profile::read(&statement).record else { return None };
        (issuer.name == log && issuer.binding == Binding::Pinned)
            .then_some((Admitted { statement }, control))
    }
}
