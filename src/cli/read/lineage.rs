//! `capstan lineage`: who caused whom, among causal records.

use serde_json::Value;

use super::output::Out;
use super::search::{Source, ask};
use super::{Answer, names};
use crate::wire::printable::{Printable, printable};

#[derive(clap::Args)]
#[command(after_help = "Example: capstan lineage 0190A1B2C3D4E5F60718293A4B5C6D7E \
                  --url http://127.0.0.1:8787")]
pub(in crate::cli) struct Args {
    /// A causal record: its identity, statement id or its first 8 digits, or 6
    id: String,
    /// Say how the record is ordered with this one instead
    #[arg(long, value_name = "ID", conflicts_with = "prov")]
    to: Option<String>,
    /// Print the record and its ancestors as PROV-JSON instead
    #[arg(long)]
    prov: bool,
    /// Where the page of PROV-JSON before ended
    #[arg(long, requires = "prov")]
    cursor: Option<String>,
    #[command(flatten)]
    source: Source,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let id = names::causal(&args.source, &args.id).await?;
    let to = match &args.to {
        Some(other) => Some(names::causal(&args.source, other).await?),
        None => None,
    };
    let mut path = vec!["api", "v1", "lineages", id.as_str()];
    path.extend(to.iter().flat_map(|other| ["to", other.as_str()]));
    path.extend(args.prov.then_some("prov"));
    let pairs: Vec<_> = args.cursor.iter().map(|cursor| ("cursor", cursor.as_str())).collect();
    let found = ask(&args.source, &path, &pairs).await?;
    match (&to, args.prov) {
        (_, true) => out.document(&found)?,
        (Some(other), _) => out.answer(&found, order(&id, other, &found))?,
        (None, false) => out.answer(&found, ancestors(&id, &found))?,
    }
    let is_whole = ["limit", "missing", "comparisons_limit"].iter().all(|name| {
        let said = found.get(*name).filter(|said| !said.is_null());
        said.is_none_or(|said| said.as_array().is_some_and(Vec::is_empty))
    });
    let is_cut = args.prov && is_cut(&args.id, &found, out);
    Ok(if is_whole && !is_cut { Answer::Yes } else { Answer::CannotTell })
}

/// Whether the log left out ancestors, and how to get them.
fn is_cut(id: &str, document: &Value, out: &Out) -> bool {
    let record = document.get("activity").and_then(|all| all.get(format!("record:{id}")));
    let said = |name: &str| record.and_then(|record| record.get(name)?.as_str());
    let Some(limit) = said("capstan:cut") else { return false };
    match said("capstan:cursor") {
        Some(cursor) => out.note(printable!("cut ({}): go on with --cursor {}", limit, cursor)),
        None => out.note(printable!("cut ({}): ask for the farthest records by name", limit)),
    }
    true
}

fn order(id: &str, other: &str, found: &Value) -> Printable {
    let order = found["order"].as_str().unwrap_or_default();
    let mut line = match order {
        "before" => printable!("{} came before {}: it is one of its ancestors", id, other),
        "after" => printable!("{} came after {}, which is one of its ancestors", id, other),
        "concurrent" => printable!("{} and {} are concurrent: neither is an ancestor", id, other),
        "circular" => printable!("{} and {} are ancestors of each other", id, other),
        "same" => printable!("{} is one record", id),
        _ => printable!("nobody can tell how {} and {} are ordered: {}", id, other, order),
    };
    let name = |member: &str| found[member].as_str();
    let limit = name("limit").map(|code| printable!(" ({})", code));
    let missing = name("missing").map(|id| printable!(" ({} is not logged)", id));
    line.push(limit.or(missing).unwrap_or_default());
    line.push(apart(id, other, &found["estimates"]));
    line
}

/// A line for two records that a measurement tells apart; nothing for others.
fn apart(one: &str, other: &str, estimates: &Value) -> Printable {
    let told = |how: &str| {
        let all = estimates.as_object().into_iter().flatten();
        let names =
            all.filter(|(_, said)| said.as_str() == Some(how)).map(|(name, _)| name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let mut line = Printable::default();
    for how in ["above", "below"] {
        let names = told(how);
        if !names.is_empty() {
            line.push(printable!("\n  {} is {} {} in {}", one, how, other, names));
        }
    }
    line
}

fn ancestors(id: &str, found: &Value) -> Printable {
    let names = |member: &str| {
        let all = found[member].as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let (ancestors, missing) = (names("ancestors"), names("missing"));
    let mut out = printable!("{} has {} ancestors", id, ancestors.len());
    for ancestor in &ancestors {
        let gone = if missing.contains(ancestor) { "  not logged" } else { "" };
        out.push(printable!("\n  {}{}", ancestor, gone));
    }
    if let Some(limit) = found["limit"].as_str() {
        out.push(printable!("\nthere may be more: {}", limit));
    }
    let pairs = found["comparisons"].as_array().map(Vec::as_slice).unwrap_or_default();
    for pair in pairs {
        let name = |member: &str| pair[member].as_str().unwrap_or_default();
        out.push(apart(name("effect"), name("cause"), &pair["estimates"]));
    }
    if let Some(limit) = found["comparisons_limit"].as_str() {
        out.push(printable!("\nnot every effect was compared with its causes: {}", limit));
    }
    out
}
