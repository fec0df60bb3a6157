//! `capstan prove` and `capstan bundle`: proofs fetched from a log.

use std::path::PathBuf;

use super::names;
use super::search::{Source, fetch};
use crate::cli::client::Client;
use crate::cli::client::registration;
use crate::cli::client::target::Target;
use crate::cli::files::{Content, Delivery};
use crate::cli::output::Out;
use crate::cli::{CliError, Exit};
use crate::envelope::{SignedStatement, StatementId};
use crate::receipt::{Proofs, Receipt};
use crate::verify::{Memo, inclusion};

#[derive(clap::Args)]
#[command(after_help = "Example: capstan prove --from 100 --to 200 --url http://127.0.0.1:8787 \
                  --output growth.cose")]
pub(in crate::cli) struct Args {
    /// Statement to get a receipt for: id or its first 8 digits, 6, capsule id or action id
    #[arg(value_name = "ID", required_unless_present = "from", conflicts_with = "from")]
    id: Option<String>,
    /// Size of the older tree
    #[arg(long, value_name = "SIZE", requires = "to")]
    from: Option<u64>,
    /// Size of the newer tree
    #[arg(long, value_name = "SIZE", requires = "from")]
    to: Option<u64>,
    #[command(flatten)]
    target: Target,
    /// File for the receipt instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let client = args.target.client(None)?;
    let receipt = match (&args.id, args.from, args.to) {
        (Some(name), ..) => {
            let id = names::statement(&Source::of(&args.target), name).await?;
            included(&client, &id, out).await?
        }
        (None, Some(from), Some(to)) => grown(&client, from, to).await?,
        _ => return Err(CliError::failed("usage", "give ID, or --from and --to").into()),
    };
    Delivery::new(Content::Receipt(&receipt)).send(args.output.as_deref(), out)?;
    Ok(Exit::Yes)
}

/// A receipt, checked against the statement where the log gives it out.
async fn included(client: &Client, id: &str, out: &Out) -> anyhow::Result<Vec<u8>> {
    let bytes = registration::receipt(client, id).await?;
    let receipt = Receipt::parse(bytes.clone())?;
    let url = client.url(&format!("entries/{id}/statement"))?;
    let reply = client.send(url, "application/cose", None).await?;
    let statement = SignedStatement::parse_any_size(reply.body).ok();
    let Some(statement) = statement.filter(|_| reply.status == 200) else {
        out.note("the log does not give out the statement; check the receipt with --statement");
        return Ok(bytes);
    };
    let asked_for = StatementId::of(&statement).to_string() == *id || id.contains('.');
    let keys = client.keys().await?;
    let shown = inclusion(&receipt, &statement.canonical(), &keys, &mut Memo::default());
    match shown {
        Ok(_) if asked_for => Ok(bytes),
        Ok(_) => Err(CliError::no("other-statement", "the log answers about another one").into()),
        Err(e) => {
            Err(CliError::no(e.code(), format!("the log's receipt does not verify: {e}")).into())
        }
    }
}

/// A consistency receipt between the sizes that were asked for. Only who
/// holds the older root can check it.
async fn grown(client: &Client, from: u64, to: u64) -> anyhow::Result<Vec<u8>> {
    let path = format!("consistency?from={from}&to={to}");
    let bytes = client.fetch(&path, "application/cose").await?;
    let receipt = Receipt::parse(bytes.clone())?;
    let fits = match receipt.proofs() {
        Proofs::Consistency(proofs) => proofs.iter().all(|p| p.from == from && p.to == to),
        _ => false,
    };
    if fits {
        return Ok(bytes);
    }
    Err(CliError::no("other-proof", "the log answers with another proof").into())
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan bundle ID --url http://127.0.0.1:8787 -o action.bundle; \
                  capstan verify action.bundle")]
pub(in crate::cli) struct BundleArgs {
    /// Statement id or its first 8 digits, 6, capsule id or action id
    id: String,
    #[command(flatten)]
    source: Source,
    /// File for the bundle instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(in crate::cli) async fn bundle(args: &BundleArgs, out: &Out) -> anyhow::Result<Exit> {
    let id = names::statement(&args.source, &args.id).await?;
    let path = ["api", "v1", "bundles", &id];
    let bytes = fetch(&args.source, &path, &[], "application/cbor").await?;
    Delivery::new(Content::Bundle(&bytes)).send(args.output.as_deref(), out)?;
    Ok(Exit::Yes)
}
