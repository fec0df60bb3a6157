//! `capstan record` and `capstan outbox`: no record is lost when a log cannot be
//! reached.
//!
//! A statement is durable in the outbox before it is sent, and leaves it only
//! with a verified receipt; refused statements are kept with the reason.

mod store;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::registrar::{Registrar, Unsent};
use super::seal;
use crate::cli::client::target::{Ca, Target};
use crate::cli::output::{Out, chain};
use crate::cli::{CliError, Exit};
use crate::envelope::{SignedStatement, StatementId};
use crate::receipt::attach;
use crate::service::now;
use crate::wire::printable::{Printable, printable};
use store::{Claim, Claimed, Earlier, Item, Outbox, Stage};

/// How long `record` waits for another process that is sending its record.
const OTHER_TIMEOUT: Duration = Duration::from_secs(120);
const OTHER_PAUSE: Duration = Duration::from_millis(50);
/// `iat` counts seconds.
const SEAL_TRIES: u32 = 6;
const SEAL_PAUSE: Duration = Duration::from_millis(500);

const RECORD_HELP: &str = "\
Example: capstan record action.json --key agent.key --url https://log.example

Exit codes: 0 recorded, 1 refused, 2 nothing was sealed, 3 waiting in the outbox.";

#[derive(Clone, clap::Args)]
#[command(after_help = RECORD_HELP)]
pub(in crate::cli) struct RecordArgs {
    #[command(flatten)]
    what: seal::What,
    /// Address of the log [default: $CAPSTAN_URL, then client.url]
    #[arg(long)]
    url: Option<String>,
    /// Your own id of this action: the same id again is the same record
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// The outbox, and how to reach and trust the log.
#[derive(Clone, clap::Args)]
pub(in crate::cli) struct Place {
    /// Directory of the outbox [default: $CAPSTAN_OUTBOX, then ~/.local/state/capstan/outbox]
    #[arg(long, value_name = "DIR")]
    outbox: Option<PathBuf>,
    /// Trust file [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Bearer token of the log
    #[arg(long, env = "CAPSTAN_TOKEN", hide_env_values = true)]
    token: Option<String>,
    #[command(flatten)]
    ca: Ca,
}

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Register the pending statements, each at the log it is for
    #[command(after_help = "Example: capstan outbox flush")]
    Flush {
        /// Send everything to this log instead of the one each record names
        #[arg(long)]
        url: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Show what is pending, what has a receipt, and what was refused
    #[command(after_help = "Example: capstan outbox status")]
    Status {
        /// Directory of the outbox
        #[arg(long, value_name = "DIR")]
        outbox: Option<PathBuf>,
    },
}

#[derive(Serialize)]
struct Status {
    ok: bool,
    waiting: usize,
    receipted: usize,
    refused: usize,
    outbox: PathBuf,
}

/// What became of records.
#[derive(Default, Serialize)]
struct Report {
    /// Null when something waits: nobody knows yet.
    ok: Option<bool>,
    code: &'static str,
    receipted: Vec<String>,
    waiting: Vec<String>,
    refused: Vec<String>,
    errors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    same_description_as: Option<String>,
    outbox: PathBuf,
}

impl Report {
    fn finish(mut self, outbox: &Outbox) -> (Self, Exit) {
        let (ok, code, answer) = if !self.waiting.is_empty() {
            (None, "waiting", Exit::CannotTell)
        } else if !self.refused.is_empty() {
            (Some(false), "refused", Exit::No)
        } else {
            (Some(true), "ok", Exit::Yes)
        };
        self.outbox = outbox.path.clone();
        (Self { ok, code, ..self }, answer)
    }
}

/// What became of one record.
enum Outcome {
    Receipted(PathBuf),
    Refused {
        kept: PathBuf,
        why: String,
    },
    Waiting(anyhow::Error),
    /// Another process took it meanwhile.
    Elsewhere,
}

/// Seals, stores and registers a record.
pub(in crate::cli) async fn record(args: &RecordArgs, out: &Out) -> anyhow::Result<Exit> {
    if let Some(kind) = &args.what.example {
        return seal::example(kind, out);
    }
    let target = Target::at(args.url.as_deref(), &args.place.ca);
    let url = target.url()?;
    let what = args.what.resolved(&target, out).await?;
    let args = &RecordArgs { what, url: Some(url.clone()), ..args.clone() };
    let outbox = Outbox::open(args.place.outbox.as_deref())?;
    let Entered { id, first } = enter(args, &outbox)?;
    if let Some(first) = &first {
        out.note(printable!(
            "warning: the same description was recorded before, as {}; this is recorded as \
             another action. If it is the same one, give --idempotency-key",
            first
        ));
    }
    let client = args.place.ca.client(&url, args.place.token.as_deref())?;
    let outcome = match Registrar::new(client, args.place.trust.as_deref(), *out).await {
        Ok(registrar) => send_after_others(&outbox, &registrar, &id).await?,
        Err(error) => Outcome::Waiting(error),
    };
    let mut report = Report { same_description_as: first, ..Report::default() };
    let text = match outcome {
        Outcome::Elsewhere => return finished_elsewhere(&outbox, &id, report, out),
        Outcome::Receipted(path) => {
            report.receipted.push(id.clone());
            printable!("recorded {}\n  {}\n", id, path.display())
        }
        Outcome::Refused { kept, why } => {
            out.complain(Printable::long(&why));
            report.errors.push(why);
            report.refused.push(id.clone());
            printable!("refused {}\n  {}\n", id, kept.display())
        }
        Outcome::Waiting(error) => {
            let why = reason(&error);
            note_waiting(args, &error, &why, out);
            report.errors.push(why);
            report.waiting.push(id.clone());
            printable!("waiting  {}, not recorded yet\n  {}\n", id, outbox.path.display())
        }
    };
    let (report, answer) = report.finish(&outbox);
    out.answer(&report, text)?;
    Ok(answer)
}

/// A record in the outbox.
struct Entered {
    id: String,
    /// An earlier record with the same description.
    first: Option<String>,
}

/// Seals the record and puts it into the outbox, or finds it there by its key.
fn enter(args: &RecordArgs, outbox: &Outbox) -> anyhow::Result<Entered> {
    let payload = args.what.payload()?;
    let description = args.what.description(&payload)?;
    let _alone = outbox.lock()?;
    if let Some(key) = &args.idempotency_key
        && let Some((id, before)) = outbox.of_key(key)
    {
        if before == description {
            return Ok(Entered { id, first: None });
        }
        let what = format!("the idempotency key was used for another record, {id}");
        let next = "another key, or the description that went with this one";
        return Err(CliError::no("idempotency-key-reused", what).next(next).into());
    }
    let earlier = outbox.earlier(&description);
    let after = earlier.as_ref().map(|earlier| earlier.last.as_str());
    let (id, statement) = sealed_anew(args, &payload, after, outbox)?;
    if let Some(key) = &args.idempotency_key {
        outbox.remember_key(key, &id, &description)?;
    }
    let first = earlier.map(|earlier| earlier.first);
    let names = Earlier { first: first.clone().unwrap_or_else(|| id.clone()), last: id.clone() };
    outbox.remember_earlier(&description, &names)?;
    let item =
        Item { url: args.url.clone(), queued_at: Some(now().to_string()), ..Item::default() };
    outbox.keep(&id, statement.bytes(), &item)?;
    Ok(Entered { id, first })
}

/// Seals until the statement is none that was sealed before: a second action
/// within one second may come out as the same bytes.
fn sealed_anew(
    args: &RecordArgs,
    payload: &[u8],
    after: Option<&str>,
    outbox: &Outbox,
) -> anyhow::Result<(String, SignedStatement)> {
    for _ in 0..SEAL_TRIES {
        let statement = SignedStatement::parse(args.what.seal_payload(payload, after)?)?;
        let id = StatementId::of(&statement).to_string();
        if outbox.stage(&id).is_none() {
            return Ok((id, statement));
        }
        std::thread::sleep(SEAL_PAUSE);
    }
    let what = "every attempt gives the same statement: the clock does not advance";
    Err(CliError::failed("sealed-before", what).into())
}

/// Prints why a record waits and what to do.
fn note_waiting(args: &RecordArgs, error: &anyhow::Error, why: &str, out: &Out) {
    let flag = |dir: &PathBuf| format!(" --outbox {}", dir.display());
    let outbox = args.place.outbox.as_ref().map(flag).unwrap_or_default();
    let next = error.downcast_ref::<CliError>().and_then(|error| error.next.clone());
    out.note(printable!(
        "{}\nnext\n  {}{} outbox flush{}",
        Printable::long(why),
        next.map(|next| printable!("{}, then\n  ", next)).unwrap_or_default(),
        crate::cli::program(),
        outbox
    ));
}

/// Why a record waits, in words: a log that answered was reached.
fn reason(error: &anyhow::Error) -> String {
    let text = chain(error);
    match error.downcast_ref::<CliError>() {
        Some(_) => format!("no receipt: {text}"),
        None => format!("the log could not be reached: {text}"),
    }
}

/// Another process has finished with the record.
fn finished_elsewhere(
    outbox: &Outbox,
    id: &str,
    mut report: Report,
    out: &Out,
) -> anyhow::Result<Exit> {
    let text = match outbox.stage(id) {
        Some((Stage::Receipted, path)) => {
            report.receipted.push(id.to_owned());
            printable!("recorded {}\n  {}\n", id, path.display())
        }
        Some((Stage::Refused, path)) => {
            report.errors.extend(outbox.item(id).reason);
            report.refused.push(id.to_owned());
            printable!("refused {}\n  {}\n", id, path.display())
        }
        Some((Stage::Waiting, path)) => {
            report.waiting.push(id.to_owned());
            printable!("waiting  {}, another process sends it\n  {}\n", id, path.display())
        }
        None => {
            return Err(
                CliError::failed("gone", format!("{id} was taken out of the outbox")).into()
            );
        }
    };
    let (report, answer) = report.finish(outbox);
    out.answer(&report, text)?;
    Ok(answer)
}

/// Sends a record, once no other process is sending it.
async fn send_after_others(
    outbox: &Outbox,
    registrar: &Registrar,
    id: &str,
) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    loop {
        match outbox.claim(id)? {
            Claimed::Mine(claim) => return send(outbox, registrar, claim).await,
            Claimed::Gone => return Ok(Outcome::Elsewhere),
            Claimed::Busy if started.elapsed() > OTHER_TIMEOUT => return Ok(Outcome::Elsewhere),
            Claimed::Busy => tokio::time::sleep(OTHER_PAUSE).await,
        }
    }
}

