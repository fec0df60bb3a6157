//! `capstan pca`: whether a plan certificate may be executed, and how well
//! that is known here.

mod conformance;
mod memory;

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::cli::output::Out;
use crate::cli::{Answer, Stop, files};
use crate::envelope::SignedStatement;
use crate::profile::pca::{self, Checked, Constraints, Decision, Demand, Evaluation, Level};
use crate::profile::pca::{Observations, Outcome, PcaCertificateRecord, Request, Source, Verdict};
use crate::wire::printable::{Printable, printable};
use memory::NonceFile;

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Say whether a plan certificate may be executed now
    #[command(
        after_help = "Example: capstan pca check plan.json --constraints limits.json --observations now.json"
    )]
    Check(CheckArgs),
    /// Run T1-T13 and say what they show for each profile
    #[command(after_help = "Example: capstan pca conformance --vectors vectors-v1")]
    Conformance(conformance::Args),
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
    /// Conformance profile: what it needs to know and nobody says is FALLBACK
    #[arg(long, value_enum, default_value_t = Profile::Bronze)]
    profile: Profile,
    /// Judge as the released vectors are judged: what nobody says does not count. Never execute by this
    #[arg(long, conflicts_with = "profile")]
    as_vectors: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Profile {
    Bronze,
    Silver,
    Gold,
}

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Answer> {
    match verb {
        Verb::Check(args) => check(args, out),
        Verb::Conformance(args) => conformance::run(args, out),
    }
}

fn check(args: &CheckArgs, out: &Out) -> anyhow::Result<Answer> {
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
    out.answer(&object(&certificate, &made), lines(&certificate, &made))?;
    let executes = made.verdict().decision == Decision::Execute;
    Ok(if executes { Answer::Yes } else { Answer::No })
}

/// A statement is only unwrapped: what its signature is worth, `verify` says.
fn certificate_bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = files::read(path)?;
    let is_text = bytes.first().is_none_or(|byte| byte.is_ascii());
    if is_text {
        return Ok(bytes);
    }
    let statement = SignedStatement::parse_any_size(bytes)?;
    let payload = statement.payload().map(<[u8]>::to_vec);
    payload
        .ok_or_else(|| Stop::failed("detached", "the statement does not hold its payload").into())
}

fn object(certificate: &PcaCertificateRecord, made: &Evaluation) -> Json {
    let verdict = |verdict: Verdict| json!({ "decision": verdict.decision.name(), "reason_code": verdict.reason_code.name() });
    let checks: Vec<Json> = made
        .checks
        .iter()
        .map(|checked| {
            json!({
                "check": checked.check.name(),
                "outcome": outcome(checked),
                "source": source(checked),
                "reason_code": checked.check.reason().name(),
                "detail": checked.detail,
            })
        })
        .collect();
    let levels: serde_json::Map<String, Json> = Level::ALL
        .into_iter()
        .map(|level| (level.name().to_owned(), verdict(made.verdict_by(Demand::Level(level)))))
        .collect();
    let reached = made.verdict();
    json!({
        "ok": reached.decision == Decision::Execute,
        "decision": reached.decision.name(),
        "reason_code": reached.reason_code.name(),
        "judged_as": made.demand.name(),
        "pc_digest": certificate.pc_digest().map(|digest| digest.hex()),
        "suite": made.suite.map(|suite| suite.name()),
        "plan_verified": made.outcome(pca::Check::Plan) == Outcome::Passed,
        "nonce_burned": made.is_burned,
        "checks": checks,
        "profiles": levels,
    })
}

fn lines(certificate: &PcaCertificateRecord, made: &Evaluation) -> Printable {
    let told =
        |verdict: Verdict| printable!("{} {}", verdict.decision.name(), verdict.reason_code.name());
    let mut text = printable!("{}{}\n", told(made.verdict()), measure(made));
    let digest = certificate.pc_digest().map_or_else(|| "none".to_owned(), ToString::to_string);
    text.line(printable!("  certificate {}", digest));
    for checked in &made.checks {
        let (name, outcome) = (checked.check.name(), outcome(checked));
        let by = if checked.source == Source::Asserted { " (asserted)" } else { "" };
        text.line(printable!("  {:<8} {:<20} {}{}", outcome, name, checked.detail, by));
    }
    for level in Level::ALL {
        let asked = if made.demand == Demand::Level(level) { "  asked for" } else { "" };
        let verdict = told(made.verdict_by(Demand::Level(level)));
        text.line(printable!("  {:<8} {}{}", level.name(), verdict, asked));
    }
    let nonce = if made.is_burned { "now used" } else { "not used by this" };
    text.line(printable!("  nonce    {}", nonce));
    text
}

/// What the first line adds to the verdict: by which measure, and which check
/// gave the reason.
fn measure(made: &Evaluation) -> String {
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
