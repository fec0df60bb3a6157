//! `capstan verify`: what files prove. Opens no socket, whatever happens.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::report::{self, FileReport};
use crate::checkpoint::SignedCheckpoint;
use crate::cli::files::LogKey;
use crate::cli::output::Out;
use crate::cli::{Answer, Stop, files};
use crate::key::PublicKey;
use crate::profile::capsule::{self, Manifest};
use crate::service::now;
use crate::trust::{TrustAnchors, TrustedLog};
use crate::verify::{ANY_LOG, Check, Demand, Evidence, Report, Requirement, verify};
use crate::wire::digest::Digest;
use crate::wire::pattern::Pattern;
use crate::wire::printable::Printable;
use crate::wire::text;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan verify action.transparent.cose --trust trust.toml")]
pub(in crate::cli) struct Args {
    /// Statements, receipts or checkpoints; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Whom to believe [default: $CAPSTAN_TRUST, then ~/.config/capstan/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// The statement a bare receipt is about
    #[arg(long, value_name = "FILE")]
    statement: Option<PathBuf>,
    /// The payload of a statement that does not carry it
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// The older tree of a consistency receipt: a checkpoint, or SIZE:ROOT in hex
    #[arg(long, value_name = "FILE|SIZE:ROOT")]
    older: Option<String>,
    /// A key to believe for any log: PEM, COSE_Key or checkpoint key
    #[arg(long, value_name = "FILE")]
    log_key: Option<PathBuf>,
    /// A key to believe for whoever the statement names as issuer
    #[arg(long, value_name = "FILE")]
    issuer_key: Option<PathBuf>,
    /// Say yes only for this issuer; `*` stands for any run of characters
    #[arg(long, value_name = "NAME")]
    issuer: Vec<String>,
    /// Say yes only for this subject; `*` as above
    #[arg(long, value_name = "TEXT")]
    subject: Vec<String>,
    /// Say yes only for this log
    #[arg(long, value_name = "NAME")]
    log: Vec<String>,
    /// Say yes only if this is shown, whatever the kind of file
    #[arg(long, value_name = "WHAT", value_delimiter = ',', conflicts_with = "signed_only")]
    require: Vec<Required>,
    /// Ask only who signed: neither receipt nor form count
    #[arg(long)]
    signed_only: bool,
    /// Take a key that only the statement itself ties to the issuer
    #[arg(long)]
    allow_self_certified: bool,
    /// Take receipts of a development log (its name ends in .invalid)
    #[arg(long)]
    allow_dev: bool,
    /// The producer's constraint manifest, TOML or JSON
    #[arg(long, value_name = "FILE", requires = "evidence")]
    manifest: Option<PathBuf>,
    /// A folder of evidence: JSON files, found by digest
    #[arg(long, value_name = "DIR", requires = "manifest")]
    evidence: Option<PathBuf>,
}

/// What `--require` knows.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Required {
    /// A receipt of a trusted log
    Receipt,
    /// A bundle in which the log's policy admits the statement
    Admitted,
    /// A checkpoint that a trusted witness signed as well
    Witness,
}

impl Args {
    fn demand(&self) -> Demand {
        let patterns = |list: &[String]| list.iter().cloned().map(Pattern).collect();
        let requirement = |required: &Required| match required {
            Required::Receipt => Requirement::Receipt,
            Required::Admitted => Requirement::Admitted,
            Required::Witness => Requirement::Witness,
        };
        Demand {
            signed_only: self.signed_only,
            allow_self_certified: self.allow_self_certified,
            allow_development: self.allow_dev,
            issuers: patterns(&self.issuer),
            subjects: patterns(&self.subject),
            logs: self.log.clone(),
            required: self.require.iter().map(requirement).collect(),
        }
    }
}

/// The tree that a consistency receipt must have grown from.
struct Older {
    root: Digest,
    /// Who stands behind it; a root the user gave needs nobody.
    published: Option<Check>,
}

/// What stays the same for every file.
struct Context {
    trust: TrustAnchors,
    statement: Option<Vec<u8>>,
    payload: Option<Vec<u8>>,
    older: Option<Older>,
    issuer_key: Option<PublicKey>,
    demand: Demand,
    manifest: Option<(Manifest, Vec<capsule::Evidence>)>,
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let context = context(args)?;
    let reports: Vec<FileReport> = args.files.iter().map(|file| one(file, &context)).collect();
    reports
        .iter()
        .filter_map(|r| r.error.as_deref())
        .for_each(|error| out.complain(Printable::long(error)));
    let answer = report::overall(&reports);
    out.answer(&report::object(&reports, answer), report::text(&reports))?;
    Ok(answer)
}

