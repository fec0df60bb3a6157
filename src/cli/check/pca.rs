//! `capstan pca`: whether a plan certificate may be executed, and what that
//! rests on.

mod memory;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::output::Out;
use crate::cli::{CliError, Exit, files};
use crate::envelope::SignedStatement;
use crate::profile::pca::{self, Checked, Constraints, Decision, Demand, Evaluation, Level};
use crate::profile::pca::{Observations, Outcome, PcaCertificateRecord, Request, Source, Verdict};
use crate::wire::printable::{Printable, printable};
use memory::NonceFile;

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Decide whether a plan certificate may be executed now
    #[command(
        after_help = "Example: capstan pca check plan.json --constraints limits.json --observations now.json"
    )]
    Check(CheckArgs),
}

#[derive(clap::Args)]
pub(in crate::cli) struct CheckArgs {
    /// The certificate: JSON, or a statement that holds one; `-` reads standard input
    #[arg(value_name = "CERT")]
    certificate: PathBuf,
    /// The constraints in force; without them, observations name version and digest
    #[arg(long, value_name = "FILE")]
    constraints: Option<PathBuf>,
    /// What was observed: expected_pc_digest, now, and signals
    #[arg(long, value_name = "FILE")]
    observations: PathBuf,
    /// Used nonces, kept from one run to the next
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
    /// Conformance profile; a missing input that it requires gives FALLBACK
    #[arg(long, value_enum, default_value_t = Profile::Bronze)]
    profile: Profile,
    /// Ignore missing inputs, as the released vectors require. Never execute on this result
    #[arg(long, conflicts_with = "profile")]
    as_vectors: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Profile {
    Bronze,
    Silver,
    Gold,
}

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Exit> {
    let Verb::Check(args) = verb;
    check(args, out)
}

fn check(args: &CheckArgs, out: &Out) -> anyhow::Result<Exit> {
    let certificate = PcaCertificateRecord::read(&certificate_bytes(&args.certificate)?);
    let constraints = args.constraints.as_deref().map(files::read).transpose()?;
    let constraints = constraints.map(|bytes| Constraints::read(&bytes));
    let observations = Observations::read(&files::read(&args.observations)?);
    let demand = match args.profile {
        _ if args.as_vectors => Demand::ReleasedVectors,
        Profile::Bronze => Demand::Level(Level::Bronze),
        Profile::Silver => Demand::Level(Level::Silver),
        Profile::Gold => Demand::Level(Level::Gold),
    };
    let request = Request {
        certificate: &certificate,
        constraints: constraints.as_ref(),
        observations: &observations,
        demand,
    };
    let memory = args.memory.as_deref().map(NonceFile::open).transpose()?;
    let made = pca::check(&request, memory.as_ref())?;
    out.answer(&PcaReport::new(&certificate, &made), lines(&certificate, &made))?;
    let executes = made.verdict().decision == Decision::Execute;
    Ok(if executes { Exit::Yes } else { Exit::No })
}

/// A statement is unwrapped without checking its signature; `verify` does that.
fn certificate_bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = files::read(path)?;
    let is_text = bytes.first().is_none_or(|byte| byte.is_ascii());
    if is_text {
        return Ok(bytes);
    }
    let statement = SignedStatement::parse_any_size(bytes)?;
    let payload = statement.payload().map(<[u8]>::to_vec);
    payload.ok_or_else(|| {
        CliError::failed("detached", "the statement does not hold its payload").into()
    })
}

#[derive(Serialize)]
struct PcaReport<'a> {
    ok: bool,
    #[serde(flatten)]
    verdict: VerdictView,
    judged_as: &'static str,
    pc_digest: Option<String>,
    suite: Option<&'static str>,
    plan_verified: bool,
    nonce_burned: bool,
    checks: Vec<CheckView<'a>>,
    profiles: Profiles,
}

