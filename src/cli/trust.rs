//! `capstan trust`: whom to believe, written down once and on purpose.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use super::client::Client;
use super::output::Out;
use super::{Answer, Stop, files};
use crate::checkpoint::VerifierKey;
use crate::envelope::SignedStatement;
use crate::receipt::{Receipt, attached};
use crate::trust::{TrustAnchors, TrustedLog, log_block};
use crate::verify::{Memo, inclusion};
use crate::wire::printable::{Printable, printable};

#[derive(clap::Subcommand)]
pub(super) enum Verb {
    /// Fetch a log's keys, show them, and believe them from now on
    #[command(after_help = "Example: capstan trust add http://127.0.0.1:8787")]
    Add(AddArgs),
    /// Show whom the trust file names
    #[command(after_help = "Example: capstan trust show")]
    Show(ShowArgs),
}

#[derive(clap::Args)]
pub(super) struct AddArgs {
    /// Address of the log
    url: String,
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(clap::Args)]
pub(super) struct ShowArgs {
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

#[derive(Serialize)]
struct Shown {
    ok: bool,
    issuers: Vec<IssuerShown>,
    logs: Vec<LogShown>,
}

#[derive(Serialize)]
struct IssuerShown {
    name: String,
    keys: usize,
}

#[derive(Serialize)]
struct LogShown {
    name: String,
    keys: Vec<String>,
    checkpoint: Option<String>,
}

pub(super) async fn add(args: &AddArgs, out: &Out) -> anyhow::Result<Answer> {
    let nowhere = || Stop::failed("usage", "--trust is missing, and there is no home directory");
    let (path, _) = files::trust_path(args.trust.as_deref()).ok_or_else(nowhere)?;
    let known = if path.exists() { files::trust(Some(&path))? } else { TrustAnchors::default() };
    let log = fetch(&Client::new(&args.url, None)?).await?;
    let shown = LogShown::of(&log);
    if known.logs().iter().map(LogShown::of).any(|known| known.covers(&shown)) {
        out.answer(&shown, printable!("{} is in {} already", log.name, path.display()))?;
        return Ok(Answer::Yes);
    }
    out.note(printable!("{}\nCompare these with what its operator tells you.", shown.text()));
    if !args.yes && !agreed(out, &path)? {
        return Err(Stop::no("declined", "nothing was written").into());
    }
    append(&path, &log_block(&log))?;
    let text = printable!("{} is believed from now on, in {}", log.name, path.display());
    out.answer(&shown, text)?;
    Ok(Answer::Yes)
}

pub(super) fn show(args: &ShowArgs, out: &Out) -> anyhow::Result<Answer> {
    let trust = files::trust(args.trust.as_deref())?;
    let issuers: Vec<IssuerShown> =
        trust.issuers().map(|(name, keys)| IssuerShown { name: name.to_owned(), keys }).collect();
    let logs: Vec<LogShown> = trust.logs().iter().map(LogShown::of).collect();
    let mut text = Printable::default();
    for IssuerShown { name, keys } in &issuers {
        text.line(printable!("issuer {}\n  {} pinned keys", name, keys));
    }
    logs.iter().for_each(|log| text.push(log.text()));
    if trust.is_empty() {
        text.line("nobody is believed");
    }
    out.answer(&Shown { ok: true, issuers, logs }, text)?;
    Ok(Answer::Yes)
}

/// The log's name and keys. Its first entry must verify under them, so that
/// nobody writes down keys that do not fit the log.
async fn fetch(client: &Client) -> anyhow::Result<TrustedLog> {
    let keys = client.keys().await?;
    let vkey = client.fetch_text("checkpoint/key").await.ok().map(|text| text.trim().to_owned());
    if let Some(vkey) = &vkey {
        VerifierKey::parse(vkey).context("the checkpoint key of the log")?;
    }
    let first = client.fetch("entries/1.0/statement", "application/cose").await?;
    let statement = SignedStatement::parse_any_size(first)?;
    let receipt = attached(&statement)?.into_iter().next().context("entry 0 has no receipt")?;
    let receipt = Receipt::parse(receipt)?;
    inclusion(&receipt, &statement.canonical(), &keys, &mut Memo::default())
        .map_err(|e| Stop::no(e.code(), format!("the log's own first entry: {e}")))?;
    let name = receipt.envelope().header().claims.issuer.clone();
    let name = name.context("the log does not name itself in its receipts")?;
    Ok(TrustedLog { name, keys, checkpoint: vkey })
}

fn agreed(out: &Out, path: &Path) -> anyhow::Result<bool> {
    if !out.can_ask() {
        let what = "nobody is here to agree to these keys";
        return Err(Stop::failed("usage", what).next("the same command with --yes").into());
    }
    let answer = out.ask(printable!("Believe this log, in {}", path.display()), "no")?;
    Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

fn append(path: &Path, block: &str) -> anyhow::Result<()> {
    let mut text = if path.exists() { files::read_text(path)? } else { String::new() };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("{}", parent.display()))?;
    }
    text.push_str(block);
    files::write_file(path, text.as_bytes())
}

impl LogShown {
    fn of(log: &TrustedLog) -> Self {
        Self {
            name: log.name.clone(),
            keys: log.keys.iter().map(|key| key.id().to_string()).collect(),
            checkpoint: log.checkpoint.clone(),
        }
    }

    /// Whether everything `other` would add is here.
    fn covers(&self, other: &Self) -> bool {
        self.name == other.name
            && other.keys.iter().all(|key| self.keys.contains(key))
            && (other.checkpoint.is_none() || self.checkpoint == other.checkpoint)
    }

    fn text(&self) -> Printable {
        let mut text = printable!("log {}\n", self.name);
        for key in &self.keys {
            text.line(printable!("  key         {}", key));
        }
        if let Some(vkey) = &self.checkpoint {
            text.line(printable!("  checkpoint  {}", vkey));
        }
        text
    }
}
