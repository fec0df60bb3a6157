//! Why a policy said no, in the lines people read.

use serde::ser::{Serialize, SerializeStruct as _, Serializer};
use std::fmt;

/// One rule, condition by condition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleTrace {
    /// The rule's name.
    pub rule: String,
    /// Whether it refuses what it holds for, instead of allowing it.
    pub refuses: bool,
    /// Every condition, held or not.
    pub conditions: Vec<ConditionTrace>,
}

/// One condition and the value it met.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct ConditionTrace {
    /// The key in the policy file.
    pub condition: &'static str,
    /// Whether it held.
    pub held: bool,
    /// What the policy wants.
    pub wanted: String,
    /// What the statement has.
    pub saw: String,
}

impl RuleTrace {
    /// Whether every condition held.
    pub fn holds(&self) -> bool {
        self.conditions.iter().all(|c| c.held)
    }

    /// What it does with a statement it holds for.
    pub fn effect(&self) -> &'static str {
        if self.refuses { "refuse" } else { "allow" }
    }
}

/// The same object in problem details and in `policy explain`.
impl Serialize for RuleTrace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("RuleTrace", 4)?;
        object.serialize_field("rule", &self.rule)?;
        object.serialize_field("effect", self.effect())?;
        object.serialize_field("held", &self.holds())?;
        object.serialize_field("conditions", &self.conditions)?;
        object.end()
    }
}

/// A policy's no. Not an error: a decision, explained.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    policy: String,
    reserved: Option<&'static str>,
    rules: Vec<RuleTrace>,
}

impl Refusal {
    pub(super) fn new(policy: &str, rules: Vec<RuleTrace>) -> Self {
        Self { policy: policy.to_owned(), reserved: None, rules }
    }

    pub(super) fn reserved(policy: &str, content_type: &'static str) -> Self {
        Self { policy: policy.to_owned(), reserved: Some(content_type), rules: Vec::new() }
    }

    /// The policy that refused.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Every rule, held or not.
    pub fn rules(&self) -> &[RuleTrace] {
        &self.rules
    }

    /// The rule that refused, if it was one and not the lack of one.
    pub fn refused_by(&self) -> Option<&RuleTrace> {
        self.rules.iter().find(|trace| trace.refuses && trace.holds())
    }

    /// The stable word for this refusal.
    pub fn code(&self) -> &'static str {
        if self.reserved.is_some() { "control-reserved" } else { "policy-refused" }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(content_type) = self.reserved {
            return write!(f, "content type {content_type} is reserved for the log itself");
        }
        if let Some(trace) = self.refused_by() {
            write!(f, "policy {:?} refuses this statement by rule {:?}", self.policy, trace.rule)?;
            return trace
                .conditions
                .iter()
                .try_for_each(|c| write!(f, "; {} is {}", c.condition, c.saw));
        }
        write!(f, "policy {:?} has no rule that admits this statement", self.policy)?;
        for trace in self.rules.iter().filter(|trace| !trace.refuses) {
            for c in trace.conditions.iter().filter(|c| !c.held) {
                write!(f, "; rule {:?}: {} is {}, ", trace.rule, c.condition, c.saw)?;
                write!(f, "the policy wants {}", c.wanted)?;
            }
        }
        Ok(())
    }
}
