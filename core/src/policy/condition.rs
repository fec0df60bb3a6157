//! Every condition a rule can have: one row each.
//!
//! A row says what the policy file may ask for and where the statement
//! answers. Reading files, deciding and explaining all go by the row.

use std::borrow::Cow;

use super::case::{Case, Seen};
use super::explain::ConditionTrace;
#[cfg(feature = "rego")]
use super::rego::Program;
use super::rule::Pattern;
use crate::key::Algorithm;
use crate::profile::Record;
use crate::profile::capsule::{APPROVERS, EFFECT_STATUSES};
use crate::profile::exchange::Conflict;

/// How the value of a condition is written and compared.
pub(super) enum Shape {
    /// Patterns, one of which must match.
    Patterns,
    /// Words of a closed list, one of which must be it.
    Words(&'static [&'static str]),
    /// The last word of an ordered list that is still fine.
    AtMost(&'static [&'static str]),
    /// Yes or no.
    Flag,
    /// The largest number that is still fine.
    Number,
    /// CWT claims, each with a pattern, or with whether it must be there.
    Claims,
    /// Words of a closed list, none of which may have been seen.
    NoWord(&'static [&'static str]),
    /// Patterns for codes of findings, none of which may match.
    NoFinding,
    /// A Rego module.
    Rego,
}

/// One kind of condition.
pub(super) struct Kind {
    /// The key in a policy file.
    pub(super) key: &'static str,
    pub(super) shape: Shape,
    saw: for<'a> fn(&'a Case<'_>) -> Seen<'a>,
}

macro_rules! table {
    ($($key:literal $shape:expr, $saw:expr;)+) => {
        pub(super) const KINDS: &[Kind] = &[$(Kind { key: $key, shape: $shape, saw: $saw }),+,
            Kind { key: "rego", shape: Shape::Rego, saw: |_| None }];
    };
}

const ALGORITHMS: &[&str] = &[
    "ES256",
    "ES384",
    "ES512",
    "ESP256",
    "ESP384",
    "ESP512",
    "EdDSA",
    "Ed25519",
    "PS256",
    "PS384",
    "PS512",
    "ML-DSA-44",
    "ML-DSA-65",
];
const BINDINGS: &[&str] = &["did:key", "did:web", "pinned", "self-certified", "x5chain"];
const PROFILES: &[&str] = &[
    "atlas",
    "capsule",
    "capsule-id",
    "capsule-outcome",
    "carp",
    "hash",
    "opaque",
    "pacr",
    "pca-certificate",
    "pca-evidence",
    "trace",
];
const INTERVENTIONS: &[&str] = &[
    "counterfactual",
    "do-chemical",
    "do-digital",
    "do-genetic",
    "do-physical",
    "observe",
    "unknown",
];
const SESSIONS: &[&str] =
    &["extends", "fork", "gap", "new", "none", "not-genesis", "overlaps", "repeats"];
const EFFECT_MODES: &[&str] = &["not_applicable", "dispatched_unconfirmed", "confirmed"];
const SEVERITIES: &[&str] = &["none", "info", "warning", "error"];
/// By ascending consequence; no effect at all comes first.
const IRREVERSIBILITY: &[&str] =
    &["none", "two_way", "one_way_recoverable", "one_way_consequential", "one_way_terminal"];

