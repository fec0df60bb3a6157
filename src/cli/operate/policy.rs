//! `capstan policy`: explains, tests, compares and sets registration policies.

mod sample;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use super::replay::DifferenceView;
use crate::cli::output::Out;
use crate::cli::{CliError, Exit, broken_store, files};
use crate::envelope::{AuthContext, Resolved, SignedStatement};
use crate::policy::{Cases, Facts, Policy, Rule, RuleTrace};
use crate::service::{self, ReplayOptions, now};
use crate::wire::printable::{Printable, printable};
use crate::{profile, store};

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Show how a policy decides on a statement, rule by rule
    #[command(after_help = "Example: capstan policy explain action.cose --policy agents.toml")]
    Explain(ExplainArgs),
    /// Run the test cases of policies
    #[command(after_help = "Example: capstan policy test policy/agents.toml")]
    Test(TestArgs),
    /// Decide the logged statements again under another policy; changes nothing
    #[command(after_help = "Example: capstan policy try agents.toml --data DIR --last 1000")]
    Try(TryArgs),
    /// Show the rules in which two policies differ
    #[command(after_help = "Example: capstan policy diff policy.toml agents.toml")]
    Diff(DiffArgs),
    /// Write a policy that admits statements like these
    #[command(after_help = "Example: capstan policy from-sample *.cose -o policy.toml")]
    FromSample(sample::Args),
    /// Show recent refusals and their reasons
    #[command(after_help = "Example: capstan policy refusals --data /var/lib/capstan")]
    Refusals(DataArgs),
    /// Check a policy and put it into force in a log
    #[command(after_help = "Example: capstan policy set agents.toml --data /var/lib/capstan")]
    Set(SetArgs),
}

