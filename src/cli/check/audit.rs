//! `capstan audit`: compares a log with what it showed at the last audit. It
//! may only have grown.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, SignedCheckpoint, VerifierKey};
use crate::cli::client::Client;
use crate::cli::client::target::{Ca, Target};
use crate::cli::client::tiles;
use crate::cli::output::Out;
use crate::cli::{CliError, Exit, files, program};
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
    /// File with what the log showed before [default: under ~/.local/state/capstan]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

/// The state file: what the log showed at the last audit.
#[derive(Deserialize, Serialize)]
struct AuditState {
    /// The key its checkpoints verify under.
    key: String,
    /// The last checkpoint as it was signed, as evidence of a fork.
    note: String,
    /// Size and peaks of the tree, in hex.
    frontier: String,
}

#[derive(Serialize)]
struct AuditReport {
    ok: bool,
    code: &'static str,
    origin: String,
    size: u64,
    root: String,
    before: Option<u64>,
    key_from: &'static str,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let client = Target::at(args.url.as_deref(), &args.ca).client(None)?;
    let trust = files::trust(args.trust.as_deref())?;
    let path = args.state.clone().map_or_else(|| default_state(&client), Ok)?;
    let before = read_state(&path)?;
    let note = client.fetch_text("checkpoint").await?;
    let signed = SignedCheckpoint::parse(&note)?;
    let first_key = before.as_ref().map(|before| before.key.as_str());
    let key = checkpoint_key(&client, &trust, &signed, first_key).await?;
    let now = verified(&signed, &key).map_err(|error| {
        error.next(format!("`{} trust add {}` shows both keys", program(), client.base()))
    })?;
    let before = before.map(|state| Before::read(state, &key.key)).transpose()?;
    let frontier = compare(&client, &now, before.as_ref(), &note, out).await?;
    let frontier = text::hex(&frontier.encode());
    let state = AuditState { key: key.key.to_string(), note, frontier };
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).with_context(|| format!("{}", parent.display()))?;
    }
    files::write_file(&path, serde_json::to_string_pretty(&state)?.as_bytes())?;
    let old_size = before.as_ref().map(|before| before.checkpoint.size);
    let grown = old_size.map_or("first audit".into(), |size| printable!("was {}", size));
    let line = printable!(
        "yes  {}: {} leaves ({}), root {}\n  key {}",
        now.origin,
        now.size,
        grown,
        now.root,
        key.source
    );
    let report = AuditReport {
        ok: true,
        code: "ok",
        size: now.size.get(),
        root: now.root.to_string(),
        origin: now.origin,
        before: old_size.map(TreeSize::get),
        key_from: key.source,
    };
    out.answer(&report, line)?;
    Ok(Exit::Yes)
}

/// The key that must have signed a checkpoint.
pub(in crate::cli) struct CheckpointKey {
    key: VerifierKey,
    /// Where it comes from.
    source: &'static str,
}

/// The key in the trust file, else the one from the first audit, else the one
/// the log publishes.
pub(in crate::cli) async fn checkpoint_key(
    client: &Client,
    trust: &TrustAnchors,
    note: &SignedCheckpoint,
    first_key: Option<&str>,
) -> anyhow::Result<CheckpointKey> {
    // Of several entries for this log, the one whose key signed the note.
    let origin = note.origin();
    let named = trust.logs().iter().filter(|log| Identity::from_name(&log.name).origin == origin);
    let keys: Vec<VerifierKey> = named
        .filter_map(|log| VerifierKey::parse(log.checkpoint.as_deref()?).ok())
        .filter(|key| key.name() == origin)
        .collect();
    let signer = keys.iter().find(|key| note.verify(key).is_ok());
    if let Some(key) = signer.or(keys.last()) {
        return Ok(CheckpointKey { key: key.clone(), source: "from the trust file" });
    }
    if let Some(key) = first_key {
        let key = VerifierKey::parse(key)?;
        return Ok(CheckpointKey { key, source: "remembered from the first audit" });
    }
    let published = client.fetch_text("checkpoint/key").await?;
    let key = VerifierKey::parse(published.trim())?;
    Ok(CheckpointKey { key, source: "given by the log itself, remembered from now on" })
}

/// The checkpoint, if the key has signed it.
pub(in crate::cli) fn verified(
    note: &SignedCheckpoint,
    CheckpointKey { key, source }: &CheckpointKey,
) -> Result<Checkpoint, CliError> {
    note.verify(key).map_err(|e| {
        let what = format!("the checkpoint is not signed by the log's key ({source}): {e}");
        CliError::no(e.code(), what)
    })
}

/// Recomputes the root on top of the tree of the last audit. If it differs,
/// recomputes it from the first leaf, to tell a fork from damaged tiles.
async fn compare(
    client: &Client,
    now: &Checkpoint,
    before: Option<&Before>,
    note: &str,
    out: &Out,
) -> anyhow::Result<Frontier> {
    let forked = |what: String| {
        let first = before.map_or("", |before| before.note.as_str());
        CliError::no("forked", what).details(evidence(Some(first), note))
    };
    let old = before.map(|before| &before.checkpoint);
    if let Some(old) = old.filter(|old| now.size < old.size) {
        let what = format!("the log shrank from {} to {} leaves", old.size, now.size);
        return Err(forked(what).into());
    }
    let start = before.map_or(Frontier::empty(), |before| before.frontier.clone());
    let grown = tiles::grow(client, start, now.size, None, out).await?.frontier;
    if grown.root() == now.root {
        return Ok(grown);
    }
    let old_size = old.map(|old| old.size);
    let tree = tiles::grow(client, Frontier::empty(), now.size, old_size, out).await?;
    let root = tree.frontier.root();
    if old.is_some_and(|old| tree.root_on_the_way != Some(old.root) || root == now.root) {
        return Err(forked("the log shows another tree than before".to_owned()).into());
    }
    let what = format!("the tiles give root {root}, the checkpoint says {}", now.root);
    Err(CliError::no("tiles-differ", what).details(evidence(None, note)).into())
}

/// The signed checkpoints, as evidence to show to others.
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

/// The last audit.
struct Before {
    checkpoint: Checkpoint,
    frontier: Frontier,
    note: String,
}

impl Before {
    fn read(state: AuditState, key: &VerifierKey) -> anyhow::Result<Self> {
        let signed = SignedCheckpoint::parse(&state.note)?;
        let own = VerifierKey::parse(&state.key)?;
        let checkpoint = signed.verify(key).or_else(|_| signed.verify(&own));
        let checkpoint = checkpoint.context("the checkpoint in the state file")?;
        let bytes = text::from_hex(&state.frontier).context("the state file is damaged")?;
        Ok(Self { checkpoint, frontier: Frontier::decode(&bytes)?, note: state.note })
    }
}

fn read_state(path: &Path) -> anyhow::Result<Option<AuditState>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = files::read_text(path)?;
    let state = serde_json::from_str(&text);
    Ok(Some(state.with_context(|| format!("{} is not an audit state file", path.display()))?))
}

fn default_state(client: &Client) -> anyhow::Result<PathBuf> {
    let state = files::variable("XDG_STATE_HOME")
        .or_else(|| Some(files::variable("HOME")?.join(".local").join("state")));
    let state = state.ok_or_else(|| CliError::failed("usage", "--state is missing"))?;
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = client.base().as_str().chars().map(safe).collect();
    Ok(state.join("capstan").join(format!("{}.audit", name.trim_matches('-'))))
}