table! {
    "action_type" Shape::Patterns, |c| text(&c.summary().action_type);
    "algorithm" Shape::Words(ALGORITHMS), |c| {
        c.header().algorithm.and_then(Algorithm::from_cose).map(|a| Cow::Borrowed(a.name()))
    };
    "anchor" Shape::Patterns, |c| text(&c.statement.issuer().anchor);
    "approver" Shape::Words(APPROVERS), |c| text(&c.summary().approver);
    "binding" Shape::Words(BINDINGS), |c| Some(c.statement.issuer().binding.name().into());
    "claim" Shape::Claims, |_| None;
    "concealed" Shape::Flag, |c| flag(Some(c.summary().is_concealed));
    "content_type" Shape::Patterns, |c| {
        c.header().content_type.as_ref().map(|name| Cow::Owned(name.to_string()))
    };
    "decision" Shape::Patterns, |c| text(&c.summary().decision);
    "developer" Shape::Patterns, |c| text(&c.summary().developer);
    "effect_attestation" Shape::Patterns, |c| text(&c.summary().effect_attestation);
    "effect_mode" Shape::Words(EFFECT_MODES), |c| text(&c.summary().effect_mode);
    "effect_status" Shape::Words(EFFECT_STATUSES), |c| text(&c.summary().effect_status);
    "effect_type" Shape::Patterns, |c| text(&c.summary().effect_type);
    "findings_at_most" Shape::AtMost(SEVERITIES), |c| Some(c.worst_finding().into());
    "human_disposed" Shape::Flag, |c| flag(c.summary().human_disposed);
    "intervention" Shape::Words(INTERVENTIONS), |c| text(&c.summary().intervention);
    "irreversibility" Shape::Patterns, |c| text(&c.summary().irreversibility);
    "irreversibility_max" Shape::AtMost(IRREVERSIBILITY), |c| Some(c.irreversibility().into());
    "issuer" Shape::Patterns, |c| Some(c.statement.issuer().name.as_str().into());
    "nonce" Shape::Words(&["new", "none", "used"]), |c| Some(c.nonce().into());
    "ok" Shape::Flag, |c| flag(c.summary().ok);
    "operator" Shape::Patterns, |c| text(&c.summary().operator);
    "parent" Shape::Words(&["known", "none", "unknown"]), |c| Some(c.parent().into());
    "parent_operator" Shape::Words(&["none", "other", "same"]), |c| {
        Some(c.parent_operator().into())
    };
    "parent_superseded" Shape::Flag, |c| flag(Some(c.facts.parent_superseded == Some(true)));
    "payload" Shape::Words(&["clear", "empty", "hashed"]), |c| match &c.read.record {
        Record::Pacr(record) => Some(record.payload_form().name().into()),
        _ => None,
    };
    "predecessors" Shape::Words(&["known", "none", "unknown"]), |c| {
        Some(c.predecessors().into())
    };
    "profile" Shape::Words(PROFILES), |c| Some(c.read.record.profile().into());
    "record_id" Shape::Words(&["known", "new", "other-chain", "other-content"]), |c| {
        Some(c.record_id().into())
    };
    "session" Shape::Words(SESSIONS), |c| Some(c.session().into());
    "statement_bytes_max" Shape::Number, |c| {
        Some(c.statement.canonical().len().to_string().into())
    };
    "subject" Shape::Patterns, |c| c.header().claims.subject.as_deref().map(Cow::Borrowed);
    "verdict" Shape::Patterns, |c| text(&c.summary().verdict);
    "without_conflicts" Shape::NoWord(Conflict::NAMES), |_| None;
    "without_findings" Shape::NoFinding, |_| None;
}

fn text(value: &Option<String>) -> Seen<'_> {
    value.as_deref().map(Cow::Borrowed)
}

fn flag(value: Option<bool>) -> Seen<'static> {
    value.map(|yes| if yes { "true".into() } else { "false".into() })
}

/// One thing that must hold of a statement.
#[derive(Clone)]
pub(super) struct Condition {
    pub(super) kind: &'static Kind,
    pub(super) want: Want,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.key(), self.wanted())
    }
}

/// What the policy asks for.
#[derive(Clone)]
pub(super) enum Want {
    OneOf(Vec<Pattern>),
    NoConflict(Vec<Pattern>),
    NoneOf(Vec<Pattern>),
    /// The words up to the last that is fine.
    UpTo(&'static [&'static str]),
    Flag(bool),
    AtMost(usize),
    Claims(Vec<(String, Claim)>),
    #[cfg(feature = "rego")]
    Rego(Box<Program>),
}

/// What is asked of one claim.
#[derive(Clone)]
pub(super) enum Claim {
    Present(bool),
    OneOf(Vec<Pattern>),
}

/// How a condition came out, and what it saw.
pub(super) struct Check<'a> {
    pub(super) held: bool,
    saw: Seen<'a>,
}

