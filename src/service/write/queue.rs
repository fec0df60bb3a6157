//! The bounded queue before the writer, and the thread that empties it.
//!
//! Self-clocking: the writer takes whatever arrived during the last sync, so
//! a lone statement waits for nobody and a flood fills batches.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use foldhash::fast::RandomState;
use tokio::sync::oneshot;

use super::line::{Line, Message, Turned};
use super::{control, writer};
use crate::envelope::{Authentic, Issuer, StatementId};
use crate::log::{LeafIndex, TreeSize};
use crate::metrics::Metrics;
use crate::policy::{Admitted, Facts};
use crate::profile::Summary;
use crate::service::error::chain;
use crate::service::{Entry, Fault, Shared, Snapshot, Writer, history, now};
use crate::store::{self, Term, Terms, fact_terms};
use crate::wire::digest::Digest;

/// Where a statement came to stand.
pub(in crate::service) struct Placed {
    pub(in crate::service) index: LeafIndex,
    /// The inclusion path at the snapshot's head; none if it stood there
    /// before this batch.
    pub(in crate::service) path: Option<Vec<Digest>>,
    pub(in crate::service) snapshot: Arc<Snapshot>,
}

/// What the writer answers.
pub(in crate::service) enum Answer {
    Placed(Placed),
    /// Judged under rules that are no longer in force, or by facts that
    /// changed since.
    Stale,
    /// Logged there with the other signature that verifies.
    Twin(Entry),
}

/// A statement's place in the queue.
pub struct Ticket {
    admitted: Arc<Admitted>,
    /// Its issuer was charged for it.
    pub(in crate::service) is_paid: bool,
    answer: oneshot::Receiver<Answer>,
}

impl Ticket {
    /// The statement's name.
    pub fn id(&self) -> StatementId {
        self.admitted.statement().id()
    }

    pub(in crate::service) fn canonical(&self) -> &[u8] {
        self.admitted.statement().canonical()
    }

    pub(in crate::service) fn issuer(&self) -> &Issuer {
        self.admitted.statement().issuer()
    }

    pub(in crate::service) fn into_statement(self) -> Option<Authentic> {
        Some(self.admitted.statement().clone())
    }

    pub(in crate::service) async fn placed(&mut self) -> Result<Answer, Fault> {
        (&mut self.answer).await.map_err(|_| Fault::ShuttingDown)
    }
}

/// What a decision rested on. The writer sees whether it still holds.
pub(in crate::service) struct Basis {
    /// Which rules.
    pub(in crate::service) epoch: u64,
    /// The size of the log when the facts were looked up, or less.
    pub(in crate::service) size: TreeSize,
    /// What the log said.
    pub(in crate::service) facts: Facts,
    /// What the record names.
    pub(in crate::service) summary: Summary,
    /// What the statement will be found by.
    pub(in crate::service) terms: Terms,
}

struct Item {
    admitted: Arc<Admitted>,
    /// Boxed: a batch of a thousand would be a megabyte to move.
    basis: Box<Basis>,
    answer: oneshot::Sender<Answer>,
}

/// Something the writer does between two batches.
type Work = Box<dyn FnOnce(&mut Writer) + Send>;

/// Limits of the queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Statements that may wait.
    pub statements: usize,
    /// Bytes that may wait.
    pub bytes: usize,
    /// Statements in one commit.
    pub batch: usize,
}

/// The sending side.
pub(in crate::service) struct Queue {
    line: Arc<Line<Item, Work>>,
    limits: QueueLimits,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Queue {
    /// Starts the writer on a thread of its own.
    pub(in crate::service) fn start(writer: Writer, limits: QueueLimits, metrics: Metrics) -> Self {
        let line = Arc::new(Line::new());
        let shared = writer.shared.clone();
        let thread = Thread { writer, shared, line: line.clone(), limits, metrics };
        let handle = std::thread::Builder::new().name("writer".to_owned()).spawn(move || {
            // What a panic left behind is as unknown as what a failed sync did.
            let run = std::panic::AssertUnwindSafe(|| thread.run());
            if std::panic::catch_unwind(run).is_err() {
                tracing::error!("the writer panicked; stopping");
                std::process::abort();
            }
        });
        Self { line, limits, writer: Mutex::new(handle.ok()) }
    }

    /// Puts a statement in the queue, unless it is full.
    pub(in crate::service) fn push(
        &self,
        admitted: Admitted,
        basis: Basis,
    ) -> Result<Ticket, Fault> {
        let admitted = Arc::new(admitted);
        let (answer, ticket) = oneshot::channel();
        let id = admitted.statement().id();
        let size = admitted.statement().canonical().len();
        let item = Item { admitted: admitted.clone(), basis: Box::new(basis), answer };
        self.line.push((id, size), item, &self.limits).map_err(|turned| match turned {
            Turned::Full { waiting } => Fault::Busy { waiting },
            Turned::Closed => Fault::ShuttingDown,
        })?;
        Ok(Ticket { admitted, is_paid: false, answer: ticket })
    }

    /// Lets the writer do something between two batches.
    pub(in crate::service) async fn with_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, control::Error> + Send + 'static,
    ) -> Result<T, control::Error> {
        let (answer, done) = oneshot::channel();
        let work = Box::new(move |writer: &mut Writer| {
            let _gone = answer.send(work(writer));
        });
        self.line.push_work(work).map_err(|_| control::Error::ShuttingDown)?;
        done.await.map_err(|_| control::Error::ShuttingDown)?
    }