fn context(args: &Args) -> anyhow::Result<Context> {
    let mut trust = files::trust(args.trust.as_deref())?;
    if let Some(path) = &args.log_key {
        let (keys, checkpoint) = match files::log_key(path)? {
            LogKey::Receipts(key) => (vec![key], None),
            LogKey::Checkpoints(key) => (Vec::new(), Some(key.to_string())),
        };
        trust = trust.with_log(TrustedLog { name: ANY_LOG.to_owned(), keys, checkpoint });
    }
    let read = |path: &Option<PathBuf>| path.as_deref().map(files::read).transpose();
    let demand = args.demand();
    Ok(Context {
        older: args.older.as_deref().map(|given| older(given, &trust, &demand)).transpose()?,
        demand,
        trust,
        statement: read(&args.statement)?,
        payload: read(&args.payload)?,
        issuer_key: args.issuer_key.as_deref().map(files::public_key).transpose()?,
        manifest: match (&args.manifest, &args.evidence) {
            (Some(manifest), Some(folder)) => Some((manifest_at(manifest)?, evidence(folder)?)),
            _ => None,
        },
    })
}

fn manifest_at(path: &Path) -> anyhow::Result<Manifest> {
    let text = files::read_text(path)?;
    Manifest::parse(&text).with_context(|| path.display().to_string())
}

/// Every JSON file of a folder, by name.
fn evidence(folder: &Path) -> anyhow::Result<Vec<capsule::Evidence>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "json"));
    paths.sort();
    let file = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(capsule::Evidence { name, bytes: files::read(path)? })
    };
    paths.iter().map(file).collect()
}

/// `SIZE:ROOT`, or a checkpoint the user holds, with the word of its log.
fn older(given: &str, trust: &TrustAnchors, demand: &Demand) -> anyhow::Result<Older> {
    if let Some((size, root)) = given.split_once(':')
        && size.parse::<u64>().is_ok()
    {
        let root = Digest::from_hex(&root.to_lowercase());
        let root = root.ok_or_else(|| Stop::failed("usage", "ROOT has 64 hex digits"))?;
        return Ok(Older { root, published: None });
    }
    let note = files::read_text(Path::new(given))?;
    SignedCheckpoint::parse(&note).with_context(|| given.to_owned())?;
    let root = note.lines().nth(2).and_then(text::from_base64);
    let root = root.and_then(|root| Digest::from_slice(&root));
    // Only what is asked of the log is asked of its older checkpoint.
    let demand = Demand { required: Vec::new(), ..demand.clone() };
    let evidence = Evidence { demand: &demand, ..Evidence::new(trust, now()) };
    let published = verify(note.as_bytes(), &evidence).checks.into_iter().next();
    Ok(Older {
        root: root.context("the checkpoint has no root")?,
        published: published.map(|check| Check { name: "older", ..check }),
    })
}

fn one(file: &Path, context: &Context) -> FileReport {
    let name = file.display().to_string();
    match files::read(file) {
        Ok(bytes) if files::not_evidence(&bytes).is_some() => {
            let what = files::not_evidence(&bytes).unwrap_or_default();
            FileReport::unreadable(name.clone(), &anyhow::anyhow!("{name} is {what}"))
        }
        Ok(bytes) => FileReport::new(name, judge(&bytes, context)),
        Err(error) => FileReport::unreadable(name, &error),
    }
}

fn judge(bytes: &[u8], context: &Context) -> Report {
    let evidence = Evidence {
        statement: context.statement.as_deref(),
        payload: context.payload.as_deref(),
        older: context.older.as_ref().map(|older| older.root),
        issuer_key: context.issuer_key.as_ref(),
        demand: &context.demand,
        ..Evidence::new(&context.trust, now())
    };
    let mut report = verify(bytes, &evidence);
    // Growth from a tree that nobody we believe has signed shows nothing.
    if report.artefact == "consistency receipt" {
        let published = context.older.as_ref().and_then(|older| older.published.clone());
        report.checks.extend(published);
    }
    match &context.manifest {
        Some((manifest, evidence)) => report.with_manifest(manifest, evidence),
        None => report,
    }
}
