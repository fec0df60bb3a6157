//! What was checked, what came out, and what it does not show.

use super::capsule::CapsuleReport;
use super::record::RecordReport;

/// The answer to one question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It holds.
    Yes,
    /// It does not.
    No,
    /// Somebody would have to be trusted who is not.
    CannotTell,
    /// There was nothing to check.
    NotChecked,
}

/// One question asked of an artefact.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Check {
    /// `signed`, `conformant`, `logged`, `extends`, `older`, `published`; of a
    /// Capsule also `capsule`, `bound`, `evidence`, of another record `record`.
    pub name: &'static str,
    /// The answer.
    pub outcome: Outcome,
    /// A stable word: `ok`, or why not.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
}

impl Check {
    /// It holds.
    pub fn yes(name: &'static str, detail: String) -> Self {
        Self { name, outcome: Outcome::Yes, code: "ok", detail }
    }

    /// It does not hold.
    pub fn no(name: &'static str, code: &'static str, detail: String) -> Self {
        Self { name, outcome: Outcome::No, code, detail }
    }

    /// We cannot tell.
    pub fn cannot_tell(name: &'static str, code: &'static str, detail: String) -> Self {
        Self { name, outcome: Outcome::CannotTell, code, detail }
    }

    /// There was nothing to check.
    pub fn not_checked(name: &'static str, detail: &str) -> Self {
        Self { name, outcome: Outcome::NotChecked, code: "not-checked", detail: detail.to_owned() }
    }

    /// Whether the answer counts for the verdict. Conformance is a verdict of
    /// its own: a statement may be authentic and still break RFC 9943. So is
    /// whether a header is bound to its Capsule.
    fn counts(&self) -> bool {
        !["conformant", "bound"].contains(&self.name)
    }
}

/// Everything `verify` has to say about one artefact.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What kind of artefact it is.
    pub artefact: &'static str,
    /// The questions, in the order they were asked.
    pub checks: Vec<Check>,
    /// Things a reader should know although nothing is wrong.
    pub warnings: Vec<String>,
    /// What a yes here does not mean.
    pub not_shown: Vec<&'static str>,
    /// The Capsule, if the payload is one.
    pub capsule: Option<CapsuleReport>,
    /// The record, if the payload is one of another profile.
    pub record: Option<RecordReport>,
}

impl Report {
    /// Yes when something was shown and nothing failed.
    pub fn verdict(&self) -> Outcome {
        let any = |outcome| self.checks.iter().any(|c| c.counts() && c.outcome == outcome);
        if any(Outcome::No) {
            Outcome::No
        } else if any(Outcome::CannotTell) || !any(Outcome::Yes) {
            Outcome::CannotTell
        } else {
            Outcome::Yes
        }
    }

    /// The code of the first check that stands in the way, or `ok`.
    pub fn code(&self) -> &'static str {
        let verdict = self.verdict();
        let first = self.checks.iter().find(|c| c.counts() && c.outcome == verdict);
        first.map_or("not-checked", |c| c.code)
    }
}
