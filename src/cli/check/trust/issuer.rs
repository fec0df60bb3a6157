//! `capstan trust issuer`: ties a name to a key, for a verifier or for a log.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::Serialize;

use super::{CliError, Exit, Out, files};
use crate::cli::program;
use crate::key::PublicKey;
use crate::trust::did_key::key_in_name;
use crate::trust::{PinnedKey, TrustAnchors, issuer_block};
use crate::wire::printable::printable;
use crate::wire::time::UnixSeconds;

#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    /// The issuer, exactly as its statements name it
    name: String,
    /// Its public key: PEM or COSE_Key; a did:key or did:jwk is its own
    key: Option<PathBuf>,
    /// The key is valid from this time on, as 2026-01-31T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<UnixSeconds>,
    /// The key is no longer valid from this time on
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<UnixSeconds>,
    /// Add this key to those the issuer already has
    #[arg(long)]
    add: bool,
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// The trust file of the log in this data directory
    #[arg(long, value_name = "DIR", conflicts_with = "trust")]
    data: Option<PathBuf>,
}

#[derive(Serialize)]
struct Tied {
    ok: bool,
    code: &'static str,
    name: String,
    key: String,
    file: String,
    is_new: bool,
}

fn time(text: &str) -> Result<UnixSeconds, String> {
    let time = UnixSeconds::from_rfc3339(text);
    time.ok_or_else(|| "a date and time with offset, as 2026-01-31T00:00:00Z".to_owned())
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    if args.name.is_empty() {
        return Err(CliError::failed("usage", "the name is empty; nobody is called that").into());
    }
    if args.from.zip(args.until).is_some_and(|(from, until)| from >= until) {
        return Err(CliError::failed("usage", "--until is not after --from").into());
    }
    let path = path(args)?;
    let text = if path.exists() { files::read_text(&path)? } else { String::new() };
    let known = TrustAnchors::parse_any(&text)
        .map_err(|e| CliError::failed(e.code(), format!("{}: {e}", path.display())))?;
    let key = key(args)?;
    let pin = PinnedKey { key, from: args.from, until: args.until };
    let is_new = is_new(args, &known, &pin)?;
    if is_new {
        let block = issuer_block(&args.name, &pin).ok_or_else(|| {
            CliError::failed("trust-key", "a key of this kind cannot be written as PEM")
        })?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        files::write_file(&path, format!("{text}{block}").as_bytes())?;
    }
    let tied = Tied {
        ok: true,
        code: "ok",
        name: args.name.clone(),
        key: pin.key.id().to_string(),
        file: path.display().to_string(),
        is_new,
    };
    let already = if is_new { "" } else { " already" };
    let line = printable!("{} has the key {}{}, in {}", tied.name, tied.key, already, tied.file);
    out.answer(&tied, line)?;
    if args.data.is_some() && is_new {
        out.note("a log that runs takes it in on SIGHUP, and logs that it did");
    }
    Ok(Exit::Yes)
}

/// The key from the file, or the one that the name spells out; not two that
/// differ.
fn key(args: &Args) -> anyhow::Result<PublicKey> {
    let given = args.key.as_deref().map(files::public_key).transpose()?;
    let spelt = key_in_name(&args.name).transpose().with_context(|| args.name.clone())?;
    match (given, spelt) {
        (Some(given), Some(spelt)) if given != spelt => {
            let what = "the name spells out another key than the one in the file";
            Err(CliError::no("issuer-other-key", what).into())
        }
        (Some(key), _) | (None, Some(key)) => Ok(key),
        (None, None) => {
            let next = format!("{} trust issuer NAME KEY.pub", program());
            Err(CliError::failed("usage", "the file with its public key is missing")
                .next(next)
                .into())
        }
    }
}

fn path(args: &Args) -> anyhow::Result<PathBuf> {
    if let Some(data) = &args.data {
        if !data.join("FORMAT").exists() {
            let what = format!("{} holds no log; `capstan init` makes one", data.display());
            return Err(CliError::failed("store-not-found", what).into());
        }
        return Ok(data.join("trust.toml"));
    }
    let nowhere =
        || CliError::failed("usage", "--trust is missing, and there is no home directory");
    Ok(files::trust_path(args.trust.as_deref()).ok_or_else(nowhere)?.0)
}

/// Whether the pin is not there yet. A name that has another key, or this key
/// for another time, is not changed in passing.
fn is_new(args: &Args, known: &TrustAnchors, pin: &PinnedKey) -> anyhow::Result<bool> {
    let name = &args.name;
    let pins: Vec<&PinnedKey> = known.pins(name).collect();
    if pins.contains(&pin) {
        return Ok(false);
    }
    if pins.iter().any(|other| other.key == pin.key) {
        let what = format!("{name} has this key already, for another time");
        let error = CliError::no("issuer-other-time", what);
        return Err(error.next("change `from` and `until` in the trust file").into());
    }
    if !pins.is_empty() && !args.add {
        let fingerprint = |key: &PublicKey| key.id().to_string();
        let others: Vec<String> = pins.iter().map(|pin| fingerprint(&pin.key)).collect();
        let (others, new) = (others.join(", "), fingerprint(&pin.key));
        let what = format!("{name} has another key already: {others}; this one is {new}");
        let error = CliError::no("issuer-other-key", what);
        return Err(error.next("the same command with --add, if both keys are its own").into());
    }
    Ok(true)
}
