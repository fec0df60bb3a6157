//! `capstan register`: statements go to a log, receipts come back, and are
//! checked before anybody hears that they are good.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;
use tokio::task::JoinSet;

use super::client::Client;
use super::output::{Out, chain};
use super::{Answer, Stop, files, wait};
use crate::envelope::{SignedStatement, StatementId};
use crate::key::PublicKey;
use crate::receipt::{Receipt, attach};
use crate::trust::TrustAnchors;
use crate::verify::{Memo, inclusion};
use crate::wire::printable::{Printable, printable};

/// Registrations under way at once.
const PARALLEL: usize = 8;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan register action.cose --url http://127.0.0.1:8787")]
pub(super) struct Args {
    /// Signed Statements; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Address of the log
    #[arg(long)]
    url: String,
    /// File for the Transparent Statement, or a directory when there are many
    #[arg(long, short, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// File for the receipt alone
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Whom to believe [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Bearer token of the log
    #[arg(long, env = "CAPSTAN_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

/// One statement that is registered, and shown to be.
#[derive(Serialize)]
pub(super) struct Done {
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

/// What stays the same for every file.
pub(super) struct Registrar {
    client: Client,
    trust: TrustAnchors,
    /// Keys the log gives as its own: they show that the receipt is whole,
    /// not that the log is the one you mean.
    offered: Vec<PublicKey>,
}

pub(super) async fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let trust = files::trust(args.trust.as_deref())?;
    let registrar = Arc::new(Registrar::new(&args.url, args.token.as_deref(), trust).await?);
    if let [file] = args.files.as_slice() {
        let path = args.output.clone().unwrap_or_else(|| beside(file));
        let done = registrar.register(file, &path).await?;
        if let Some(path) = &args.receipt {
            files::write_file(path, &done.receipt)?;
        }
        registrar.say_whose_key(&done.receipt, out);
        out.answer(&done, text(&done))?;
        return Ok(Answer::Yes);
    }
    if args.receipt.is_some() {
        return Err(Stop::failed("usage", "--receipt goes with one file only").into());
    }
    many(args, registrar, out).await
}

/// Registers several at once; one that fails does not stop the others.
async fn many(args: &Args, registrar: Arc<Registrar>, out: &Out) -> anyhow::Result<Answer> {
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
                let done = registrar.register(&file, &path).await;
                done.with_context(|| format!("{}", file.display()))
            });
        }
        let Some(finished) = running.join_next().await else { break };
        bar.inc(1);
        match finished? {
            Ok(done) => files.push(done),
            Err(error) => {
                let stop = error.downcast_ref::<Stop>();
                exits.push(stop.map_or(Answer::Unanswered, |stop| stop.answer));
                errors.push(chain(&error));
            }
        }
    }
    bar.finish_and_clear();
    files.sort_by(|a, b| a.file.cmp(&b.file));
    errors.iter().for_each(|error| out.complain(Printable::long(error)));
    if let Some(first) = files.first() {
        registrar.say_whose_key(&first.receipt, out);
    }
    let worst_first = [Answer::Unanswered, Answer::No, Answer::CannotTell];
    let answer = worst_first.into_iter().find(|a| exits.contains(a)).unwrap_or(Answer::Yes);
    let lines: Printable = files.iter().map(text).collect();
    let ok = answer == Answer::Yes;
    let code = if ok { "ok" } else { "not-all-registered" };
    out.answer(&All { ok, code, files, errors }, lines)?;
    Ok(answer)
}

impl Registrar {
    /// Asks the log for its keys; a log that answers is one to send to.
    pub(super) async fn new(
        url: &str,
        token: Option<&str>,
        trust: TrustAnchors,
    ) -> anyhow::Result<Self> {
        let client = Client::new(url, token)?;
        let offered = client.keys().await?;
        Ok(Self { client, trust, offered })
    }

    /// Sends one statement, checks the receipt, writes both down.
    pub(super) async fn register(&self, file: &Path, output: &Path) -> anyhow::Result<Done> {
        let statement = SignedStatement::parse_any_size(files::read(file)?)?;
        let receipt = wait::register(&self.client, statement.bytes()).await?;
        let parsed = Receipt::parse(receipt.clone())?;
        let (keys, _) = self.keys_for(&parsed);
        let shown = inclusion(&parsed, &statement.canonical(), &keys, &mut Memo::default());
        let shown = shown
            .map_err(|e| Stop::no(e.code(), format!("the log's receipt does not verify: {e}")))?;
        files::write_file(output, &attach(&statement, &receipt)?)?;
        Ok(Done {
            ok: true,
            code: "ok",
            file: file.display().to_string(),
            id: StatementId::of(&statement).to_string(),
            index: shown.place.map(|(index, _)| index),
            output: output.to_owned(),
            receipt,
        })
    }

    /// Keys of the trust file if it names the log, else those the log gives.
    fn keys_for(&self, receipt: &Receipt) -> (Vec<PublicKey>, bool) {
        let issuer = receipt.envelope().header().claims.issuer.as_deref();
        let logs = self.trust.logs().iter().filter(|log| Some(log.name.as_str()) == issuer);
        let keys: Vec<PublicKey> = logs.flat_map(|log| log.keys.iter().cloned()).collect();
        if keys.is_empty() { (self.offered.clone(), false) } else { (keys, true) }
    }

    fn say_whose_key(&self, receipt: &[u8], out: &Out) {
        let trusted = Receipt::parse(receipt.to_vec()).is_ok_and(|r| self.keys_for(&r).1);
        if !trusted {
            let url = self.client.base().as_str().trim_end_matches('/');
            out.note(printable!(
                "the receipt was checked under the keys {0} gives, not under your trust file\n\
                 next\n  {1} trust add {0}",
                url,
                super::program()
            ));
        }
    }
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
