//! `capstan pacr`: causal records in files, checked and exported.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::output::Out;
use crate::cli::{CliError, Exit, files};
use crate::envelope::SignedStatement;
use crate::profile::pacr::{Encoding, PacrRecord, SixTuple, Verdict, prov};
use crate::profile::{Finding, read_payload};
use crate::wire::printable::{Printable, printable};

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// List everything wrong with a record
    Check(CheckArgs),
    /// Show which Estimates of two records overlap
    Compare(CompareArgs),
    /// Export records as W3C PROV-JSON
    Prov(ProvArgs),
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan pacr check event.pacr.json")]
pub(in crate::cli) struct CheckArgs {
    /// A record in JSON or CBOR, or a statement; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The payload behind a digest, as `seal --hash-payload` saved it
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Also accept JSON with ULIDs or numbers for ids, as some producers write it
    #[arg(long)]
    import: bool,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan pacr prov *.pacr.json > run.prov.json")]
pub(in crate::cli) struct ProvArgs {
    /// Records in JSON or CBOR, or statements
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Also accept JSON with ULIDs or numbers for ids, as some producers write it
    #[arg(long)]
    import: bool,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan pacr compare measured.pacr.json predicted.pacr.json")]
pub(in crate::cli) struct CompareArgs {
    /// A record in JSON or CBOR, or a statement
    #[arg(value_name = "FILE")]
    one: PathBuf,
    /// Another one
    #[arg(value_name = "OTHER")]
    other: PathBuf,
    /// Also accept JSON with ULIDs or numbers for ids, as some producers write it
    #[arg(long)]
    import: bool,
}

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Exit> {
    match verb {
        Verb::Check(args) => check(args, out),
        Verb::Compare(args) => compare(args, out),
        Verb::Prov(args) => export(args, out),
    }
}

#[derive(Serialize)]
struct CheckReport<'a> {
    ok: bool,
    verdict: &'static str,
    record_id: Option<String>,
    intervention: &'static str,
    sim_real_corr: Option<f64>,
    payload: &'static str,
    disclosed: Option<bool>,
    findings: Vec<RuleFinding<'a>>,
}

#[derive(Serialize)]
struct RuleFinding<'a> {
    code: &'static str,
    severity: &'static str,
    rule: Option<u8>,
    at: &'a str,
    detail: &'a str,
}

impl<'a> From<&'a Finding> for RuleFinding<'a> {
    fn from(finding: &'a Finding) -> Self {
        let Finding { code, severity, check, at, detail, .. } = finding;
        Self { code, severity: severity.name(), rule: *check, at, detail }
    }
}

/// Not ok if a rule refuses the record or the disclosure does not match. Rules
/// 6 and 7 only flag, which shows in the verdict.
fn check(args: &CheckArgs, out: &Out) -> anyhow::Result<Exit> {
    let (record, findings) = read(&args.file, args.import)?;
    let verdict = record.verdict();
    let disclosed = match &args.payload {
        Some(path) => Some(disclosed(&record, path)?),
        None => None,
    };
    let ok = verdict != Verdict::Refused && disclosed != Some(false);
    let report = CheckReport {
        ok,
        verdict: verdict.name(),
        record_id: record.id().map(|id| id.to_string()),
        intervention: record.intervention(),
        sim_real_corr: record.sim_real_corr(),
        payload: record.payload_form().name(),
        disclosed,
        findings: findings.iter().map(RuleFinding::from).collect(),
    };
    let mut text = lines(&record, &findings);
    if let (Some(matches), Some(path)) = (disclosed, &args.payload) {
        let word = if matches { "matches" } else { "does NOT match" };
        text.push(printable!("\n  {} {} the digest in the payload", path.display(), word));
    }
    out.answer(&report, text)?;
    Ok(if ok { Exit::Yes } else { Exit::No })
}

/// Whether a file matches the digest in the payload.
fn disclosed(record: &PacrRecord, path: &Path) -> anyhow::Result<bool> {
    let form = record.payload_form().name();
    let what = format!("the payload is {form}, not hashed: there is nothing to disclose");
    let error = || CliError::failed("pacr-payload-not-hashed", what);
    Ok(record.discloses(&files::read(path)?).ok_or_else(error)?)
}

