//! `capstan hammer`: a load generator and a checker in one.
//!
//! In: the address of a log. Out: how fast it was, and whether it kept every
//! promise it made on the way. The first broken one ends the run, with the
//! evidence saved.

mod batch;
mod broken;
mod counts;
mod finish;
mod heads;
mod histogram;
mod ledger;
mod mix;
mod plan;
mod random;
mod reader;
mod records;
mod run;
mod signers;
mod statements;
#[cfg(test)]
mod tests;
mod tree;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use super::client::target::Ca;
use super::output::{Live, Out};
use super::{Answer, Stop, files};
use crate::wire::printable::{Printable, printable};
use broken::Broken;
use counts::Counted;
use finish::Checked;
use plan::{Plan, nanos};
use run::Run;
use signers::Signer;
use statements::Generator;
use writer::Source;

pub(super) use plan::Args;

/// Between two changes of what is shown.
const LIVE: Duration = Duration::from_millis(250);

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

pub(super) async fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    args.stands_alone()?;
    let signers = signers::signers(&args.key_kinds()?, args.key_dir.as_deref())?;
    if let Some(path) = &args.trust_out {
        files::write_file(path, signers::trust(&signers).as_bytes())?;
        out.note(printable!("wrote {}: the log must have it as its trust file", path.display()));
    }
    let Some(url) = &args.url else {
        out.answer(&json!({ "ok": true, "code": "ok" }), "")?;
        return Ok(Answer::Yes);
    };
    let client = Ca::default().client(url, args.token.as_deref())?;
    plan::own(client.base(), args.i_own_this_server).await?;
    let plan = args.plan();
    let sources = sources(&plan, Arc::new(signers))?;
    let run = Arc::new(Run::start(client, plan).await?);
    let view = out.live();
    let mut interrupts = signal(SignalKind::interrupt())?;
    let hammered = hammer(&run, (sources, args.readers), (&view, &mut interrupts)).await;
    let seconds = run.started.elapsed();
    let hammered = match hammered {
        Ok(()) => check(&run, (&view, &mut interrupts)).await,
        Err(error) => Err(error),
    };
    view.finish();
    match hammered {
        Ok(checked) => kept(&run, (seconds, checked), out),
        Err(error) => match error.downcast::<Broken>() {
            Ok(broken) => not_kept(&run, (seconds, &broken), (args, out)),
            Err(other) => Err(other),
        },
    }
}

/// One source of statements for each writer.
fn sources(plan: &Plan, signers: Arc<Vec<Signer>>) -> anyhow::Result<Vec<Source>> {
    let salt = nanos();
    let made = (0..plan.in_flight).map(|worker| {
        let own = (plan.seed, salt, worker);
        let generator = Generator::new(signers.clone(), plan.mix.clone(), own);
        let odds = (plan.refusals, plan.batch > 0);
        let mut source = Source::new(generator, (plan.seed, worker), odds);
        if let Some(requests) = plan.requests_of(worker) {
            source.sign_ahead(requests, plan.batch.max(1))?;
        }
        Ok(source)
    });
    made.collect()
}

/// Writers and readers, until the run is over or one of them has found
/// something; then none goes on.
async fn hammer(
    run: &Arc<Run>,
    (sources, readers): (Vec<Source>, u64),
    (view, interrupts): (&Live, &mut Signal),
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
                show(run, run.started.elapsed(), (view, words));
            }
            Some(()) = interrupts.recv() => if !run.stop() { break Err(interrupted()) },
        }
    };
    workers.shutdown().await;
    result
}

/// Whoever watches sees what the report will say, so far.
fn show(run: &Run, took: Duration, (view, words): (&Live, String)) {
    view.show(Printable::of(words), run.counts.told(took).text());
}

/// Looks at everything again, unless somebody has waited long enough.
async fn check(run: &Run, (view, interrupts): (&Live, &mut Signal)) -> anyhow::Result<Checked> {
    let mut checked = std::pin::pin!(finish::check(run));
    let (mut ticks, took) = (tokio::time::interval(LIVE), run.started.elapsed());
    let words = "everything is looked at once more";
    loop {
        tokio::select! {
            checked = &mut checked => return checked,
            _ = ticks.tick() => show(run, took, (view, words.to_owned())),
            Some(()) = interrupts.recv() => return Err(interrupted()),
        }
    }
}

fn interrupted() -> anyhow::Error {
    Stop::cannot_tell("interrupted", "not everything was looked at").into()
}

fn kept(run: &Run, (took, checked): (Duration, Checked), out: &Out) -> anyhow::Result<Answer> {
    let statements = run.counts.told(took);
    let heads = lock(&run.heads).count;
    if run.counts.registered.get() == 0 {
        let what = "the log acknowledged nothing in time";
        return Err(Stop::cannot_tell("nothing-registered", what).into());
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
    let told = Kept {
        ok: true,
        code: "ok",
        url: run.client.base().to_string(),
        seed: run.plan.seed,
        seconds: took.as_secs_f64(),
        statements,
        heads,
        checked,
    };
    out.answer(&told, text)?;
    Ok(Answer::Yes)
}

fn not_kept(
    run: &Run,
    (took, broken): (Duration, &Broken),
    (args, out): (&Args, &Out),
) -> anyhow::Result<Answer> {
    let heads: Vec<_> = lock(&run.heads).all();
    let heads: Vec<_> = heads
        .iter()
        .map(|head| json!({ "size": head.size, "root": head.root.to_string() }))
        .collect();
    let keys: Vec<_> = run.keys.iter().map(|key| key.id().to_string()).collect();
    let url = run.client.base().to_string();
    let about = json!({ "url": url, "seed": run.plan.seed, "log_keys": keys, "heads": heads });
    let evidence = broken.save(&args.save, &about)?;
    let directory = evidence.first().and_then(|file| file.parent()).unwrap_or(&args.save);
    let text = printable!("no   {}\n  evidence in {}", broken, directory.display());
    let told = NotKept {
        ok: false,
        code: "broken-promise",
        url,
        seed: run.plan.seed,
        seconds: took.as_secs_f64(),
        promise: broken.promise.name(),
        error: broken.what.clone(),
        evidence,
        statements: run.counts.told(took),
    };
    out.answer(&told, text)?;
    Ok(Answer::No)
}

/// What one of us left half done cannot be worse than what it shows.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
