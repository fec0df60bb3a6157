//! The input of a decision: one statement, what was read from it, and facts
//! about the log before it.

use std::borrow::Cow;

use super::Facts;
use crate::envelope::{Authentic, Header, RulesVersion};
use crate::profile::session::Continuity;
use crate::profile::{Finding, Read, Severity, Summary};
use crate::wire::cbor::Value;
use crate::wire::label::header::CWT_CLAIMS;

/// One statement to be decided.
pub(super) struct Input<'a> {
    pub(super) statement: &'a Authentic,
    pub(super) read: &'a Read,
    pub(super) facts: &'a Facts,
}

/// A value some condition looks at; none when the statement does not say.
pub(super) type Seen<'a> = Option<Cow<'a, str>>;

impl<'a> Input<'a> {
    pub(super) fn new(statement: &'a Authentic, read: &'a Read, facts: &'a Facts) -> Self {
        Self { statement, read, facts }
    }

    pub(super) fn header(&self) -> &'a Header {
        self.statement.statement().header()
    }

    pub(super) fn summary(&self) -> &'a Summary {
        &self.read.summary
    }

    /// What was noticed, as far as the rules know it by which the statement
    /// was authenticated: an old entry is decided as it was.
    pub(super) fn findings(&self) -> impl Iterator<Item = &'a Finding> {
        let rules = self.statement.rules();
        self.read.findings.iter().filter(move |finding| finding.since() <= rules)
    }

    /// The severity of the worst finding, `none` without any.
    pub(super) fn worst_finding(&self) -> &'static str {
        let worst = self.findings().map(|finding| finding.severity).max();
        worst.map_or("none", Severity::name)
    }

    /// How hard the effect is to undo; `none` when there is no effect, and
    /// `unstated` when there is one that does not say.
    pub(super) fn irreversibility(&self) -> &str {
        let summary = self.summary();
        let has_effect = summary.effect_type.is_some() || summary.effect_status.is_some();
        match summary.irreversibility.as_deref() {
            Some(class) => class,
            None if has_effect => "unstated",
            None => "none",
        }
    }

    pub(super) fn parent(&self) -> &'static str {
        match self.facts.parent_known {
            None => "none",
            Some(true) => "known",
            Some(false) => "unknown",
        }
    }

    pub(super) fn parent_operator(&self) -> &'static str {
        match self.facts.parent_same_operator {
            None => "none",
            Some(true) => "same",
            Some(false) => "other",
        }
    }

    pub(super) fn record_id(&self) -> &'static str {
        let Facts { record_id_known, record_id_other_chain, record_id_other_content, .. } =
            self.facts;
        match (record_id_known, record_id_other_chain, record_id_other_content) {
            (_, _, true) => "other-content",
            (_, true, false) => "other-chain",
            (true, false, false) => "known",
            (false, false, false) => "new",
        }
    }

    pub(super) fn predecessors(&self) -> &'static str {
        match self.facts.predecessors_known {
            None => "none",
            Some(true) => "known",
            Some(false) => "unknown",
        }
    }

    pub(super) fn session(&self) -> &'static str {
        self.facts.session.map_or("none", Continuity::name)
    }

    pub(super) fn nonce(&self) -> &'static str {
        match self.facts.nonce_used {
            None => "none",
            Some(true) => "used",
            Some(false) => "new",
        }
    }

    /// A CWT claim by its number or name, as text.
    pub(super) fn claim(&self, name: &str) -> Option<String> {
        let header = Value::read(self.statement.statement().protected()).ok()?;
        let Value::Map(claims) = header.get(CWT_CLAIMS)? else { return None };
        let number = name.parse::<i64>().ok();
        // A text that spells a number is another claim than that number;
        // version 1 of the rules took one for the other.
        let may_be_text = number.is_none() || self.statement.rules() < RulesVersion::V2;
        let wanted = |label: &Value<'_>| match label {
            Value::Text(text) => may_be_text && *text == name,
            label => number.is_some() && label.int::<i64>() == number,
        };
        let (_, value) = claims.iter().find(|(label, _)| wanted(label))?;
        Some(match value {
            Value::Text(text) => (*text).to_owned(),
            value => value.int::<i64>().map_or_else(|| value.to_string(), |n| n.to_string()),
        })
    }
}
