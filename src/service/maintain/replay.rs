//! Repeats every decision of a log from its entries alone.
//!
//! In: the entries of a log, read from a data directory or over HTTP, and
//! perhaps another policy. Out: how many entries were decided again, and which
//! of them differently. Policy and trust are those logged before each entry,
//! time is that of its registration, and the facts about earlier entries are
//! computed from them, not read from the search index.

#[cfg(test)]
mod tests;

use std::path::Path;

use super::admission_replay::{AdmissionError, AdmissionReplay, Inspected};
use crate::envelope::{SignedStatement, StatementId};
use crate::key::PublicKey;
use crate::log::LeafIndex;
use crate::policy::Policy;
use crate::service::error::chain;
use crate::service::open::identity_of;
use crate::service::{ControlError, Identity};
use crate::store::{self, Backend, Store, Stored};

/// Entries in memory at once: enough to keep every core busy, and at 64 KiB
/// each no more than 32 MiB.
const BATCH: u64 = 512;

/// An entry that is decided differently now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChangedDecision {
    /// Its index.
    pub index: LeafIndex,
    /// Its id, unless its bytes are missing.
    pub id: Option<StatementId>,
    /// A stable word.
    pub code: &'static str,
    /// Why it would not have been admitted.
    pub detail: String,
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Entries the log has.
    pub size: u64,
    /// Entries decided again.
    pub decided: u64,
    /// Those decided differently, in the order of the log.
    pub changed: Vec<ChangedDecision>,
}

/// What to replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Decides in place of the logged policies.
    pub policy: Option<Policy>,
    /// Report only on this many entries at the end.
    pub last: Option<u64>,
    /// Stop at the first entry that is decided differently.
    pub first_only: bool,
}

/// An entry as it was read: a statement, or why there is none.
pub type LoggedEntry = Result<Stored, AdmissionError>;

/// A replay in progress. The caller reads the entries and passes them in
/// batches, in the order of the log.
pub struct Replay {
    admission: AdmissionReplay,
    /// The first entry that is reported on.
    from: u64,
    first_only: bool,
    next: u64,
    replayed: Replayed,
}

/// An entry with its id, unless its bytes are missing.
struct Parsed {
    id: Option<StatementId>,
    entry: Result<(SignedStatement, Stored), AdmissionError>,
}

impl Replay {
    /// Before the first entry of a log of `size` entries. `keys` are those of
    /// the log, the active one first; a log has at least one.
    pub fn new(
        identity: &Identity,
        keys: Vec<PublicKey>,
        size: u64,
        options: ReplayOptions,
    ) -> Option<Self> {
        let mut admission = AdmissionReplay::new(identity, keys)?;
        if let Some(policy) = options.policy {
            admission.override_policy(policy);
        }
        let from = options.last.map_or(0, |last| size.saturating_sub(last));
        let replayed = Replayed { size, decided: 0, changed: Vec::new() };
        Some(Self { admission, from, first_only: options.first_only, next: 0, replayed })
    }

    /// Decides the next entries again; whether it needs more.
    pub fn take(&mut self, read: Vec<LoggedEntry>, progress: &mut dyn FnMut(u64, u64)) -> bool {
        let entries: Vec<Parsed> = read.into_iter().map(Parsed::new).collect();
        let mut rest = entries.as_slice();
        while self.wants_more() && !rest.is_empty() {
            // Trust does not change before the next control statement, so
            // everything up to it can be inspected in parallel.
            let run = rest.iter().position(|entry| self.is_control(entry));
            let (run, later) = rest.split_at(run.unwrap_or(rest.len()).max(1));
            for (entry, inspected) in run.iter().zip(inspect_all(&self.admission, run)) {
                self.decide(entry, inspected);
                progress(self.next, self.replayed.size);
                if !self.wants_more() {
                    break;
                }
            }
            rest = later;
        }
        self.wants_more()
    }

    /// The result so far.
    pub fn finish(self) -> Replayed {
        self.replayed
    }

    fn wants_more(&self) -> bool {
        let found = self.first_only && !self.replayed.changed.is_empty();
        self.next < self.replayed.size && !found
    }

    fn is_control(&self, parsed: &Parsed) -> bool {
        let entry = parsed.entry.as_ref();
        entry.is_ok_and(|(statement, _)| self.admission.control(statement).is_some())
    }

    fn decide(&mut self, parsed: &Parsed, inspected: Option<Inspected>) {
        let index = LeafIndex::new(self.next);
        let decision = match (&parsed.entry, inspected) {
            (Err(error), _) => Err(error.clone()),
            (Ok((statement, _)), Some(one)) => self.admission.admit(index, statement, one),
            (Ok((statement, stored)), None) => self.admission.replay(index, statement, stored),
        };
        if self.next >= self.from {
            self.replayed.decided += 1;
            if let Err(AdmissionError { code, detail }) = decision {
                let changed = ChangedDecision { index, id: parsed.id, code, detail };
                self.replayed.changed.push(changed);
            }
        }
        self.next += 1;
    }
}

impl Parsed {
    fn new(read: LoggedEntry) -> Self {
        let id = read.as_ref().ok().map(|stored| StatementId::of_canonical(&stored.canonical));
        let entry = read.and_then(|stored| {
            let statement = SignedStatement::parse_any_size(stored.canonical.clone());
            let statement = statement.map_err(|e| AdmissionError::new(e.code(), e))?;
            Ok((statement, stored))
        });
        Self { id, entry }
    }
}

/// Inspects entries on every core; none for control statements, which must be
/// applied in their order.
fn inspect_all(admission: &AdmissionReplay, entries: &[Parsed]) -> Vec<Option<Inspected>> {
    let inspect = |parsed: &Parsed| {
        let (statement, stored) = parsed.entry.as_ref().ok()?;
        admission.control(statement).is_none().then(|| admission.inspect(statement, stored))
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = entries.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let shares: Vec<_> = entries
            .chunks(share)
            .map(|share| scope.spawn(move || share.iter().map(inspect).collect::<Vec<_>>()))
            .collect();
        let done = shares
            .into_iter()
            .map(|share| share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done.flatten().collect()
    })
}

/// Decides every entry of a log in a data directory again. No other process
/// may have it open. `progress` gets the entries done and their total.
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
        let end = size.min(first + BATCH);
        let entries = (first..end).map(|index| entry_of(&store, LeafIndex::new(index)));
        if !replay.take(entries.collect(), progress) {
            break;
        }
        first = end;
    }
    Ok(replay.finish())
}

fn entry_of(store: &Store, index: LeafIndex) -> LoggedEntry {
    match store.statement(index) {
        Ok(Some(stored)) => Ok(stored),
        Ok(None) => Err(AdmissionError::new("statement-missing", "no statement is stored here")),
        Err(e) => Err(AdmissionError::new(e.code(), chain(&e))),
    }
}
