//! `capstan log`, `find`, `story`, `open-items`: API responses as text.
//!
//! A data directory is read through the same routes as a running log, so both
//! give the same answers.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use axum::body::Body;
use axum::http::Request;
use clap::builder::RangedI64ValueParser;
use reqwest::Url;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt as _;

use super::names;
use crate::cli::client::target::Target;
use crate::cli::client::{Client, Reply};
use crate::cli::output::Out;
use crate::cli::settings::{self, Given};
use crate::cli::{Exit, broken_store};
use crate::http::{self, HttpOptions};
use crate::log::LeafIndex;
use crate::metrics::Metrics;
use crate::service::views::{EntryView, ItemView, Reporter, SearchPage, StoryView};
use crate::service::{self, Options};
use crate::store::Field;
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

/// Bytes of the largest answer read from a data directory.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many statements fit on one page.
fn limits() -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=200)
}

/// Which log to read.
#[derive(clap::Args)]
pub(in crate::cli) struct Source {
    #[command(flatten)]
    target: Target,
    /// Data directory of a log that is not running
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    data: Option<PathBuf>,
}

impl Source {
    /// A log behind an address.
    pub(in crate::cli) fn of(target: &Target) -> Self {
        Self { target: target.clone(), data: None }
    }
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan log --verdict blocked --since 2026-01-01T00:00:00Z \
                  --url http://127.0.0.1:8787")]
pub(in crate::cli) struct LogArgs {
    /// Only statements of this issuer
    #[arg(long)]
    issuer: Option<String>,
    /// Only records with this verdict
    #[arg(long)]
    verdict: Option<String>,
    /// Only records of this operator
    #[arg(long)]
    operator: Option<String>,
    /// Registered at or after this RFC 3339 time
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Registered at or before this RFC 3339 time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// How many, at most 200
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = limits())]
    limit: u32,
    /// Cursor printed under the previous page
    #[arg(long)]
    cursor: Option<String>,
    /// Only records that are still open
    #[arg(long, conflicts_with = "verdict")]
    open: bool,
    #[command(flatten)]
    source: Source,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan find acme executed --url http://127.0.0.1:8787")]
pub(in crate::cli) struct FindArgs {
    /// Whole values; a statement must have all of them, each in any field
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// How many, at most 200
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = limits())]
    limit: u32,
    #[command(flatten)]
    source: Source,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan story order-17 --url http://127.0.0.1:8787")]
pub(in crate::cli) struct StoryArgs {
    /// Statement id or its first 8 digits, 6, capsule id, action id or session
    id: String,
    #[command(flatten)]
    source: Source,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan open-items --operator acme --url http://127.0.0.1:8787")]
pub(in crate::cli) struct OpenArgs {
    /// Only records of this operator
    #[arg(long)]
    operator: Option<String>,
    /// How many, at most 200
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = limits())]
    limit: u32,
    #[command(flatten)]
    source: Source,
}

pub(in crate::cli) async fn log(args: &LogArgs, out: &Out) -> anyhow::Result<Exit> {
    let limit = args.limit.to_string();
    let pairs = [
        ("issuer", args.issuer.as_deref()),
        ("verdict", args.verdict.as_deref()),
        ("operator", args.operator.as_deref()),
        ("since", args.since.as_deref()),
        ("until", args.until.as_deref()),
        ("cursor", args.cursor.as_deref()),
        ("limit", Some(limit.as_str())),
    ];
    let pairs: Vec<_> = pairs.into_iter().filter_map(|(name, v)| Some((name, v?))).collect();
    if args.open {
        let page = get(&args.source, &["api", "v1", "open-items"], &pairs).await?;
        show(&page, item_line, out)
    } else {
        let page = get(&args.source, &["api", "v1", "statements"], &pairs).await?;
        show(&page, entry_line, out)
    }
}

pub(in crate::cli) async fn find(args: &FindArgs, out: &Out) -> anyhow::Result<Exit> {
    let limit = args.limit.to_string();
    let mut pairs: Vec<_> = args.words.iter().map(|word| ("any", word.as_str())).collect();
    pairs.push(("limit", &limit));
    let page = get(&args.source, &["api", "v1", "statements"], &pairs).await?;
    let searched: Vec<&str> = Field::SEARCHED.iter().map(|field| field.name()).collect();
    out.note(printable!("searched {} for whole values", searched.join(", ")));
    show(&page, entry_line, out)
}

