//! The findings of one payload. They are limited, because a hostile payload can
//! break a rule on every line.

use crate::profile::finding::{Finding, Severity};

/// Findings kept of one payload: enough for people, and for policies, which
/// look at codes.
const FINDINGS_MAX: usize = 100;

/// The code of the last finding if some were left out.
pub(super) const NOTES_CODES: &[&str] = &["cra-findings-left-out"];

/// The findings of one payload.
#[derive(Debug, Default)]
pub(super) struct Notes {
    found: Vec<Finding>,
    left_out: usize,
    is_broken: bool,
}

impl Notes {
    /// Notes a violation of the profile.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        at: impl Into<String>,
        detail: impl Into<String>,
    ) {
        self.is_broken = true;
        if self.has_room(code) {
            let finding = Finding::new(Severity::Error, code, at, detail);
            self.found.push(Finding { gating: true, ..finding });
        }
    }

    /// Notes the first finding of a code, and no further ones.
    pub(super) fn once(
        &mut self,
        severity: Severity,
        code: &'static str,
        describe: impl FnOnce() -> (String, String),
    ) {
        if self.found.iter().all(|finding| finding.code != code) {
            let (at, detail) = describe();
            self.found.push(Finding::new(severity, code, at, detail));
        }
    }

    /// Notes what the producer probably did not mean.
    pub(super) fn warning(
        &mut self,
        code: &'static str,
        at: impl Into<String>,
        detail: impl Into<String>,
    ) {
        if self.has_room(code) {
            self.found.push(Finding::new(Severity::Warning, code, at, detail));
        }
    }

    /// The first of each code is always kept.
    fn has_room(&mut self, code: &str) -> bool {
        let room = self.found.len() < FINDINGS_MAX || self.found.iter().all(|f| f.code != code);
        self.left_out += usize::from(!room);
        room
    }

    /// Whether there is an error.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The findings; the last states how many were left out.
    pub(super) fn into_findings(mut self) -> Vec<Finding> {
        if self.left_out > 0 {
            let detail = format!("{} more findings, not listed", self.left_out);
            self.found.push(Finding::new(Severity::Info, "cra-findings-left-out", "", detail));
        }
        self.found
    }
}
