//! The only place that prints.
//!
//! Standard output carries the result and nothing else; standard error is
//! for people. Text comes as [`Printable`], so that nothing from outside
//! reaches a screen unescaped; the linter forbids every other way to print.
//! A reader that has gone away is no error.

#![allow(clippy::disallowed_methods, reason = "this is the layer that others must go through")]

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::{CliError, Exit};
use crate::wire::printable::{self, Printable, printable};

/// The flags that every command takes.
#[derive(Clone, Copy, clap::Args)]
pub struct OutputArgs {
    /// Print one JSON object on standard output
    #[arg(long, global = true, display_order = 900)]
    json: bool,
    /// Print only the result
    #[arg(long, short, global = true, display_order = 901)]
    quiet: bool,
}

impl OutputArgs {
    /// The output of a program, as these flags say.
    pub fn out(&self, program: &'static str) -> Out {
        Out::new(program, self.json, self.quiet)
    }
}

/// Where and how to print.
#[derive(Clone, Copy)]
pub struct Out {
    /// The prefix of errors.
    program: &'static str,
    json: bool,
    quiet: bool,
}

impl Out {
    pub(super) fn new(program: &'static str, json: bool, quiet: bool) -> Self {
        Self { program, json, quiet }
    }

    /// The result: one JSON object, or text for people.
    pub fn answer(
        &self,
        object: &impl Serialize,
        text: impl Into<Printable>,
    ) -> anyhow::Result<()> {
        if self.json {
            return self
                .raw(format!("{}\n", printable::json(&serde_json::to_string(object)?)).as_bytes());
        }
        self.line(text)
    }

    /// A result that is JSON for people too.
    pub(super) fn document(&self, object: &impl Serialize) -> anyhow::Result<()> {
        let text = if self.json {
            serde_json::to_string(object)?
        } else {
            serde_json::to_string_pretty(object)?
        };
        self.raw(format!("{}\n", printable::json(&text)).as_bytes())
    }

    /// A result that is a document: its bytes for people and pipes, or the
    /// object that holds it.
    pub(super) fn file(&self, object: &impl Serialize, bytes: &[u8]) -> anyhow::Result<()> {
        if self.json { self.answer(object, "") } else { self.raw(bytes) }
    }

    /// A line of the result.
    pub(super) fn line(&self, text: impl Into<Printable>) -> anyhow::Result<()> {
        let text = text.into();
        let text = text.without_end();
        if text.is_empty() { Ok(()) } else { self.raw(format!("{text}\n").as_bytes()) }
    }

    /// The result as bytes that somebody asked for, for a file or a pipe: a
    /// receipt, a statement, a completion script. They are not escaped.
    pub(super) fn raw(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.into()),
            _ => Ok(()),
        }
    }

    /// A message for people; `--quiet` hides it.
    pub fn note(&self, text: impl Into<Printable>) {
        if !self.quiet {
            say(text.into());
        }
    }

    /// An error that does not end the program.
    pub(super) fn complain(&self, text: impl Into<Printable>) {
        say(printable!("{}: {}", self.program, text.into()));
    }

    /// Prints an error with its causes and the next step; returns the exit
    /// code.
    pub(super) fn error(&self, error: &anyhow::Error) -> u8 {
        let known = error.downcast_ref::<CliError>();
        let text = chain(error);
        self.complain(Printable::long(&text));
        let details = known.and_then(|known| known.details.as_ref());
        if let Some(details) = details {
            say(details.clone());
        }
        if let Some(next) = known.and_then(|known| known.next.as_ref()) {
            say(printable!("try: {}", Printable::long(next)));
        }
        let exit = known.map_or(Exit::Failed, |known| known.exit);
        if self.json {
            let ok = (exit == Exit::No).then_some(false);
            let code = known.map_or("failed", |known| known.code);
            let details = details.map(|details| details.without_end().to_owned());
            let _gone = self.answer(&Failed { ok, code, error: text, details }, "");
        }
        exit.code()
    }

    /// Whether the result is one JSON object.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether there is a terminal to ask on.
    pub(super) fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks; an empty answer takes the default.
    pub(super) fn ask(
        &self,
        question: impl Into<Printable>,
        default: &str,
    ) -> anyhow::Result<String> {
        let mut stderr = io::stderr().lock();
        let mut shown = question.into();
        if !default.is_empty() {
            shown.push(printable!(" [{}]", default));
        }
        write!(stderr, "{}: ", shown.as_str())?;
        stderr.flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        let line = line.trim();
        Ok(if line.is_empty() { default.to_owned() } else { line.to_owned() })
    }

    /// A bar and lines below it on standard error, for people who watch what
    /// has a known end: 1000.
    pub fn live(&self) -> Live {
        let watched = !self.quiet && !self.json && io::stderr().is_terminal();
        let target =
            if watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {prefix}\n{msg}") {
            bar.set_style(style);
        }
        Live(bar)
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

/// A bar and lines below it.
pub struct Live(ProgressBar);

impl Live {
    /// Moves the bar, of 1000.
    pub fn set_position(&self, part: u64) {
        self.0.set_position(part);
    }

    /// What is going on, and the lines below.
    pub fn show(&self, words: impl Into<Printable>, lines: impl Into<Printable>) {
        self.0.set_prefix(words.into().as_str().to_owned());
        self.0.set_message(lines.into().as_str().to_owned());
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

fn say(text: Printable) {
    let _gone = writeln!(io::stderr().lock(), "{}", text.without_end());
}

/// Where the log of a server goes: standard error, one line for each event,
/// whatever text from outside is in it.
#[derive(Clone, Copy)]
pub(super) struct LogWriter {
    json: bool,
}

impl LogWriter {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }
}

impl io::Write for LogWriter {
    /// The formatter hands over whole events.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(event);
        let line = if self.json { printable::json(&line) } else { printable::log_line(&line) };
        io::stderr().lock().write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

#[derive(Serialize)]
struct Failed {
    ok: Option<bool>,
    code: &'static str,
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<String>,
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

/// Help and usage errors, as the parser words them. What the user typed may
/// be a file name that somebody else made up.
pub(super) fn usage(mut error: clap::Error, out: &Out) -> u8 {
    let code = u8::try_from(error.exit_code()).unwrap_or(Exit::Failed.code());
    if !error.use_stderr() {
        let _gone = error.print();
        return code;
    }
    if let Some(error) = moved(&error) {
        return out.error(&error.into());
    }
    let typed: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => {
                Some((kind, ContextValue::String(Printable::of(text).as_str().to_owned())))
            }
            ContextValue::Strings(texts) => {
                let texts = texts.iter().map(|text| Printable::of(text).as_str().to_owned());
                Some((kind, ContextValue::Strings(texts.collect())))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in typed {
        error.insert(kind, value);
    }
    let mut lines = Printable::default();
    let text = error.render().to_string();
    text.lines().for_each(|line| lines.line(Printable::long(line)));
    say(lines);
    if out.json {
        let first = text.lines().next().unwrap_or_default();
        let error = first.strip_prefix("error: ").unwrap_or(first).to_owned();
        let _gone = out.answer(&Failed { ok: None, code: "usage", error, details: None }, "");
    }
    code
}

/// Commands that became programs of their own.
fn moved(error: &clap::Error) -> Option<CliError> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let (what, program) = match typed.as_str() {
        "hammer" => ("the load generator", "capstan-hammer"),
        "conformance" => ("the PCA conformance suite", "capstan-pca-conformance"),
        _ => return None,
    };
    let error = CliError::failed("usage", format!("{what} is the program {program}"));
    Some(error.next(format!("cargo run --package capstan-tools --bin {program}")))
}
