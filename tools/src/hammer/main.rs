//! `capstan-hammer`: a load generator that checks what the log answers.
//!
//! In: the address of a log. Out: throughput and latency, and whether the log
//! kept its promises. The first broken one ends the run and saves the evidence.

mod acknowledged;
mod batch;
mod broken;
mod counts;
mod finish;
mod heads;
mod latency;
mod mix;
mod plan;
mod reader;
mod records;
mod run;
mod signers;
mod statements;
#[cfg(test)]
mod tests;
mod tree;
mod writer;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan::cli::client::target::Ca;
use capstan::cli::output::{Live, Out, OutputArgs};
use capstan::cli::{self, CliError, Exit, files};
use capstan::wire::printable::{Printable, printable};
use clap::Parser;
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use broken::{Broken, HeadView, RunFacts};
use counts::Counted;
use finish::Checked;
use heads::SeenHead;
use plan::{Args, Plan, nanos};
use records::Name;
use run::Run;
use signers::Signer;
use statements::Generator;
use writer::Source;

/// Statements are allocated by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = "Example: capstan-hammer --url http://127.0.0.1:8787 --dev --seconds 5\n\n\
    The first broken promise ends the run with exit code 1, and its evidence is saved.\n\
    Exit codes: 0 yes, 1 no, 2 could not answer, 3 cannot tell.";

/// Load a log, and check every answer it gives
#[derive(Parser)]
#[command(name = "capstan-hammer", version, after_help = HELP, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    args: Args,
    #[command(flatten)]
    output: OutputArgs,
}

fn main() -> ExitCode {
    ExitCode::from(cli::run_program(
        "capstan-hammer",
        std::env::args_os(),
        |cli: &Cli| cli.output,
        |cli, out| cli::on_network(run(&cli.args, out)),
    ))
}

/// Interval at which the live display is updated.
const LIVE: Duration = Duration::from_millis(250);

/// Only the trust file was written.
#[derive(Serialize)]
struct TrustWritten {
    ok: bool,
    code: &'static str,
}

/// A run in which every promise was kept.
#[derive(Serialize)]
struct Kept {
    ok: bool,
    code: &'static str,
    url: String,
    seed: u64,
    seconds: f64,
    statements: Counted,
    heads: u64,
    checked: Checked,
}

/// A run that ended at a broken promise.
#[derive(Serialize)]
struct NotKept {
    ok: bool,
    code: &'static str,
    url: String,
    seed: u64,
    seconds: f64,
    promise: &'static str,
    error: String,
    evidence: Vec<PathBuf>,
    statements: Counted,
}

async fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    args.stands_alone()?;
    let signers = signers::signers(&args.key_kinds()?, args.key_dir.as_deref())?;
    if let Some(path) = &args.trust_out {
        files::write_file(path, signers::trust(&signers).as_bytes())?;
        out.note(printable!("wrote {}: the log must have it as its trust file", path.display()));
    }
    let Some(url) = &args.url else {
        out.answer(&TrustWritten { ok: true, code: "ok" }, "")?;
        return Ok(Exit::Yes);
    };
    let client = Ca::default().client(url, args.token.as_deref())?;
    plan::own(client.base(), args.i_own_this_server).await?;
    let plan = args.plan();
    let sources = sources(&plan, Arc::new(signers))?;
    let run = Arc::new(Run::start(client, plan).await?);
    let view = out.live();
    let mut interrupts = signal(SignalKind::interrupt())?;
    let loaded = load(&run, sources, args.readers, &view, &mut interrupts).await;
    let seconds = run.started.elapsed();
    let checked = match loaded {
        Ok(()) => check(&run, &view, &mut interrupts).await,
        Err(error) => Err(error),
    };
    view.finish();
    match checked {
        Ok(checked) => kept(&run, seconds, checked, out),
        Err(error) => match error.downcast::<Broken>() {
            Ok(broken) => not_kept(&run, seconds, &broken, &args.save, out),
            Err(other) => Err(other),
        },
    }
}

/// One source of statements for each writer.
fn sources(plan: &Plan, signers: Arc<Vec<Signer>>) -> anyhow::Result<Vec<Source>> {
    let salt = nanos();
    let made = (0..plan.in_flight).map(|worker| {
        let name = Name { salt, worker, number: 0 };
        let generator = Generator::new(signers.clone(), plan.mix.clone(), plan.seed, name);
        let mut source = Source::new(generator, plan, worker);
        if let Some(requests) = plan.requests_of(worker) {
            source.sign_ahead(requests, plan.batch.max(1))?;
        }
        Ok(source)
    });
    made.collect()
}

