//! `capstan trust remove` and `capstan trust follow`: change the trust file
//! offline.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::check::succession;
use crate::cli::output::Out;
use crate::cli::{CliError, Exit, files};
use crate::envelope::SignedStatement;
use crate::service::Identity;
use crate::trust::{TrustAnchors, edit};
use crate::verify::successors;
use crate::wire::printable::{Printable, printable};

#[derive(clap::Args)]
pub(in crate::cli) struct RemoveArgs {
    /// Name of a log or an issuer, as `capstan trust show` prints it
    name: String,
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(in crate::cli) struct FollowArgs {
    /// Succession statements of a log, with their receipts
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

#[derive(Serialize)]
struct RemoveReport {
    ok: bool,
    code: &'static str,
    removed: usize,
}

#[derive(Serialize)]
struct FollowReport {
    ok: bool,
    code: &'static str,
    keys: Vec<String>,
}

/// A trust file that must exist.
fn existing(flag: Option<&PathBuf>) -> anyhow::Result<(PathBuf, String)> {
    let nowhere =
        || CliError::failed("usage", "--trust is missing, and there is no home directory");
    let (path, _) = files::trust_path(flag.map(PathBuf::as_path)).ok_or_else(nowhere)?;
    let text = files::read_text(&path)?;
    Ok((path, text))
}

/// Removes a log or an issuer from the trust file.
pub(in crate::cli) fn remove(args: &RemoveArgs, out: &Out) -> anyhow::Result<Exit> {
    let (path, mut text) = existing(args.trust.as_ref())?;
    let with_scheme = Identity::from_name(&args.name).issuer;
    let mut removed = 0;
    for name in [args.name.as_str(), with_scheme.as_str()] {
        for kind in ["log", "issuer"] {
            let (shorter, count) = edit::without(&text, kind, name)?;
            text = shorter;
            removed += count;
        }
    }
    if removed == 0 {
        let what = format!("{} does not name {}", path.display(), args.name);
        let next = format!("{} trust show", crate::cli::program());
        return Err(CliError::no("not-found", what).next(next).into());
    }
    files::write_file(&path, text.as_bytes())?;
    let line = printable!("removed {} from {}", args.name, path.display());
    out.answer(&RemoveReport { ok: true, code: "ok", removed }, line)?;
    Ok(Exit::Yes)
}

/// Adds the keys that succession statements lead to from trusted ones.
pub(in crate::cli) fn follow(args: &FollowArgs, out: &Out) -> anyhow::Result<Exit> {
    let (path, text) = existing(args.trust.as_ref())?;
    let trust = TrustAnchors::parse(&text)?;
    let statements: Vec<SignedStatement> = args
        .files
        .iter()
        .map(|file| Ok(SignedStatement::parse_any_size(files::read(file)?)?))
        .collect::<anyhow::Result<_>>()?;
    let mut names: Vec<&str> = trust.logs().iter().map(|log| log.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let (mut lines, mut keys) = (Printable::default(), Vec::new());
    for known in names.into_iter().filter_map(|name| succession::entry(&trust, name)) {
        let followed = successors(&known.name, &known.keys, &statements);
        if followed.is_empty() {
            continue;
        }
        succession::remember(&path, &succession::extended(&known, &followed))?;
        for key in followed {
            let id = key.id().to_string();
            lines.line(printable!("{} has the new key {}, in {}", known.name, id, path.display()));
            keys.push(id);
        }
    }
    if keys.is_empty() {
        let what = "these statements do not lead from a key in the trust file to a new one";
        return Err(CliError::cannot_tell("succession-unknown", what).into());
    }
    out.answer(&FollowReport { ok: true, code: "ok", keys }, lines)?;
    Ok(Exit::Yes)
}