/// Sends a claimed record and moves it to its new place in the outbox.
async fn send(outbox: &Outbox, registrar: &Registrar, claim: Claim) -> anyhow::Result<Outcome> {
    let statement = match SignedStatement::parse_any_size(claim.statement.clone()) {
        Ok(statement) => statement,
        Err(error) => return Ok(Outcome::Waiting(error.into())),
    };
    Ok(match registrar.send(&statement).await {
        Ok(receipted) => {
            let transparent = attach(&statement, &receipted.receipt)?;
            Outcome::Receipted(outbox.receipted(claim, &transparent)?)
        }
        Err(Unsent::Refused(error)) => {
            let kept = outbox.refused(claim, &error)?;
            Outcome::Refused { kept, why: error.what }
        }
        Err(Unsent::Unverified { error, answer }) => {
            let kept = outbox.unverified(&claim, &answer)?;
            let what = format!("{}. What the log sent is kept in {}", error.what, kept.display());
            Outcome::Waiting(CliError { what, ..error }.into())
        }
        Err(Unsent::NotSent(error)) => Outcome::Waiting(error),
    })
}

/// `capstan outbox flush|status`
pub(in crate::cli) async fn run(verb: &Verb, out: &Out) -> anyhow::Result<Exit> {
    match verb {
        Verb::Status { outbox } => status(&Outbox::open(outbox.as_deref())?, out),
        Verb::Flush { url, place } => flush(url.as_deref(), place, out).await,
    }
}

