//! `capstan trace`: event chains of agent sessions, in files.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::report::FindingView;
use crate::cli::output::Out;
use crate::cli::{Exit, files};
use crate::profile::cra::trace::{Chain, Difference, Event, GENESIS, History, Parting, compare};
use crate::profile::{Finding, Severity};
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Check every event and the chain between them
    Verify(VerifyArgs),
    /// Find the first event in which two histories differ
    Diff(DiffArgs),
    /// List the events of a file without checking them
    Show(ShowArgs),
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan trace verify session.trace.jsonl")]
pub(in crate::cli) struct VerifyArgs {
    /// Events as lines, as one JSON array, or a single one; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The hash the first event must follow, for a file that does not begin a session
    #[arg(long, value_name = "HASH")]
    after: Option<String>,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan trace diff ours.trace.jsonl theirs.trace.jsonl")]
pub(in crate::cli) struct DiffArgs {
    /// First history
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The other
    #[arg(value_name = "B")]
    b: PathBuf,
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan trace show session.trace.jsonl")]
pub(in crate::cli) struct ShowArgs {
    /// Events as lines, as one JSON array, or a single one; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Exit> {
    match verb {
        Verb::Verify(args) => verify(args, out),
        Verb::Diff(args) => diff(args, out),
        Verb::Show(args) => show(&read(&args.file)?, out),
    }
}

fn read(path: &Path) -> anyhow::Result<History> {
    Ok(History::read(&files::read(path)?))
}

/// The result for one session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Broken, or it does not follow the hash given by --after.
    Broken,
    /// Complete from its first event.
    Sound,
    /// Intact, but earlier events are missing.
    Part,
}

impl State {
    fn of(chain: &Chain, after: Option<&str>) -> Self {
        let follows = after.unwrap_or(GENESIS) == chain.span.previous;
        match (chain.breaks.is_empty(), follows, after) {
            (true, true, _) => Self::Sound,
            (true, false, None) => Self::Part,
            _ => Self::Broken,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Sound => "sound",
            Self::Part => "part",
        }
    }
}

fn verify(args: &VerifyArgs, out: &Out) -> anyhow::Result<Exit> {
    let history = read(&args.file)?;
    let after = args.after.as_deref();
    let states: Vec<(&Chain, State)> =
        history.chains.iter().map(|chain| (chain, State::of(chain, after))).collect();
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    let is_broken = history.findings.iter().any(|finding| is_error(&finding))
        || states.iter().any(|(_, state)| *state == State::Broken);
    let is_part = states.iter().any(|(_, state)| *state == State::Part);
    let answer = match (is_broken, is_part) {
        (true, _) => Exit::No,
        (false, true) => Exit::CannotTell,
        (false, false) => Exit::Yes,
    };
    let mut text = Printable::default();
    for (chain, state) in &states {
        text.push(session_lines(chain, *state));
    }
    for finding in &history.findings {
        let (severity, code) = (finding.severity.name(), finding.code);
        text.line(printable!("  {} {} at {}: {}", severity, code, finding.at, finding.detail));
    }
    let report = VerifyReport {
        ok: (answer != Exit::CannotTell).then_some(answer == Exit::Yes),
        events: history.events.len(),
        hash: "cra-trace-v1",
        sessions: states.iter().map(|(chain, state)| SessionView::new(chain, *state)).collect(),
        findings: history.findings.iter().map(FindingView::from).collect(),
    };
    let (events, sessions) = (history.events.len(), states.len());
    text.line(match answer {
        Exit::Yes => printable!("yes  {} events in {} sessions, complete", events, sessions),
        Exit::CannotTell => Printable::from(
            "cannot tell  intact, but the beginning of a session is missing; give the hash of the \
             event before it with --after HASH",
        ),
        _ => printable!("no  {} events in {} sessions, broken", events, sessions),
    });
    out.answer(&report, text)?;
    Ok(answer)
}

fn session_lines(chain: &Chain, state: State) -> Printable {
    let span = &chain.span;
    let mut text = printable!(
        "{} session {}: events {} to {}, head {}\n",
        state.name(),
        span.session,
        span.first,
        span.last,
        span.head
    );
    match chain.breaks.first() {
        Some(first) => {
            let (line, detail) = (first.line + 1, &first.detail);
            text.line(printable!(
                "  first bad event: {} on line {}: {}: {}",
                first.sequence,
                line,
                first.code,
                detail
            ));
        }
        None if state == State::Broken => {
            text.line(printable!("  it follows {}", span.previous));
        }
        None => {}
    }
    text
}

#[derive(Serialize)]
struct VerifyReport<'a> {
    ok: Option<bool>,
    events: usize,
    hash: &'static str,
    sessions: Vec<SessionView<'a>>,
    findings: Vec<FindingView<'a>>,
}

#[derive(Serialize)]
struct SessionView<'a> {
    session: &'a str,
    state: &'static str,
    events: usize,
    first: u64,
    last: u64,
    previous: &'a str,
    head: &'a str,
    first_bad: Option<BadEvent<'a>>,
}

#[derive(Serialize)]
struct BadEvent<'a> {
    sequence: u64,
    line: usize,
    code: &'static str,
    at: &'a str,
    detail: &'a str,
}

