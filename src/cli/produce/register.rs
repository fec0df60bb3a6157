//! `capstan register`: sends statements to a log, and verifies the receipts
//! before it reports success.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;
use tokio::task::JoinSet;

use super::registrar::{Receipted, Registrar, Unsent};
use crate::cli::client::target::Target;
use crate::cli::output::{Out, chain};
use crate::cli::{CliError, Exit, files};
use crate::envelope::{SignedStatement, StatementId};
use crate::receipt::attach;
use crate::wire::printable::{Printable, printable};

/// Concurrent registrations.
const PARALLEL: usize = 8;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan register action.cose --url http://127.0.0.1:8787")]
pub(in crate::cli) struct Args {
    /// Signed Statements; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
    /// File for the Transparent Statement, or a directory when there are many
    #[arg(long, short, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// File for the receipt alone
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Bearer token of the log
    #[arg(long, env = "CAPSTAN_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

/// A statement with a verified receipt.
#[derive(Serialize)]
pub(in crate::cli) struct Done {
    ok: bool,
    code: &'static str,
    file: String,
    id: String,
    index: Option<u64>,
    output: PathBuf,
    #[serde(skip)]
    receipt: Vec<u8>,
}

#[derive(Serialize)]
struct All {
    ok: bool,
    code: &'static str,
    files: Vec<Done>,
    errors: Vec<String>,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let registrar =
        Registrar::new(args.target.client(args.token.as_deref())?, args.trust.as_deref(), *out);
    let registrar = Arc::new(registrar.await?);
    if let [file] = args.files.as_slice() {
        let path = args.output.clone().unwrap_or_else(|| beside(file));
        let done = register(&registrar, file, &path).await?;
        if let Some(path) = &args.receipt {
            files::write_file(path, &done.receipt)?;
        }
        registrar.note_untrusted_key(&done.receipt);
        out.answer(&done, text(&done))?;
        return Ok(Exit::Yes);
    }
    if args.receipt.is_some() {
        return Err(CliError::failed("usage", "--receipt goes with one file only").into());
    }
    many(args, registrar, out).await
}

/// Registers several at once; one that fails does not stop the others.
async fn many(args: &Args, registrar: Arc<Registrar>, out: &Out) -> anyhow::Result<Exit> {
    if let Some(directory) = &args.output {
        std::fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
    }
    let bar = out.progress(u64::try_from(args.files.len()).unwrap_or(0), "registering");
    let (mut files, mut errors, mut exits) = (Vec::new(), Vec::new(), Vec::new());
    let mut waiting = args.files.iter();
    let mut running = JoinSet::new();
    loop {
        while running.len() < PARALLEL
            && let Some(file) = waiting.next()
        {
            let (registrar, file) = (registrar.clone(), file.clone());
            let path = match (&args.output, beside(&file).file_name()) {
                (Some(directory), Some(name)) => directory.join(name),
                _ => beside(&file),
            };
            running.spawn(async move {
                let done = register(&registrar, &file, &path).await;
                done.with_context(|| format!("{}", file.display()))
            });
        }
        let Some(finished) = running.join_next().await else { break };
        bar.inc(1);
        match finished? {
            Ok(done) => files.push(done),
            Err(error) => {
                let known = error.downcast_ref::<CliError>();
                exits.push(known.map_or(Exit::Failed, |known| known.exit));
                errors.push(chain(&error));
            }
        }
    }
    bar.finish_and_clear();
    files.sort_by(|a, b| a.file.cmp(&b.file));
    errors.iter().for_each(|error| out.complain(Printable::long(error)));
    if let Some(first) = files.first() {
        registrar.note_untrusted_key(&first.receipt);
    }
    let worst_first = [Exit::Failed, Exit::No, Exit::CannotTell];
    let answer = worst_first.into_iter().find(|a| exits.contains(a)).unwrap_or(Exit::Yes);
    let lines: Printable = files.iter().map(text).collect();
    let ok = answer == Exit::Yes;
    let code = if ok { "ok" } else { "not-all-registered" };
    out.answer(&All { ok, code, files, errors }, lines)?;
    Ok(answer)
}

/// Sends one statement, verifies the receipt and writes both. A response that
/// does not verify is kept in a file named `.unverified`.
async fn register(registrar: &Registrar, file: &Path, output: &Path) -> anyhow::Result<Done> {
    let statement = SignedStatement::parse_any_size(files::read(file)?)?;
    let Receipted { receipt, index } = match registrar.send(&statement).await {
        Ok(receipted) => receipted,
        Err(Unsent::Unverified { error, answer }) => {
            let kept = unverified(output);
            let whole = attach(&statement, &answer).unwrap_or(answer);
            files::write_file(&kept, &whole)?;
            let what = format!("{}. What the log sent is kept in {}", error.what, kept.display());
            return Err(CliError { what, ..error }.into());
        }
        Err(Unsent::Refused(error)) => return Err(error.into()),
        Err(Unsent::NotSent(error)) => return Err(error),
    };
    files::write_file(output, &attach(&statement, &receipt)?)?;
    Ok(Done {
        ok: true,
        code: "ok",
        file: file.display().to_string(),
        id: StatementId::of(&statement).to_string(),
        index,
        output: output.to_owned(),
        receipt,
    })
}

fn unverified(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".unverified");
    PathBuf::from(name)
}

/// `action.cose` becomes `action.transparent.cose`, in the same place.
fn beside(file: &Path) -> PathBuf {
    let stem = file.file_stem().filter(|stem| *stem != "-").unwrap_or("statement".as_ref());
    let mut name = stem.to_owned();
    name.push(".transparent.cose");
    file.with_file_name(name)
}

fn text(done: &Done) -> Printable {
    let place = done.index.map_or(String::new(), |index| format!(" #{index}"));
    printable!("registered {}{}\n  {}\n", done.id, place, done.output.display())
}
