//! What a reader notices.

use strum::IntoStaticStr;

use super::KINDS;
use crate::envelope::RulesVersion;

/// How serious a finding is. What follows from it is for a policy to decide.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd)]
#[strum(serialize_all = "kebab-case")]
pub enum Severity {
    Info,
    /// Probably not what the producer meant.
    Warning,
    /// The record breaks its profile.
    Error,
}

/// One observation about a record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// A stable word; capsule findings keep the spelling of their reference.
    pub code: &'static str,
    pub severity: Severity,
    /// A header label or a JSON pointer.
    pub at: String,
    /// A sentence for people.
    pub detail: String,
    /// The number of the profile's own check, if it numbers them.
    pub check: Option<u8>,
    /// Whether it makes the profile's own `ok` false.
    pub gating: bool,
}

impl Severity {
    /// Its name in policies, reports and the API.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Finding {
    /// A finding outside the profile's own checks.
    pub fn new(
        severity: Severity,
        code: &'static str,
        at: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        #[cfg(test)]
        super::tests::is_listed(code);
        let (at, detail) = (at.into(), detail.into());
        Self { code, severity, at, detail, check: None, gating: false }
    }

    /// The first rules version under which a policy sees it.
    pub fn since(&self) -> RulesVersion {
        let mut lists = KINDS.iter().flat_map(|kind| kind.codes);
        let newer =
            lists.find(|codes| codes.since > RulesVersion::V1 && codes.list.contains(&self.code));
        newer.map_or(RulesVersion::V1, |codes| codes.since)
    }

    /// The same as a finding of one of the profile's numbered checks, whose
    /// errors are gating.
    pub fn of_check(self, check: u8) -> Self {
        Self { check: Some(check), gating: self.severity == Severity::Error, ..self }
    }
}
