//! Every decision of a log, made again from the log alone.
//!
//! In: a data directory nobody else has open, and perhaps another policy.
//! Out: how many statements were decided again, and those that come out
//! differently. Policy and trust are those the log names before each entry,
//! time is that of its registration, and what the log said before it is
//! folded from its entries, never asked of an index.

#[cfg(test)]
mod tests;

use std::path::Path;

use super::error::chain;
use super::ledger::Ledger;
use super::open::identity_of;
use crate::envelope::{SignedStatement, StatementId};
use crate::log::LeafIndex;
use crate::policy::Policy;
use crate::service::ControlError;
use crate::store::{self, DataDir, Store};

/// An entry that is decided differently now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Differs {
    /// Where it stands.
    pub index: LeafIndex,
    /// Its name, unless its bytes are gone.
    pub id: Option<StatementId>,
    /// A stable word.
    pub code: &'static str,
    /// Why it would not have been admitted.
    pub detail: String,
}

/// What a replay came to.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Entries the log has.
    pub size: u64,
    /// Entries decided again.
    pub decided: u64,
    /// Those that come out differently, in the order of the log.
    pub differs: Vec<Differs>,
}

/// What to replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Decides in place of the policies the log names.
    pub policy: Option<Policy>,
    /// Report only on this many entries at the end.
    pub last: Option<u64>,
    /// Stop at the first entry that comes out differently.
    pub first_only: bool,
}

/// Decides every entry of a log again. `progress` hears the number of
/// entries done and the number there are.
pub fn replay(
    path: &Path,
    options: ReplayOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Replayed, ControlError> {
    let identity = identity_of(path)?;
    let (store, head) = Store::open_as_found(DataDir::open(path)?)?;
    let mut ledger = Ledger::new(&identity, store.keys()?).ok_or(store::Error::KeysUnreadable)?;
    if let Some(policy) = options.policy {
        ledger.decide_by(policy);
    }
    let size = head.size().get();
    let from = options.last.map_or(0, |last| size.saturating_sub(last));
    let mut replayed = Replayed { size, decided: 0, differs: Vec::new() };
    for index in 0..size {
        let differs = step(&store, &mut ledger, LeafIndex::new(index));
        progress(index + 1, size);
        if index >= from {
            replayed.decided += 1;
            replayed.differs.extend(differs);
        }
        if options.first_only && !replayed.differs.is_empty() {
            break;
        }
    }
    Ok(replayed)
}

fn step(store: &Store, ledger: &mut Ledger, index: LeafIndex) -> Option<Differs> {
    let differs = |id, code, detail| Some(Differs { index, id, code, detail });
    let stored = match store.statement(index) {
        Ok(Some(stored)) => stored,
        Ok(None) => return differs(None, "statement-missing", "no statement is here".to_owned()),
        Err(e) => return differs(None, e.code(), chain(&e)),
    };
    let id = Some(StatementId::of_canonical(&stored.canonical));
    match SignedStatement::parse_any_size(stored.canonical.clone()) {
        Ok(statement) => {
            let (code, detail) = ledger.judge(index, &statement, &stored).into_iter().next()?;
            differs(id, code, detail)
        }
        Err(e) => differs(id, e.code(), e.to_string()),
    }
}
