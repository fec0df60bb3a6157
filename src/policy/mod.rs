//! The registration policy: who may register what.
//!
//! In: an `Authentic` statement, what was read from it, and what the log
//! before it says. Out: `Admitted`, or a `Refusal` that lists every rule and
//! why it did not hold. A decision depends on nothing else, so anyone can
//! replay it from the log.

mod explain;
mod facts;
mod file;
mod history;
mod rule;
#[cfg(test)]
mod tests;

use crate::envelope::{Authentic, Binding};
use crate::profile::{Control, Read, Record};
use crate::wire::digest::Digest;

pub use explain::{ConditionTrace, Refusal, RuleTrace};
pub use facts::Facts;
pub use file::Error;
pub use history::{Earlier, History, Memory, RECORDS_MAX, SUPERSEDES_MAX};
pub use rule::{Condition, Rule};

/// A policy that parsed is a policy that can run.
#[derive(Clone, Debug)]
pub struct Policy {
    name: String,
    rules: Vec<Rule>,
    rate: Option<Rate>,
    text: String,
}

/// How often one issuer may register. It decides when, never whether, so it
/// stands outside the replayable decision.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    /// Statements per minute and issuer.
    pub per_minute: u32,
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

    /// Decides. A statement is admitted when all conditions of one rule hold;
    /// no rule means no. Control statements are the log's own.
    pub fn decide(&self, statement: Authentic, read: &Read, facts: &Facts) -> Decision {
        if let Record::Control(control) = &read.record {
            return Decision::Refuse(Refusal::reserved(&self.name, control.content_type()));
        }
        let traces: Vec<RuleTrace> =
            self.rules.iter().map(|rule| rule.trace(&statement, read, facts)).collect();
        if traces.iter().any(RuleTrace::holds) {
            Decision::Admit(Box::new(Admitted { statement }))
        } else {
            Decision::Refuse(Refusal::new(&self.name, traces))
        }
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
