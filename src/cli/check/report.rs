//! Verification reports, for machines and for people.

use serde::Serialize;

use crate::cli::{Exit, output};
use crate::profile::{Compared, Finding};
use crate::service::views::RecordView;
use crate::verify::{CapsuleReport, Check, Outcome, RecordReport, Report};
use crate::wire::printable::{Printable, printable};

/// What one file proves. A file that cannot be read has an error instead.
#[derive(Serialize)]
pub(in crate::cli) struct FileReport {
    ok: Option<bool>,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    file: String,
    artefact: Option<&'static str>,
    checks: Vec<CheckReport>,
    warnings: Vec<String>,
    not_shown: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capsule: Option<Capsule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) error: Option<String>,
}

#[derive(Serialize)]
struct CheckReport {
    check: &'static str,
    ok: Option<bool>,
    code: &'static str,
    detail: String,
    counts: bool,
}

/// A Capsule as Class 1 and, with a manifest, Class 2 see it.
#[derive(Serialize)]
struct Capsule {
    ok: Option<bool>,
    capsule_id: Option<String>,
    attestation_mode: Option<&'static str>,
    effect_mode: Option<&'static str>,
    ledger_mode: Option<&'static str>,
    findings: Vec<FindingReport>,
}

/// A record of another profile.
#[derive(Serialize)]
struct Record {
    profile: &'static str,
    ok: Option<bool>,
    attestation_mode: &'static str,
    facts: RecordView,
    findings: Vec<FindingReport>,
}

impl Record {
    fn new(report: &RecordReport) -> Self {
        Self {
            profile: report.profile,
            ok: report.summary.ok,
            attestation_mode: if report.is_anchored { "anchored" } else { "self_attested" },
            facts: RecordView::from(&report.summary),
            findings: report.findings.iter().map(FindingReport::new).collect(),
        }
    }
}

#[derive(Serialize)]
struct FindingReport {
    check: Option<u8>,
    code: &'static str,
    severity: &'static str,
    gating: bool,
    at: String,
    detail: String,
}

impl Capsule {
    fn new(report: &CapsuleReport) -> Self {
        let class1 = &report.class1;
        let class2 = report.class2.iter().flat_map(|result| &result.findings);
        let all = class1.findings.iter().chain(&report.noticed).chain(class2);
        Self {
            ok: class1.ok,
            capsule_id: report.record.capsule_id(),
            attestation_mode: class1.derived.map(|derived| derived.attestation.name()),
            effect_mode: class1.derived.map(|derived| derived.effect.name()),
            ledger_mode: class1.derived.map(|derived| derived.ledger.name()),
            findings: all.map(FindingReport::new).collect(),
        }
    }
}

impl FindingReport {
    fn new(finding: &Finding) -> Self {
        Self {
            check: finding.check,
            code: finding.code,
            severity: finding.severity.name(),
            gating: finding.gating,
            at: finding.at.clone(),
            detail: finding.detail.clone(),
        }
    }
}

/// A finding in the output of verbs that do not give a verdict on it.
#[derive(Serialize)]
pub(in crate::cli) struct FindingView<'a> {
    code: &'static str,
    severity: &'static str,
    at: &'a str,
    detail: &'a str,
}

impl<'a> From<&'a Finding> for FindingView<'a> {
    fn from(finding: &'a Finding) -> Self {
        let Finding { code, severity, at, detail, .. } = finding;
        Self { code, severity: severity.name(), at, detail }
    }
}

/// A head that a restored or moved log was compared with.
#[derive(Serialize)]
pub(in crate::cli) struct ComparedView {
    source: &'static str,
    size: u64,
    root: String,
    address: Option<String>,
}

impl From<&Compared> for ComparedView {
    fn from(head: &Compared) -> Self {
        let (source, root) = (head.source.name(), head.root.to_string());
        Self { source, size: head.size, root, address: head.address.clone() }
    }
}

