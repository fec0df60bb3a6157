//! The last refusals, for the operator.
//!
//! One JSON line each: issuer, subject and reason, never a payload. Statements
//! that the policy refused are in `DATA/refusals.jsonl`. Those that failed to
//! authenticate are in `DATA/unproven.jsonl`, so that strangers cannot push out
//! the refusals of known issuers. Each file is cut to its newer half when it
//! has twice the number of lines to keep. The files are not part of the log: an
//! error in writing them is ignored.

#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::envelope::{Authentic, StatementId, Unauthentic};
use crate::policy::Refusal;
use crate::service::now;

/// Refusals kept, at least.
const KEPT: usize = 1000;
/// Failed authentications written per second. More are only counted in the
/// metrics, so that they cannot keep the disk busy.
const UNPROVEN_PER_SECOND: u32 = 10;
/// A refusal quotes its statement, so its text is cut.
const TEXT_CHARS_MAX: usize = 1000;

/// One refusal, as the operator sees it later.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Refused {
    /// RFC 3339.
    pub time: String,
    /// The statement id.
    pub id: String,
    /// Who signed it, or is said to have.
    pub issuer: String,
    /// What it is about.
    pub subject: String,
    /// The stable code.
    pub code: String,
    /// Why.
    pub text: String,
    /// Whether the signature is the issuer's; if not, anybody may have sent it.
    #[serde(default = "yes")]
    pub authentic: bool,
}

/// Lines of older programs have no such member.
fn yes() -> bool {
    true
}

/// What a refusal is about. The policy takes the statement, so this is
/// copied first.
pub(in crate::service) struct About {
    id: StatementId,
    issuer: String,
    subject: String,
}

impl About {
    pub(in crate::service) fn of(statement: &Authentic) -> Self {
        let claims = &statement.statement().header().claims;
        Self {
            id: statement.id(),
            issuer: statement.issuer().name.clone(),
            subject: claims.subject.clone().unwrap_or_default(),
        }
    }
}

/// The writing side.
pub(in crate::service) struct Refusals {
    by_policy: Ring,
    unproven: Ring,
    /// A second, and how many lines were written in it.
    this_second: Mutex<(u64, u32)>,
}

impl Refusals {
    pub(in crate::service) fn new(data: &Path) -> Self {
        Self {
            by_policy: Ring::new(data.join(BY_POLICY)),
            unproven: Ring::new(data.join(UNPROVEN)),
            this_second: Mutex::new((0, 0)),
        }
    }

    /// Keeps what the policy refused.
    pub(in crate::service) fn keep(&self, about: &About, refusal: &Refusal) {
        self.by_policy.keep(Refused {
            time: now().to_string(),
            id: about.id.to_string(),
            issuer: short(&about.issuer),
            subject: short(&about.subject),
            code: refusal.code().to_owned(),
            text: short(&refusal.to_string()),
            authentic: true,
        });
    }

    /// Keeps what could not be authenticated.
    pub(in crate::service) fn keep_unproven(&self, unproven: &Unauthentic) {
        let time = now();
        if !self.has_time(time.seconds()) {
            return;
        }
        let Unauthentic { statement, error } = unproven;
        let claims = &statement.header().claims;
        self.unproven.keep(Refused {
            time: time.to_string(),
            id: StatementId::of(statement).to_string(),
            issuer: short(claims.issuer.as_deref().unwrap_or_default()),
            subject: short(claims.subject.as_deref().unwrap_or_default()),
            code: error.code().to_owned(),
            text: short(&error.to_string()),
            authentic: false,
        });
    }

    fn has_time(&self, second: u64) -> bool {
        let mut this = self.this_second.lock().unwrap_or_else(PoisonError::into_inner);
        if this.0 != second {
            *this = (second, 0);
        }
        this.1 = this.1.saturating_add(1);
        this.1 <= UNPROVEN_PER_SECOND
    }
}

fn short(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// One file of refusals.
struct Ring {
    path: PathBuf,
    /// Lines in the file; none before it was first read.
    lines: Mutex<Option<usize>>,
}

impl Ring {
    fn new(path: PathBuf) -> Self {
        Self { path, lines: Mutex::new(None) }
    }

    fn keep(&self, refused: Refused) {
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
    let mut refused = read(&data.join(BY_POLICY))?;
    refused.extend(read(&data.join(UNPROVEN))?);
    refused.sort_by(|a, b| a.time.cmp(&b.time));
    Ok(refused)
}

fn read(path: &Path) -> std::io::Result<Vec<Refused>> {
    let text = match std::fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other?,
    };
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

const BY_POLICY: &str = "refusals.jsonl";
const UNPROVEN: &str = "unproven.jsonl";
