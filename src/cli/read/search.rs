//! `capstan log`, `find`, `story`, `open-items`: the API's answers for people.
//!
//! A log on this machine is asked in the same way as one behind an address,
//! so both give the same facts.

use std::path::PathBuf;

use anyhow::Context as _;
use axum::body::Body;
use axum::http::Request;
use clap::builder::RangedI64ValueParser;
use reqwest::Url;
use serde_json::Value;
use tower::ServiceExt as _;

use super::client::{Client, Reply};
use super::output::Out;
use super::settings::{self, Given};
use super::target::Target;
use super::{Answer, Stop, broken_store, names};
use crate::http::{self, HttpOptions};
use crate::metrics::Metrics;
use crate::service::{self, Options};
use crate::store::Field;
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

/// Bytes of the largest answer a log on this machine gives.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a log gives on one page.
fn limits() -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=200)
}

/// Which log to ask.
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
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
    /// Only what still waits for somebody
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

pub(in crate::cli) async fn log(args: &LogArgs, out: &Out) -> anyhow::Result<Answer> {
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
    let what = if args.open { "open-items" } else { "statements" };
    let page = ask(&args.source, &["api", "v1", what], &pairs).await?;
    show(&page, out)
}

pub(in crate::cli) async fn find(args: &FindArgs, out: &Out) -> anyhow::Result<Answer> {
    let limit = args.limit.to_string();
    let mut pairs: Vec<_> = args.words.iter().map(|word| ("any", word.as_str())).collect();
    pairs.push(("limit", &limit));
    let page = ask(&args.source, &["api", "v1", "statements"], &pairs).await?;
    let searched: Vec<&str> = Field::SEARCHED.iter().map(|field| field.name()).collect();
    out.note(printable!("searched {} for whole values", searched.join(", ")));
    show(&page, out)
}

pub(in crate::cli) async fn story(args: &StoryArgs, out: &Out) -> anyhow::Result<Answer> {
    let name = names::story(&args.source, &args.id).await?;
    let story = ask(&args.source, &["api", "v1", "stories", &name], &[]).await?;
    out.answer(&story, story_text(&story))?;
    let open = story.get("chain").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    say_how_to_close(open.iter().filter(|record| string(record, "state") == "open"), out);
    note(&story, out);
    Ok(Answer::Yes)
}

pub(in crate::cli) async fn open_items(args: &OpenArgs, out: &Out) -> anyhow::Result<Answer> {
    let limit = args.limit.to_string();
    let operator = args.operator.iter().map(|operator| ("operator", operator.as_str()));
    let pairs: Vec<_> = operator.chain([("limit", limit.as_str())]).collect();
    let page = ask(&args.source, &["api", "v1", "open-items"], &pairs).await?;
    let answer = show(&page, out)?;
    let open = page.get("statements").and_then(Value::as_array);
    say_how_to_close(open.into_iter().flatten(), out);
    Ok(answer)
}

/// What the next command needs: `--supersedes` takes the number.
fn say_how_to_close<'a>(mut open: impl Iterator<Item = &'a Value>, out: &Out) {
    let Some(index) = open.next().and_then(|entry| entry.get("index")?.as_u64()) else { return };
    out.note(printable!(
        "next\n  {} record ACTION.json --key KEY --supersedes {}",
        super::program(),
        index
    ));
}

/// Whether a log said that there is nothing, or knows no such path.
pub(in crate::cli) fn fetch_error_is_not_found(stop: &Stop) -> bool {
    stop.code == "not-found"
}

/// One question, whoever answers it.
pub(in crate::cli) async fn ask(
    source: &Source,
    path: &[&str],
    pairs: &[(&str, &str)],
) -> anyhow::Result<Value> {
    let body = fetch(source, path, (pairs, "application/json")).await?;
    serde_json::from_slice(&body).context("the log does not answer with JSON")
}

/// The bytes of one answer.
pub(in crate::cli) async fn fetch(
    source: &Source,
    path: &[&str],
    (pairs, accept): (&[(&str, &str)], &str),
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
        Some(data) => ask_here(data, &url).await,
    }
}

