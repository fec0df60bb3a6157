//! How a command ends: an exit code, or an error that knows its own.

use std::path::Path;

use super::output::chain;
use super::program;
use crate::service::ControlError;
use crate::store;
use crate::trust;
use crate::wire::printable::Printable;

/// The four exit codes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    Yes,
    No,
    Failed,
    CannotTell,
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::Failed => 2,
            Self::CannotTell => 3,
        }
    }
}

/// An error with its exit code, a stable code for scripts, and often what to do
/// next. Any other error exits with 2.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct CliError {
    pub(super) exit: Exit,
    pub(super) code: &'static str,
    /// What is wrong, in one sentence.
    pub what: String,
    pub(super) next: Option<String>,
    /// Further lines: evidence, or every mistake.
    pub(super) details: Option<Printable>,
}

impl CliError {
    /// The result is no: refused, broken or false. Exits with 1.
    pub fn no(code: &'static str, what: impl Into<String>) -> Self {
        Self { exit: Exit::No, code, what: what.into(), next: None, details: None }
    }

    /// It cannot be determined with what is trusted. Exits with 3.
    pub fn cannot_tell(code: &'static str, what: impl Into<String>) -> Self {
        Self { exit: Exit::CannotTell, ..Self::no(code, what) }
    }

    /// The command could not be carried out. Exits with 2.
    pub fn failed(code: &'static str, what: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, ..Self::no(code, what) }
    }

    pub fn next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    pub(super) fn details(self, details: Printable) -> Self {
        Self { details: Some(details), ..self }
    }
}

/// A store that must not be written to exits with 1, one that cannot be opened
/// with 2.
pub(super) fn broken_store(error: ControlError, data: &Path) -> anyhow::Error {
    if let ControlError::Rules(unknown) = &error {
        return CliError::failed(unknown.code(), unknown.to_string()).into();
    }
    if let ControlError::Trust(source @ trust::Error::Unscoped { .. }) = &error {
        let what = format!("trust.toml of the log: {source}; until then nothing is written");
        let data = data.display();
        let next = format!("{} trust upgrade {data}/trust.toml --data {data}", program());
        return CliError::no(source.code(), what).next(next).into();
    }
    let ControlError::Store(source) = &error else { return error.into() };
    let (code, what) = (source.code(), source.to_string());
    let (program, data) = (program(), data.display());
    match source {
        store::Error::RolledBack { .. } | store::Error::Forked { .. } => CliError::no(code, what)
            .next(format!(
                "restore the newest copy, or serve what is there with \
                 `{program} serve --data {data} --read-only`"
            ))
            .into(),
        store::Error::GuardMissing { .. } => {
            let moved = "if the directory was moved, move its guard along, or";
            CliError::no(code, what).next(format!("{moved} {}", resume(&program, &data))).into()
        }
        store::Error::Unproven { .. } => {
            CliError::no(code, what).next(resume(&program, &data)).into()
        }
        store::Error::HeadDiffers { .. } => {
            let next = "look at the head again; a copy of another head is not the one you mean";
            CliError::no(code, what).next(next).into()
        }
        store::Error::OtherWriter { .. } => {
            CliError::no(code, what).next("stop that log, then the same command").into()
        }
        store::Error::BeyondHead { .. } | store::Error::HeadDamaged { .. } => {
            CliError::no(code, what).next(format!("{program} fsck --data {data}")).into()
        }
        store::Error::Locked { .. } | store::Error::GuardInUse { .. } => {
            CliError::failed(code, what).next("stop the process that has it open").into()
        }
        store::Error::NotFound { .. } => CliError::failed(code, what)
            .next(format!("{program} init --data {data} --name NAME"))
            .into(),
        _ => CliError::failed(code, chain(&error.into())).into(),
    }
}

/// What to do about a log that may not write yet.
fn resume(program: &str, data: &impl std::fmt::Display) -> String {
    format!(
        "`{program} resume --data {data}` with --peer URL (whoever serves a checkpoint of this \
         log), --checkpoint FILE, or --i-am-the-only-writer SIZE:ROOT; until then \
         `{program} serve --data {data} --read-only`"
    )
}

/// A store that cannot be used at all.
pub(super) fn unusable(error: store::Error) -> anyhow::Error {
    CliError::failed(error.code(), chain(&error.into())).into()
}
