//! `capstan inspect`: what is in a file, without judging it.

mod diagnostic;
mod record;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use crate::checkpoint::SignedCheckpoint;
use crate::cli::output::{Out, chain};
use crate::cli::{Answer, Stop, files};
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

pub(in crate::cli) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let bytes = files::read(&args.file)?;
    if args.raw {
        let text = diagnostic::diagnostic(&bytes)?;
        out.answer(&json!({ "ok": true, "diagnostic": text.as_str() }), text)?;
        return Ok(Answer::Yes);
    }
    if let Some(what) = files::not_evidence(&bytes) {
        let what = format!("{} is {what}", args.file.display());
        return Err(Stop::failed("no-statement", what).into());
    }
    let object = describe(&bytes)?;
    if let Some(path) = &args.payload {
        write_payload(&bytes, path)?;
        out.note(printable!("wrote the payload to {}", path.display()));
    }
    let mut lines = Printable::default();
    write_lines(&mut lines, &object, 0);
    out.answer(&object, lines)?;
    Ok(Answer::Yes)
}

/// The payload of a statement, or of the one a bundle is about.
fn write_payload(bytes: &[u8], path: &Path) -> anyhow::Result<()> {
    let bytes = Bundle::open(bytes).map_or_else(|| bytes.to_vec(), |bundle| bundle.statement);
    let statement = SignedStatement::parse_any_size(bytes)?;
    let payload = statement.payload().ok_or_else(|| {
        Stop::no("detached", "the statement does not hold its payload, so nothing was written")
    })?;
    files::write_file(path, payload)
}

/// A bundle as its parts.
fn bundle(bundle: &Bundle) -> anyhow::Result<Json> {
    let part = |bytes: &Vec<u8>| {
        describe(bytes).unwrap_or_else(|e| json!({ "artefact": "unreadable", "why": chain(&e) }))
    };
    let chain: Vec<Json> = bundle.chain.iter().map(part).collect();
    Ok(json!({
        "artefact": "bundle",
        "registered_at": bundle.time.to_string(),
        "statement": part(&bundle.statement),
        "policy": part(&bundle.policy),
        "trust": part(&bundle.trust),
        "chain": chain,
        "checkpoint": part(&bundle.checkpoint.clone().into_bytes()),
    }))
}

fn describe(bytes: &[u8]) -> anyhow::Result<Json> {
    if let Some(found) = Bundle::open(bytes) {
        return bundle(&found);
    }
    if let Some(note) = std::str::from_utf8(bytes).ok().filter(|t| t.contains("\n\n\u{2014} ")) {
        return checkpoint(note);
    }
    let envelope = SignedStatement::parse_any_size(bytes.to_vec())?;
    if envelope.header().vds.is_some() {
        return Ok(receipt(&Receipt::parse(bytes.to_vec())?));
    }
    let receipts = attached(&envelope)?;
    let receipts: Vec<Json> = receipts
        .into_iter()
        .map(|bytes| match Receipt::parse(bytes) {
            Ok(parsed) => receipt(&parsed),
            Err(e) => json!({ "artefact": "receipt", "unreadable": e.to_string() }),
        })
        .collect();
    let artefact = if receipts.is_empty() { "statement" } else { "transparent statement" };
    let mut object = header(artefact, envelope.header());
    object.insert("id".to_owned(), StatementId::of(&envelope).to_string().into());
    object.insert("payload".to_owned(), payload(&envelope));
    object.extend(record::object(&envelope).map(|record| ("record".to_owned(), record)));
    object.insert("signature_bytes".to_owned(), envelope.signature().len().into());
    if !receipts.is_empty() {
        object.insert("receipts".to_owned(), receipts.into());
    }
    Ok(object.into())
}

fn checkpoint(note: &str) -> anyhow::Result<Json> {
    let signed = SignedCheckpoint::parse(note)?;
    let mut lines = note.lines().skip(1);
    let size = lines.next().and_then(|size| size.parse::<u64>().ok());
    let root = lines.next().and_then(text::from_base64).map(|root| text::hex(&root));
    let signers: Vec<&str> =
        note.lines().filter_map(|line| line.strip_prefix("\u{2014} ")?.split(' ').next()).collect();
    Ok(json!({
        "artefact": "checkpoint",
        "origin": signed.origin(),
        "size": size,
        "root": root,
        "signatures": signers,
    }))
}

fn header(artefact: &str, header: &Header) -> Map<String, Json> {
    let algorithm = header.algorithm.map(|number| {
        Algorithm::from_cose(number).map_or_else(|| number.to_string(), |a| a.name().to_owned())
    });
    let envelope = header.hash_envelope.as_ref();
    let fields = [
        ("artefact", Some(artefact.into())),
        ("issuer", header.claims.issuer.clone().map(Json::from)),
        ("subject", header.claims.subject.clone().map(Json::from)),
        ("issued_at", header.claims.issued_at.map(|t| t.to_string().into())),
        ("algorithm", algorithm.map(Json::from)),
        ("kid", header.kid.as_deref().map(|kid| text::hex(kid).into())),
        ("content_type", header.content_type.as_ref().map(|t| t.to_string().into())),
        ("brings_key", header.claims.confirmation.is_some().then_some(Json::Bool(true))),
        ("certificates", (!header.chain.is_empty()).then(|| header.chain.len().into())),
        ("hash_algorithm", envelope.map(|e| e.algorithm.into())),
        ("hash_location", envelope.and_then(|e| e.location.clone()).map(Json::from)),
    ];
    let there = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    there.collect()
}

/// Text is shown if it is short; bytes never are.
fn payload(statement: &SignedStatement) -> Json {
    let Some(payload) = statement.payload() else { return "detached".into() };
    let shown = std::str::from_utf8(payload).ok().map(str::trim_end);
    match shown.filter(|text| text.len() <= 400 && !text.contains(|c: char| c.is_control())) {
        Some(text) => json!({ "bytes": payload.len(), "text": text }),
        None => json!({ "bytes": payload.len() }),
    }
}

fn receipt(receipt: &Receipt) -> Json {
    let mut object = header("receipt", receipt.envelope().header());
    let proofs: Vec<Json> = match receipt.proofs() {
        Proofs::Inclusion(proofs) => proofs
            .iter()
            .map(|p| json!({ "artefact": "inclusion", "index": p.index, "size": p.size, "path": p.path.len() }))
            .collect(),
        Proofs::Consistency(proofs) => proofs
            .iter()
            .map(|p| json!({ "artefact": "consistency", "from": p.from, "to": p.to, "path": p.path.len() }))
            .collect(),
        Proofs::CcfInclusion(proofs) => proofs
            .iter()
            .map(|p| json!({ "artefact": "CCF inclusion", "evidence": p.evidence, "path": p.path.len() }))
            .collect(),
        Proofs::CcfConsistency(proofs) => proofs
            .iter()
            .map(|p| json!({ "artefact": "CCF consistency", "anchor": p.anchor.to_string(), "path": p.path.len() }))
            .collect(),
    };
    object.insert("proofs".to_owned(), proofs.into());
    object.into()
}

/// The same object as indented lines, the most telling ones first.
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

/// One of a list; findings are a line each.
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
