//! Every decision of a log, made again from the log alone.
//!
//! In: the entries of a log, from a data directory nobody else has open or
//! from its address, and perhaps another policy. Out: how many statements were decided again, and those that come out
//! differently. Policy and trust are those the log names before each entry,
//! time is that of its registration, and what the log said before it is
//! folded from its entries, never asked of an index.

#[cfg(test)]
mod tests;

use std::path::Path;

use super::ledger::{Ledger, Seen, Wrong};
use crate::envelope::{SignedStatement, StatementId};
use crate::key::PublicKey;
use crate::log::LeafIndex;
use crate::policy::Policy;
use crate::service::error::chain;
use crate::service::open::identity_of;
use crate::service::{ControlError, Identity};
use crate::store::{self, Backend, Store, Stored};

/// Entries that are in memory at once: enough to keep every core busy, and at
/// 64 KiB each no more than 32 MiB.
const PORTION: u64 = 512;

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

/// An entry as it was found: a statement, or why there is none.
pub type Found = Result<Stored, Wrong>;

/// A replay under way. Entries come in the order of the log, some at a time,
/// from wherever they are kept.
pub struct Replay {
    ledger: Ledger,
    /// The first entry that is reported on.
    from: u64,
    first_only: bool,
    next: u64,
    replayed: Replayed,
}

/// A statement with its name, or why there is none.
type Parsed = (Option<StatementId>, Result<(SignedStatement, Stored), Wrong>);

impl Replay {
    /// Before the first entry of a log of `size` entries. `keys` are those of
    /// the log, the active one first; a log has at least one.
    pub fn new(
        identity: &Identity,
        keys: Vec<PublicKey>,
        size: u64,
        options: ReplayOptions,
    ) -> Option<Self> {
        let mut ledger = Ledger::new(identity, keys)?;
        if let Some(policy) = options.policy {
            ledger.decide_by(policy);
        }
        let from = options.last.map_or(0, |last| size.saturating_sub(last));
        let replayed = Replayed { size, decided: 0, differs: Vec::new() };
        Some(Self { ledger, from, first_only: options.first_only, next: 0, replayed })
    }

    /// Decides the next entries again; gives whether more are wanted.
    pub fn take(&mut self, found: Vec<Found>, progress: &mut dyn FnMut(u64, u64)) -> bool {
        let entries: Vec<Parsed> = found.into_iter().map(parse).collect();
        let mut rest = entries.as_slice();
        while self.wants_more() && !rest.is_empty() {
            // Up to the next control statement the log believes the same
            // issuers, so everything before it can be looked at at once.
            let run = rest.iter().position(|entry| self.is_control(entry));
            let (run, later) = rest.split_at(run.unwrap_or(rest.len()).max(1));
            for (entry, seen) in run.iter().zip(look_at_all(&self.ledger, run)) {
                self.step(entry, seen);
                progress(self.next, self.replayed.size);
                if !self.wants_more() {
                    break;
                }
            }
            rest = later;
        }
        self.wants_more()
    }

    /// What it came to.
    pub fn finish(self) -> Replayed {
        self.replayed
    }

    fn wants_more(&self) -> bool {
        let found = self.first_only && !self.replayed.differs.is_empty();
        self.next < self.replayed.size && !found
    }

    fn is_control(&self, (_, entry): &Parsed) -> bool {
        entry.as_ref().is_ok_and(|(statement, _)| self.ledger.control(statement).is_some())
    }

    fn step(&mut self, (id, entry): &Parsed, seen: Option<Seen>) {
        let index = LeafIndex::new(self.next);
        let wrong = match (entry, seen) {
            (Err(wrong), _) => Some(wrong.clone()),
            (Ok((statement, _)), Some(seen)) => self.ledger.admit(index, statement, seen).err(),
            (Ok((statement, stored)), None) => {
                self.ledger.judge(index, statement, stored).into_iter().next()
            }
        };
        if self.next >= self.from {
            self.replayed.decided += 1;
            let differs = wrong.map(|(code, detail)| Differs { index, id: *id, code, detail });
            self.replayed.differs.extend(differs);
        }
        self.next += 1;
    }
}

fn parse(found: Found) -> Parsed {
    let stored = match found {
        Ok(stored) => stored,
        Err(wrong) => return (None, Err(wrong)),
    };
    let id = Some(StatementId::of_canonical(&stored.canonical));
    let statement = SignedStatement::parse_any_size(stored.canonical.clone());
    let statement = statement.map_err(|e| (e.code(), e.to_string()));
    (id, statement.map(|statement| (statement, stored)))
}

/// Looks at entries on every core; at control statements not at all.
fn look_at_all(ledger: &Ledger, entries: &[Parsed]) -> Vec<Option<Seen>> {
    let look = |(_, entry): &Parsed| {
        let (statement, stored) = entry.as_ref().ok()?;
        ledger.control(statement).is_none().then(|| ledger.look(statement, stored))
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = entries.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let shares: Vec<_> = entries
            .chunks(share)
            .map(|share| scope.spawn(move || share.iter().map(look).collect::<Vec<_>>()))
            .collect();
        let done = shares
            .into_iter()
            .map(|share| share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done.flatten().collect()
    })
}

/// Decides every entry of a log on this machine again. `progress` hears the
/// number of entries done and the number there are.
pub fn replay(
    path: &Path,
    options: ReplayOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Replayed, ControlError> {
    let identity = identity_of(path)?;
    let (store, head) = Store::open_unchecked(Backend::open(path)?)?;
    let size = head.size().get();
    let replay = Replay::new(&identity, store.keys()?, size, options);
    let mut replay = replay.ok_or(store::Error::KeysUnreadable)?;
    let mut first = 0;
    while first < size {
        let end = size.min(first + PORTION);
        let found = (first..end).map(|index| entry_of(&store, LeafIndex::new(index)));
        if !replay.take(found.collect(), progress) {
            break;
        }
        first = end;
    }
    Ok(replay.finish())
}

fn entry_of(store: &Store, index: LeafIndex) -> Found {
    match store.statement(index) {
        Ok(Some(stored)) => Ok(stored),
        Ok(None) => Err(("statement-missing", "no statement is here".to_owned())),
        Err(e) => Err((e.code(), chain(&e))),
    }
}
