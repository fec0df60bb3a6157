//! `capstan backup`, `restore` and `resume`: a copy of a log, a log made from a
//! copy, and the proof that lets it write again.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::check::report::ComparedView;
use crate::cli::client::Client;
use crate::cli::client::target::Ca;
use crate::cli::output::Out;
use crate::cli::settings::{self, Given};
use crate::cli::{CliError, Exit, broken_store, files, program};
use crate::profile::Source;
use crate::receipt::Head;
use crate::service::{self, Note, Proof, RestoreOptions, Resumed};
use crate::wire::digest::Digest;
use crate::wire::printable::{Printable, printable};
use crate::wire::text::grouped;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan backup --data /var/lib/capstan/log --to /mnt/copy")]
pub(in crate::cli) struct BackupArgs {
    /// Data directory of the log, whether it runs or not
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Directory of the copy; an existing copy is updated
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

/// What `backup`, `restore` and `resume` print.
#[derive(Default, Serialize)]
struct HeadReport {
    ok: bool,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writable: Option<bool>,
    /// For `restore`: null if no known head is ahead of the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Vec<ComparedView>>,
}

impl HeadReport {
    fn new(head: Option<&Head>) -> Self {
        let (size, root) = (head.map(|h| h.size.get()), head.map(|h| h.root.to_string()));
        Self { ok: true, code: "ok", size, root, ..Self::default() }
    }
}

pub(in crate::cli) fn backup(args: &BackupArgs, out: &Out) -> anyhow::Result<Exit> {
    let bar = out.progress(u64::MAX, "copying");
    let copied = service::backup(&args.data, &args.to, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let head = copied.map_err(|e| broken_store(e, &args.data))?;
    let text = printable!(
        "yes  {} statements, root {}\n  private keys are not in the copy: keep {} elsewhere",
        grouped(head.size.get()),
        head.root,
        args.data.join("keys").display()
    );
    out.answer(&HeadReport::new(Some(&head)), text)?;
    Ok(Exit::Yes)
}

/// What shows that nothing newer exists.
#[derive(clap::Args)]
struct ProofArgs {
    #[command(flatten)]
    ca: Ca,
    /// Address that serves a checkpoint of this log: a mirror, a witness, the log itself
    #[arg(long, value_name = "URL")]
    peer: Vec<String>,
    /// File with a checkpoint of this log that somebody saved
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// Confirm that no newer copy exists and nothing else writes, by giving the full head
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
    /// Data directory to create
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Directory with the log's private keys, which a copy does not contain
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
    /// Data directory of a log that was restored, or whose guard is missing
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
    let Ok(reply) = client.once(url, "application/json", None).await else {
        return false;
    };
    let body = serde_json::from_slice::<serde_json::Value>(&reply.body).ok();
    let is_ready = body.and_then(|body| body.get("ready")?.as_bool());
    reply.status == 200 && is_ready == Some(true)
}

/// `SIZE:ROOT`, the root in hex and in full.
fn head(typed: &str) -> Result<(u64, Digest), CliError> {
    let wrong = || {
        CliError::failed("usage", "--i-am-the-only-writer takes SIZE:ROOT, ROOT in 64 hex digits")
    };
    let (size, root) = typed.split_once(':').ok_or_else(wrong)?;
    let root = Digest::from_hex(&root.to_lowercase()).ok_or_else(wrong)?;
    Ok((size.parse().map_err(|_| wrong())?, root))
}

pub(in crate::cli) async fn restore(args: &RestoreArgs, out: &Out) -> anyhow::Result<Exit> {
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
    let what = match (&restored.behind, &restored.resumed) {
        (Some(why), _) => printable!("it must not write; serve it with --read-only: {}", why),
        (None, Some(resumed)) => resumed_text(resumed),
        (None, None) => "it cannot write yet: nothing shows that no newer copy exists".into(),
    };
    let (size, root) = (restored.head.size, restored.head.root);
    let text = printable!("yes  {} statements, root {}\n  {}", grouped(size.get()), root, what);
    let is_unproven = restored.behind.is_none() && restored.resumed.is_none();
    let report = HeadReport {
        writable: Some(restored.resumed.is_some()),
        behind: Some(restored.behind),
        compared: Some(restored.resumed.iter().flat_map(compared).collect()),
        ..HeadReport::new(Some(&restored.head))
    };
    out.answer(&report, text)?;
    if is_unproven {
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
    Ok(Exit::Yes)
}

pub(in crate::cli) async fn resume(args: &ResumeArgs, out: &Out) -> anyhow::Result<Exit> {
    let given = Given { data: Some(&args.data), ..Given::default() };
    let guard = settings::load(&given)?.config.guard.path;
    let proof = args.proof.gather(guard).await?;
    let resumed = service::resume(&args.data, &proof).map_err(|e| broken_store(e, &args.data))?;
    let Some(resumed) = resumed else {
        let report = HeadReport { writable: Some(true), ..HeadReport::new(None) };
        out.answer(&report, "yes  it can already write; nothing was changed")?;
        return Ok(Exit::Yes);
    };
    let (size, root) = (resumed.head.size, resumed.head.root);
    let what = resumed_text(&resumed);
    let text = printable!("yes  {} statements, root {}\n  {}", grouped(size.get()), root, what);
    let report = HeadReport {
        writable: Some(true),
        index: Some(resumed.index.get()),
        compared: Some(compared(&resumed).collect()),
        ..HeadReport::new(Some(&resumed.head))
    };
    out.answer(&report, text)?;
    Ok(Exit::Yes)
}

fn resumed_text(resumed: &Resumed) -> Printable {
    let by: Vec<&str> = resumed
        .compared
        .iter()
        .filter(|one| one.size == resumed.head.size.get())
        .map(|one| one.source.name())
        .collect();
    printable!("it can write, confirmed by {}; recorded in entry #{}", by.join(", "), resumed.index)
}

fn compared(resumed: &Resumed) -> impl Iterator<Item = ComparedView> {
    resumed.compared.iter().map(ComparedView::from)
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
    Err(CliError::no("copy-damaged", what).next(next).into())
}
