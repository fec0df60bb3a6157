//! The last refusals, for the operator who asks why.
//!
//! One JSON line each in `DATA/refusals.jsonl`: who, about what, and why not;
//! never a payload. Bounded: beyond twice what is kept the older half goes.
//! It is no part of the log, so failing to write it fails nothing.

#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::now;
use crate::envelope::{Authentic, StatementId};
use crate::policy::Refusal;

/// Refusals that are kept, at least.
const KEPT: usize = 1000;
/// A refusal quotes its statement, so its text is cut.
const TEXT_CHARS_MAX: usize = 1000;

/// One refusal, as the operator sees it later.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Refused {
    /// RFC 3339.
    pub time: String,
    /// The statement's name.
    pub id: String,
    /// Who signed it.
    pub issuer: String,
    /// What it is about.
    pub subject: String,
    /// The stable word.
    pub code: String,
    /// Why.
    pub text: String,
}

/// What a refusal is about, kept while the policy has the statement.
pub(super) struct About {
    id: StatementId,
    issuer: String,
    subject: String,
}

impl About {
    pub(super) fn of(statement: &Authentic) -> Self {
        let claims = &statement.statement().header().claims;
        Self {
            id: statement.id(),
            issuer: statement.issuer().name.clone(),
            subject: claims.subject.clone().unwrap_or_default(),
        }
    }
}

/// The writing side.
pub(super) struct Ring {
    path: PathBuf,
    /// Lines in the file; none before it was looked at.
    lines: Mutex<Option<usize>>,
}

impl Ring {
    pub(super) fn new(data: &Path) -> Self {
        Self { path: path_in(data), lines: Mutex::new(None) }
    }

    /// Keeps a refusal.
    pub(super) fn keep(&self, about: &About, refusal: &Refusal) {
        let short = |text: &str| text.chars().take(TEXT_CHARS_MAX).collect::<String>();
        let refused = Refused {
            time: now().to_string(),
            id: about.id.to_string(),
            issuer: short(&about.issuer),
            subject: short(&about.subject),
            code: refusal.code().to_owned(),
            text: short(&refusal.to_string()),
        };
        if let Err(error) = self.append(&refused) {
            tracing::warn!(%error, "a refusal could not be written down");
        }
    }

    fn append(&self, refused: &Refused) -> std::io::Result<()> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match *lines {
            Some(count) => count,
            None => std::fs::read_to_string(&self.path).unwrap_or_default().lines().count(),
        };
        let mut line = serde_json::to_string(refused)?;
        line.push('\n');
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path);
        file?.write_all(line.as_bytes())?;
        *lines = Some(before + 1);
        if before + 1 > 2 * KEPT {
            let text = std::fs::read_to_string(&self.path)?;
            let skip = text.lines().count().saturating_sub(KEPT);
            let mut kept = text.lines().skip(skip).collect::<Vec<_>>().join("\n");
            kept.push('\n');
            let fresh = self.path.with_extension("new");
            std::fs::write(&fresh, kept)?;
            std::fs::rename(&fresh, &self.path)?;
            *lines = Some(KEPT);
        }
        Ok(())
    }
}

/// The refusals a data directory remembers, oldest first. A line that was
/// cut by a crash is left out.
pub fn refusals(data: &Path) -> std::io::Result<Vec<Refused>> {
    let text = match std::fs::read_to_string(path_in(data)) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other?,
    };
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn path_in(data: &Path) -> PathBuf {
    data.join("refusals.jsonl")
}
