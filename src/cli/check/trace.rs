//! `capstan trace`: event chains of agent sessions, in files.

mod show;

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::report;
use crate::cli::output::Out;
use crate::cli::{Answer, files};
use crate::profile::cra::trace::{Chain, Difference, GENESIS, History, Parting, compare};
use crate::profile::{Finding, Severity};
use crate::wire::printable::{Printable, printable};

#[derive(clap::Subcommand)]
pub(in crate::cli) enum Verb {
    /// Check every event and the chain between them
    Verify(VerifyArgs),
    /// Name the first event where two histories part
    Diff(DiffArgs),
    /// List the events of a file, without judging them
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
    /// The one history
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

pub(in crate::cli) fn run(verb: &Verb, out: &Out) -> anyhow::Result<Answer> {
    match verb {
        Verb::Verify(args) => verify(args, out),
        Verb::Diff(args) => diff(args, out),
        Verb::Show(args) => show::run(&read(&args.file)?, out),
    }
}

fn read(path: &Path) -> anyhow::Result<History> {
    Ok(History::read(&files::read(path)?))
}

/// What can be said of one session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Broken, or not where it was said to go on.
    Broken,
    /// Whole from its first event.
    Sound,
    /// Sound in itself, but what came before is not here.
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

fn verify(args: &VerifyArgs, out: &Out) -> anyhow::Result<Answer> {
    let history = read(&args.file)?;
    let after = args.after.as_deref();
    let states: Vec<(&Chain, State)> =
        history.chains.iter().map(|chain| (chain, State::of(chain, after))).collect();
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    let is_broken = history.findings.iter().any(|finding| is_error(&finding))
        || states.iter().any(|(_, state)| *state == State::Broken);
    let is_part = states.iter().any(|(_, state)| *state == State::Part);
    let answer = match (is_broken, is_part) {
        (true, _) => Answer::No,
        (false, true) => Answer::CannotTell,
        (false, false) => Answer::Yes,
    };
    let mut text = Printable::default();
    for (chain, state) in &states {
        text.push(session_lines(chain, *state));
    }
    for finding in &history.findings {
        let (severity, code) = (finding.severity.name(), finding.code);
        text.line(printable!("  {} {} at {}: {}", severity, code, finding.at, finding.detail));
    }
    let object = json!({
        "ok": match answer { Answer::Yes => Json::Bool(true), Answer::No => Json::Bool(false), _ => Json::Null },
        "events": history.events.len(),
        "hash": "cra-trace-v1",
        "sessions": states.iter().map(|(chain, state)| session(chain, *state)).collect::<Vec<_>>(),
        "findings": history.findings.iter().map(report::finding).collect::<Vec<_>>(),
    });
    let (events, sessions) = (history.events.len(), states.len());
    text.line(match answer {
        Answer::Yes => printable!("yes  {} events in {} sessions, whole", events, sessions),
        Answer::CannotTell => Printable::from(
            "cannot tell  sound, but it does not begin its session; --after HASH names what it \
             follows",
        ),
        _ => printable!("no  {} events in {} sessions, not sound", events, sessions),
    });
    out.answer(&object, text)?;
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

fn session(chain: &Chain, state: State) -> Json {
    let span = &chain.span;
    let first_bad = chain.breaks.first().map(|first| {
        json!({
            "sequence": first.sequence,
            "line": first.line + 1,
            "code": first.code,
            "at": first.at,
            "detail": first.detail,
        })
    });
    json!({
        "session": span.session,
        "state": state.name(),
        "events": chain.count,
        "first": span.first,
        "last": span.last,
        "previous": span.previous,
        "head": span.head,
        "first_bad": first_bad,
    })
}

fn diff(args: &DiffArgs, out: &Out) -> anyhow::Result<Answer> {
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let differences = compare(&a, &b);
    let unread = !a.is_whole || !b.is_whole;
    let mut text: Printable = differences.iter().map(difference_line).collect();
    let answer = match (differences.is_empty(), unread) {
        (false, _) => Answer::No,
        (true, true) => Answer::CannotTell,
        (true, false) => Answer::Yes,
    };
    text.push(match answer {
        Answer::Yes => "the same events\n",
        Answer::CannotTell => "the same where both can be read; some events cannot\n",
        _ => "",
    });
    let listed: Vec<Json> = differences.iter().map(difference).collect();
    let ok = (answer != Answer::CannotTell).then_some(answer == Answer::Yes);
    out.answer(&json!({ "ok": ok, "differences": listed }), text)?;
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
            "session {}: they part at event {} (line {} of A, {} of B): {}\n",
            session,
            sequence,
            first_line + 1,
            second_line + 1,
            at.join(", ")
        ),
    }
}

fn difference(difference: &Difference) -> Json {
    let session = &difference.session;
    match &difference.parting {
        Parting::FirstEnds { sequence } => {
            json!({ "session": session, "kind": "a-ends", "sequence": sequence })
        }
        Parting::SecondEnds { sequence } => {
            json!({ "session": session, "kind": "b-ends", "sequence": sequence })
        }
        Parting::Forks { sequence, first_line, second_line, at } => json!({
            "session": session,
            "kind": "fork",
            "sequence": sequence,
            "a_line": first_line + 1,
            "b_line": second_line + 1,
            "at": at,
        }),
    }
}
