//! Checks documents against the released schemas. Every violation becomes a
//! finding with a JSON pointer; none stops the check.

use crate::profile::finding::{Finding, Severity};
use crate::wire::digest::Digest;
use crate::wire::jcs::Suite;
use crate::wire::json::{Json, pointer_token};

/// Findings in a report. Beyond this only the first of each code is listed, so
/// that a small document cannot have a large report.
const FINDINGS_MAX: usize = 100;

/// The findings so far.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) findings: Vec<Finding>,
}

/// Steps of the protocol (8) that findings belong to.
const READING: u8 = 1;
const TIME: u8 = 3;

const LEFT_OUT: &str = "pca_findings_left_out";

impl Shape {
    pub(super) fn json(&mut self, bytes: &[u8]) -> Option<Json> {
        match Json::read(bytes) {
            Ok(json) => Some(json),
            Err(e) => {
                self.error(e.code(), &e.pointer, format!("not valid JSON: {e}"));
                None
            }
        }
    }

    pub(super) fn error(&mut self, code: &'static str, at: &str, detail: impl Into<String>) {
        self.list(Finding::new(Severity::Error, code, at, detail).of_check(READING));
    }

    pub(super) fn note(
        &mut self,
        severity: Severity,
        code: &'static str,
        at: &str,
        detail: impl Into<String>,
    ) {
        self.list(Finding::new(severity, code, at, detail));
    }

    fn list(&mut self, finding: Finding) {
        let is_listed = |code| self.findings.iter().any(|f| f.code == code);
        if self.findings.len() < FINDINGS_MAX || !is_listed(finding.code) {
            self.findings.push(finding);
        } else if !is_listed(LEFT_OUT) {
            let detail = "there are more findings, not listed";
            self.findings.push(Finding::new(Severity::Info, LEFT_OUT, "", detail));
        }
    }

    /// Whether it is an object; notes missing and unknown members.
    pub(super) fn object(
        &mut self,
        value: &Json,
        at: &str,
        required: &[&str],
        optional: &[&str],
    ) -> bool {
        let Some(members) = value.members() else {
            self.error("pca_not_an_object", at, format!("a {}, not an object", value.kind()));
            return false;
        };
        for name in required.iter().filter(|name| value.get(name).is_none()) {
            self.error("pca_member_missing", at, format!("{name} is missing"));
        }
        let is_known = |name: &str| required.contains(&name) || optional.contains(&name);
        for (name, _) in members.iter().filter(|(name, _)| !is_known(name)) {
            let place = [at, &pointer_token(name)].concat();
            self.error("pca_member_unknown", &place, "not a member of the schema");
        }
        true
    }

    fn typed(&mut self, value: &Json, at: &str, wanted: &str) {
        self.error("pca_member_type", at, format!("a {}, not a {wanted}", value.kind()));
    }

