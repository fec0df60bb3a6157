//! What a verb came to: an answer, or the reason there is none.

use std::path::Path;

use super::output::chain;
use super::program;
use crate::service::ControlError;
use crate::store;
use crate::trust;
use crate::wire::printable::Printable;

/// What a verb that could answer came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    Yes,
    No,
    Unanswered,
    CannotTell,
}

impl Answer {
    pub(super) fn exit_code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::Unanswered => 2,
            Self::CannotTell => 3,
        }
    }
}

/// An error that knows its exit code, its stable word, and often what to do
/// next. Any other error means that we could not answer.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Stop {
    pub(super) answer: Answer,
    pub(super) code: &'static str,
    /// What is wrong, in one sentence.
    pub what: String,
    pub(super) next: Option<String>,
    /// Lines that belong to it: evidence, or every mistake.
    pub(super) details: Option<Printable>,
}

impl Stop {
    /// It is refused, broken or false.
    pub fn no(code: &'static str, what: impl Into<String>) -> Self {
        Self { answer: Answer::No, code, what: what.into(), next: None, details: None }
    }

    /// Nobody we believe can say.
    pub fn cannot_tell(code: &'static str, what: impl Into<String>) -> Self {
        Self { answer: Answer::CannotTell, ..Self::no(code, what) }
    }

    /// The question was wrong, or the world did not answer.
    pub fn failed(code: &'static str, what: impl Into<String>) -> Self {
        Self { answer: Answer::Unanswered, ..Self::no(code, what) }
    }

    pub fn next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    pub(super) fn details(self, details: Printable) -> Self {
        Self { details: Some(details), ..self }
    }
}

/// A store that must not be written to is a "no"; one that cannot be had is
/// no answer.
pub(super) fn broken_store(error: ControlError, data: &Path) -> anyhow::Error {
    if let ControlError::Rules(unknown) = &error {
        return Stop::failed(unknown.code(), unknown.to_string()).into();
    }
    if let ControlError::Trust(source @ trust::Error::Unscoped { .. }) = &error {
        let what = format!("trust.toml of the log: {source}; until then nothing is written");
        let data = data.display();
        let next = format!("{} trust upgrade {data}/trust.toml --data {data}", program());
        return Stop::no(source.code(), what).next(next).into();
    }
    let ControlError::Store(source) = &error else { return error.into() };
    let (code, what) = (source.code(), source.to_string());
    let (program, data) = (program(), data.display());
    match source {
        store::Error::RolledBack { .. } | store::Error::Forked { .. } => Stop::no(code, what)
            .next(format!(
                "restore the newest copy, or serve what is there with \
                 `{program} serve --data {data} --read-only`"
            ))
            .into(),
        store::Error::GuardMissing { .. } => {
            let moved = "if the directory was moved, move its guard along, or";
            Stop::no(code, what).next(format!("{moved} {}", resume(&program, &data))).into()
        }
        store::Error::Unproven { .. } => Stop::no(code, what).next(resume(&program, &data)).into(),
        store::Error::HeadDiffers { .. } => {
            let next = "look at the head again; a copy of another head is not the one you mean";
            Stop::no(code, what).next(next).into()
        }
        store::Error::OtherWriter { .. } => {
            Stop::no(code, what).next("stop that log, then the same command").into()
        }
        store::Error::BeyondHead { .. } | store::Error::HeadDamaged { .. } => {
            Stop::no(code, what).next(format!("{program} fsck --data {data}")).into()
        }
        store::Error::Locked { .. } | store::Error::GuardInUse { .. } => {
            Stop::failed(code, what).next("stop the process that has it open").into()
        }
        store::Error::NotFound { .. } => Stop::failed(code, what)
            .next(format!("{program} init --data {data} --name NAME"))
            .into(),
        _ => Stop::failed(code, chain(&error.into())).into(),
    }
}

/// How a log that must not write yet comes to write.
fn resume(program: &str, data: &impl std::fmt::Display) -> String {
    format!(
        "`{program} resume --data {data}` with --peer URL (whoever serves a checkpoint of this \
         log), --checkpoint FILE, or --i-am-the-only-writer SIZE:ROOT; until then \
         `{program} serve --data {data} --read-only`"
    )
}

/// A store that nobody can use.
pub(super) fn unusable(error: store::Error) -> anyhow::Error {
    Stop::failed(error.code(), chain(&error.into())).into()
}