async fn ask_here(data: &std::path::Path, url: &Url) -> anyhow::Result<Vec<u8>> {
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

fn show(page: &Value, out: &Out) -> anyhow::Result<Answer> {
    let list = page.get("statements");
    let entries = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut lines = Printable::default();
    entries.iter().for_each(|entry| line(&mut lines, entry));
    if entries.is_empty() {
        lines.line("none");
    }
    out.answer(page, lines)?;
    if page.get("is_cut").and_then(Value::as_bool) == Some(true) {
        out.note("the search cost too much and stopped early; go on with --cursor");
    }
    if let Some(cursor) = page.get("cursor").and_then(Value::as_str) {
        out.note(printable!("there may be more: --cursor {}", cursor));
    }
    note(page, out);
    Ok(Answer::Yes)
}

fn note(object: &Value, out: &Out) {
    let said = string(object, "note");
    if !said.is_empty() {
        out.note(Printable::long(said));
    }
}

fn string<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// `#17  2026-01-01T00:00:00Z  executed  https://agent.example  urn:…  7f3c9d21…04a1`
fn line(lines: &mut Printable, entry: &Value) {
    let index = entry.get("index").and_then(Value::as_u64).unwrap_or_default();
    let verdict = entry.get("record").map(|record| string(record, "verdict"));
    let what = verdict.filter(|v| !v.is_empty()).unwrap_or_else(|| string(entry, "profile"));
    let (time, issuer) = (string(entry, "registered_at"), string(entry, "issuer"));
    let (subject, id) = (string(entry, "subject"), text::short(string(entry, "id")));
    lines.push(printable!("#{:<6} {}  {:<15} {}  {}  {}", index, time, what, issuer, subject, id));
    let happened = entry.pointer("/record/happened").and_then(Value::as_bool);
    if happened == Some(false) {
        lines.push("  COUNTERFACTUAL: did not happen");
    }
    let expires = string(entry, "expires_at_by_its_own_clock");
    if !expires.is_empty() {
        lines.push(printable!("  expires {} by its own clock", expires));
    }
    lines.push("\n");
}

/// `https://agent.example (pinned)`
fn teller(says: Option<&Value>) -> String {
    let Some(says) = says else { return "nobody knows who".to_owned() };
    let binding = Some(string(says, "binding")).filter(|binding| !binding.is_empty());
    format!("{} ({})", string(says, "issuer"), binding.unwrap_or("not known how"))
}

fn story_text(story: &Value) -> Printable {
    let list = |name| story.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    // Who reads one line must not miss that the records contradict each other.
    let errors = list("findings").iter().filter(|f| string(f, "severity") == "error").count();
    let errors = match errors {
        0 => String::new(),
        1 => ", 1 error below".to_owned(),
        many => format!(", {many} errors below"),
    };
    let (state, id) = (string(story, "state"), string(story, "id"));
    let mut lines = printable!("{}{}  {}\n", state, errors, id);
    for record in list("chain") {
        let closed = record.get("closed_by").and_then(Value::as_u64);
        let closed = closed.map_or(String::new(), |by| format!(" by #{by}"));
        let reverted = record.get("reverted_by").and_then(Value::as_u64);
        let reverted = reverted.map_or(String::new(), |by| {
            format!(" reverted by #{by}, says {},", teller(record.get("reverted_says")))
        });
        lines.push(printable!("  {:<9}{}{} ", string(&record, "state"), closed, reverted));
        line(&mut lines, &record);
    }
    for outcome in list("outcomes") {
        let about = outcome.get("about").map(Value::to_string).unwrap_or_default();
        let (how, who) = (string(&outcome, "correlation"), teller(outcome.get("says")));
        lines.push(printable!("  outcome, {} {}, says {}, ", how, about, who));
        line(&mut lines, &outcome);
    }
    for fork in list("forks") {
        let index = fork.get("index").and_then(Value::as_u64).unwrap_or_default();
        let children = fork.get("children").map(Value::to_string).unwrap_or_default();
        lines.line(printable!("  fork      #{} is followed by {}", index, children));
    }
    for session in list("sessions") {
        let statements = session.get("statements").and_then(Value::as_array).map_or(0, Vec::len);
        let is_whole = session.get("is_gap_free").and_then(Value::as_bool) == Some(true);
        let how = if is_whole { "gap-free" } else { "NOT gap-free" };
        let last = session.get("last").and_then(Value::as_u64);
        let last = last.map_or("no event".to_owned(), |last| format!("up to event {last}"));
        lines.line(printable!(
            "  session   {} of {}: {} statements, {}, {}",
            string(&session, "session"),
            string(&session, "issuer"),
            statements,
            last,
            how
        ));
    }
    for finding in list("findings") {
        let index = finding.get("index").and_then(Value::as_u64).unwrap_or_default();
        let (severity, detail) = (string(&finding, "severity"), string(&finding, "detail"));
        let code = string(&finding, "code");
        lines.line(printable!("  {:<9} #{}: {} ({})", severity, index, detail, code));
    }
    lines
}
