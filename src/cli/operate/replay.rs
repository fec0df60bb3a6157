//! `capstan replay`: repeats every admission decision of a log, from the log alone.

mod remote;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::client::target::{Ca, Target};
use crate::cli::output::Out;
use crate::cli::{Exit, broken_store};
use crate::service::{self, ChangedDecision, ReplayOptions, Replayed};
use crate::wire::printable::printable;
use crate::wire::text::grouped;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan replay --url http://127.0.0.1:8787")]
#[group(id = "source", multiple = false, args = ["data", "url"])]
pub(in crate::cli) struct Args {
    /// Data directory of a log that is not running
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address of a log; everything it shows must be what its checkpoint covers
    /// [default: $CAPSTAN_URL, then client.url]
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    ca: Ca,
    /// Trust file for the checkpoint [default: as for `verify`, then the log itself]
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    trust: Option<PathBuf>,
}

#[derive(Serialize)]
struct ReplayReport<'a> {
    /// Null when the rules of an entry are not known to this version.
    ok: Option<bool>,
    code: &'static str,
    size: u64,
    decided: u64,
    first: Option<DifferenceView<'a>>,
}

/// An entry that is decided differently.
#[derive(Serialize)]
pub(super) struct DifferenceView<'a> {
    index: u64,
    id: Option<String>,
    code: &'static str,
    detail: &'a str,
}

impl<'a> From<&'a ChangedDecision> for DifferenceView<'a> {
    fn from(entry: &'a ChangedDecision) -> Self {
        let (index, id) = (entry.index.get(), entry.id.map(|id| id.to_string()));
        Self { index, id, code: entry.code, detail: &entry.detail }
    }
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let options = ReplayOptions { first_only: true, ..ReplayOptions::default() };
    let replayed = match &args.data {
        Some(data) => local(data, options, out)?,
        None => {
            let client = Target::at(args.url.as_deref(), &args.ca).client(None)?;
            remote::replay(&client, args.trust.as_deref(), options, out).await?
        }
    };
    report(&replayed, out)
}

fn local(data: &Path, options: ReplayOptions, out: &Out) -> anyhow::Result<Replayed> {
    let bar = out.progress(u64::MAX, "replaying");
    let replayed = service::replay(data, options, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    replayed.map_err(|e| broken_store(e, data))
}

fn report(replayed: &Replayed, out: &Out) -> anyhow::Result<Exit> {
    let first = replayed.changed.first();
    let is_unknown = first.is_some_and(|one| one.code == "rules-version-unknown");
    let text = match first {
        Some(one) if is_unknown => {
            printable!("cannot tell  from entry #{} on: {}", one.index, one.detail)
        }
        None => {
            printable!("yes  {} entries decided again, all the same", grouped(replayed.decided))
        }
        Some(one) => {
            let (index, code) = (one.index, one.code);
            printable!("no  entry #{} is decided differently: {}: {}", index, code, one.detail)
        }
    };
    let ok = (!is_unknown).then_some(first.is_none());
    let report = ReplayReport {
        ok,
        code: first.map_or("ok", |one| one.code),
        size: replayed.size,
        decided: replayed.decided,
        first: first.map(DifferenceView::from),
    };
    out.answer(&report, text)?;
    Ok(match ok {
        Some(true) => Exit::Yes,
        Some(false) => Exit::No,
        None => Exit::CannotTell,
    })
}
