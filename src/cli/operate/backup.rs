//! `capstan backup`: a copy of a log.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::output::Out;
use crate::cli::{Answer, broken_store};
use crate::service;
use crate::wire::printable::printable;
use crate::wire::text::grouped;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan backup --data /var/lib/capstan/log --to /mnt/copy")]
pub(in crate::cli) struct Args {
    /// Data directory of the log, whether it runs or not
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where the copy goes; a copy that is there is brought up to date
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
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
