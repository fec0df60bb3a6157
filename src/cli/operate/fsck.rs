//! `capstan fsck` and `capstan reindex`: a log at rest, recomputed from its bytes.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::output::Out;
use crate::cli::settings::{self, Given};
use crate::cli::{Exit, broken_store};
use crate::service::{self, Checked};
use crate::wire::printable::{Printable, printable};
use crate::wire::text::grouped;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan fsck --data /var/lib/capstan")]
pub(in crate::cli) struct Args {
    /// Data directory of a log that is not running
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

#[derive(Serialize)]
struct FsckReport {
    ok: bool,
    code: &'static str,
    size: u64,
    root: String,
    issuers: usize,
    threads: usize,
    findings: Vec<FsckFinding>,
}

#[derive(Serialize)]
struct FsckFinding {
    index: Option<u64>,
    code: &'static str,
    detail: String,
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let given = Given { data: Some(&args.data), ..Given::default() };
    let guard = settings::load(&given)?.config.guard.path;
    let bar = out.progress(u64::MAX, "checking");
    let checked = service::fsck(&args.data, guard.as_deref(), &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let checked = checked.map_err(|e| broken_store(e, &args.data))?;
    let ok = checked.findings.is_empty();
    let text = text(&checked);
    out.answer(&object(checked, ok), text)?;
    Ok(if ok { Exit::Yes } else { Exit::No })
}

fn object(checked: Checked, ok: bool) -> FsckReport {
    FsckReport {
        ok,
        code: checked.findings.first().map_or("ok", |finding| finding.code),
        size: checked.head.size.get(),
        root: checked.head.root.to_string(),
        issuers: checked.threads.issuers(),
        threads: checked.threads.count(),
        findings: checked
            .findings
            .into_iter()
            .map(|f| FsckFinding {
                index: f.index.map(|index| index.get()),
                code: f.code,
                detail: f.detail,
            })
            .collect(),
    }
}

fn text(checked: &Checked) -> Printable {
    let word = if checked.findings.is_empty() { "yes" } else { "no" };
    let mut text = printable!(
        "{}  {} statements by {} in {}, root {}\n",
        word,
        grouped(checked.head.size.get()),
        several(checked.threads.issuers(), "issuer"),
        several(checked.threads.count(), "thread"),
        checked.head.root
    );
    for finding in &checked.findings {
        let place = finding.index.map_or(String::new(), |index| format!("#{index} "));
        text.line(printable!("  {}{}: {}", place, finding.code, finding.detail));
    }
    text
}

fn several(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan reindex --data /var/lib/capstan")]
pub(in crate::cli) struct ReindexArgs {
    /// Data directory of a log that is not running
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

#[derive(Serialize)]
struct ReindexReport {
    ok: bool,
    code: &'static str,
    statements: u64,
}

pub(in crate::cli) fn reindex(args: &ReindexArgs, out: &Out) -> anyhow::Result<Exit> {
    let bar = out.progress(u64::MAX, "indexing");
    let done = service::reindex(&args.data, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let statements = done.map_err(|e| broken_store(e, &args.data))?;
    let text = printable!("indexed {} statements", grouped(statements));
    out.answer(&ReindexReport { ok: true, code: "ok", statements }, text)?;
    Ok(Exit::Yes)
}
