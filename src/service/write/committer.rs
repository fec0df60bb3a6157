//! The committer: the thread that turns queued statements into commits.
//!
//! It takes whatever was queued during the last commit, so a single statement
//! is committed at once and a flood of them shares commits.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use tokio::sync::oneshot;

use super::commit_queue::{Announcement, CommitQueue, Message, PushError};
use super::writer::{self, NewStatement};
use super::{control, writer::Writer};
use crate::envelope::StatementId;
use crate::log::{LeafIndex, TreeSize};
use crate::metrics::Metrics;
use crate::policy::{Admitted, Facts};
use crate::profile::Summary;
use crate::service::error::chain;
use crate::service::{Entry, Fault, Shared, Snapshot, history, now};
use crate::store::{self, Term, Terms, fact_terms};
use crate::wire::digest::Digest;

/// What became of a queued statement.
pub(in crate::service) enum Placement {
    /// Appended, with its inclusion path at the snapshot's head.
    Appended { index: LeafIndex, path: Vec<Digest>, snapshot: Arc<Snapshot> },
    /// In the log already, or appended earlier by the same commit.
    Known(LeafIndex),
    /// This entry is the same statement with the other ECDSA signature.
    Twin(Entry),
    /// Not appended: the rules, or what the log says about records the
    /// statement refers to, changed since it was decided.
    Outdated,
}

/// A statement's place in the queue.
pub struct Ticket {
    pub(super) admitted: Arc<Admitted>,
    /// Its issuer was charged for it.
    pub(super) is_charged: bool,
    pub(super) placement: oneshot::Receiver<Placement>,
}

impl Ticket {
    /// The statement id.
    pub fn id(&self) -> StatementId {
        self.admitted.statement().id()
    }
}

/// What a decision was based on. The committer checks that it still holds.
pub(in crate::service) struct Basis {
    /// Which rules.
    pub(super) epoch: u64,
    /// The size of the log when the facts were looked up, or less.
    pub(super) size: TreeSize,
    /// What the log said.
    pub(super) facts: Facts,
    /// What the record refers to.
    pub(super) summary: Summary,
    /// The statement's index terms.
    pub(super) terms: Terms,
}

struct Item {
    admitted: Arc<Admitted>,
    /// Boxed: a batch of a thousand would be a megabyte to move.
    basis: Box<Basis>,
    placement: oneshot::Sender<Placement>,
}

/// Something the writer does between two commits.
type Work = Box<dyn FnOnce(&mut Writer) + Send>;

/// Limits of the queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Statements that may be queued.
    pub statements: usize,
    /// Bytes that may be queued or in a commit.
    pub bytes: usize,
    /// Statements in one commit.
    pub batch: usize,
}

/// The request tasks' side of the committer.
pub(in crate::service) struct Committer {
    queue: Arc<CommitQueue<Item, Work>>,
    limits: QueueLimits,
    /// Taken once, to join the thread.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Committer {
    /// Starts the thread, which owns the writer from now on.
    pub(in crate::service) fn start(writer: Writer, limits: QueueLimits, metrics: Metrics) -> Self {
        let queue = Arc::new(CommitQueue::new());
        let shared = writer.shared.clone();
        let thread = CommitLoop { writer, shared, queue: queue.clone(), limits, metrics };
        let handle = std::thread::Builder::new().name("committer".to_owned()).spawn(move || {
            // After a panic, as after a failed sync, nobody knows what is on
            // the disk.
            let run = std::panic::AssertUnwindSafe(|| thread.run());
            if std::panic::catch_unwind(run).is_err() {
                tracing::error!("the committer panicked; stopping");
                std::process::abort();
            }
        });
        Self { queue, limits, thread: Mutex::new(handle.ok()) }
    }

    /// Announces a statement that may be queued soon.
    pub(super) fn announce(&self) -> Announcement {
        self.queue.announce()
    }

    /// Queues a statement, unless the queue is full.
    pub(super) fn push(
        &self,
        admitted: Admitted,
        basis: Basis,
        is_charged: bool,
    ) -> Result<Ticket, Fault> {
        let admitted = Arc::new(admitted);
        let (sender, placement) = oneshot::channel();
        let id = admitted.statement().id();
        let bytes = admitted.statement().canonical().len();
        let basis = Box::new(basis);
        let item = Item { admitted: admitted.clone(), basis, placement: sender };
        self.queue.push(id, bytes, item, &self.limits).map_err(|error| match error {
            PushError::Full { queued } => Fault::Busy { waiting: queued },
            PushError::Closed => Fault::ShuttingDown,
        })?;
        Ok(Ticket { admitted, is_charged, placement })
    }

    /// Runs something on the writer between two commits.
    pub(in crate::service) async fn with_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, control::Error> + Send + 'static,
    ) -> Result<T, control::Error> {
        let (sender, done) = oneshot::channel();
        let work = Box::new(move |writer: &mut Writer| {
            let _gone = sender.send(work(writer));
        });
        self.queue.push_work(work).map_err(|_| control::Error::ShuttingDown)?;
        done.await.map_err(|_| control::Error::ShuttingDown)?
    }

    /// Whether a statement is queued or being committed.
    pub(in crate::service) fn contains(&self, id: &StatementId) -> bool {
        self.queue.contains(id)
    }

    /// Refuses new statements, and returns when all queued ones are committed.
    pub(in crate::service) fn drain(&self) {
        self.queue.close();
        let handle = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The thread ends, or aborts the process.
        let _ended = handle.map(JoinHandle::join);
    }
}

