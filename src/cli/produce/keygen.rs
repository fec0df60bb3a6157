//! `capstan keygen`: a key pair in two files.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;

use crate::cli::output::Out;
use crate::cli::{Answer, Stop};
use crate::key::{Algorithm, SigningKey};
use crate::store::{write_private, write_public};
use crate::wire::printable::printable;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan keygen --output agent.key")]
pub(in crate::cli) struct Args {
    /// File for the private key; the public one goes to FILE.pub
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// What to sign with
    #[arg(long, default_value = "ES256")]
    alg: Kind,
}

/// Algorithms we make keys for.
#[derive(Clone, Copy, ValueEnum)]
pub(in crate::cli) enum Kind {
    #[value(name = "ES256")]
    Es256,
    #[value(name = "ES384")]
    Es384,
    #[value(name = "Ed25519")]
    Ed25519,
}

impl Kind {
    pub(in crate::cli) fn algorithm(self) -> Algorithm {
        match self {
            Self::Es256 => Algorithm::Es256,
            Self::Es384 => Algorithm::Es384,
            Self::Ed25519 => Algorithm::EdDsa,
        }
    }
}

#[derive(Serialize)]
struct Made {
    ok: bool,
    key: String,
    private: PathBuf,
    public: PathBuf,
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let private = args.output.clone();
    let mut name = private.as_os_str().to_owned();
    name.push(".pub");
    let public = PathBuf::from(name);
    refuse_existing(&private)?;
    refuse_existing(&public)?;
    let key = SigningKey::generate(args.alg.algorithm())?;
    write_private(&private, key.to_pem()?.as_bytes())?;
    let pem = key.public().to_pem().unwrap_or_default();
    write_public(&public, pem.as_bytes())?;
    let id = key.public().id();
    let (private_at, public_at) = (private.display(), public.display());
    let text = printable!("{}\n  private  {}\n  public   {}", id, private_at, public_at);
    out.answer(&Made { ok: true, key: id.to_string(), private, public }, text)?;
    Ok(Answer::Yes)
}

/// A key file may be the only copy of a key.
fn refuse_existing(path: &Path) -> Result<(), Stop> {
    if path.exists() {
        return Err(Stop::no("exists", format!("{} exists and is kept", path.display())));
    }
    Ok(())
}