    /// Whether a statement waits for its commit.
    pub(in crate::service) fn holds(&self, id: &StatementId) -> bool {
        self.line.holds(id)
    }

    /// Takes nothing more, and returns when everything taken is committed.
    pub(in crate::service) fn drain(&self) {
        self.line.close();
        let handle = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It ends by itself or takes the process with it.
        let _ended = handle.map(JoinHandle::join);
    }
}

/// Who lets go of a log has let go of its files, too.
impl Drop for Queue {
    fn drop(&mut self) {
        self.drain();
    }
}

/// How long the writer waits for company after a batch of some size. One head
/// costs a signature, its verification and a sync, about 0.2 ms: on a fast
/// disk batches of three would spend more on heads than on statements. Where
/// there was a crowd, a wait of this length is not what its members wait for.
fn linger(batch: usize) -> Option<std::time::Duration> {
    let milliseconds = match batch {
        0 | 1 => return None,
        2..CROWD => 1,
        CROWD..THRONG => 3,
        THRONG.. => 6,
    };
    Some(std::time::Duration::from_millis(milliseconds))
}

const CROWD: usize = 64;
const THRONG: usize = 192;

/// The receiving side.
struct Thread {
    writer: Writer,
    shared: Arc<Shared>,
    line: Arc<Line<Item, Work>>,
    limits: QueueLimits,
    metrics: Metrics,
}

impl Thread {
    fn run(mut self) {
        let (mut last, mut messages) = (0, Vec::new());
        while self.line.wait() {
            if let Some(time) = linger(last) {
                std::thread::sleep(time);
            }
            self.line.take(self.limits.batch, &mut messages);
            let (mut batch, mut last_of_them) = (Vec::with_capacity(messages.len()), None);
            for message in messages.drain(..) {
                match message {
                    Message::Statement(_, item) => batch.push(item),
                    Message::Work(work) => last_of_them = Some(work),
                }
            }
            last = batch.len();
            self.commit(batch);
            if let Some(work) = last_of_them {
                work(&mut self.writer);
            }
        }
    }

    /// One batch. An error here means that we no longer know what is on the
    /// disk: the process ends, and the next start finds out.
    fn commit(&mut self, batch: Vec<Item>) {
        if batch.is_empty() {
            return;
        }
        let started = std::time::Instant::now();
        let epoch = self.shared.rules.load().epoch;
        let (current, stale) = self.sort_out(batch, epoch).unwrap_or_else(|e| give_up(&e.into()));
        let statements: Vec<_> = current
            .iter()
            .map(|i| ((i.admitted.statement(), &i.basis.terms), i.basis.size))
            .collect();
        let appended = self.writer.append(&statements, now()).unwrap_or_else(|e| give_up(&e));
        let is_fresh = |a: &&Answer| matches!(a, Answer::Placed(p) if p.path.is_some());
        let fresh = appended.iter().filter(is_fresh).count();
        let size = self.writer.size().get();
        let fresh = u32::try_from(fresh).unwrap_or(u32::MAX);
        self.metrics.committed(fresh, started.elapsed().as_secs_f64(), size);
        self.shared.held.tell(current.iter().flat_map(|item| item.basis.terms.telling()));
        let all = current.iter().chain(&stale);
        let bytes = all.map(|item| item.admitted.statement().canonical().len()).sum();
        let (statements, bytes) = self.line.forget(bytes);
        self.metrics.queued(statements, bytes);
        for (item, answer) in current.into_iter().zip(appended) {
            // The client may have gone; the statement is logged all the same.
            let _gone = item.answer.send(answer);
        }
        for item in stale {
            let _gone = item.answer.send(Answer::Stale);
        }
    }

    /// Tells statements whose decision still holds from those that must be
    /// decided again: by other rules, or because the log, or an earlier
    /// statement of this batch, says something new about what they name.
    fn sort_out(
        &self,
        batch: Vec<Item>,
        epoch: u64,
    ) -> Result<(Vec<Item>, Vec<Item>), store::Error> {
        let (mut current, mut stale) = (Vec::with_capacity(batch.len()), Vec::new());
        let mut told: HashSet<Term, RandomState> = HashSet::default();
        for item in batch {
            if item.basis.epoch != epoch || self.learns(&item, &told)? {
                stale.push(item);
            } else {
                told.extend(item.basis.terms.telling().cloned());
                current.push(item);
            }
        }
        Ok((current, stale))
    }

    fn learns(&self, item: &Item, told: &HashSet<Term, RandomState>) -> Result<bool, store::Error> {
        let Basis { size, facts, summary, .. } = &*item.basis;
        let (store, recent) = (&self.writer.store, &self.writer.recent);
        let mut may_differ = false;
        let statement = item.admitted.statement();
        let issuer = &statement.issuer().name;
        for term in fact_terms(issuer, summary) {
            if told.contains(&term) {
                return Ok(true);
            }
            may_differ |= recent.may_tell(&term, *size);
        }
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
