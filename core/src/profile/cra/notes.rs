//! What is noticed while reading one payload, bounded: a hostile payload can
//! break a rule on every line.

use crate::profile::finding::{Finding, Severity};

/// Findings kept of one payload. Enough for a person, and for a policy, which
/// asks for codes.
const FINDINGS_MAX: usize = 100;

/// The code of the last finding, when there are more.
pub(super) const NOTES_CODES: &[&str] = &["cra-findings-left-out"];

/// The findings of one payload.
#[derive(Debug, Default)]
pub(super) struct Notes {
    found: Vec<Finding>,
    left_out: usize,
    is_broken: bool,
}

impl Notes {
    /// It breaks the profile.
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

    /// Something that is said once for a payload, at its first place.
    pub(super) fn once(
        &mut self,
        severity: Severity,
        code: &'static str,
        told: impl FnOnce() -> (String, String),
    ) {
        if self.found.iter().all(|finding| finding.code != code) {
            let (at, detail) = told();
            self.found.push(Finding::new(severity, code, at, detail));
        }
    }

    /// Probably not what the producer meant.
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

    /// Whether an error was found.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The findings, with a last one that says how many were left out.
    pub(super) fn into_findings(mut self) -> Vec<Finding> {
        if self.left_out > 0 {
            let detail = format!("{} findings more, not listed", self.left_out);
            self.found.push(Finding::new(Severity::Info, "cra-findings-left-out", "", detail));
        }
        self.found
    }
}
