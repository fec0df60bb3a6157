//! One rule: conditions that must all hold.

use super::Facts;
use super::explain::{ConditionTrace, RuleTrace};
use crate::envelope::{Authentic, Binding};
use crate::key::Algorithm;
use crate::profile::Read;

/// A named list of conditions.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(super) name: String,
    pub(super) conditions: Vec<Condition>,
}

/// One thing that must hold of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The signature algorithm is one of these.
    Algorithm(Vec<Algorithm>),
    /// The issuer is bound in one of these ways.
    Binding(Vec<Binding>),
    /// The content type matches one of these patterns.
    ContentType(Vec<Pattern>),
    /// The issuer's name matches one of these patterns.
    Issuer(Vec<Pattern>),
    /// The record is read by one of these profiles.
    Profile(Vec<String>),
    /// The statement is at most this long.
    StatementBytesMax(usize),
    /// The subject matches one of these patterns.
    Subject(Vec<Pattern>),
}

/// Text in which `*` stands for any run of characters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pattern(pub(super) String);

impl Pattern {
    /// Whether the whole of `text` fits. Linear in both: after a `*` the
    /// earliest fit of the next piece is as good as any later one.
    pub fn matches(&self, text: &str) -> bool {
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

impl Rule {
    /// Evaluates every condition, also after one has failed: a refusal names
    /// them all.
    pub(super) fn trace(&self, statement: &Authentic, read: &Read, _facts: &Facts) -> RuleTrace {
        RuleTrace {
            rule: self.name.clone(),
            conditions: self.conditions.iter().map(|c| c.trace(statement, read)).collect(),
        }
    }
}

impl Condition {
    fn trace(&self, statement: &Authentic, read: &Read) -> ConditionTrace {
        let header = statement.statement().header();
        let fits = |patterns: &[Pattern], value: &str| patterns.iter().any(|p| p.matches(value));
        let (held, saw) = match self {
            Self::Algorithm(accepted) => {
                let used = header.algorithm.and_then(Algorithm::from_cose);
                let name = used.map_or("none", Algorithm::name);
                (used.is_some_and(|a| accepted.contains(&a)), name.to_owned())
            }
            Self::Binding(accepted) => {
                let binding = statement.issuer().binding;
                (accepted.contains(&binding), binding.to_string())
            }
            Self::ContentType(patterns) => {
                let saw =
                    header.content_type.as_ref().map_or("none".to_owned(), ToString::to_string);
                (header.content_type.is_some() && fits(patterns, &saw), saw)
            }
            Self::Issuer(patterns) => {
                let issuer = &statement.issuer().name;
                (fits(patterns, issuer), issuer.clone())
            }
            Self::Profile(accepted) => {
                let profile = read.record.profile();
                (accepted.iter().any(|p| p == profile), profile.to_owned())
            }
            Self::StatementBytesMax(limit) => {
                let size = statement.canonical().len();
                (size <= *limit, format!("{size} bytes"))
            }
            Self::Subject(patterns) => {
                let subject = header.claims.subject.as_deref().unwrap_or_default();
                (fits(patterns, subject), subject.to_owned())
            }
        };
        ConditionTrace { condition: self.name(), held, wanted: self.wanted(), saw }
    }

    /// The key in a policy file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Algorithm(_) => "algorithm",
            Self::Binding(_) => "binding",
            Self::ContentType(_) => "content_type",
            Self::Issuer(_) => "issuer",
            Self::Profile(_) => "profile",
            Self::StatementBytesMax(_) => "statement_bytes_max",
            Self::Subject(_) => "subject",
        }
    }

    fn wanted(&self) -> String {
        let list = |words: Vec<String>| words.join(" or ");
        match self {
            Self::Algorithm(all) => list(all.iter().map(|a| a.name().to_owned()).collect()),
            Self::Binding(all) => list(all.iter().map(ToString::to_string).collect()),
            Self::ContentType(all) | Self::Issuer(all) | Self::Subject(all) => {
                list(all.iter().map(|p| p.0.clone()).collect())
            }
            Self::Profile(all) => list(all.clone()),
            Self::StatementBytesMax(limit) => format!("at most {limit} bytes"),
        }
    }
}
