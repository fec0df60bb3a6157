//! `capstan policy`: what a policy says, before and after it is in force.

mod cases;
mod compare;
mod sample;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;

use crate::cli::output::Out;
use crate::cli::{Answer, Stop, broken_store, files};
use crate::envelope::{Door, Resolved, SignedStatement};
use crate::policy::{Facts, Policy, RuleTrace};
use crate::service::{self, ReplayOptions, now};
use crate::wire::printable::{Printable, printable};
use crate::{profile, store};

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Say what a policy makes of a statement, rule by rule
    #[command(after_help = "Example: capstan policy explain action.cose --policy agents.toml")]
    Explain(ExplainArgs),
    /// Run the cases beside policies
    #[command(after_help = "Example: capstan policy test policy/agents.toml")]
    Test(cases::Args),
    /// Decide what is logged again under another policy; changes nothing
    #[command(after_help = "Example: capstan policy try agents.toml --data DIR --last 1000")]
    Try(TryArgs),
    /// Show which rules two policies do not share
    #[command(after_help = "Example: capstan policy diff policy.toml agents.toml")]
    Diff(compare::Args),
    /// Write a policy that admits statements like these
    #[command(after_help = "Example: capstan policy from-sample *.cose -o policy.toml")]
    FromSample(sample::Args),
    /// Show what was refused lately, and why
    #[command(after_help = "Example: capstan policy refusals --data /var/lib/capstan")]
    Refusals(DataArgs),
    /// Check a policy and make it the one of a log
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
    /// Whom the log believes [default: trust.toml of --data, then $CAPSTAN_TRUST, then
    /// ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Data directory of a log that is not running: as if it were registered there
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

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Answer> {
    match verb {
        Verb::Explain(args) => explain(args, out),
        Verb::Test(args) => cases::run(args, out),
        Verb::Try(args) => try_out(args, out),
        Verb::Diff(args) => compare::run(args, out),
        Verb::FromSample(args) => sample::run(args, out),
        Verb::Refusals(args) => refusals(args, out),
        Verb::Set(args) => set(args, out),
    }
}

/// Reads a policy that can run.
fn load(path: &Path) -> anyhow::Result<Policy> {
    Policy::parse(&files::read_text(path)?).with_context(|| format!("{}", path.display()))
}

fn explain(args: &ExplainArgs, out: &Out) -> anyhow::Result<Answer> {
    let policy = load(&args.policy)?;
    let own = args.data.as_ref().map(|data| data.join("trust.toml"));
    let trust = files::trust(args.trust.as_deref().or(own.as_deref()))?;
    let statement = SignedStatement::parse(files::read(&args.file)?)?;
    let name = |data: &PathBuf| service::name(data).map_err(|e| broken_store(e, data));
    let name = args.data.as_ref().map(name).transpose()?;
    let resolved = Resolved::default();
    let door = Door { log: name.as_deref(), ..Door::new(&trust, &resolved, now()) };
    let authentic = statement.authenticate(&door);
    let authentic = authentic.map_err(|e| Stop::no(e.code(), e.to_string()))?;
    let read = profile::read(&authentic);
    let (facts, where_to) = match &args.data {
        None => (Facts::default(), "as if nothing were logged yet"),
        Some(data) => {
            let found = service::facts(data, &authentic, &read);
            (found.map_err(|e| broken_store(e, data))?, "with what this log says before it")
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
    let rules: Vec<_> = traces.iter().map(rule_json).collect();
    out.answer(&json!({ "ok": admitted, "policy": policy.name(), "rules": rules }), text)?;
    Ok(if admitted { Answer::Yes } else { Answer::No })
}

fn rule_text(text: &mut Printable, trace: &RuleTrace) {
    let effect = if trace.refuses { "refuse" } else { "allow" };
    let held = if trace.holds() { "holds" } else { "does not hold" };
    text.line(printable!("  {} {:?} {}", effect, trace.rule, held));
    for c in &trace.conditions {
        let mark = if c.held { "+" } else { "-" };
        text.line(printable!("    {} {}: {}", mark, c.condition, c.saw));
        if !c.held {
            text.line(printable!("        wanted {}", c.wanted));
        }
    }
}

fn rule_json(trace: &RuleTrace) -> serde_json::Value {
    let condition = |c: &crate::policy::ConditionTrace| json!({ "condition": c.condition, "held": c.held, "wanted": c.wanted, "saw": c.saw });
    let conditions: Vec<_> = trace.conditions.iter().map(condition).collect();
    let effect = if trace.refuses { "refuse" } else { "allow" };
    json!({ "rule": trace.rule, "effect": effect, "held": trace.holds(), "conditions": conditions })
}

fn try_out(args: &TryArgs, out: &Out) -> anyhow::Result<Answer> {
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
    let refused = replayed.differs.len();
    let mut text = printable!(
        "{} of {} logged entries would be refused by {:?}\n",
        refused,
        replayed.decided,
        name
    );
    for one in &replayed.differs {
        text.line(printable!("  #{} {}", one.index, one.detail));
    }
    let differs: Vec<_> = replayed.differs.iter().map(super::replay::object).collect();
    let ok = refused == 0;
    out.answer(&json!({ "ok": ok, "decided": replayed.decided, "refused": differs }), text)?;
    Ok(if ok { Answer::Yes } else { Answer::No })
}

fn refusals(args: &DataArgs, out: &Out) -> anyhow::Result<Answer> {
    let refused = service::refusals(&args.data);
    let refused = refused.with_context(|| format!("{}", args.data.display()))?;
    let mut text = Printable::default();
    for one in &refused {
        let why = Printable::long(&one.text);
        let said =
            if one.authentic { "" } else { "  (not authenticated: anybody may have sent it)" };
        text.line(printable!("{}  {}  {}{}\n  {}", one.time, one.issuer, one.subject, said, why));
    }
    if refused.is_empty() {
        text.line("nothing was refused");
    }
    out.answer(&json!({ "ok": true, "refusals": refused }), text)?;
    Ok(Answer::Yes)
}

/// The file is what `serve` and SIGHUP read; the change is logged then.
fn set(args: &SetArgs, out: &Out) -> anyhow::Result<Answer> {
    let policy = load(&args.policy)?;
    let running = store::is_in_use(&args.data);
    let running = running.map_err(|e| broken_store(e.into(), &args.data))?;
    files::write_file(&args.data.join("policy.toml"), policy.text().as_bytes())?;
    let next = if running {
        "a process has this log open: send it SIGHUP, and look at /health"
    } else {
        "it is logged, and in force, at the next start"
    };
    let text = printable!("policy {:?} is written; {}", policy.name(), next);
    let digest = policy.digest().to_string();
    out.answer(
        &json!({ "ok": true, "policy": policy.name(), "digest": digest, "running": running }),
        text,
    )?;
    Ok(Answer::Yes)
}
