//! One rule: conditions that must all hold.

use super::case::Case;
use super::condition::Condition;
use super::explain::RuleTrace;

pub(super) use crate::wire::text::Pattern;

/// A named list of conditions.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(super) name: String,
    pub(super) conditions: Vec<Condition>,
}

impl Rule {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it asks for, as `key: wanted` lines.
    pub fn wanted(&self) -> impl Iterator<Item = String> + '_ {
        self.conditions.iter().map(|c| format!("{}: {}", c.key(), c.wanted()))
    }

    /// Whether every condition holds, as cheaply as can be.
    pub(super) fn holds(&self, case: &Case<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.check(case).held)
    }

    /// Evaluates every condition, also after one has failed: a refusal names
    /// them all.
    pub(super) fn trace(&self, case: &Case<'_>, refuses: bool) -> RuleTrace {
        RuleTrace {
            rule: self.name.clone(),
            refuses,
            conditions: self.conditions.iter().map(|c| c.trace(case)).collect(),
        }
    }
}