    /// A string member; `object` notes a missing one.
    pub(super) fn text<'a>(&mut self, value: &'a Json, at: &str, name: &str) -> Option<&'a str> {
        let member = value.get(name)?;
        if member.text().is_none() {
            self.typed(member, &[at, "/", name].concat(), "string");
        }
        member.text()
    }

    pub(super) fn filled<'a>(&mut self, value: &'a Json, at: &str, name: &str) -> Option<&'a str> {
        let text = self.text(value, at, name)?;
        if text.is_empty() {
            self.error("pca_text_empty", &[at, "/", name].concat(), "an empty string");
        }
        Some(text)
    }

    pub(super) fn constant(&mut self, value: &Json, name: &str, wanted: &str) {
        if let Some(text) = self.text(value, "", name).filter(|text| *text != wanted) {
            let detail = format!("{text:?}, only {wanted:?} is supported");
            self.error("pca_version_unsupported", &["/", name].concat(), detail);
        }
    }

    /// 64 lowercase hex digits.
    pub(super) fn digest(&mut self, value: &Json, at: &str, name: &str) -> Option<Digest> {
        let text = self.text(value, at, name)?;
        let digest = Digest::from_hex(text);
        if digest.is_none() {
            let detail = "not 64 lowercase hex digits";
            self.error("pca_digest_malformed", &[at, "/", name].concat(), detail);
        }
        digest
    }

    pub(super) fn array<'a>(
        &mut self,
        value: &'a Json,
        at: &str,
        name: &str,
        most: usize,
    ) -> &'a [Json] {
        let Some(member) = value.get(name) else { return &[] };
        let place = [at, "/", name].concat();
        let Some(items) = member.array() else {
            self.typed(member, &place, "array");
            return &[];
        };
        if items.len() > most {
            let detail = format!("{} elements, at most {most} are allowed", items.len());
            self.error("pca_limit_exceeded", &place, detail);
        }
        items.get(..most).unwrap_or(items)
    }

    pub(super) fn an_object(&mut self, value: &Json, at: &str, name: &str, nullable: bool) {
        let Some(member) = value.get(name) else { return };
        if member.members().is_none() && !(nullable && *member == Json::Null) {
            self.typed(member, &[at, "/", name].concat(), "object");
        }
    }

    /// A time; its errors belong to step 3 of the protocol.
    pub(super) fn moment(&mut self, value: &Json, at: &str, name: &str) -> Option<Moment> {
        let text = self.text(value, at, name)?;
        let moment = Moment::parse(text);
        if moment.is_none() {
            let detail = "not an RFC 3339 time with an offset";
            self.time_error("pca_time_malformed", &[at, "/", name].concat(), detail);
        }
        moment
    }

    fn time_error(&mut self, code: &'static str, at: &str, detail: &str) {
        self.list(Finding::new(Severity::Error, code, at, detail).of_check(TIME));
    }

    pub(super) fn window(&mut self, value: &Json) -> Option<Window> {
        let (name, at) = ("effective_time", "/effective_time");
        let inner = value.get(name)?;
        if !self.object(inner, at, &["not_before", "not_after"], &[]) {
            return None;
        }
        let not_before = self.moment(inner, at, "not_before");
        let not_after = self.moment(inner, at, "not_after");
        let window = Window { not_before: not_before?, not_after: not_after? };
        if window.is_inverted() {
            self.time_error("pca_window_inverted", at, "it ends before it begins");
        }
        Some(window)
    }

    /// Notes numbers without a canonical form.
    pub(super) fn numbers(&mut self, value: &Json) {
        for e in Suite::PcaV1.refused(value) {
            self.error("pca_number_unsafe", e.pointer(), e.to_string());
        }
    }
}

/// The findings that make a document unusable. Those about its effective time
/// belong to step 3, which has its own reason code.
pub(super) fn unfit(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    let in_window = |f: &Finding| f.check == Some(TIME) && f.at.starts_with("/effective_time");
    findings.iter().filter(move |f| f.gating && !in_window(f))
}

/// A point in time, to the nanosecond.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Moment(jiff::Timestamp);

impl Moment {
    /// None for anything but `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm)`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date_time, rest) = text.split_at_checked(19)?;
        let fits = |text: &str, form: &str| {
            text.len() == form.len()
                && text.bytes().zip(form.bytes()).all(|(c, f)| match f {
                    b'0' => c.is_ascii_digit(),
                    f => c == f,
                })
        };
        let offset = match rest.strip_prefix('.') {
            None => rest,
            Some(fraction) => {
                let after = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
                (after.len() < fraction.len()).then_some(after)?
            }
        };
        let has_offset = ["Z", "+00:00", "-00:00"].iter().any(|form| fits(offset, form));
        let is_form = fits(date_time, "0000-00-00T00:00:00") && has_offset;
        is_form.then(|| text.parse().ok().map(Self)).flatten()
    }
}

/// An effective time; both ends are included. No clock skew is granted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Window {
    pub(super) not_before: Moment,
    pub(super) not_after: Moment,
}

impl Window {
    pub(super) fn is_inverted(&self) -> bool {
        self.not_after < self.not_before
    }

    pub(super) fn contains(&self, moment: Moment) -> bool {
        self.not_before <= moment && moment <= self.not_after
    }
}