pub(in crate::cli) async fn story(args: &StoryArgs, out: &Out) -> anyhow::Result<Exit> {
    let name = names::story(&args.source, &args.id).await?;
    let Received { document, view } =
        get::<StoryView>(&args.source, &["api", "v1", "stories", &name], &[]).await?;
    out.answer(&document, story_text(&view))?;
    let open = view.chain.iter().find(|record| record.state == "open");
    note_how_to_close(open.map(|record| &record.item), out);
    out.note(Printable::long(&view.note));
    Ok(Exit::Yes)
}

pub(in crate::cli) async fn open_items(args: &OpenArgs, out: &Out) -> anyhow::Result<Exit> {
    let limit = args.limit.to_string();
    let operator = args.operator.iter().map(|operator| ("operator", operator.as_str()));
    let pairs: Vec<_> = operator.chain([("limit", limit.as_str())]).collect();
    let page = get(&args.source, &["api", "v1", "open-items"], &pairs).await?;
    let answer = show(&page, item_line, out)?;
    note_how_to_close(page.view.statements.first(), out);
    Ok(answer)
}

/// Prints the command that closes an item: `--supersedes` takes its index.
fn note_how_to_close(open: Option<&ItemView>, out: &Out) {
    let Some(item) = open else { return };
    out.note(printable!(
        "next\n  {} record ACTION.json --key KEY --supersedes {}",
        crate::cli::program(),
        item.entry.index
    ));
}

/// An answer of the API: as it was received, for `--json`, and as a type.
pub(in crate::cli) struct Received<T> {
    pub(in crate::cli) document: Value,
    pub(in crate::cli) view: T,
}

/// Gets an answer of the API, from a running log or a data directory.
pub(in crate::cli) async fn get<T: DeserializeOwned>(
    source: &Source,
    path: &[&str],
    pairs: &[(&str, &str)],
) -> anyhow::Result<Received<T>> {
    let document = get_json(source, path, pairs).await?;
    let view = T::deserialize(&document).context("the response is not one of this API")?;
    Ok(Received { document, view })
}

/// Gets a JSON document.
pub(in crate::cli) async fn get_json(
    source: &Source,
    path: &[&str],
    pairs: &[(&str, &str)],
) -> anyhow::Result<Value> {
    let body = fetch(source, path, pairs, "application/json").await?;
    serde_json::from_slice(&body).context("the response is not JSON")
}

/// Gets the bytes of an answer.
pub(in crate::cli) async fn fetch(
    source: &Source,
    path: &[&str],
    pairs: &[(&str, &str)],
    accept: &str,
) -> anyhow::Result<Vec<u8>> {
    let client = match source.data {
        Some(_) => Client::new("http://127.0.0.1", None, None)?,
        None => source.target.client(None)?,
    };
    let mut url = client.base().clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
    match &source.data {
        None => client.fetch(url.as_str(), accept).await,
        Some(data) => fetch_from_directory(data, &url).await,
    }
}

async fn fetch_from_directory(data: &Path, url: &Url) -> anyhow::Result<Vec<u8>> {
    let given = Given { data: Some(data), ..Given::default() };
    let config = settings::load(&given)?.config;
    let options = Options { read_only: true, ..Options::from_config(&config) };
    let service = service::open(data, options, Metrics::new(env!("CARGO_PKG_VERSION")));
    let service = service.map_err(|e| broken_store(e, data))?;
    let router = http::app(service.clone(), HttpOptions::from_config(&config)?);
    let target = url.query().map_or(url.path().to_owned(), |q| format!("{}?{q}", url.path()));
    let request = Request::get(target).header("accept", "application/json").body(Body::empty())?;
    let response = router.oneshot(request).await?;
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), ANSWER_BYTES_MAX).await?.to_vec();
    Reply { url: url.clone(), status, location: None, retry_after: None, body }.found()
}