fn lines(record: &PacrRecord, findings: &[Finding]) -> Printable {
    let name =
        record.id().map_or_else(|| "a record without an identity".to_owned(), |i| i.to_string());
    let mut text = printable!("{}: {}, {}", record.verdict().name(), name, kind(record));
    for finding in findings {
        let rule = finding.check.map(|rule| format!(" (rule {rule})")).unwrap_or_default();
        let place = if finding.at.is_empty() { "the record" } else { &finding.at };
        let (severity, code) = (finding.severity.name(), finding.code);
        text.push(printable!("\n  {} {}{} at {}: {}", severity, code, rule, place, finding.detail));
    }
    text
}

fn kind(record: &PacrRecord) -> String {
    match (record.intervention(), record.sim_real_corr()) {
        ("counterfactual", Some(score)) => {
            format!("COUNTERFACTUAL (simulated, never happened; correlation {score})")
        }
        ("counterfactual", None) => "COUNTERFACTUAL (simulated, never happened)".to_owned(),
        (kind, _) => kind.to_owned(),
    }
}

#[derive(Serialize)]
struct CompareReport {
    ok: bool,
    records: [String; 2],
    estimates: serde_json::Value,
}

/// Ok if all Estimates overlap: then no measurement distinguishes the records.
fn compare(args: &CompareArgs, out: &Out) -> anyhow::Result<Exit> {
    let (one, other) = (tuple(&args.one, args.import)?, tuple(&args.other, args.import)?);
    let compared = one.estimates().compare(other.estimates());
    let all_overlap = compared.all_overlap();
    let names = [one.id.to_string(), other.id.to_string()];
    let [first, second] = &names;
    let mut text = printable!("{} against {}", first, second);
    for (name, how) in compared.iter() {
        text.push(printable!("\n  {:<24} {}", name, how.name()));
    }
    let report = CompareReport { ok: all_overlap, records: names, estimates: compared.to_json() };
    out.answer(&report, text)?;
    Ok(if all_overlap { Exit::Yes } else { Exit::No })
}

/// A complete record, or what is wrong with it.
fn tuple(path: &Path, import: bool) -> anyhow::Result<SixTuple> {
    let (record, findings) = read(path, import)?;
    record.tuple().cloned().ok_or_else(|| {
        let why = format!("{} is not a complete record", path.display());
        CliError::no("pacr-not-whole", why).details(lines(&record, &findings)).into()
    })
}

fn export(args: &ProvArgs, out: &Out) -> anyhow::Result<Exit> {
    let mut tuples: Vec<SixTuple> = Vec::new();
    for path in &args.files {
        tuples.push(tuple(path, args.import)?);
    }
    let document = prov(&tuples.iter().collect::<Vec<_>>());
    out.document(&document)?;
    Ok(Exit::Yes)
}

/// A record by itself or in a statement: JSON starts with a brace, a
/// statement with its tag.
fn read(path: &Path, import: bool) -> anyhow::Result<(PacrRecord, Vec<Finding>)> {
    let bytes = files::read(path)?;
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') if import => Ok(PacrRecord::import(&bytes)),
        Some(b'{') => Ok(PacrRecord::read(Encoding::Json, &bytes)),
        Some(0xd2) => in_statement(bytes, path),
        _ => Ok(PacrRecord::read(Encoding::Cbor, &bytes)),
    }
}

fn in_statement(bytes: Vec<u8>, path: &Path) -> anyhow::Result<(PacrRecord, Vec<Finding>)> {
    let statement = SignedStatement::parse_any_size(bytes)?;
    let read = statement.payload().map(|payload| read_payload(statement.header(), payload));
    let record = read.and_then(|read| read.into_record::<PacrRecord>());
    record.map(|(record, findings)| (*record, findings)).ok_or_else(|| {
        let what = format!("{} holds no causal record", path.display());
        CliError::failed("pacr-not-a-record", what).into()
    })
}
