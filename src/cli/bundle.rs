//! `capstan bundle`: a statement and all that shows why it is in the log.

use std::path::PathBuf;

use super::files::Delivery;
use super::output::Out;
use super::search::{Source, fetch};
use super::{Answer, files};

#[derive(clap::Args)]
#[command(after_help = "Example: capstan bundle ID --url http://127.0.0.1:8787 -o action.bundle; \
                  capstan verify action.bundle")]
pub(super) struct Args {
    /// Statement: its 64 hex digits, or 1.<leaf index>
    id: String,
    #[command(flatten)]
    source: Source,
    /// File for the bundle instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let path = ["api", "v1", "bundles", &args.id];
    let bytes = fetch(&args.source, &path, (&[], "application/cbor")).await?;
    let output = args.output.as_deref();
    let object = serde_json::Map::new();
    files::deliver(Delivery { output, name: "bundle", bytes: &bytes, object }, out)?;
    Ok(Answer::Yes)
}