#[derive(clap::Args)]
pub(in crate::cli) struct ExplainArgs {
    /// Statement; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The policy
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Trust file [default: trust.toml of --data, then $CAPSTAN_TRUST, then
    /// ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Data directory of a log that is not running: decide as if registered there
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(in crate::cli) struct TryArgs {
    /// The policy
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    /// Data directory of a log that is not running
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Report on this many entries at the end
    #[arg(long, value_name = "N")]
    last: Option<u64>,
}

#[derive(clap::Args)]
pub(in crate::cli) struct DataArgs {
    /// Data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

#[derive(clap::Args)]
pub(in crate::cli) struct SetArgs {
    /// The policy
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    /// Data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Exit> {
    match verb {
        Verb::Explain(args) => explain(args, out),
        Verb::Test(args) => test(args, out),
        Verb::Try(args) => try_out(args, out),
        Verb::Diff(args) => diff(args, out),
        Verb::FromSample(args) => sample::run(args, out),
        Verb::Refusals(args) => refusals(args, out),
        Verb::Set(args) => set(args, out),
    }
}

/// Reads a policy that can run.
fn load(path: &Path) -> anyhow::Result<Policy> {
    Policy::parse(&files::read_text(path)?).with_context(|| format!("{}", path.display()))
}

#[derive(Serialize)]
struct ExplainReport<'a> {
    ok: bool,
    policy: &'a str,
    rules: &'a [RuleTrace],
}

fn explain(args: &ExplainArgs, out: &Out) -> anyhow::Result<Exit> {
    let policy = load(&args.policy)?;
    let own = args.data.as_ref().map(|data| data.join("trust.toml"));
    let trust = files::trust(args.trust.as_deref().or(own.as_deref()))?;
    let statement = SignedStatement::parse(files::read(&args.file)?)?;
    let name = |data: &PathBuf| service::name(data).map_err(|e| broken_store(e, data));
    let name = args.data.as_ref().map(name).transpose()?;
    let resolved = Resolved::default();
    let context =
        AuthContext { log: name.as_deref(), ..AuthContext::new(&trust, &resolved, now()) };
    let authentic = statement.authenticate(&context);
    let authentic = authentic.map_err(|e| CliError::no(e.code(), e.to_string()))?;
    let read = profile::read(&authentic);
    let (facts, where_to) = match &args.data {
        None => (Facts::default(), "as in an empty log"),
        Some(data) => {
            let found = service::facts(data, &authentic, &read);
            (found.map_err(|e| broken_store(e, data))?, "with the entries of this log")
        }
    };
    let traces = policy.explain(&authentic, &read, &facts);
    let admitted = policy.admits(&authentic, &read, &facts);
    let word = if admitted { "yes" } else { "no" };
    let mut text = printable!("{}  policy {:?}, {}\n", word, policy.name(), where_to);
    traces.iter().for_each(|trace| rule_text(&mut text, trace));
    for finding in &read.findings {
        let (severity, code) = (finding.severity.name(), finding.code);
        let (at, detail) = (&finding.at, &finding.detail);
        text.line(printable!("  {} {} at {}: {}", severity, code, at, detail));
    }
    out.answer(&ExplainReport { ok: admitted, policy: policy.name(), rules: &traces }, text)?;
    Ok(if admitted { Exit::Yes } else { Exit::No })
}

fn rule_text(text: &mut Printable, trace: &RuleTrace) {
    let held = if trace.holds() { "holds" } else { "does not hold" };
    text.line(printable!("  {} {:?} {}", trace.effect(), trace.rule, held));
    for c in &trace.conditions {
        let mark = if c.held { "+" } else { "-" };
        text.line(printable!("    {} {}: {}", mark, c.condition, c.saw));
        if !c.held {
            text.line(printable!("        wanted {}", c.wanted));
        }
    }
}

#[derive(Serialize)]
struct TryReport<'a> {
    ok: bool,
    decided: u64,
    refused: Vec<DifferenceView<'a>>,
}

fn try_out(args: &TryArgs, out: &Out) -> anyhow::Result<Exit> {
    let policy = load(&args.policy)?;
    let name = policy.name().to_owned();
    let options = ReplayOptions { policy: Some(policy), last: args.last, first_only: false };
    let bar = out.progress(u64::MAX, "deciding");
    let replayed = service::replay(&args.data, options, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let replayed = replayed.map_err(|e| broken_store(e, &args.data))?;
    let refused = replayed.changed.len();
    let mut text = printable!(
        "{} of {} logged entries would be refused by {:?}\n",
        refused,
        replayed.decided,
        name
    );
    for one in &replayed.changed {
        text.line(printable!("  #{} {}", one.index, one.detail));
    }
    let ok = refused == 0;
    let refused = replayed.changed.iter().map(DifferenceView::from).collect();
    out.answer(&TryReport { ok, decided: replayed.decided, refused }, text)?;
    Ok(if ok { Exit::Yes } else { Exit::No })
}

#[derive(Serialize)]
struct RefusalsReport {
    ok: bool,
    refusals: Vec<service::Refused>,
}

fn refusals(args: &DataArgs, out: &Out) -> anyhow::Result<Exit> {
    let refusals = service::refusals(&args.data);
    let refusals = refusals.with_context(|| format!("{}", args.data.display()))?;
    let mut text = Printable::default();
    for one in &refusals {
        let why = Printable::long(&one.text);
        let note =
            if one.authentic { "" } else { "  (not authenticated: anybody may have sent it)" };
        text.line(printable!("{}  {}  {}{}\n  {}", one.time, one.issuer, one.subject, note, why));
    }
    if refusals.is_empty() {
        text.line("nothing was refused");
    }
    out.answer(&RefusalsReport { ok: true, refusals }, text)?;
    Ok(Exit::Yes)
}

#[derive(Serialize)]
struct SetReport<'a> {
    ok: bool,
    policy: &'a str,
    digest: String,
    running: bool,
}

/// Only writes the file. The log records the change when it next starts or
/// gets SIGHUP.
fn set(args: &SetArgs, out: &Out) -> anyhow::Result<Exit> {
    let policy = load(&args.policy)?;
    let running = store::is_in_use(&args.data);
    let running = running.map_err(|e| broken_store(e.into(), &args.data))?;
    files::write_file(&args.data.join("policy.toml"), policy.text().as_bytes())?;
    let next = if running {
        "a process has this log open: send it SIGHUP, then check /health"
    } else {
        "it takes effect at the next start"
    };
    let text = printable!("wrote policy {:?}; {}", policy.name(), next);
    let digest = policy.digest().to_string();
    out.answer(&SetReport { ok: true, policy: policy.name(), digest, running }, text)?;
    Ok(Exit::Yes)
}

#[derive(clap::Args)]
pub(in crate::cli) struct TestArgs {
    /// Policies; the cases of NAME.toml are in NAME.cases.toml
    #[arg(value_name = "POLICY", default_value = "policy.toml")]
    policies: Vec<PathBuf>,
}

#[derive(Serialize)]
struct TestReport {
    ok: bool,
    cases: Vec<CaseView>,
}

#[derive(Serialize)]
struct CaseView {
    policy: String,
    case: String,
    ok: bool,
    admitted: bool,
    detail: String,
}

/// Runs the test cases in the file beside each policy.
fn test(args: &TestArgs, out: &Out) -> anyhow::Result<Exit> {
    let (mut text, mut results) = (Printable::default(), Vec::new());
    for path in args.policies.iter().filter(|path| !is_cases(path)) {
        let policy = load(path)?;
        let beside = path.with_extension("cases.toml");
        let cases = Cases::parse(&files::read_text(&beside)?);
        let cases =
            cases.map_err(|e| CliError::failed("cases", format!("{}: {e}", beside.display())))?;
        for outcome in cases.run(&policy) {
            let word = if outcome.ok { "ok  " } else { "FAIL" };
            text.line(printable!("{}  {}: {}", word, policy.name(), outcome.name));
            if !outcome.ok {
                text.line(printable!("      {}", outcome.detail));
            }
            results.push(CaseView {
                policy: policy.name().to_owned(),
                case: outcome.name,
                ok: outcome.ok,
                admitted: outcome.admitted,
                detail: outcome.detail,
            });
        }
    }
    let failed = results.iter().filter(|result| !result.ok).count();
    text.line(printable!("{} cases, {} failed", results.len(), failed));
    let ok = failed == 0;
    out.answer(&TestReport { ok, cases: results }, text)?;
    Ok(if ok { Exit::Yes } else { Exit::No })
}

/// Case files are skipped, so that `policy/*.toml` can be given.
fn is_cases(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".cases.toml")
}

