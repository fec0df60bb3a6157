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
    /// `signed`, `issuer`, `subject`, `conformant`, `logged`, `extends`, `older`,
    /// `published`, `witnessed`; of a Capsule also `capsule`, `bound`,
    /// `evidence`, of another record `record`; of a bundle also its parts.
    pub name: &'static str,
    /// The answer.
    pub outcome: Outcome,
    /// A stable word: `ok`, or why not.
    pub code: &'static str,
    /// A sentence for people.
    pub detail: String,
    /// Whether the verdict rests on it. What nobody asked for is shown and
    /// does not count.
    pub counts: bool,
}

impl Check {
    /// It holds.
    pub fn yes(name: &'static str, detail: String) -> Self {
        Self { name, outcome: Outcome::Yes, code: "ok", detail, counts: true }
    }

    /// It does not hold.
    pub fn no(name: &'static str, code: &'static str, detail: String) -> Self {
        Self { name, outcome: Outcome::No, code, detail, counts: true }
    }

    /// We cannot tell.
    pub fn cannot_tell(name: &'static str, code: &'static str, detail: String) -> Self {
        Self { name, outcome: Outcome::CannotTell, code, detail, counts: true }
    }

    /// There was nothing to check.
    pub fn not_checked(name: &'static str, detail: &str) -> Self {
        Self {
            name,
            outcome: Outcome::NotChecked,
            code: "not-checked",
            detail: detail.to_owned(),
            counts: true,
        }
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
    /// A report of these checks and nothing else.
    pub(super) fn of(artefact: &'static str, checks: Vec<Check>) -> Self {
        Self {
            artefact,
            checks,
            warnings: Vec::new(),
            not_shown: Vec::new(),
            capsule: None,
            record: None,
        }
    }

    /// Yes when something was shown and nothing that counts stands against it.
    pub fn verdict(&self) -> Outcome {
        let any = |outcome| self.checks.iter().any(|c| c.counts && c.outcome == outcome);
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
        match self.verdict() {
            Outcome::Yes => "ok",
            _ => self.reason().map_or("not-checked", |check| check.code),
        }
    }

    /// The first check that stands in the way of a yes.
    pub fn reason(&self) -> Option<&Check> {
        let verdict = self.verdict();
        let decides = |check: &&Check| check.counts && check.outcome == verdict;
        self.checks.iter().find(decides).filter(|_| verdict != Outcome::Yes)
    }

    /// Whether a check of this name came out like this.
    pub(super) fn has(&self, name: &str, outcome: Outcome) -> bool {
        self.checks.iter().any(|c| c.name == name && c.outcome == outcome)
    }
}
