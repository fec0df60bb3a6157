//! `capstan backup` and `capstan restore`: a copy of a log, and the way back.

use std::path::PathBuf;

use serde_json::json;

use super::client::Client;
use super::output::Out;
use super::settings::{self, Given};
use super::{Answer, Stop, broken_store, files, program};
use crate::service::{self, RestoreOptions};
use crate::wire::printable::printable;
use crate::wire::text::grouped;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan backup --data /var/lib/capstan/log --to /mnt/copy")]
pub(super) struct BackupArgs {
    /// Data directory of the log, whether it runs or not
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where the copy goes; a copy that is there is brought up to date
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan restore --from /mnt/copy --data /var/lib/capstan/log \
                        --keys /mnt/keys --peer https://mirror.example")]
pub(super) struct RestoreArgs {
    /// A copy made by `capstan backup`
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// Data directory to make
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Directory with the log's private keys, which a copy does not have
    #[arg(long, value_name = "DIR")]
    keys: PathBuf,
    /// Whoever serves a checkpoint of this log: the log itself, a mirror
    #[arg(long, value_name = "URL")]
    peer: Vec<String>,
    /// A checkpoint of this log that somebody kept
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// Restore also when a known head is ahead of the copy; the log then
    /// never writes
    #[arg(long)]
    read_only: bool,
}

pub(super) fn run(args: &BackupArgs, out: &Out) -> anyhow::Result<Answer> {
    let bar = out.progress(u64::MAX, "copying");
    let copied = service::backup(&args.data, &args.to, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let head = copied.map_err(|e| broken_store(e, &args.data))?;
    let (size, root) = (head.size.get(), head.root.to_string());
    let text = printable!(
        "yes  {} statements, root {}\n  private keys are not copied: keep {} elsewhere",
        grouped(size),
        root,
        args.data.join("keys").display()
    );
    out.answer(&json!({ "ok": true, "code": "ok", "size": size, "root": root }), text)?;
    Ok(Answer::Yes)
}

pub(super) async fn restore(args: &RestoreArgs, out: &Out) -> anyhow::Result<Answer> {
    let given = Given { data: Some(&args.from), ..Given::default() };
    let guard = settings::load(&given)?.config.guard.path;
    let mut notes = Vec::new();
    for url in &args.peer {
        notes.push(("peer", Client::new(url, None)?.fetch_text("checkpoint").await?));
    }
    for path in &args.checkpoint {
        notes.push(("checkpoint file", files::read_text(path)?));
    }
    check(args, out)?;
    let (keys, read_only) = (args.keys.clone(), args.read_only);
    let options = RestoreOptions { keys, guard, notes, read_only };
    let bar = out.progress(u64::MAX, "restoring");
    let restored = service::restore(&args.from, &args.data, &options, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let restored = restored.map_err(|e| broken_store(e, &args.from))?;
    let (size, root) = (restored.head.size.get(), restored.head.root.to_string());
    let what = restored.behind.as_ref().map_or_else(
        || "it can write".into(),
        |why| printable!("it must not write, serve it with --read-only: {}", why),
    );
    let text = printable!("yes  {} statements, root {}\n  {}", grouped(size), root, what);
    let writable = restored.behind.is_none();
    let answer = json!({ "ok": true, "code": "ok", "size": size, "root": root,
        "writable": writable, "behind": restored.behind });
    out.answer(&answer, text)?;
    Ok(Answer::Yes)
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
