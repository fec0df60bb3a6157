//! `capstan inspect`: shows what is in a file, without verifying it.

mod diagnostic;
mod record;

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value as Json;

use crate::checkpoint::SignedCheckpoint;
use crate::cli::output::{Out, chain};
use crate::cli::{CliError, Exit, files};
use crate::envelope::{Header, SignedStatement, StatementId};
use crate::key::Algorithm;
use crate::receipt::{Proofs, Receipt, attached};
use crate::verify::Bundle;
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan inspect action.transparent.cose")]
pub(in crate::cli) struct Args {
    /// A statement, receipt, checkpoint or bundle; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print CBOR diagnostic notation
    #[arg(long)]
    raw: bool,
    /// Write the payload of the statement here, as it was signed
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    payload: Option<PathBuf>,
}

#[derive(Serialize)]
struct Diagnostic<'a> {
    ok: bool,
    diagnostic: &'a str,
}

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let bytes = files::read(&args.file)?;
    if args.raw {
        let text = diagnostic::diagnostic(&bytes)?;
        out.answer(&Diagnostic { ok: true, diagnostic: text.as_str() }, text.clone())?;
        return Ok(Exit::Yes);
    }
    if let Some(what) = files::not_evidence(&bytes) {
        let what = format!("{} is {what}", args.file.display());
        return Err(CliError::failed("no-statement", what).into());
    }
    let object = serde_json::to_value(Artefact::read(&bytes)?)?;
    if let Some(path) = &args.payload {
        write_payload(&bytes, path)?;
        out.note(printable!("wrote the payload to {}", path.display()));
    }
    let mut lines = Printable::default();
    write_lines(&mut lines, &object, 0);
    out.answer(&object, lines)?;
    Ok(Exit::Yes)
}

/// The payload of a statement, or of the one a bundle is about.
fn write_payload(bytes: &[u8], path: &Path) -> anyhow::Result<()> {
    let bytes = Bundle::open(bytes).map_or_else(|| bytes.to_vec(), |bundle| bundle.statement);
    let statement = SignedStatement::parse_any_size(bytes)?;
    let payload = statement.payload().ok_or_else(|| {
        CliError::no("detached", "the statement does not hold its payload, so nothing was written")
    })?;
    files::write_file(path, payload)
}

/// What a file contains.
#[derive(Serialize)]
#[serde(tag = "artefact", rename_all = "lowercase")]
enum Artefact {
    Bundle(Box<BundleView>),
    Checkpoint(CheckpointView),
    Receipt(ReceiptView),
    #[serde(rename = "receipt")]
    UnreadableReceipt {
        unreadable: String,
    },
    Statement(Box<StatementView>),
    #[serde(rename = "transparent statement")]
    TransparentStatement(Box<StatementView>),
    /// A part of a bundle that cannot be parsed.
    Unreadable {
        why: String,
    },
}

#[derive(Serialize)]
struct BundleView {
    registered_at: String,
    statement: Artefact,
    policy: Artefact,
    trust: Artefact,
    chain: Vec<Artefact>,
    checkpoint: Artefact,
}

#[derive(Serialize)]
struct CheckpointView {
    origin: String,
    size: Option<u64>,
    root: Option<String>,
    signatures: Vec<String>,
}

#[derive(Serialize)]
struct ReceiptView {
    #[serde(flatten)]
    header: HeaderView,
    proofs: Vec<ProofView>,
}

#[derive(Serialize)]
#[serde(tag = "artefact", rename_all = "lowercase")]
enum ProofView {
    Inclusion {
        index: u64,
        size: u64,
        path: usize,
    },
    Consistency {
        from: u64,
        to: u64,
        path: usize,
    },
    #[serde(rename = "CCF inclusion")]
    CcfInclusion {
        evidence: String,
        path: usize,
    },
    #[serde(rename = "CCF consistency")]
    CcfConsistency {
        anchor: String,
        path: usize,
    },
}