impl<'a> SessionView<'a> {
    fn new(chain: &'a Chain, state: State) -> Self {
        let span = &chain.span;
        let first_bad = chain.breaks.first().map(|first| BadEvent {
            sequence: first.sequence,
            line: first.line + 1,
            code: first.code,
            at: &first.at,
            detail: &first.detail,
        });
        Self {
            session: &span.session,
            state: state.name(),
            events: chain.count,
            first: span.first,
            last: span.last,
            previous: &span.previous,
            head: &span.head,
            first_bad,
        }
    }
}

fn diff(args: &DiffArgs, out: &Out) -> anyhow::Result<Exit> {
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let differences = compare(&a, &b);
    let unread = !a.is_whole || !b.is_whole;
    let mut text: Printable = differences.iter().map(difference_line).collect();
    let answer = match (differences.is_empty(), unread) {
        (false, _) => Exit::No,
        (true, true) => Exit::CannotTell,
        (true, false) => Exit::Yes,
    };
    text.push(match answer {
        Exit::Yes => "the same events\n",
        Exit::CannotTell => "the same where both can be read; some events cannot\n",
        _ => "",
    });
    let ok = (answer != Exit::CannotTell).then_some(answer == Exit::Yes);
    let differences = differences.iter().map(DifferenceView::new).collect();
    out.answer(&DiffReport { ok, differences }, text)?;
    Ok(answer)
}

fn difference_line(difference: &Difference) -> Printable {
    let session = &difference.session;
    match &difference.parting {
        Parting::FirstEnds { sequence } => {
            printable!("session {}: A ends before event {}\n", session, sequence)
        }
        Parting::SecondEnds { sequence } => {
            printable!("session {}: B ends before event {}\n", session, sequence)
        }
        Parting::Forks { sequence, first_line, second_line, at } => printable!(
            "session {}: they differ from event {} on (line {} of A, {} of B): {}\n",
            session,
            sequence,
            first_line + 1,
            second_line + 1,
            at.join(", ")
        ),
    }
}

#[derive(Serialize)]
struct DiffReport<'a> {
    ok: Option<bool>,
    differences: Vec<DifferenceView<'a>>,
}

#[derive(Serialize)]
struct DifferenceView<'a> {
    session: &'a str,
    kind: &'static str,
    sequence: u64,
    #[serde(flatten)]
    fork: Option<ForkView<'a>>,
}

#[derive(Serialize)]
struct ForkView<'a> {
    a_line: usize,
    b_line: usize,
    at: &'a [String],
}

impl<'a> DifferenceView<'a> {
    fn new(difference: &'a Difference) -> Self {
        let (kind, sequence, fork) = match &difference.parting {
            Parting::FirstEnds { sequence } => ("a-ends", *sequence, None),
            Parting::SecondEnds { sequence } => ("b-ends", *sequence, None),
            Parting::Forks { sequence, first_line, second_line, at } => {
                let fork = ForkView { a_line: first_line + 1, b_line: second_line + 1, at };
                ("fork", *sequence, Some(fork))
            }
        };
        Self { session: &difference.session, kind, sequence, fork }
    }
}

/// The fields that describe an event; the first one that it has is shown.
const DESCRIPTIVE: [&str; 8] = [
    "action_id",
    "policy_id",
    "block_id",
    "decision_type",
    "operation",
    "reason",
    "agent_id",
    "resolution_id",
];

fn show(history: &History, out: &Out) -> anyhow::Result<Exit> {
    let mut lines = Printable::default();
    let mut session = "";
    for event in &history.events {
        if event.session_id != session {
            session = &event.session_id;
            lines.line(printable!("session {}", session));
        }
        lines.line(event_line(event));
    }
    if history.events.is_empty() {
        lines.line("none");
    }
    let unread = history.findings.iter().filter(|finding| finding.gating).count();
    if !history.is_whole {
        let what = "some events cannot be read";
        lines.line(printable!("{} ({} errors); see trace verify", what, unread));
    }
    let events = history.events.iter().map(EventView::new).collect();
    out.answer(&ShowReport { events, is_whole: history.is_whole }, lines)?;
    Ok(if history.events.is_empty() { Exit::Failed } else { Exit::Yes })
}

/// `   3  2024-12-28T12:00:02Z  action.denied  ticket.delete  82d7fc53…c8a9`
fn event_line(event: &Event) -> Printable {
    printable!(
        "{:>6}  {:<27}  {:<26}  {:<32}  {}",
        event.sequence,
        event.timestamp,
        event.event_type,
        description(event),
        text::short(&event.hash)
    )
}

/// Cut to the width of its column.
fn description(event: &Event) -> String {
    let text = DESCRIPTIVE.iter().find_map(|name| event.text(name)).unwrap_or_default();
    text.chars().take(32).collect()
}

#[derive(Serialize)]
struct ShowReport<'a> {
    events: Vec<EventView<'a>>,
    is_whole: bool,
}

#[derive(Serialize)]
struct EventView<'a> {
    line: usize,
    session: &'a str,
    sequence: u64,
    timestamp: &'a str,
    event_type: &'a str,
    about: Option<&'a str>,
    hash: &'a str,
    form: Option<&'static str>,
}

impl<'a> EventView<'a> {
    fn new(event: &'a Event) -> Self {
        Self {
            line: event.line + 1,
            session: &event.session_id,
            sequence: event.sequence,
            timestamp: &event.timestamp,
            event_type: &event.event_type,
            about: DESCRIPTIVE.iter().find_map(|name| event.text(name)),
            hash: &event.hash,
            form: event.form().map(|form| form.name()),
        }
    }
}