fn status(outbox: &Outbox, out: &Out) -> anyhow::Result<Exit> {
    let count = |part| outbox.list(part).map(|ids| ids.len());
    let (waiting, receipted, refused) = (count("waiting")?, count("receipted")?, count("refused")?);
    let text = printable!(
        "{} waiting, {} receipted, {} refused\n  {}\n",
        waiting,
        receipted,
        refused,
        outbox.path.display()
    );
    let ok = waiting == 0;
    out.answer(&Status { ok, waiting, receipted, refused, outbox: outbox.path.clone() }, text)?;
    Ok(Exit::Yes)
}

async fn flush(url: Option<&str>, place: &Place, out: &Out) -> anyhow::Result<Exit> {
    let outbox = Outbox::open(place.outbox.as_deref())?;
    let ids = outbox.list("waiting")?;
    let bar = out.progress(u64::try_from(ids.len()).unwrap_or(0), "registering");
    let mut logs = Logs { place, out, known: BTreeMap::new() };
    let mut report = Report::default();
    for id in ids {
        let default = || Target::at(None, &place.ca).url().ok();
        let url = url.map(str::to_owned).or_else(|| outbox.item(&id).url).or_else(default);
        let outcome = match (outbox.claim(&id)?, url) {
            // Another process sends it, or has sent it.
            (Claimed::Busy | Claimed::Gone, _) => Outcome::Elsewhere,
            (Claimed::Mine(_), None) => {
                let what = "the record names no log; give --url";
                Outcome::Waiting(CliError::failed("usage", what).into())
            }
            (Claimed::Mine(claim), Some(url)) => match logs.at(&url).await {
                Ok(registrar) => send(&outbox, registrar, claim).await?,
                Err(error) => Outcome::Waiting(error),
            },
        };
        match outcome {
            Outcome::Receipted(_) => report.receipted.push(id),
            Outcome::Refused { why, .. } => {
                report.errors.push(format!("{id}: refused: {why}"));
                report.refused.push(id);
            }
            Outcome::Waiting(error) => {
                report.errors.push(format!("{id}: {}", reason(&error)));
                report.waiting.push(id);
            }
            Outcome::Elsewhere => {}
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    report.errors.iter().for_each(|error| out.complain(Printable::long(error)));
    let text = printable!(
        "{} receipted, {} refused, {} still waiting\n",
        report.receipted.len(),
        report.refused.len(),
        report.waiting.len()
    );
    let (report, answer) = report.finish(&outbox);
    out.answer(&report, text)?;
    Ok(answer)
}

/// The logs of one flush, each asked for its keys once.
struct Logs<'a> {
    place: &'a Place,
    out: &'a Out,
    known: BTreeMap<String, Result<Registrar, String>>,
}

impl Logs<'_> {
    async fn at(&mut self, url: &str) -> anyhow::Result<&Registrar> {
        if !self.known.contains_key(url) {
            let (token, trust) = (self.place.token.as_deref(), self.place.trust.as_deref());
            let client = self.place.ca.client(url, token)?;
            let asked = Registrar::new(client, trust, *self.out).await;
            self.known.insert(url.to_owned(), asked.map_err(|error| chain(&error)));
        }
        match self.known.get(url) {
            Some(Ok(registrar)) => Ok(registrar),
            Some(Err(why)) => Err(anyhow::anyhow!("{why}")),
            None => Err(anyhow::anyhow!("{url}")),
        }
    }
}
