//! `capstan audit`: a log seen from outside, compared with what it showed
//! us before. It may only grow.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, SignedCheckpoint, VerifierKey};
use crate::cli::client::Client;
use crate::cli::client::target::{Ca, Target};
use crate::cli::client::tiles;
use crate::cli::output::Out;
use crate::cli::{Answer, Stop, files, program};
use crate::log::{Frontier, TreeSize};
use crate::service::Identity;
use crate::trust::TrustAnchors;
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan audit http://127.0.0.1:8787 --state log.audit")]
pub(in crate::cli) struct Args {
    /// Address of the log [default: $CAPSTAN_URL, then client.url]
    url: Option<String>,
    #[command(flatten)]
    ca: Ca,
    /// What the log showed before [default: under ~/.local/state/capstan]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Whom to believe [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

/// What we remember of a log.
#[derive(Deserialize, Serialize)]
struct Remembered {
    /// The key its checkpoints verify under.
    key: String,
    /// The last checkpoint, as it was signed: evidence, if it comes to that.
    note: String,
    /// Size and peaks of the tree, in hex.
    frontier: String,
}

#[derive(Serialize)]
struct Audited {
    ok: bool,
    code: &'static str,
    origin: String,
    size: u64,
    root: String,
    before: Option<u64>,
    key_from: &'static str,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let client = Target::at(args.url.as_deref(), &args.ca).client(None)?;
    let trust = files::trust(args.trust.as_deref())?;
    let path = args.state.clone().map_or_else(|| default_state(&client), Ok)?;
    let before = remembered(&path)?;
    let note = client.fetch_text("checkpoint").await?;
    let signed = SignedCheckpoint::parse(&note)?;
    let first_key = before.as_ref().map(|before| before.key.as_str());
    let (key, key_from) = key_of(&client, &trust, (&signed, first_key)).await?;
    let now = verified(&signed, (&key, key_from)).map_err(|stop| {
        stop.next(format!("`{} trust add {}` shows both keys", program(), client.base()))
    })?;
    let old = before.as_ref().map(|state| older(state, &key)).transpose()?;
    let frontier = compare(&client, &now, (old.as_ref(), before.as_ref(), &note), out).await?;
    let state = Remembered { key: key.to_string(), note, frontier: text::hex(&frontier.encode()) };
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).with_context(|| format!("{}", parent.display()))?;
    }
    files::write_file(&path, serde_json::to_string_pretty(&state)?.as_bytes())?;
    let grown = old.as_ref().map_or("first seen".into(), |old| printable!("was {}", old.size));
    let line = printable!(
        "yes  {}: {} leaves ({}), root {}\n  key {}",
        now.origin,
        now.size,
        grown,
        now.root,
        key_from
    );
    let audited = Audited {
        ok: true,
        code: "ok",
        size: now.size.get(),
        root: now.root.to_string(),
        origin: now.origin,
        before: old.map(|old| old.size.get()),
        key_from,
    };
    out.answer(&audited, line)?;
    Ok(Answer::Yes)
}

/// The key that must have signed: the user's, the one from the first time,
/// or, the first time, the one the log gives.
pub(in crate::cli) async fn key_of(
    client: &Client,
    trust: &TrustAnchors,
    (note, first_key): (&SignedCheckpoint, Option<&str>),
) -> anyhow::Result<(VerifierKey, &'static str)> {
    // A log may have several entries; the one whose key has signed counts.
    let origin = note.origin();
    let named = trust.logs().iter().filter(|log| Identity::from_name(&log.name).origin == origin);
    let keys: Vec<VerifierKey> = named
        .filter_map(|log| VerifierKey::parse(log.checkpoint.as_deref()?).ok())
        .filter(|key| key.name() == origin)
        .collect();
    let signer = keys.iter().find(|key| note.verify(key).is_ok());
    if let Some(key) = signer.or(keys.last()) {
        return Ok((key.clone(), "from the trust file"));
    }
    if let Some(key) = first_key {
        return Ok((VerifierKey::parse(key)?, "remembered from the first audit"));
    }
    let offered = client.fetch_text("checkpoint/key").await?;
    Ok((VerifierKey::parse(offered.trim())?, "given by the log itself, remembered from now on"))
}

/// The checkpoint, if the key has signed it.
pub(in crate::cli) fn verified(
    note: &SignedCheckpoint,
    (key, key_from): (&VerifierKey, &str),
) -> Result<Checkpoint, Stop> {
    note.verify(key).map_err(|e| {
        let what = format!("the checkpoint is not signed by the log's key ({key_from}): {e}");
        Stop::no(e.code(), what)
    })
}

/// Recomputes the root from the leaves the log serves, on top of the tree we
/// know; when that fails, from nothing, to tell a fork from broken tiles.
async fn compare(
    client: &Client,
    now: &Checkpoint,
    (old, before, note): (Option<&Checkpoint>, Option<&Remembered>, &str),
    out: &Out,
) -> anyhow::Result<Frontier> {
    let start = before.map(frontier_of).transpose()?.unwrap_or(Frontier::empty());
    let forked = |what: String| {
        let first = before.map_or("", |state| state.note.as_str());
        Stop::no("forked", what).details(evidence(Some(first), note))
    };
    if let Some(old) = old.filter(|old| now.size < old.size) {
        let what = format!("the log went back from {} to {} leaves", old.size, now.size);
        return Err(forked(what).into());
    }
    let (grown, _) = tiles::grow(client, start.clone(), (start.size(), now.size), out).await?;
    if grown.root() == now.root {
        return Ok(grown);
    }
    let middle = old.map_or(TreeSize::new(0), |old| old.size);
    let (whole, at_old) = tiles::grow(client, Frontier::empty(), (middle, now.size), out).await?;
    if old.is_some_and(|old| old.root != at_old || whole.root() == now.root) {
        return Err(forked("the log shows another tree than before".to_owned()).into());
    }
    let what = format!("the tiles give root {}, the checkpoint says {}", whole.root(), now.root);
    Err(Stop::no("tiles-differ", what).details(evidence(None, note)).into())
}

/// What the log has signed, to show to others.
fn evidence(before: Option<&str>, now: &str) -> Printable {
    let mut lines = Printable::default();
    if let Some(before) = before {
        lines.line("before:");
        lines.push(Printable::quoted(before));
    }
    lines.line("now:");
    lines.push(Printable::quoted(now));
    lines
}

fn older(state: &Remembered, key: &VerifierKey) -> anyhow::Result<Checkpoint> {
    let signed = SignedCheckpoint::parse(&state.note)?;
    let own = VerifierKey::parse(&state.key)?;
    signed.verify(key).or_else(|_| signed.verify(&own)).context("the remembered checkpoint")
}

fn frontier_of(state: &Remembered) -> anyhow::Result<Frontier> {
    let bytes = text::from_hex(&state.frontier).context("the state file is damaged")?;
    Ok(Frontier::decode(&bytes)?)
}

fn remembered(path: &Path) -> anyhow::Result<Option<Remembered>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = files::read_text(path)?;
    let state = serde_json::from_str(&text);
    Ok(Some(state.with_context(|| format!("{} is no audit state", path.display()))?))
}

fn default_state(client: &Client) -> anyhow::Result<PathBuf> {
    let state = files::variable("XDG_STATE_HOME")
        .or_else(|| Some(files::variable("HOME")?.join(".local").join("state")));
    let state = state.ok_or_else(|| Stop::failed("usage", "--state is missing"))?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = client.base().as_str().chars().map(plain).collect();
    Ok(state.join("capstan").join(format!("{}.audit", name.trim_matches('-'))))
}