/// One object, whether one file was asked about or many.
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::cli) enum Object<'a> {
    One(&'a FileReport),
    Many { ok: Option<bool>, code: &'static str, files: &'a [FileReport] },
}

impl FileReport {
    pub(in crate::cli) fn new(file: String, report: Report) -> Self {
        let check = |check: Check| CheckReport {
            check: check.name,
            ok: ok(check.outcome),
            code: check.code,
            detail: check.detail,
            counts: check.counts,
        };
        Self {
            ok: ok(report.verdict()),
            code: report.code(),
            reason: report.reason().map(|check| check.detail.clone()),
            file,
            artefact: Some(report.artefact),
            checks: report.checks.into_iter().map(check).collect(),
            warnings: report.warnings,
            not_shown: report.not_shown,
            capsule: report.capsule.as_ref().map(Capsule::new),
            record: report.record.as_ref().map(Record::new),
            error: None,
        }
    }

    pub(in crate::cli) fn unreadable(file: String, error: &anyhow::Error) -> Self {
        Self {
            ok: None,
            code: "unreadable",
            reason: None,
            file,
            artefact: None,
            checks: Vec::new(),
            warnings: Vec::new(),
            not_shown: Vec::new(),
            capsule: None,
            record: None,
            error: Some(output::chain(error)),
        }
    }

    fn answer(&self) -> Exit {
        match (self.ok, &self.error) {
            (_, Some(_)) => Exit::Failed,
            (Some(true), None) => Exit::Yes,
            (Some(false), None) => Exit::No,
            (None, None) => Exit::CannotTell,
        }
    }
}

fn ok(outcome: Outcome) -> Option<bool> {
    match outcome {
        Outcome::Yes => Some(true),
        Outcome::No => Some(false),
        Outcome::CannotTell | Outcome::NotChecked => None,
    }
}

/// One answer for all files: the worst.
pub(in crate::cli) fn overall(reports: &[FileReport]) -> Exit {
    let worst_first = [Exit::No, Exit::Failed, Exit::CannotTell];
    let given = |answer: &Exit| reports.iter().any(|report| report.answer() == *answer);
    worst_first.into_iter().find(given).unwrap_or(Exit::Yes)
}

pub(in crate::cli) fn object(reports: &[FileReport], overall: Exit) -> Object<'_> {
    if let [one] = reports {
        return Object::One(one);
    }
    let decisive = reports.iter().find(|report| report.answer() == overall);
    let (ok, code) = decisive.map_or((None, "not-checked"), |report| (report.ok, report.code));
    Object::Many { ok, code, files: reports }
}

pub(in crate::cli) fn text(reports: &[FileReport]) -> Printable {
    let mut text = Printable::default();
    for report in reports.iter().filter(|report| report.error.is_none()) {
        // The first line has the whole answer: what, and why not.
        let mut first = printable!("{}  {}", word(report.ok), report.file);
        if let Some(reason) = &report.reason {
            first.push(printable!(": {}", reason));
        }
        text.line(first);
        report.checks.iter().for_each(|check| write_check(&mut text, check));
        for warning in &report.warnings {
            text.line(printable!("  {:<11} {}", "warning", warning));
        }
        if !report.not_shown.is_empty() {
            text.line("not shown by this");
        }
        for line in &report.not_shown {
            text.line(printable!("  {}", line));
        }
    }
    text
}

fn write_check(text: &mut Printable, report: &CheckReport) {
    let CheckReport { check, ok, code, detail, counts } = report;
    let aside = if *counts { "" } else { ", does not count" };
    let said = match (ok, *code) {
        (Some(true), _) => Printable::of(detail),
        (_, "not-checked") => printable!("not checked: {}", detail),
        _ => printable!("{}: {} ({}{})", word(*ok), detail, code, aside),
    };
    text.line(printable!("  {:<11} {}", check, said));
}

fn word(ok: Option<bool>) -> &'static str {
    match ok {
        Some(true) => "yes",
        Some(false) => "no",
        None => "cannot tell",
    }
}
