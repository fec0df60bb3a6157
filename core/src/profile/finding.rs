//! What a reader notices.

use strum::IntoStaticStr;

use super::KINDS;
use crate::envelope::RulesVersion;

/// How serious a finding is. What follows from it is for a policy to decide.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd)]
#[strum(serialize_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
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
    /// How much it weighs.
    pub severity: Severity,
    /// The label or JSON pointer it is about.
    pub at: String,
    /// A sentence for people.
    pub detail: String,
    /// The number of the profile's own check, where it numbers them.
    pub check: Option<u8>,
    /// Whether it counts for the profile's own `ok`.
    pub gating: bool,
}

impl Severity {
    /// Its name in policies, reports and the API.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Finding {
    /// An observation of ours, outside the profile's own checks.
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

    /// A finding of one of the profile's numbered checks; its errors gate.
    pub fn of_check(
        check: u8,
        severity: Severity,
        code: &'static str,
        (at, detail): (impl Into<String>, impl Into<String>),
    ) -> Self {
        let gating = severity == Severity::Error;
        Self { check: Some(check), gating, ..Self::new(severity, code, at, detail) }
    }
}