#[derive(Serialize)]
struct StatementView {
    #[serde(flatten)]
    header: HeaderView,
    id: String,
    payload: PayloadView,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<Json>,
    signature_bytes: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    receipts: Vec<Artefact>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PayloadView {
    Detached(&'static str),
    Attached {
        bytes: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
}

#[derive(Serialize)]
struct HeaderView {
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    brings_key: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificates: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_algorithm: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_location: Option<String>,
}

impl Artefact {
    fn read(bytes: &[u8]) -> anyhow::Result<Self> {
        if let Some(bundle) = Bundle::open(bytes) {
            return Ok(Self::Bundle(Box::new(BundleView::new(&bundle))));
        }
        if let Some(note) = std::str::from_utf8(bytes).ok().filter(|t| t.contains("\n\n\u{2014} "))
        {
            return Ok(Self::Checkpoint(CheckpointView::read(note)?));
        }
        let envelope = SignedStatement::parse_any_size(bytes.to_vec())?;
        if envelope.header().vds.is_some() {
            return Ok(Self::Receipt(ReceiptView::new(&Receipt::parse(bytes.to_vec())?)));
        }
        let receipt = |bytes| match Receipt::parse(bytes) {
            Ok(receipt) => Self::Receipt(ReceiptView::new(&receipt)),
            Err(e) => Self::UnreadableReceipt { unreadable: e.to_string() },
        };
        let receipts: Vec<Self> = attached(&envelope)?.into_iter().map(receipt).collect();
        let is_transparent = !receipts.is_empty();
        let view = Box::new(StatementView {
            header: HeaderView::new(envelope.header()),
            id: StatementId::of(&envelope).to_string(),
            payload: PayloadView::new(&envelope),
            record: record::object(&envelope)?,
            signature_bytes: envelope.signature().len(),
            receipts,
        });
        Ok(if is_transparent { Self::TransparentStatement(view) } else { Self::Statement(view) })
    }
}

impl BundleView {
    fn new(bundle: &Bundle) -> Self {
        let part = |bytes: &[u8]| {
            Artefact::read(bytes).unwrap_or_else(|e| Artefact::Unreadable { why: chain(&e) })
        };
        Self {
            registered_at: bundle.time.to_string(),
            statement: part(&bundle.statement),
            policy: part(&bundle.policy),
            trust: part(&bundle.trust),
            chain: bundle.chain.iter().map(|bytes| part(bytes)).collect(),
            checkpoint: part(bundle.checkpoint.as_bytes()),
        }
    }
}

impl CheckpointView {
    fn read(note: &str) -> anyhow::Result<Self> {
        let signed = SignedCheckpoint::parse(note)?;
        let mut lines = note.lines().skip(1);
        let size = lines.next().and_then(|size| size.parse().ok());
        let root = lines.next().and_then(text::from_base64).map(|root| text::hex(&root));
        let signer =
            |line: &str| Some(line.strip_prefix("\u{2014} ")?.split(' ').next()?.to_owned());
        let signatures = note.lines().filter_map(signer).collect();
        Ok(Self { origin: signed.origin().to_owned(), size, root, signatures })
    }
}

impl HeaderView {
    fn new(header: &Header) -> Self {
        let name = |number| Algorithm::from_cose(number).map(|a| a.name().to_owned());
        let envelope = header.hash_envelope.as_ref();
        Self {
            issuer: header.claims.issuer.clone(),
            subject: header.claims.subject.clone(),
            issued_at: header.claims.issued_at.map(|time| time.to_string()),
            algorithm: header.algorithm.map(|n| name(n).unwrap_or_else(|| n.to_string())),
            kid: header.kid.as_deref().map(text::hex),
            content_type: header.content_type.as_ref().map(ToString::to_string),
            brings_key: header.claims.confirmation.is_some().then_some(true),
            certificates: (!header.chain.is_empty()).then_some(header.chain.len()),
            hash_algorithm: envelope.map(|e| e.algorithm),
            hash_location: envelope.and_then(|e| e.location.clone()),
        }
    }
}

impl PayloadView {
    /// Short text is shown, bytes are not.
    fn new(statement: &SignedStatement) -> Self {
        let Some(payload) = statement.payload() else { return Self::Detached("detached") };
        let text = std::str::from_utf8(payload).ok().map(str::trim_end);
        let text = text.filter(|t| t.len() <= 400 && !t.contains(|c: char| c.is_control()));
        Self::Attached { bytes: payload.len(), text: text.map(str::to_owned) }
    }
}

impl ReceiptView {
    fn new(receipt: &Receipt) -> Self {
        let proofs = match receipt.proofs() {
            Proofs::Inclusion(proofs) => proofs
                .iter()
                .map(|p| ProofView::Inclusion { index: p.index, size: p.size, path: p.path.len() })
                .collect(),
            Proofs::Consistency(proofs) => proofs
                .iter()
                .map(|p| ProofView::Consistency { from: p.from, to: p.to, path: p.path.len() })
                .collect(),
            Proofs::CcfInclusion(proofs) => proofs
                .iter()
                .map(|p| ProofView::CcfInclusion {
                    evidence: p.evidence.clone(),
                    path: p.path.len(),
                })
                .collect(),
            Proofs::CcfConsistency(proofs) => proofs
                .iter()
                .map(|p| ProofView::CcfConsistency {
                    anchor: p.anchor.to_string(),
                    path: p.path.len(),
                })
                .collect(),
        };
        Self { header: HeaderView::new(receipt.envelope().header()), proofs }
    }
}

/// The object as indented lines, the members of `FIRST` first.
fn write_lines(out: &mut Printable, value: &Json, depth: usize) {
    let Json::Object(fields) = value else { return };
    let indent = indent(depth);
    let is_bundle = fields.get("artefact").and_then(Json::as_str) == Some("bundle");
    if let Some(artefact) = fields.get("artefact").and_then(Json::as_str) {
        out.line(printable!("{}{}", indent, artefact));
    }
    let mut names: Vec<&String> = fields.keys().filter(|name| *name != "artefact").collect();
    names.sort_by_key(|name| FIRST.iter().position(|n| n == name).unwrap_or(FIRST.len()));
    for name in names {
        match fields.get(name) {
            Some(Json::Array(items)) if items.iter().all(Json::is_object) => {
                items.iter().for_each(|item| write_item(out, item, depth + 1));
            }
            Some(inner @ Json::Object(fields)) if fields.contains_key("artefact") => {
                if is_bundle {
                    out.line(printable!("{}  {}:", indent, name));
                }
                write_lines(out, inner, depth + 1);
            }
            Some(Json::Object(inner)) => {
                let inner = inner.iter().map(|(name, v)| printable!("{} {}", name, v));
                let inner = Printable::join(inner, ", ");
                out.line(printable!("{}  {:<15} {}", indent, name, inner));
            }
            Some(Json::String(text)) => {
                out.line(printable!("{}  {:<15} {}", indent, name, text));
            }
            Some(other) => {
                out.line(printable!("{}  {:<15} {}", indent, name, other));
            }
            None => {}
        }
    }
}

fn indent(depth: usize) -> Printable {
    std::iter::repeat_n(Printable::from("  "), depth).collect()
}

/// An item of a list; a finding takes one line.
fn write_item(out: &mut Printable, item: &Json, depth: usize) {
    match record::finding_line(item) {
        None => write_lines(out, item, depth),
        Some(line) => {
            out.line(printable!("{}{}", indent(depth), line));
        }
    }
}

const FIRST: [&str; 23] = [
    "statement",
    "id",
    "origin",
    "issuer",
    "subject",
    "issued_at",
    "content_type",
    "payload",
    "algorithm",
    "record_id",
    "action_id",
    "action_type",
    "operator",
    "developer",
    "verdict",
    "decision",
    "approver",
    "human_disposed",
    "effect_type",
    "effect_status",
    "derived",
    "parent",
    "ok",
];