#[derive(clap::Args)]
pub(in crate::cli) struct DiffArgs {
    /// First policy
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The other
    #[arg(value_name = "B")]
    b: PathBuf,
}

/// Every rule as a line; equal rules give equal lines.
fn rule_lines(policy: &Policy) -> Vec<String> {
    let line = |effect: &str, rule: &Rule| {
        let wanted: Vec<String> = rule.wanted().collect();
        format!("{effect} {:?} if {}", rule.name(), wanted.join("; "))
    };
    let (refuse, allow) = policy.rules();
    let refuse = refuse.iter().map(|rule| line("refuse", rule));
    let mut lines: Vec<String> = refuse.chain(allow.iter().map(|r| line("allow", r))).collect();
    lines.extend(policy.rate().map(|rate| format!("rate {} per minute", rate.per_minute)));
    lines
}

#[derive(Serialize)]
struct DiffReport<'a> {
    ok: bool,
    removed: Vec<&'a String>,
    added: Vec<&'a String>,
}

/// The rules that only one of two policies has.
fn diff(args: &DiffArgs, out: &Out) -> anyhow::Result<Exit> {
    let (a, b) = (rule_lines(&load(&args.a)?), rule_lines(&load(&args.b)?));
    let removed: Vec<&String> = a.iter().filter(|line| !b.contains(line)).collect();
    let added: Vec<&String> = b.iter().filter(|line| !a.contains(line)).collect();
    let mut text = Printable::default();
    for (mark, lines) in [("-", &removed), ("+", &added)] {
        for line in lines {
            text.line(printable!("{} {}", mark, line));
        }
    }
    let ok = removed.is_empty() && added.is_empty();
    if ok {
        text.line("the same rules");
    }
    out.answer(&DiffReport { ok, removed, added }, text)?;
    Ok(if ok { Exit::Yes } else { Exit::No })
}