fn show<T>(
    page: &Received<SearchPage<T>>,
    line: impl Fn(&T) -> Printable,
    out: &Out,
) -> anyhow::Result<Exit> {
    let Received { document, view } = page;
    let mut lines = Printable::default();
    view.statements.iter().for_each(|statement| lines.line(line(statement)));
    if view.statements.is_empty() {
        lines.line("none");
    }
    out.answer(document, lines)?;
    if view.is_cut {
        out.note("the search reached its limit and stopped early; continue with --cursor");
    }
    if let Some(cursor) = &view.cursor {
        out.note(printable!("for more: --cursor {}", cursor));
    }
    out.note(Printable::long(&view.note));
    Ok(Exit::Yes)
}

/// `#17  2026-01-01T00:00:00Z  executed  https://agent.example  urn:…  7f3c9d21…04a1`
fn entry_line(entry: &EntryView) -> Printable {
    let verdict = entry.record.verdict.as_deref().filter(|verdict| !verdict.is_empty());
    let mut line = printable!(
        "#{:<6} {}  {:<15} {}  {}  {}",
        entry.index,
        entry.registered_at,
        verdict.unwrap_or(&entry.profile),
        entry.issuer,
        entry.subject,
        text::short(&entry.id.to_string())
    );
    if entry.record.happened == Some(false) {
        line.push("  COUNTERFACTUAL: did not happen");
    }
    line
}

fn item_line(item: &ItemView) -> Printable {
    let mut line = entry_line(&item.entry);
    if let Some(expires) = &item.expires_at_by_its_own_clock {
        line.push(printable!("  expires {} by its own clock", expires));
    }
    line
}

/// `https://agent.example (pinned)`
fn reporter(reporter: Option<&Reporter>) -> String {
    let Some(Reporter { issuer, binding }) = reporter else {
        return "an unknown issuer".to_owned();
    };
    format!("{issuer} ({})", binding.as_deref().unwrap_or("binding unknown"))
}

/// `[3,5]`
fn indices(list: &[LeafIndex]) -> String {
    let list: Vec<String> = list.iter().map(LeafIndex::to_string).collect();
    format!("[{}]", list.join(","))
}

fn story_text(story: &StoryView) -> Printable {
    // The first line says that records contradict each other: some readers
    // read no further.
    let errors = story.findings.iter().filter(|finding| finding.severity == "error").count();
    let errors = match errors {
        0 => String::new(),
        1 => ", 1 error below".to_owned(),
        many => format!(", {many} errors below"),
    };
    let mut lines = printable!("{}{}  {}\n", story.state, errors, story.id);
    for record in &story.chain {
        let closed = record.closed_by.map_or(String::new(), |by| format!(" by #{by}"));
        let reverted = record.reverted.as_ref().map_or(String::new(), |reverted| {
            let says = reporter(reverted.reverted_says.as_ref());
            format!(" reverted by #{}, says {says},", reverted.reverted_by)
        });
        lines.push(printable!("  {:<9}{}{} ", record.state, closed, reverted));
        lines.line(item_line(&record.item));
    }
    for outcome in &story.outcomes {
        let (about, says) = (indices(&outcome.about), reporter(outcome.says.as_ref()));
        lines.push(printable!("  outcome, {} {}, says {}, ", outcome.correlation, about, says));
        lines.line(entry_line(&outcome.entry));
    }
    for fork in &story.forks {
        let children = indices(&fork.children);
        lines.line(printable!("  fork      #{} is followed by {}", fork.index, children));
    }
    for session in &story.sessions {
        let last = session.last.map_or("no event".to_owned(), |last| format!("up to event {last}"));
        lines.line(printable!(
            "  session   {} of {}: {} statements, {}, {}",
            session.session,
            session.issuer,
            session.statements.len(),
            last,
            if session.is_gap_free { "gap-free" } else { "NOT gap-free" }
        ));
    }
    for finding in &story.findings {
        lines.line(printable!(
            "  {:<9} #{}: {} ({})",
            finding.severity,
            finding.index,
            finding.detail,
            finding.code
        ));
    }
    lines
}
