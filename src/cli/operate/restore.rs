//! `capstan restore` and `capstan resume`: a log made from a copy, and how it
//! comes to write.

use std::path::PathBuf;

use reqwest::Method;
use serde_json::{Value, json};

use crate::cli::client::Client;
use crate::cli::client::target::Ca;
use crate::cli::output::Out;
use crate::cli::settings::{self, Given};
use crate::cli::{Answer, Stop, broken_store, files, program};
use crate::profile::{Compared, Source};
use crate::service::{self, Note, Proof, RestoreOptions, Resumed};
use crate::wire::digest::Digest;
use crate::wire::printable::{Printable, printable};
use crate::wire::text::grouped;

/// What shows that nothing newer exists.
#[derive(clap::Args)]
struct ProofArgs {
    #[command(flatten)]
    ca: Ca,
    /// Whoever serves a checkpoint of this log: a mirror, a witness, the log itself at rest
    #[arg(long, value_name = "URL")]
    peer: Vec<String>,
    /// A checkpoint of this log that somebody kept
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// You know that no newer copy exists and nobody else writes; the head in full
    #[arg(long, value_name = "SIZE:ROOT")]
    i_am_the_only_writer: Option<String>,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan restore --from /mnt/copy --data /var/lib/capstan/log \
                        --keys /mnt/keys --peer https://mirror.example")]
pub(in crate::cli) struct RestoreArgs {
    /// A copy made by `capstan backup`
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// Data directory to make
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Directory with the log's private keys, which a copy does not have
    #[arg(long, value_name = "DIR")]
    keys: PathBuf,
    #[command(flatten)]
    proof: ProofArgs,
    /// Restore also when a known head is ahead of the copy; the log then
    /// never writes
    #[arg(long, conflicts_with = "i_am_the_only_writer")]
    read_only: bool,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan resume --data /var/lib/capstan/log \
                        --peer https://mirror.example")]
pub(in crate::cli) struct ResumeArgs {
    /// Data directory of a log that was restored, or whose guard is gone
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    proof: ProofArgs,
}

impl ProofArgs {
    async fn gather(&self, guard: Option<PathBuf>) -> anyhow::Result<Proof> {
        let word = self.i_am_the_only_writer.as_deref().map(head).transpose()?;
        let mut notes = Vec::new();
        for url in &self.peer {
            let client = self.ca.client(url, None)?;
            notes.push(Note {
                source: Source::Peer,
                text: client.fetch_text("checkpoint").await?,
                address: Some(url.clone()),
                writes: takes_registrations(&client).await,
            });
        }
        for path in &self.checkpoint {
            let text = files::read_text(path)?;
            let (source, address) = (Source::Checkpoint, None);
            notes.push(Note { source, text, address, writes: false });
        }
        Ok(Proof { guard, notes, word })
    }
}

/// Whether a peer is a log that would register a statement now.
async fn takes_registrations(client: &Client) -> bool {
    let Ok(url) = client.url("health/ready") else { return false };
    let Ok(reply) = client.once((Method::GET, url), "application/json", None).await else {
        return false;
    };
    let body: Option<Value> = serde_json::from_slice(&reply.body).ok();
    reply.status == 200 && body.is_some_and(|body| body.get("ready") == Some(&Value::Bool(true)))
}

/// `SIZE:ROOT`, the root in hex and in full.
fn head(typed: &str) -> Result<(u64, Digest), Stop> {
    let wrong =
        || Stop::failed("usage", "--i-am-the-only-writer takes SIZE:ROOT, ROOT in 64 hex digits");
    let (size, root) = typed.split_once(':').ok_or_else(wrong)?;
    let root = Digest::from_hex(&root.to_lowercase()).ok_or_else(wrong)?;
    Ok((size.parse().map_err(|_| wrong())?, root))
}

pub(in crate::cli) async fn restore(args: &RestoreArgs, out: &Out) -> anyhow::Result<Answer> {
    let given = Given { data: Some(&args.from), ..Given::default() };
    let guard = settings::load(&given)?.config.guard.path;
    let proof = args.proof.gather(guard).await?;
    check(args, out)?;
    let options = RestoreOptions { keys: args.keys.clone(), read_only: args.read_only, proof };
    let bar = out.progress(u64::MAX, "restoring");
    let restored = service::restore(&args.from, &args.data, &options, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let restored = restored.map_err(|e| broken_store(e, &args.from))?;
    let (size, root) = (restored.head.size.get(), restored.head.root.to_string());
    let what = match (&restored.behind, &restored.resumed) {
        (Some(why), _) => printable!("it must not write, serve it with --read-only: {}", why),
        (None, Some(resumed)) => went_on(resumed),
        (None, None) => "it does not write yet: nothing shows that no newer copy exists".into(),
    };
    let text = printable!("yes  {} statements, root {}\n  {}", grouped(size), root, what);
    let compared = restored.resumed.as_ref().map(|resumed| objects(&resumed.compared));
    let answer = json!({ "ok": true, "code": "ok", "size": size, "root": root,
        "writable": restored.resumed.is_some(), "behind": restored.behind,
        "compared": compared.unwrap_or_default() });
    out.answer(&answer, text)?;
    if restored.behind.is_none() && restored.resumed.is_none() {
        let (program, data) = (program(), args.data.display());
        let resume = printable!("{} resume --data {}", program, data);
        out.note(printable!(
            "next, one of\n  \
             {} --peer URL   (whoever serves a checkpoint of this log)\n  \
             {} --checkpoint FILE\n  \
             {} --i-am-the-only-writer SIZE:ROOT\n  \
             {} serve --data {} --read-only",
            resume,
            resume,
            resume,
            program,
            data
        ));
    }
    Ok(Answer::Yes)
}

pub(in crate::cli) async fn resume(args: &ResumeArgs, out: &Out) -> anyhow::Result<Answer> {
    let given = Given { data: Some(&args.data), ..Given::default() };
    let guard = settings::load(&given)?.config.guard.path;
    let proof = args.proof.gather(guard).await?;
    let resumed = service::resume(&args.data, &proof).map_err(|e| broken_store(e, &args.data))?;
    let Some(resumed) = resumed else {
        let answer = json!({ "ok": true, "code": "ok", "writable": true });
        out.answer(&answer, "yes  it could write already; nothing was done")?;
        return Ok(Answer::Yes);
    };
    let (size, root) = (resumed.head.size.get(), resumed.head.root.to_string());
    let text =
        printable!("yes  {} statements, root {}\n  {}", grouped(size), root, went_on(&resumed));
    let answer = json!({ "ok": true, "code": "ok", "size": size, "root": root, "writable": true,
        "index": resumed.index.get(), "compared": objects(&resumed.compared) });
    out.answer(&answer, text)?;
    Ok(Answer::Yes)
}

fn went_on(resumed: &Resumed) -> Printable {
    let by: Vec<&str> = resumed
        .compared
        .iter()
        .filter(|one| one.size == resumed.head.size.get())
        .map(|one| one.source.name())
        .collect();
    printable!("it can write, by the word of {}; entry #{} says so", by.join(", "), resumed.index)
}

fn objects(compared: &[Compared]) -> Vec<Value> {
    let object = |one: &Compared| {
        json!({ "source": one.source.name(), "size": one.size, "root": one.root.to_string(),
            "address": one.address })
    };
    compared.iter().map(object).collect()
}

/// Only a copy without findings becomes a log.
fn check(args: &RestoreArgs, out: &Out) -> anyhow::Result<()> {
    let bar = out.progress(u64::MAX, "checking");
    let checked = service::fsck(&args.from, None, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let checked = checked.map_err(|e| broken_store(e, &args.from))?;
    let Some(first) = checked.findings.first() else { return Ok(()) };
    let place = first.index.map_or(String::new(), |index| format!("#{index} "));
    let what = format!("the copy is damaged: {place}{}: {}", first.code, first.detail);
    let next = format!("{} fsck --data {}", program(), args.from.display());
    Err(Stop::no("copy-damaged", what).next(next).into())
}
