//! `capstan init` and `capstan key rotate`: a new log, and a new key for one.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use crate::cli::output::Out;
use crate::cli::produce::keygen::Kind;
use crate::cli::settings::{self, Given};
use crate::cli::{CliError, Exit, broken_store, files};
use crate::key::KeyId;
use crate::service::{self, ControlError, Writer};
use crate::store::{self, Backend, Store};
use crate::wire::printable::printable;

/// What a log admits when nobody says otherwise.
const DEFAULT_POLICY: &str = include_str!("../../../policy/issuers.toml");

#[derive(clap::Args)]
#[command(after_help = "Example: capstan init --data /var/lib/capstan --name log.example")]
pub(in crate::cli) struct Args {
    /// Directory for the log; must not contain one
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Permanent name of the log: a host name or a URI
    #[arg(long)]
    name: Option<String>,
    /// Registration policy [default: admit issuers whose key is pinned in trust.toml or certified
    /// by an anchor there]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// File for the guard, preferably on another disk [default: DIR.guard]
    #[arg(long, value_name = "FILE")]
    guard: Option<PathBuf>,
    /// Signature algorithm of the log
    #[arg(long, default_value = "ES256")]
    alg: Kind,
}

#[derive(Serialize)]
struct Made {
    ok: bool,
    name: String,
    key: String,
    data: PathBuf,
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let asked =
        |given: Option<String>, flag: &str, question: &'static str, default: &str| match given {
            Some(given) => Ok(given),
            None if out.can_ask() => out.ask(question, default),
            None => Err(CliError::failed("usage", format!("{flag} is missing")).into()),
        };
    let data = args.data.as_ref().map(|path| path.display().to_string());
    let data = asked(data, "--data", "Data directory", "capstan-data")?;
    let name = asked(args.name.clone(), "--name", "Name of the log (a host name)", "")?;
    if name.trim().is_empty() {
        return Err(CliError::failed("usage", "--name is empty").into());
    }
    let policy = args.policy.as_deref().map(files::read_text).transpose()?;
    let policy = policy.as_deref().unwrap_or(DEFAULT_POLICY);
    let data = PathBuf::from(data);
    let guard = args.guard.as_deref().map(std::path::absolute).transpose()?;
    // A variable counts for `serve` as well, a flag is written down.
    let set = settings::load(&Given { data: Some(&data), ..Given::default() })?.config.guard.path;
    let place = guard.as_deref().or(set.as_deref());
    let made = service::init_guarded(&data, name.trim(), policy, args.alg.algorithm(), place);
    let identity = made.map_err(refused)?;
    if let Some(guard) = &guard {
        remember_guard(&data.join("capstan.toml"), guard)?;
    }
    let key = key_of(&data)?;
    let text = printable!("{}\n  key   {}\n  data  {}", identity.issuer, key, data.display());
    out.answer(
        &Made { ok: true, name: identity.issuer, key: key.to_string(), data: data.clone() },
        text,
    )?;
    out.note(printable!(
        "next\n  {0} serve --data {1}\n  {0} trust add http://127.0.0.1:8787\n  \
         {0} fsck --data {1}\n\
         {1}/policy.toml says who may register, {1}/trust.toml which keys are trusted.",
        crate::cli::program(),
        data.display()
    ));
    Ok(Exit::Yes)
}

/// Puts the place of the guard into the settings of a new log.
fn remember_guard(settings: &Path, guard: &Path) -> anyhow::Result<()> {
    let guard = guard.to_str().context("--guard is not text")?;
    let line = format!("[guard]\npath = {}\n", toml::Value::from(guard));
    let text = files::read_text(settings)?.replacen("[guard]\n", &line, 1);
    files::write_file(settings, text.as_bytes())
}

/// The key a log on this machine signs with.
fn key_of(data: &Path) -> anyhow::Result<KeyId> {
    let (store, _) = Store::open_unchecked(Backend::open(data)?)?;
    let keys = store.keys()?;
    Ok(keys.first().context("the log has no key")?.id())
}

pub(in crate::cli) fn refused(error: ControlError) -> anyhow::Error {
    match error {
        ControlError::Store(store::Error::Exists { path }) => CliError::no(
            "store-exists",
            format!("{} holds a log already; it is kept", path.display()),
        )
        .next(format!("{} serve --data {}", crate::cli::program(), path.display()))
        .into(),
        ControlError::Store(left @ store::Error::GuardLeft { .. }) => {
            let next = "restore a copy of that log, or move its guard away if you mean another log";
            CliError::no(left.code(), left.to_string()).next(next).into()
        }
        other => other.into(),
    }
}

#[derive(clap::Subcommand)]
pub(in crate::cli) enum KeyVerb {
    /// Replace the service key; old receipts stay valid
    #[command(after_help = "Example: capstan key rotate --data /var/lib/capstan")]
    Rotate {
        /// Data directory of a log that is not running
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
}

#[derive(Serialize)]
struct RotateReport {
    ok: bool,
    key: String,
}

pub(in crate::cli) fn rotate_key(verb: &KeyVerb, out: &Out) -> anyhow::Result<Exit> {
    let KeyVerb::Rotate { data } = verb;
    let loaded = settings::load(&Given { data: Some(data), ..Given::default() })?;
    let guard = loaded.config.guard.path;
    let mut writer =
        Writer::open(data, guard.as_deref(), false).map_err(|e| broken_store(e, data))?;
    let id = service::rotate(&mut writer, guard.as_deref())?;
    out.answer(&RotateReport { ok: true, key: id.to_string() }, printable!("new key {}", id))?;
    out.note(printable!(
        "The succession is on the log, and the old key stays published for old receipts.\n\
         next\n  {0} serve --data {1}\n  {0} trust add URL   (whoever verifies; it follows the succession)",
        crate::cli::program(),
        data.display()
    ));
    Ok(Exit::Yes)
}
