//! `capstan trust`: which logs and issuers to trust, kept in one file.

pub(in crate::cli) mod edit;
pub(in crate::cli) mod issuer;
pub(in crate::cli) mod upgrade;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use super::succession;
use crate::checkpoint::VerifierKey;
use crate::cli::client::Client;
use crate::cli::client::target::{Ca, Target};
use crate::cli::output::Out;
use crate::cli::{CliError, Exit, files};
use crate::envelope::SignedStatement;
use crate::key::PublicKey;
use crate::receipt::{Receipt, attached};
use crate::trust::x509::Scope;
use crate::trust::{PinnedKey, TrustAnchors, TrustedLog};
use crate::verify::{Memo, inclusion};
use crate::wire::printable::{Printable, printable};
use crate::wire::time::UnixSeconds;

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Fetch a log's keys, show them, and trust them from now on
    #[command(after_help = "Example: capstan trust add http://127.0.0.1:8787")]
    Add(AddArgs),
    /// Trust the keys that succession statements lead to, offline
    #[command(after_help = "Example: capstan trust follow succession.cose")]
    Follow(edit::FollowArgs),
    /// Remove a log or an issuer from the trust file
    #[command(after_help = "Example: capstan trust remove https://log.example")]
    Remove(edit::RemoveArgs),
    /// Pin an issuer's key, in your trust file or in that of a log
    #[command(after_help = "Example: capstan trust issuer https://agents.example agent.key.pub")]
    Issuer(issuer::Args),
    /// Show the logs and issuers in the trust file
    #[command(after_help = "Example: capstan trust show")]
    Show(ShowArgs),
    /// Add to an old trust file the names its anchors may certify
    #[command(after_help = "\
Examples: capstan trust upgrade DATA/trust.toml --data DATA
          capstan trust upgrade trust.toml --anchor \"Example root\" --spiffe prod.example

Comments and everything else in the file stay. Exit code 1: some anchor still has no scope.")]
    Upgrade(upgrade::Args),
}

#[derive(clap::Args)]
pub(in crate::cli) struct AddArgs {
    /// Address of the log [default: $CAPSTAN_URL, then client.url]
    url: Option<String>,
    #[command(flatten)]
    ca: Ca,
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Trust the keys without asking
    #[arg(long)]
    yes: bool,
    /// The key id the log must have, in hex, from its operator; do not ask
    #[arg(long, value_name = "HEX")]
    fingerprint: Option<String>,
    /// Replace the keys of this log in the trust file
    #[arg(long)]
    replace: bool,
}

