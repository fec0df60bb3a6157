//! `capstan record` and `capstan outbox`: nothing an agent did is lost
//! because a log could not be reached.
//!
//! A statement enters the outbox durably before anything is sent, and leaves
//! it only for a receipt that verifies.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use super::output::{Out, chain};
use super::registrar::{Registrar, Unsent};
use super::{Answer, Stop, files, seal};
use crate::envelope::{SignedStatement, StatementId};
use crate::receipt::attach;
use crate::store::write_public;
use crate::wire::printable::{Printable, printable};

#[derive(clap::Args)]
#[command(
    after_help = "Example: capstan record action.json --key agent.key --url https://log.example"
)]
pub(super) struct RecordArgs {
    #[command(flatten)]
    what: seal::What,
    #[command(flatten)]
    place: Place,
}

/// Which log, and where statements wait for it.
#[derive(clap::Args)]
pub(super) struct Place {
    /// Address of the log
    #[arg(long)]
    url: String,
    /// Directory of the outbox [default: $CAPSTAN_OUTBOX, then ~/.local/state/capstan/outbox]
    #[arg(long, value_name = "DIR")]
    outbox: Option<PathBuf>,
    /// Whom to believe [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Bearer token of the log
    #[arg(long, env = "CAPSTAN_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

#[derive(clap::Subcommand)]
pub(super) enum Verb {
    /// Register what waits; says what got a receipt
    #[command(after_help = "Example: capstan outbox flush --url https://log.example")]
    Flush {
        #[command(flatten)]
        place: Place,
    },
    /// Say what waits, and what has its receipt
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
    outbox: PathBuf,
}

#[derive(Serialize)]
struct Flushed {
    ok: bool,
    code: &'static str,
    receipted: Vec<String>,
    waiting: Vec<String>,
    errors: Vec<String>,
}

/// Seals, keeps, registers; a log that cannot be reached is no failure.
pub(super) async fn record(args: &RecordArgs, out: &Out) -> anyhow::Result<Answer> {
    let statement = SignedStatement::parse(args.what.seal()?)?;
    let id = StatementId::of(&statement).to_string();
    let outbox = Outbox::open(args.place.outbox.as_deref())?;
    outbox.keep(&id, statement.bytes())?;
    let sent = match args.place.registrar(out).await {
        Ok(registrar) => outbox.send(&registrar, &id).await,
        Err(error) => Err(error),
    };
    match sent {
        Ok(path) => {
            let (receipted, waiting) = (vec![id.clone()], Vec::new());
            let report = Flushed { ok: true, code: "ok", receipted, waiting, errors: Vec::new() };
            out.answer(&report, printable!("recorded {}\n  {}\n", id, path.display()))?;
            Ok(Answer::Yes)
        }
        // The log said no: it will say so again, so it does not wait.
        Err(error) if error.downcast_ref::<Stop>().is_some_and(|s| s.answer == Answer::No) => {
            outbox.drop_waiting(&id)?;
            Err(error)
        }
        Err(error) => {
            let errors = vec![chain(&error)];
            let report = Flushed {
                ok: true,
                code: "waiting",
                receipted: Vec::new(),
                waiting: vec![id.clone()],
                errors,
            };
            out.note(printable!(
                "the log could not be reached: {}\nnext\n  {} outbox flush --url {}",
                Printable::long(chain(&error)),
                super::program(),
                args.place.url
            ));
            out.answer(
                &report,
                printable!("waiting  {}\n  {}\n", id, outbox.waiting_path(&id).display()),
            )?;
            Ok(Answer::Yes)
        }
    }
}

/// `capstan outbox flush|status`
pub(super) async fn run(verb: &Verb, out: &Out) -> anyhow::Result<Answer> {
    match verb {
        Verb::Status { outbox } => status(&Outbox::open(outbox.as_deref())?, out),
        Verb::Flush { place } => flush(place, out).await,
    }
}

fn status(outbox: &Outbox, out: &Out) -> anyhow::Result<Answer> {
    let (waiting, receipted) = (outbox.list("waiting")?.len(), outbox.list("receipted")?.len());
    let path = outbox.path.display();
    let text = printable!("{} waiting, {} receipted\n  {}\n", waiting, receipted, path);
    out.answer(
        &Status { ok: waiting == 0, waiting, receipted, outbox: outbox.path.clone() },
        text,
    )?;
    Ok(Answer::Yes)
}

async fn flush(place: &Place, out: &Out) -> anyhow::Result<Answer> {
    let outbox = Outbox::open(place.outbox.as_deref())?;
    let ids = outbox.list("waiting")?;
    let registrar = place.registrar(out).await?;
    let bar = out.progress(u64::try_from(ids.len()).unwrap_or(0), "registering");
    let (mut receipted, mut waiting, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for id in ids {
        match outbox.send(&registrar, &id).await {
            Ok(_) => receipted.push(id),
            Err(error) => {
                errors.push(format!("{id}: {}", chain(&error)));
                waiting.push(id);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    errors.iter().for_each(|error| out.complain(Printable::long(error)));
    let ok = waiting.is_empty();
    let text = printable!("{} receipted, {} still waiting\n", receipted.len(), waiting.len());
    let code = if ok { "ok" } else { "waiting" };
    out.answer(&Flushed { ok, code, receipted, waiting, errors }, text)?;
    Ok(if ok { Answer::Yes } else { Answer::No })
}

impl Place {
    async fn registrar(&self, out: &Out) -> anyhow::Result<Registrar> {
        Registrar::new(&self.url, self.token.as_deref(), self.trust.as_deref(), *out).await
    }
}

/// A directory with `waiting/ID.cose` and `receipted/ID.transparent.cose`.
struct Outbox {
    path: PathBuf,
}

impl Outbox {
    fn open(flag: Option<&Path>) -> anyhow::Result<Self> {
        let path = flag
            .map(Path::to_owned)
            .or_else(|| files::variable("CAPSTAN_OUTBOX"))
            .or_else(|| {
                files::variable("HOME").map(|home| home.join(".local/state/capstan/outbox"))
            })
            .context("no place for the outbox; give --outbox DIR")?;
        for part in ["waiting", "receipted"] {
            let dir = path.join(part);
            std::fs::create_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
        }
        Ok(Self { path })
    }

    /// Durable when this returns.
    fn keep(&self, id: &str, statement: &[u8]) -> anyhow::Result<()> {
        Ok(write_public(&self.waiting_path(id), statement)?)
    }

    /// The receipted file is durable before the waiting one goes.
    async fn send(&self, registrar: &Registrar, id: &str) -> anyhow::Result<PathBuf> {
        let output = self.path.join("receipted").join(format!("{id}.transparent.cose"));
        let statement = SignedStatement::parse_any_size(files::read(&self.waiting_path(id))?)?;
        let receipt = match registrar.send(&statement).await {
            Ok(receipted) => receipted.receipt,
            Err(Unsent::Refused(stop) | Unsent::Unverified { stop, .. }) => return Err(stop.into()),
            Err(Unsent::NotSent(error)) => return Err(error),
        };
        files::write_file(&output, &attach(&statement, &receipt)?)?;
        self.drop_waiting(id)?;
        Ok(output)
    }

    fn drop_waiting(&self, id: &str) -> anyhow::Result<()> {
        let path = self.waiting_path(id);
        std::fs::remove_file(&path).with_context(|| format!("{}", path.display()))
    }

    fn waiting_path(&self, id: &str) -> PathBuf {
        self.path.join("waiting").join(format!("{id}.cose"))
    }

    /// Statement ids in one part, oldest first.
    fn list(&self, part: &str) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.path.join(part))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some((id, "cose" | "transparent.cose")) = name.split_once('.') {
                found.push((entry.metadata()?.modified()?, id.to_owned()));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }
}