/// Dropping a service must also release its files.
impl Drop for Committer {
    fn drop(&mut self) {
        self.drain();
    }
}

/// How long the committer waits at most for announced statements after a commit
/// of so many. A commit costs a signature, its verification and a sync, about
/// 0.2 ms on a fast disk. Under load, larger commits leave more time for
/// statements; a few clients would only wait longer.
fn linger_limit(last_batch: usize) -> Duration {
    Duration::from_millis(match last_batch {
        0..16 => 0,
        16..LARGE_BATCH => 1,
        LARGE_BATCH..192 => 3,
        192.. => 6,
    })
}

/// A commit of so many shows that the log is under load.
const LARGE_BATCH: usize = 64;

/// How often a waiting committer looks whether announced statements have come.
const LINGER_STEP: Duration = Duration::from_micros(50);

/// What the committer's thread owns.
struct CommitLoop {
    writer: Writer,
    /// Written by the writer alone, read by everybody.
    shared: Arc<Shared>,
    queue: Arc<CommitQueue<Item, Work>>,
    limits: QueueLimits,
    metrics: Metrics,
}

impl CommitLoop {
    fn run(mut self) {
        let (mut last_batch, mut messages) = (0, Vec::new());
        while self.queue.wait() {
            self.linger(last_batch);
            self.queue.take(self.limits.batch, &mut messages);
            let (mut batch, mut work) = (Vec::with_capacity(messages.len()), None);
            for message in messages.drain(..) {
                match message {
                    Message::Statement(_, item) => batch.push(item),
                    Message::Work(last) => work = Some(last),
                }
            }
            last_batch = batch.len();
            self.commit(batch);
            if let Some(work) = work {
                work(&mut self.writer);
            }
        }
    }

    /// Lets more statements join the next commit. After a large one they are
    /// certain to come; otherwise it ends as soon as none is announced, so that
    /// a few clients do not wait for others that are not there.
    fn linger(&self, last_batch: usize) {
        let limit = linger_limit(last_batch);
        if last_batch >= LARGE_BATCH {
            return std::thread::sleep(limit);
        }
        let until = Instant::now() + limit;
        while self.queue.announced() > 0 && Instant::now() < until {
            std::thread::sleep(LINGER_STEP);
        }
    }

    /// Commits one batch. An error means that we no longer know what is on
    /// the disk: the process ends, and the next start finds out.
    fn commit(&mut self, batch: Vec<Item>) {
        if batch.is_empty() {
            return;
        }
        let started = Instant::now();
        let (current, outdated) = self.split(batch).unwrap_or_else(|e| give_up(&e.into()));
        let statements: Vec<_> = current
            .iter()
            .map(|item| NewStatement {
                statement: item.admitted.statement(),
                terms: &item.basis.terms,
                size: item.basis.size,
            })
            .collect();
        let placements = self.writer.append(&statements, now()).unwrap_or_else(|e| give_up(&e));
        let is_appended = |p: &&Placement| matches!(p, Placement::Appended { .. });
        let appended = placements.iter().filter(is_appended).count();
        let appended = u32::try_from(appended).unwrap_or(u32::MAX);
        let size = self.writer.size().get();
        self.metrics.committed(appended, started.elapsed().as_secs_f64(), size);
        self.shared.pending.notify(current.iter().flat_map(|item| item.basis.terms.affecting()));
        let all = current.iter().chain(&outdated);
        let bytes = all.map(|item| item.admitted.statement().canonical().len()).sum();
        let (statements, bytes) = self.queue.committed(bytes);
        self.metrics.queued(statements, bytes);
        for (item, placement) in current.into_iter().zip(placements) {
            // The client may have gone; the statement is logged all the same.
            let _gone = item.placement.send(placement);
        }
        for item in outdated {
            let _gone = item.placement.send(Placement::Outdated);
        }
    }

    /// Splits a batch into statements whose decision still holds and those
    /// that must be decided again.
    fn split(&self, batch: Vec<Item>) -> Result<(Vec<Item>, Vec<Item>), store::Error> {
        let epoch = self.shared.rules.load().epoch;
        let (mut current, mut outdated) = (Vec::with_capacity(batch.len()), Vec::new());
        let mut affected: HashSet<Term, RandomState> = HashSet::default();
        for item in batch {
            if item.basis.epoch != epoch || self.is_outdated(&item, &affected)? {
                outdated.push(item);
            } else {
                affected.extend(item.basis.terms.affecting().cloned());
                current.push(item);
            }
        }
        Ok((current, outdated))
    }

    /// Whether the log, or an earlier statement of the batch, says something
    /// new about a record that the statement refers to.
    fn is_outdated(
        &self,
        item: &Item,
        affected: &HashSet<Term, RandomState>,
    ) -> Result<bool, store::Error> {
        let Basis { size, facts, summary, .. } = &*item.basis;
        let statement = item.admitted.statement();
        let issuer = &statement.issuer().name;
        let mut may_differ = false;
        for term in fact_terms(issuer, summary) {
            if affected.contains(&term) {
                return Ok(true);
            }
            may_differ |= self.writer.recent.may_contain_term(&term, *size);
        }
        let store = &self.writer.store;
        Ok(may_differ
            && history::look_up_facts(store, issuer, summary, &statement.id(), statement.rules())?
                != *facts)
    }
}

/// Nobody knows any more what is on the disk.
fn give_up<T>(error: &writer::Error) -> T {
    tracing::error!(code = error.code(), error = %chain(error), "commit failed; stopping");
    std::process::abort();
}
