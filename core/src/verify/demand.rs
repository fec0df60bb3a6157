//! The requirements for a yes.
//!
//! By default a yes means: signed by a key that something other than the
//! statement binds to the issuer name, conforming, and logged in a trusted log.
//! A `Demand` requires more or less than that.

use super::report::{Check, Outcome, Report};
use crate::wire::text::Pattern;

/// The requirements of a verifier; the default is the rule above.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Demand {
    /// Only the signature counts: neither receipt nor conformance is required.
    pub signed_only: bool,
    /// A key that only the statement binds to the name is accepted.
    pub allow_self_certified: bool,
    /// Receipts of development logs are accepted.
    pub allow_development: bool,
    /// The issuer is one of these; any if empty.
    pub issuers: Vec<Pattern>,
    /// The subject is one of these; any if empty.
    pub subjects: Vec<Pattern>,
    /// The log has one of these names; any trusted one if empty.
    pub logs: Vec<String>,
    /// Further requirements, for every kind of file.
    pub required: Vec<Requirement>,
}

/// A further requirement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Requirement {
    /// A receipt of a trusted log.
    Receipt,
    /// Admission by the log's policy, which only a bundle shows.
    Admitted,
    /// The cosignature of a witness on a checkpoint.
    Witness,
}

/// The checks about the signer.
const OF_SIGNATURE: [&str; 4] = ["readable", "signed", "issuer", "subject"];

impl Demand {
    /// The default rule.
    pub const DEFAULT: Self = Self::only(false);

    /// Only the signature.
    pub const SIGNED_ONLY: Self = Self::only(true);

    const fn only(signed_only: bool) -> Self {
        Self {
            signed_only,
            allow_self_certified: false,
            allow_development: false,
            issuers: Vec::new(),
            subjects: Vec::new(),
            logs: Vec::new(),
            required: Vec::new(),
        }
    }

    /// Whether exactly this name is expected; patterns do not count.
    pub(super) fn names(&self, issuer: &str) -> bool {
        self.issuers.iter().any(|wanted| wanted.0 == issuer && !issuer.contains('*'))
    }

    /// A failed check if the issuer is not an expected one.
    pub(super) fn other_issuer(&self, claimed: &str) -> Option<Check> {
        other("issuer", "issuer-other", &self.issuers, claimed)
    }

    /// A failed check if the subject is not an expected one.
    pub(super) fn other_subject(&self, claimed: &str) -> Option<Check> {
        other("subject", "subject-other", &self.subjects, claimed)
    }

    /// A passed check counts only if the log, known under these names, is an
    /// expected one and not a development log.
    pub(super) fn of_log(&self, proven: Check, names: &[&str]) -> Check {
        if !self.logs.is_empty() && !self.logs.iter().any(|log| names.contains(&log.as_str())) {
            let wanted = self.logs.join(" or ");
            let detail = format!("{}, and {wanted} was asked for", proven.detail);
            return Check::cannot_tell(proven.name, "log-other", detail);
        }
        if !self.allow_development && names.iter().any(|name| is_development(name)) {
            let detail = format!(
                "{}: the receipts of a development log prove nothing; --allow-dev accepts them",
                proven.detail
            );
            return Check::cannot_tell(proven.name, "log-development", detail);
        }
        proven
    }

    /// Decides which checks count, and adds those that are required but missing.
    pub(super) fn apply(&self, mut report: Report) -> Report {
        let is_of_statement = report.checks.iter().any(|check| check.name == "signed");
        if self.signed_only && is_of_statement {
            for check in &mut report.checks {
                check.counts = OF_SIGNATURE.contains(&check.name);
            }
        }
        for requirement in &self.required {
            requirement.apply(&mut report);
        }
        // One verified receipt is enough, whatever unknown logs have issued.
        if report.has("logged", Outcome::Yes) {
            let unknown = |c: &&mut Check| c.name == "logged" && c.outcome == Outcome::CannotTell;
            report.checks.iter_mut().filter(unknown).for_each(|check| check.counts = false);
        }
        report
    }
}

fn other(
    name: &'static str,
    code: &'static str,
    wanted: &[Pattern],
    claimed: &str,
) -> Option<Check> {
    let is_other = !wanted.is_empty() && !wanted.iter().any(|wanted| wanted.matches(claimed));
    is_other.then(|| {
        let wanted: Vec<String> = wanted.iter().map(|w| format!("{:?}", w.0)).collect();
        let detail = format!("it says {claimed:?}, and {} was asked for", wanted.join(" or "));
        Check::no(name, code, detail)
    })
}

impl Requirement {
    fn check(self) -> &'static str {
        match self {
            Self::Receipt => "logged",
            Self::Admitted => "admitted",
            Self::Witness => "witnessed",
        }
    }

    fn apply(self, report: &mut Report) {
        let mut is_there = false;
        for check in report.checks.iter_mut().filter(|check| check.name == self.check()) {
            check.counts = true;
            is_there = true;
        }
        if !is_there {
            report.checks.push(self.missing());
        }
    }

    fn missing(self) -> Check {
        let (code, detail) = match self {
            Self::Receipt => ("receipt-missing", "a file of this kind shows no receipt"),
            Self::Admitted => {
                ("admission-not-shown", "only a bundle shows why a log admitted a statement")
            }
            Self::Witness => {
                ("witness-unsupported", "cosignatures of witnesses are not checked yet")
            }
        };
        Check::cannot_tell(self.check(), code, detail.to_owned())
    }
}

/// Whether a log's name is under `.invalid` (RFC 2606): a development log, whose
/// receipts prove nothing.
pub(super) fn is_development(name: &str) -> bool {
    let authority = name.split_once("://").map_or(name, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default().trim_end_matches('.');
    host.rsplit('.').next().is_some_and(|label| label.eq_ignore_ascii_case("invalid"))
}
