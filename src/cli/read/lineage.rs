//! `capstan lineage`: the ancestors and the order of causal records.

use serde_json::Value;

use super::names;
use super::search::{Received, Source, get, get_json};
use crate::cli::Exit;
use crate::cli::output::Out;
use crate::service::views::{EstimatesView, LineageView, OrderView};
use crate::wire::printable::{Printable, printable};

#[derive(clap::Args)]
#[command(after_help = "Example: capstan lineage 0190A1B2C3D4E5F60718293A4B5C6D7E \
                  --url http://127.0.0.1:8787")]
pub(in crate::cli) struct Args {
    /// A causal record: its identity, statement id or its first 8 digits, or 6
    id: String,
    /// Show the order of the record and this one instead
    #[arg(long, value_name = "ID", conflicts_with = "prov")]
    to: Option<String>,
    /// Print the record and its ancestors as PROV-JSON instead
    #[arg(long)]
    prov: bool,
    /// Cursor of the previous page of PROV-JSON
    #[arg(long, requires = "prov")]
    cursor: Option<String>,
    #[command(flatten)]
    source: Source,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let id = names::causal(&args.source, &args.id).await?;
    let mut path = vec!["api", "v1", "lineages", id.as_str()];
    let is_whole = if args.prov {
        path.push("prov");
        let pairs: Vec<_> = args.cursor.iter().map(|cursor| ("cursor", cursor.as_str())).collect();
        let document = get_json(&args.source, &path, &pairs).await?;
        out.document(&document)?;
        !is_cut(&args.id, &document, out)
    } else if let Some(other) = &args.to {
        let other = names::causal(&args.source, other).await?;
        path.extend(["to", other.as_str()]);
        let Received { document, view } = get::<OrderView>(&args.source, &path, &[]).await?;
        out.answer(&document, order_text(&id, &other, &view))?;
        view.limit.is_none() && view.missing.is_none()
    } else {
        let Received { document, view } = get::<LineageView>(&args.source, &path, &[]).await?;
        out.answer(&document, lineage_text(&id, &view))?;
        view.limit.is_none() && view.missing.is_empty() && view.comparisons_limit.is_none()
    };
    Ok(if is_whole { Exit::Yes } else { Exit::CannotTell })
}

/// Whether the log left out ancestors, and how to get them.
fn is_cut(id: &str, document: &Value, out: &Out) -> bool {
    let record = document.get("activity").and_then(|all| all.get(format!("record:{id}")));
    let said = |name: &str| record.and_then(|record| record.get(name)?.as_str());
    let Some(limit) = said("capstan:cut") else { return false };
    match said("capstan:cursor") {
        Some(cursor) => {
            out.note(printable!("incomplete ({}): continue with --cursor {}", limit, cursor))
        }
        None => out.note(printable!("incomplete ({}): query the last records shown", limit)),
    }
    true
}

fn order_text(id: &str, other: &str, view: &OrderView) -> Printable {
    let mut line = match &*view.order {
        "before" => printable!("{} came before {}: it is one of its ancestors", id, other),
        "after" => printable!("{} came after {}, which is one of its ancestors", id, other),
        "concurrent" => printable!("{} and {} are concurrent: neither is an ancestor", id, other),
        "circular" => printable!("{} and {} are ancestors of each other", id, other),
        "same" => printable!("{} is one record", id),
        order => printable!("the order of {} and {} is unknown: {}", id, other, order),
    };
    let limit = view.limit.as_ref().map(|code| printable!(" ({})", code));
    let missing = view.missing.as_ref().map(|id| printable!(" ({} is not logged)", id));
    line.push(limit.or(missing).unwrap_or_default());
    line.push(differences(id, other, view.estimates.as_ref()));
    line
}

/// A line for two records whose measurements differ; nothing for others.
fn differences(one: &str, other: &str, estimates: Option<&EstimatesView>) -> Printable {
    let mut line = Printable::default();
    for wanted in ["above", "below"] {
        let members = estimates.into_iter().flat_map(|estimates| &estimates.0);
        let names = members.filter(|(_, how)| how == wanted).map(|(name, _)| name.as_ref());
        let names: Vec<&str> = names.collect();
        if !names.is_empty() {
            line.push(printable!("\n  {} is {} {} in {}", one, wanted, other, names.join(", ")));
        }
    }
    line
}

fn lineage_text(id: &str, view: &LineageView) -> Printable {
    let mut out = printable!("{} has {} ancestors", id, view.ancestors.len());
    for ancestor in &view.ancestors {
        let gone = if view.missing.contains(ancestor) { "  not logged" } else { "" };
        out.push(printable!("\n  {}{}", ancestor, gone));
    }
    if let Some(limit) = &view.limit {
        out.push(printable!("\nthere may be more: {}", limit));
    }
    for pair in &view.comparisons {
        out.push(differences(&pair.effect, &pair.cause, pair.estimates.as_ref()));
    }
    if let Some(limit) = &view.comparisons_limit {
        out.push(printable!("\nnot every effect was compared with its causes: {}", limit));
    }
    out
}
