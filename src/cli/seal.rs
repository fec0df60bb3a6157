//! `capstan seal`: a payload becomes a Signed Statement.

use std::path::PathBuf;

use super::output::Out;
use super::{Answer, files};
use crate::envelope::{Draft, SignedStatement, StatementId, seal};
use crate::service::now;

const EXAMPLE: &str = "Example: capstan seal action.json --key agent.key --iss https://agents.example \\
    --sub order-7781 --content-type application/json --output action.cose";

#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Args {
    /// What to sign; `-` reads standard input
    #[arg(value_name = "PAYLOAD")]
    payload: PathBuf,
    /// Private key, PKCS#8 PEM
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Media type of the payload
    #[arg(long, value_name = "TYPE")]
    content_type: String,
    /// Who says it: your name as issuer
    #[arg(long, value_name = "ISS")]
    iss: String,
    /// What it is about
    #[arg(long, value_name = "SUB")]
    sub: String,
    /// File for the statement instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let key = files::signing_key(&args.key)?;
    let payload = files::read(&args.payload)?;
    let draft = Draft {
        content_type: &args.content_type,
        issuer: &args.iss,
        subject: &args.sub,
        issued_at: Some(now()),
        payload: &payload,
    };
    let bytes = seal(&draft, &key)?;
    // No log would take what this refuses, so the sender hears it here.
    let statement = SignedStatement::parse(bytes.clone())?;
    files::write(args.output.as_deref(), &bytes, out)?;
    if let Some(path) = &args.output {
        out.note(&format!("sealed {} as {}", StatementId::of(&statement), path.display()));
    }
    Ok(Answer::Yes)
}
