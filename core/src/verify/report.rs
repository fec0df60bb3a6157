//! The result of a verification: checks, warnings, and what is not shown.

use super::capsule::CapsuleReport;
use super::record::RecordReport;

/// The result of one check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It passed.
    Yes,
    /// It failed.
    No,
    /// It depends on something that is not trusted or not given.
    CannotTell,
    /// There was nothing to check.
    NotChecked,
}

/// One check of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Check {
    /// `signed`, `issuer`, `subject`, `conformant`, `logged`, `extends`, `older`,
    /// `published`, `witnessed`; of a Capsule also `capsule`, `bound`,
    /// `evidence`, of another record `record`; of a bundle also its parts.
    pub name: &'static str,
    /// The result.
    pub outcome: Outcome,
    /// The stable code: `ok`, or why not.
    pub code: &'static str,
    /// A sentence for display.
    pub detail: String,
    /// Whether the verdict depends on it; otherwise it is only shown.
    pub counts: bool,
}

impl Check {
    /// It passed.
    pub fn yes(name: &'static str, detail: String) -> Self {
        Self { name, outcome: Outcome::Yes, code: "ok", detail, counts: true }
    }

    /// It failed.
    pub fn no(name: &'static str, code: &'static str, detail: String) -> Self {
        Self { name, outcome: Outcome::No, code, detail, counts: true }
    }

    /// It cannot be decided.
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

/// The result of `verify` for one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The kind of file.
    pub artefact: &'static str,
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// What the user should know although the checks passed.
    pub warnings: Vec<String>,
    /// What a yes does not prove.
    pub not_shown: Vec<&'static str>,
    /// The Capsule, if the payload is one.
    pub capsule: Option<CapsuleReport>,
    /// The record, if the payload is one of another profile.
    pub record: Option<RecordReport>,
}

impl Report {
    /// A report with these checks.
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

    /// Yes if a check that counts passed and none failed or is undecided.
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

    /// The code of the first check that prevents a yes, or `ok`.
    pub fn code(&self) -> &'static str {
        match self.verdict() {
            Outcome::Yes => "ok",
            _ => self.reason().map_or("not-checked", |check| check.code),
        }
    }

    /// The first check that prevents a yes.
    pub fn reason(&self) -> Option<&Check> {
        let verdict = self.verdict();
        let decides = |check: &&Check| check.counts && check.outcome == verdict;
        self.checks.iter().find(decides).filter(|_| verdict != Outcome::Yes)
    }

    /// Whether a check of this name has this outcome.
    pub(super) fn has(&self, name: &str, outcome: Outcome) -> bool {
        self.checks.iter().any(|c| c.name == name && c.outcome == outcome)
    }
}
