//! One rule: conditions that must all hold.

use super::case::Case;
use super::condition::Condition;
use super::explain::RuleTrace;

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

/// Text in which `*` stands for any run of characters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Pattern(pub(super) String);

impl Pattern {
    /// Whether the whole of `text` fits. Linear in both: after a `*` the
    /// earliest fit of the next piece is as good as any later one.
    pub(super) fn matches(&self, text: &str) -> bool {
        let mut pieces = self.0.split('*');
        let Some(rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
            return false;
        };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        let mut rest = rest;
        for piece in pieces {
            match rest.split_once(piece) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}
