//! `capstan reindex`: the search index, made again from the statements.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::output::Out;
use crate::cli::{Answer, broken_store};
use crate::service;
use crate::wire::printable::printable;
use crate::wire::text::grouped;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan reindex --data /var/lib/capstan")]
pub(in crate::cli) struct Args {
    /// Data directory of a log that is not running
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let bar = out.progress(u64::MAX, "indexing");
    let done = service::reindex(&args.data, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let size = done.map_err(|e| broken_store(e, &args.data))?;
    let text = printable!("indexed {} statements", grouped(size));
    out.answer(&json!({ "ok": true, "code": "ok", "statements": size }), text)?;
    Ok(Answer::Yes)
}