impl Condition {
    /// The key in a policy file.
    pub(super) fn key(&self) -> &'static str {
        self.kind.key
    }

    pub(super) fn check<'a>(&self, case: &'a Case<'_>) -> Check<'a> {
        let saw = match &self.want {
            Want::Claims(claims) => return check_claims(claims, case),
            Want::NoConflict(words) => return check_conflicts(words, case),
            Want::NoneOf(codes) => return check_findings(codes, case),
            #[cfg(feature = "rego")]
            Want::Rego(program) => {
                let refused = program.run(case).err();
                return Check { held: refused.is_none(), saw: refused.map(Cow::Owned) };
            }
            _ => (self.kind.saw)(case),
        };
        let held = saw.as_deref().is_some_and(|saw| self.want.fits(saw));
        Check { held, saw }
    }

    pub(super) fn trace(&self, case: &Case<'_>) -> ConditionTrace {
        let Check { held, saw } = self.check(case);
        let saw = saw.map_or_else(|| "none".to_owned(), Cow::into_owned);
        ConditionTrace { condition: self.key(), held, wanted: self.wanted(), saw }
    }

    pub(super) fn wanted(&self) -> String {
        match &self.want {
            Want::OneOf(all) => either(all),
            Want::NoConflict(all) | Want::NoneOf(all) => format!("none of {}", either(all)),
            Want::UpTo(words) => format!("at most {}", words.last().copied().unwrap_or_default()),
            Want::Flag(yes) => yes.to_string(),
            Want::AtMost(limit) => format!("at most {limit}"),
            Want::Claims(claims) => {
                let claim = |(name, claim): &(String, Claim)| match claim {
                    Claim::Present(true) => format!("{name} present"),
                    Claim::Present(false) => format!("{name} absent"),
                    Claim::OneOf(all) => format!("{name} {}", either(all)),
                };
                claims.iter().map(claim).collect::<Vec<_>>().join(" and ")
            }
            #[cfg(feature = "rego")]
            Want::Rego(_) => "allow, and no errors".to_owned(),
        }
    }
}

impl Want {
    fn fits(&self, saw: &str) -> bool {
        match self {
            Self::OneOf(all) => fits_any(all, saw),
            Self::UpTo(words) => words.contains(&saw),
            Self::Flag(yes) => saw == if *yes { "true" } else { "false" },
            Self::AtMost(limit) => saw.parse::<usize>().is_ok_and(|n| n <= *limit),
            _ => false,
        }
    }
}

fn fits_any(patterns: &[Pattern], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(text))
}

fn either(patterns: &[Pattern]) -> String {
    patterns.iter().map(|p| p.0.as_str()).collect::<Vec<_>>().join(" or ")
}

fn check_claims<'a>(claims: &[(String, Claim)], case: &Case<'_>) -> Check<'a> {
    let mut held = true;
    let mut saw = Vec::new();
    for (name, want) in claims {
        let found = case.claim(name);
        held &= match want {
            Claim::Present(yes) => found.is_some() == *yes,
            Claim::OneOf(all) => found.as_deref().is_some_and(|found| fits_any(all, found)),
        };
        saw.push(format!("{name} {}", found.as_deref().unwrap_or("absent")));
    }
    Check { held, saw: Some(saw.join(" and ").into()) }
}

fn check_conflicts<'a>(words: &[Pattern], case: &'a Case<'_>) -> Check<'a> {
    let found = case.facts.conflicts.iter().map(Conflict::name);
    unwanted(found.filter(|word| fits_any(words, word)).collect())
}

fn check_findings<'a>(codes: &[Pattern], case: &'a Case<'_>) -> Check<'a> {
    let found = case.findings().map(|finding| finding.code);
    unwanted(found.filter(|code| fits_any(codes, code)).collect())
}

/// Holds when there is nothing.
fn unwanted<'a>(found: Vec<&str>) -> Check<'a> {
    Check { held: found.is_empty(), saw: (!found.is_empty()).then(|| found.join(", ").into()) }
}