#[derive(Serialize)]
struct VerdictView {
    decision: &'static str,
    reason_code: &'static str,
}

#[derive(Serialize)]
struct CheckView<'a> {
    check: &'static str,
    outcome: &'static str,
    source: &'static str,
    reason_code: &'static str,
    detail: &'a str,
}

/// The verdict at each level, whichever was asked for.
#[derive(Serialize)]
struct Profiles {
    bronze: VerdictView,
    silver: VerdictView,
    gold: VerdictView,
}

impl From<Verdict> for VerdictView {
    fn from(verdict: Verdict) -> Self {
        Self { decision: verdict.decision.name(), reason_code: verdict.reason_code.name() }
    }
}

impl<'a> PcaReport<'a> {
    fn new(certificate: &PcaCertificateRecord, made: &'a Evaluation) -> Self {
        let check = |checked: &'a Checked| CheckView {
            check: checked.check.name(),
            outcome: outcome(checked),
            source: source(checked),
            reason_code: checked.check.reason().name(),
            detail: &checked.detail,
        };
        let at = |level| VerdictView::from(made.verdict_by(Demand::Level(level)));
        Self {
            ok: made.verdict().decision == Decision::Execute,
            verdict: made.verdict().into(),
            judged_as: made.demand.name(),
            pc_digest: certificate.pc_digest().map(|digest| digest.hex()),
            suite: made.suite.map(|suite| suite.name()),
            plan_verified: made.outcome(pca::Check::Plan) == Outcome::Passed,
            nonce_burned: made.is_burned,
            checks: made.checks.iter().map(check).collect(),
            profiles: Profiles {
                bronze: at(Level::Bronze),
                silver: at(Level::Silver),
                gold: at(Level::Gold),
            },
        }
    }
}

fn lines(certificate: &PcaCertificateRecord, made: &Evaluation) -> Printable {
    let verdict_text =
        |verdict: Verdict| printable!("{} {}", verdict.decision.name(), verdict.reason_code.name());
    let mut text = printable!("{}{}\n", verdict_text(made.verdict()), reason(made));
    let digest = certificate.pc_digest().map_or_else(|| "none".to_owned(), ToString::to_string);
    text.line(printable!("  certificate {}", digest));
    for checked in &made.checks {
        let (name, outcome) = (checked.check.name(), outcome(checked));
        let by = if checked.source == Source::Asserted { " (asserted)" } else { "" };
        text.line(printable!("  {:<8} {:<20} {}{}", outcome, name, checked.detail, by));
    }
    for level in Level::ALL {
        let asked = if made.demand == Demand::Level(level) { "  requested" } else { "" };
        let verdict = verdict_text(made.verdict_by(Demand::Level(level)));
        text.line(printable!("  {:<8} {}{}", level.name(), verdict, asked));
    }
    let nonce = if made.is_burned { "now used" } else { "not used" };
    text.line(printable!("  nonce    {}", nonce));
    text
}

/// The rest of the first line: which level was asked for, and which check
/// decided.
fn reason(made: &Evaluation) -> String {
    let decided = made.first_failure().map(|checked| {
        format!(": {} {}, {}", checked.check.name(), outcome(checked), checked.detail)
    });
    let unknown = made.checks.iter().filter(|c| c.outcome == Outcome::Unknown).count();
    match (made.demand, decided) {
        (demand, Some(decided)) => format!(" ({}){decided}", demand.name()),
        (Demand::ReleasedVectors, None) => {
            format!(" (released-vectors): {unknown} checks are unknown and were not counted")
        }
        (demand, None) => format!(" ({})", demand.name()),
    }
}

fn outcome(checked: &Checked) -> &'static str {
    match checked.outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::Unknown => "unknown",
    }
}

fn source(checked: &Checked) -> &'static str {
    match checked.source {
        Source::Computed => "computed",
        Source::Asserted => "asserted",
        Source::Absent => "absent",
    }
}
