//! `capstan bundle`: a statement and all that shows why it is in the log.

use std::path::PathBuf;

use super::names;
use super::search::{Source, fetch};
use crate::cli::files::Delivery;
use crate::cli::output::Out;
use crate::cli::{Answer, files};

#[derive(clap::Args)]
#[command(after_help = "Example: capstan bundle ID --url http://127.0.0.1:8787 -o action.bundle; \
                  capstan verify action.bundle")]
pub(in crate::cli) struct Args {
    /// Statement id or its first 8 digits, 6, capsule id or action id
    id: String,
    #[command(flatten)]
    source: Source,
    /// File for the bundle instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let id = names::statement(&args.source, &args.id).await?;
    let path = ["api", "v1", "bundles", &id];
    let bytes = fetch(&args.source, &path, &[], "application/cbor").await?;
    let output = args.output.as_deref();
    let object = serde_json::Map::new();
    files::deliver(Delivery { output, name: "bundle", bytes: &bytes, object }, out)?;
    Ok(Answer::Yes)
}