/// Runs writers and readers until the run is over or one of them fails.
async fn load(
    run: &Arc<Run>,
    sources: Vec<Source>,
    readers: u64,
    view: &Live,
    interrupts: &mut Signal,
) -> anyhow::Result<()> {
    let mut workers = JoinSet::new();
    for source in sources {
        workers.spawn(writer::write(run.clone(), source));
    }
    for reader in 0..readers {
        workers.spawn(reader::read(run.clone(), reader));
    }
    let mut ticks = tokio::time::interval(LIVE);
    let result = loop {
        tokio::select! {
            done = workers.join_next() => match done {
                None => break Ok(()),
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => break Err(error),
                Some(Err(error)) => break Err(error.into()),
            },
            _ = ticks.tick() => {
                let (part, words) = run.progress();
                view.set_position(part);
                show(run, run.started.elapsed(), view, words);
            }
            Some(()) = interrupts.recv() => if !run.stop() { break Err(interrupted()) },
        }
    };
    workers.shutdown().await;
    result
}

/// Shows the report so far.
fn show(run: &Run, took: Duration, view: &Live, words: String) {
    view.show(Printable::of(words), run.counts.report(took).text());
}

/// The final checks, which an interrupt skips.
async fn check(run: &Run, view: &Live, interrupts: &mut Signal) -> anyhow::Result<Checked> {
    let mut checked = std::pin::pin!(finish::check(run));
    let (mut ticks, took) = (tokio::time::interval(LIVE), run.started.elapsed());
    let words = "final checks";
    loop {
        tokio::select! {
            checked = &mut checked => return checked,
            _ = ticks.tick() => show(run, took, view, words.to_owned()),
            Some(()) = interrupts.recv() => return Err(interrupted()),
        }
    }
}

fn interrupted() -> anyhow::Error {
    CliError::cannot_tell("interrupted", "the final checks were interrupted").into()
}

fn kept(run: &Run, took: Duration, checked: Checked, out: &Out) -> anyhow::Result<Exit> {
    let statements = run.counts.report(took);
    let heads = lock(&run.heads).count;
    if run.counts.registered.get() == 0 {
        let what = "the log acknowledged nothing in time";
        return Err(CliError::cannot_tell("nothing-registered", what).into());
    }
    let text = printable!(
        "yes  every promise was kept, {:.1} s\n{}\n  checked  {} leaves, {} of {} heads, {} places, {} tiles, {} statements again",
        took.as_secs_f64(),
        statements.text(),
        checked.leaves,
        checked.heads,
        heads,
        checked.places,
        checked.tiles,
        checked.statements,
    );
    let report = Kept {
        ok: true,
        code: "ok",
        url: run.client.base().to_string(),
        seed: run.plan.seed,
        seconds: took.as_secs_f64(),
        statements,
        heads,
        checked,
    };
    out.answer(&report, text)?;
    Ok(Exit::Yes)
}

fn not_kept(
    run: &Run,
    took: Duration,
    broken: &Broken,
    save: &Path,
    out: &Out,
) -> anyhow::Result<Exit> {
    let heads = lock(&run.heads).all();
    let head = |head: &SeenHead| HeadView { size: head.size, root: head.root.to_string() };
    let url = run.client.base().to_string();
    let facts = RunFacts {
        url: url.clone(),
        seed: run.plan.seed,
        log_keys: run.keys.iter().map(|key| key.id().to_string()).collect(),
        heads: heads.iter().map(head).collect(),
    };
    let evidence = broken.save(save, &facts)?;
    let directory = evidence.first().and_then(|file| file.parent()).unwrap_or(save);
    let text = printable!("no   {}\n  evidence in {}", broken, directory.display());
    let report = NotKept {
        ok: false,
        code: "broken-promise",
        url,
        seed: run.plan.seed,
        seconds: took.as_secs_f64(),
        promise: broken.promise.name(),
        error: broken.what.clone(),
        evidence,
        statements: run.counts.report(took),
    };
    out.answer(&report, text)?;
    Ok(Exit::No)
}

/// A panic elsewhere ends the run anyway, so a poisoned lock is still used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The choices of one worker, which the seed of the run repeats. Nothing
/// secret depends on them.
fn worker_rng(seed: u64, worker: u64) -> fastrand::Rng {
    // Mixed once, because neighbouring seeds are neighbouring states.
    fastrand::Rng::with_seed(fastrand::Rng::with_seed(seed ^ worker << 32).u64(..))
}
