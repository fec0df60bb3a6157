//! The only place that prints.
//!
//! Standard output carries the result and nothing else; standard error is
//! for people. A reader that has gone away is no error.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::{Answer, Stop};

/// Where and how to print.
#[derive(Clone, Copy)]
pub(super) struct Out {
    json: bool,
    quiet: bool,
}

impl Out {
    pub(super) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// The result: one JSON object, or text for people.
    pub(super) fn answer(&self, object: &impl Serialize, text: &str) -> anyhow::Result<()> {
        if self.json {
            let mut line = serde_json::to_string(object)?;
            line.push('\n');
            return self.bytes(line.as_bytes());
        }
        self.line(text)
    }

    /// A line of the result.
    pub(super) fn line(&self, text: &str) -> anyhow::Result<()> {
        let text = text.trim_end_matches('\n');
        if text.is_empty() { Ok(()) } else { self.bytes(format!("{text}\n").as_bytes()) }
    }

    /// The result as bytes.
    pub(super) fn bytes(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.into()),
            _ => Ok(()),
        }
    }

    /// Something a person may want to know.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            let _gone = writeln!(io::stderr().lock(), "{}", text.trim_end_matches('\n'));
        }
    }

    /// Something went wrong that does not end the work.
    pub(super) fn complain(&self, text: &str) {
        let _gone = writeln!(io::stderr().lock(), "capstan: {text}");
    }

    /// Prints an error once, with its causes and the next step; gives the
    /// exit code.
    pub(super) fn error(&self, error: &anyhow::Error) -> u8 {
        let stop = error.downcast_ref::<Stop>();
        let text = chain(error);
        self.complain(&text);
        if let Some(next) = stop.and_then(|stop| stop.next.as_ref()) {
            let _gone = writeln!(io::stderr().lock(), "try: {next}");
        }
        let answer = stop.map_or(Answer::Unanswered, |stop| stop.answer);
        if self.json {
            let ok = (answer == Answer::No).then_some(false);
            let code = stop.map_or("failed", |stop| stop.code);
            let _gone = self.answer(&Failed { ok, code, error: text }, "");
        }
        answer.exit_code()
    }

    /// Whether a person can be asked.
    pub(super) fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks; an empty answer takes the default.
    pub(super) fn ask(&self, question: &str, default: &str) -> anyhow::Result<String> {
        let mut stderr = io::stderr().lock();
        let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        write!(stderr, "{question}{shown}: ")?;
        stderr.flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        let line = line.trim();
        Ok(if line.is_empty() { default.to_owned() } else { line.to_owned() })
    }

    /// A bar and lines below it on standard error, for people who watch what
    /// has a known end: 1000.
    pub(super) fn live(&self) -> ProgressBar {
        let watched = !self.quiet && !self.json && io::stderr().is_terminal();
        let target =
            if watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {prefix}\n{msg}") {
            bar.set_style(style);
        }
        bar
    }

    /// A bar on standard error, for people who watch.
    pub(super) fn progress(&self, total: u64, what: &'static str) -> ProgressBar {
        let watched = !self.quiet && !self.json && total > 1 && io::stderr().is_terminal();
        let target =
            if watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target).with_message(what);
        let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        bar
    }
}

#[derive(Serialize)]
struct Failed {
    ok: Option<bool>,
    code: &'static str,
    error: String,
}

/// The error and its causes on one line; a cause that repeats what was said
/// already is left out.
pub(super) fn chain(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let text = text.trim();
        if line.ends_with(text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(text);
    }
    line
}

/// Whether bytes on standard output would end on somebody's screen.
pub(super) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Help and usage errors, as the parser words them.
pub(super) fn usage(error: &clap::Error) -> u8 {
    let _gone = error.print();
    u8::try_from(error.exit_code()).unwrap_or(Answer::Unanswered.exit_code())
}
