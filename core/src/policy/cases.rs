//! Cases beside a policy: small descriptions of statements, and what the
//! policy must say to each.
//!
//! In: TOML. Each case is laid over `[base]`; a capsule gets its id, its
//! subject and its claims unless the case says otherwise. Out: for each case
//! whether the policy decided as written. The statements are really signed
//! and really authenticated, with a key made for the run.

mod build;
pub(super) mod certificate;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Decision, Facts, Policy};
use crate::profile;
use crate::profile::exchange::Conflict;
use crate::profile::session::Continuity;
use crate::wire::text::toml_mistake;

/// A file of cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    /// What every case starts from.
    #[serde(default)]
    base: Sketch,
    #[serde(rename = "case")]
    cases: Vec<Case>,
}

#[derive(Clone, Debug, Deserialize)]
struct Case {
    /// What it shows.
    name: String,
    /// `admit` or `refuse`.
    expect: Expect,
    /// A word the refusal must contain: a rule, a condition, a value.
    because: Option<String>,
    #[serde(flatten)]
    sketch: Sketch,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Admit,
    Refuse,
}

/// A statement to be. `Case` flattens it, so unknown keys are caught here.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Sketch {
    algorithm: Option<String>,
    binding: Option<String>,
    /// The anchor of a statement that comes with a certificate.
    anchor: Option<String>,
    issuer: Option<String>,
    subject: Option<String>,
    content_type: Option<String>,
    /// The payload as it is.
    payload: Option<String>,
    /// The payload as bytes, in hex.
    payload_hex: Option<String>,
    /// The payload as a capsule, JSON without its id.
    capsule: Option<String>,
    /// Members of the capsule to change, by JSON pointer; "" removes one.
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    /// CWT claims besides issuer and subject; "" removes one.
    #[serde(default)]
    claim: BTreeMap<String, toml::Value>,
    #[serde(default)]
    facts: FactsSketch,
    #[serde(flatten)]
    unknown: BTreeMap<String, toml::Value>,
}

/// The log before the statement, in the words of the conditions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactsSketch {
    parent: Option<String>,
    parent_operator: Option<String>,
    parent_superseded: Option<bool>,
    record_id: Option<String>,
    predecessors: Option<String>,
    session: Option<String>,
    nonce: Option<String>,
    #[serde(default)]
    conflicts: Vec<String>,
}

/// How one case came out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// The case.
    pub name: String,
    /// Whether the policy decided as written.
    pub ok: bool,
    /// Whether it admitted the statement.
    pub admitted: bool,
    /// The refusal, or what is wrong with the case.
    pub detail: String,
}

impl Cases {
    /// Reads a file of cases.
    pub fn parse(text: &str) -> Result<Self, String> {
        let cases: Self = toml::from_str(text).map_err(|e| toml_mistake(&e, text))?;
        let sketches = cases.cases.iter().map(|case| &case.sketch);
        for sketch in sketches.chain([&cases.base]) {
            if let Some(key) = sketch.unknown.keys().next() {
                return Err(format!("unknown key {key}"));
            }
        }
        Ok(cases)
    }

    /// Runs every case against a policy.
    pub fn run(&self, policy: &Policy) -> Vec<Outcome> {
        self.cases.iter().map(|case| case.run(&self.base, policy)).collect()
    }
}

impl Case {
    fn run(&self, base: &Sketch, policy: &Policy) -> Outcome {
        let sketch = self.sketch.over(base);
        let statement = match sketch.build() {
            Ok(statement) => statement,
            Err(detail) => return self.outcome(false, false, format!("no statement: {detail}")),
        };
        let read = profile::read(&statement);
        match policy.decide(statement, &read, &sketch.facts.facts()) {
            Decision::Admit(_) => {
                self.outcome(self.expect == Expect::Admit, true, "admitted".to_owned())
            }
            Decision::Refuse(refusal) => {
                let text = refusal.to_string();
                let named = self.because.as_ref().is_none_or(|word| text.contains(word));
                self.outcome(self.expect == Expect::Refuse && named, false, text)
            }
        }
    }

    fn outcome(&self, ok: bool, admitted: bool, detail: String) -> Outcome {
        Outcome { name: self.name.clone(), ok, admitted, detail }
    }
}

impl FactsSketch {
    fn facts(&self) -> Facts {
        let word = |word: &Option<String>, yes: &str, no: &str| match word.as_deref() {
            Some(found) if found == yes => Some(true),
            Some(found) if found == no => Some(false),
            _ => None,
        };
        Facts {
            parent_known: word(&self.parent, "known", "unknown"),
            parent_same_operator: word(&self.parent_operator, "same", "other"),
            parent_superseded: self.parent_superseded,
            record_id_known: word(&self.record_id, "known", "new") == Some(true),
            record_id_other_chain: self.record_id.as_deref() == Some("other-chain"),
            record_id_other_content: self.record_id.as_deref() == Some("other-content"),
            predecessors_known: word(&self.predecessors, "known", "unknown"),
            session: self.session.as_deref().and_then(Continuity::from_name),
            nonce_used: word(&self.nonce, "used", "new"),
            conflicts: self.conflicts.iter().filter_map(|word| Conflict::from_name(word)).collect(),
        }
    }
}