#[derive(clap::Args)]
pub(in crate::cli) struct ShowArgs {
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

#[derive(Serialize)]
struct TrustReport {
    ok: bool,
    issuers: Vec<IssuerView>,
    anchors: Vec<AnchorView>,
    logs: Vec<LogView>,
}

#[derive(Serialize)]
struct IssuerView {
    name: String,
    keys: Vec<KeyView>,
}

#[derive(Serialize)]
struct KeyView {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

#[derive(Serialize)]
struct AnchorView {
    name: String,
    /// Null if the file gives none.
    scope: Option<Scope>,
}

#[derive(Serialize)]
struct LogView {
    name: String,
    keys: Vec<String>,
    checkpoint: Option<String>,
}

pub(in crate::cli) async fn add(args: &AddArgs, out: &Out) -> anyhow::Result<Exit> {
    let nowhere =
        || CliError::failed("usage", "--trust is missing, and there is no home directory");
    let (path, _) = files::trust_path(args.trust.as_deref()).ok_or_else(nowhere)?;
    let known = if path.exists() { files::trust(Some(&path))? } else { TrustAnchors::default() };
    let client = Target::at(args.url.as_deref(), &args.ca).client(None)?;
    let log = fetch(&client).await?;
    let shown = LogView::of(&log);
    let active = shown.keys.first().map(String::as_str).unwrap_or_default();
    if let Some(expected) = &args.fingerprint
        && !expected.eq_ignore_ascii_case(active)
    {
        let what = format!("the log signs with {active}, not with {expected}: nothing was written");
        return Err(CliError::no("fingerprint-differs", what).into());
    }
    if let Some(before) = succession::entry(&known, &log.name) {
        if LogView::of(&before).covers(&shown) {
            out.answer(&shown, printable!("{} is in {} already", log.name, path.display()))?;
            return Ok(Exit::Yes);
        }
        let followed = succession::follow(&client, &before).await;
        if let Some(after) = continued(&before, &log, &followed) {
            succession::remember(&path, &after)?;
            let text = printable!(
                "updated {} in {}; its key {} was trusted before or follows from one that was",
                log.name,
                path.display(),
                active
            );
            out.answer(&LogView::of(&after), text)?;
            return Ok(Exit::Yes);
        }
        if !args.replace {
            return Err(changed(&before, &log).next("the same command with --replace").into());
        }
    }
    out.note(printable!("{}\nCompare these with what its operator tells you.", shown.text()));
    let named = args.yes || args.fingerprint.is_some();
    if !named && !confirmed(out, &path)? {
        return Err(CliError::no("declined", "nothing was written").into());
    }
    succession::remember(&path, &log)?;
    let text = printable!("added {} to {}", log.name, path.display());
    out.answer(&shown, text)?;
    Ok(Exit::Yes)
}

/// The updated entry of a known log, if its active key is trusted or follows
/// from a trusted one and its checkpoint key is the same.
fn continued(before: &TrustedLog, log: &TrustedLog, followed: &[PublicKey]) -> Option<TrustedLog> {
    let active = log.keys.first()?;
    let same = before.checkpoint.is_none() || before.checkpoint == log.checkpoint;
    let known = before.keys.contains(active) || followed.contains(active);
    let checkpoint = before.checkpoint.clone().or_else(|| log.checkpoint.clone());
    let after = succession::extended(before, followed);
    (known && same).then_some(TrustedLog { checkpoint, ..after })
}

/// A log with a known name and other keys: another log, or one that changed its
/// keys without a succession.
fn changed(before: &TrustedLog, log: &TrustedLog) -> CliError {
    let mut details = Printable::default();
    for (whose, log) in [("in the trust file", before), ("from the log", log)] {
        details.line(printable!("{}", whose));
        details.push(LogView::of(log).text());
    }
    let what = format!(
        "{} has other keys than the trust file says, and publishes no succession between \
         them: nothing was written. Ask its operator which keys are right",
        log.name
    );
    CliError::no("log-key-changed", what).details(details)
}

pub(in crate::cli) fn show(args: &ShowArgs, out: &Out) -> anyhow::Result<Exit> {
    let trust = files::any_trust(args.trust.as_deref())?;
    let issuers: Vec<IssuerView> =
        trust.issuers().map(|(name, _)| IssuerView::of(&trust, name)).collect();
    let logs: Vec<LogView> = trust.logs().iter().map(LogView::of).collect();
    let mut text = Printable::default();
    issuers.iter().for_each(|issuer| text.push(issuer.text()));
    let anchors = trust.chains().anchors();
    let anchors: Vec<AnchorView> = anchors
        .map(|(name, scope)| AnchorView { name: name.to_owned(), scope: scope.cloned() })
        .collect();
    for AnchorView { name, scope } in &anchors {
        let scope = scope.as_ref().map_or("nothing: it has no scope".to_owned(), Scope::to_string);
        text.line(printable!("anchor {}\n  may certify {}", name, Printable::long(scope)));
    }
    logs.iter().for_each(|log| text.push(log.text()));
    if trust.is_empty() {
        text.line("no log and no issuer is trusted");
    }
    out.answer(&TrustReport { ok: true, issuers, anchors, logs }, text)?;
    Ok(Exit::Yes)
}

/// The log's name and keys, checked against its first entry so that keys of
/// another log are never written.
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
        .map_err(|e| CliError::no(e.code(), format!("the log's own first entry: {e}")))?;
    let name = receipt.envelope().header().claims.issuer.clone();
    let name = name.context("the receipts of the log name no issuer")?;
    Ok(TrustedLog { name, keys, checkpoint: vkey })
}

fn confirmed(out: &Out, path: &Path) -> anyhow::Result<bool> {
    if !out.can_ask() {
        let what = "these keys need a confirmation, and there is no terminal to ask on";
        return Err(CliError::failed("usage", what).next("the same command with --yes").into());
    }
    let answer = out.ask(printable!("Trust this log, in {}", path.display()), "no")?;
    Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

impl IssuerView {
    fn of(trust: &TrustAnchors, name: &str) -> Self {
        let time = |at: Option<UnixSeconds>| at.map(|at| at.to_string());
        let key = |pin: &PinnedKey| KeyView {
            key: pin.key.id().to_string(),
            from: time(pin.from),
            until: time(pin.until),
        };
        Self { name: name.to_owned(), keys: trust.pins(name).map(key).collect() }
    }

    fn text(&self) -> Printable {
        let mut text = printable!("issuer {}\n", self.name);
        for KeyView { key, from, until } in &self.keys {
            let mut line = printable!("  key         {}", key);
            for (word, at) in [("from", from), ("until", until)] {
                if let Some(at) = at {
                    line.push(printable!(", {} {}", word, at));
                }
            }
            text.line(line);
        }
        text
    }
}

impl LogView {
    fn of(log: &TrustedLog) -> Self {
        Self {
            name: log.name.clone(),
            keys: log.keys.iter().map(|key| key.id().to_string()).collect(),
            checkpoint: log.checkpoint.clone(),
        }
    }

    /// Whether `other` would add nothing.
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
