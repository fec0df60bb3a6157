//! How much the log takes in hand at once. A registration that comes when it
//! has enough is answered with 503 from its head alone: no body is parsed and
//! no signature verified for it.
//!
//! Three things run out. Statements in work, when commits are slow; bytes that
//! are held for anybody, of heads, bodies and answers; and time, when more
//! requests come than the cores can look at: those wait unseen, and only the
//! pulse tells.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::HttpOptions;
use super::pulse::Pulse;
use crate::metrics::Metrics;
use crate::service::Fault;

/// Between two lines in the log that say the same.
const SILENCE: Duration = Duration::from_secs(10);

/// What is in hand, and how much may be.
pub(super) struct Admission {
    limits: Limits,
    statements: AtomicUsize,
    bytes: AtomicUsize,
    answers: AtomicUsize,
    pulse: Arc<Pulse>,
    turned_away: AtomicU64,
    said: Mutex<Option<Instant>>,
    metrics: Metrics,
}

struct Limits {
    statements: usize,
    bytes: usize,
    /// What requests may fill that hold more than `own_bytes`: not all of it,
    /// or few who send much would keep out many who send little.
    large_bytes: usize,
    /// What large answers may fill of that: who takes them in slowly keeps
    /// others from large answers, and nobody from registering.
    answer_bytes: usize,
    own_bytes: usize,
    wait: Duration,
}

impl Admission {
    pub(super) fn new(options: &HttpOptions, metrics: Metrics) -> Self {
        let limits = Limits {
            statements: options.work_statements,
            bytes: options.work_bytes,
            large_bytes: options.work_bytes - options.work_bytes / 4,
            answer_bytes: options.work_bytes / 8 * 3,
            own_bytes: options.statement_bytes,
            // A registration goes through the queue of the runtime a few
            // times: to be read, to be told of its commit. All of them and
            // the commit are to fit in.
            wait: options.deadline / 10,
        };
        Self {
            limits,
            statements: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            answers: AtomicUsize::new(0),
            pulse: Arc::default(),
            turned_away: AtomicU64::new(0),
            said: Mutex::new(None),
            metrics,
        }
    }

    /// Feels the pulse of this runtime from now on.
    pub(super) fn watch(&self, runtime: tokio::runtime::Handle) -> std::io::Result<()> {
        self.pulse.start(runtime)
    }

    /// Whether a registration is looked at, asked when its head is there.
    pub(super) fn room(&self) -> Result<(), Fault> {
        let waiting = self.in_work();
        if waiting >= self.limits.statements || self.pulse.late() > self.limits.wait {
            return Err(self.busy(waiting));
        }
        self.pulse.take();
        Ok(())
    }

    /// What one request will hold: nothing yet.
    pub(super) fn place(self: &Arc<Self>) -> Place {
        Place { of: self.clone(), statements: 0, bytes: 0, answer: 0 }
    }

    /// Bytes that are held for anybody.
    pub(super) fn held(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Statements in work.
    pub(super) fn in_work(&self) -> usize {
        self.statements.load(Ordering::Relaxed)
    }

    /// Counts one who is sent away. A line for each would be work, too.
    fn busy(&self, waiting: usize) -> Fault {
        self.metrics.turned_away();
        let so_far = self.turned_away.fetch_add(1, Ordering::Relaxed) + 1;
        if let Ok(mut said) = self.said.try_lock()
            && said.is_none_or(|at| at.elapsed() > SILENCE)
        {
            *said = Some(Instant::now());
            let late_ms = self.pulse.late().as_millis();
            tracing::warn!(so_far, waiting, late_ms, "too much to do: registrations get 503");
        }
        Fault::Busy { waiting }
    }
}

/// What one request holds; given back when it is dropped.
pub(super) struct Place {
    of: Arc<Admission>,
    statements: usize,
    bytes: usize,
    /// Of the bytes, those of a large answer.
    answer: usize,
}

impl Place {
    /// More is held for this request.
    pub(super) fn hold(&mut self, bytes: usize) -> Result<(), Fault> {
        let limits = &self.of.limits;
        let is_large = self.bytes + bytes > limits.own_bytes;
        let most = if is_large { limits.large_bytes } else { limits.bytes };
        let more = |now: usize| now.checked_add(bytes).filter(|held| *held <= most);
        let order = Ordering::Relaxed;
        if self.of.bytes.fetch_update(order, order, more).is_err() {
            return Err(self.of.busy(self.of.in_work()));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// The answer is there, and has to be taken in.
    pub(super) fn hold_answer(&mut self, bytes: usize) -> Result<(), Fault> {
        let (order, limits) = (Ordering::Relaxed, &self.of.limits);
        if bytes > limits.own_bytes {
            let most = limits.answer_bytes;
            let more = |now: usize| now.checked_add(bytes).filter(|held| *held <= most);
            if self.of.answers.fetch_update(order, order, more).is_err() {
                return Err(self.of.busy(self.of.in_work()));
            }
            self.answer += bytes;
        }
        self.hold(bytes)
    }

    /// The statements of the request are in work from now on. The last one
    /// in may be a batch larger than the room that was left, or large batches
    /// would never find their turn among small ones.
    pub(super) fn work(&mut self, statements: usize) -> Result<(), Fault> {
        let most = self.of.limits.statements;
        let more = |now: usize| (now < most).then_some(now + statements);
        let order = Ordering::Relaxed;
        let taken = self.of.statements.fetch_update(order, order, more);
        taken.map_err(|waiting| self.of.busy(waiting))?;
        self.statements += statements;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.statements.fetch_sub(self.statements, Ordering::Relaxed);
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.of.answers.fetch_sub(self.answer, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn admission(change: impl FnOnce(&mut HttpOptions)) -> Arc<Admission> {
        let mut options = HttpOptions::from_config(&Config::default()).unwrap();
        change(&mut options);
        Arc::new(Admission::new(&options, Metrics::new("test")))
    }

    #[test]
    fn a_place_is_taken_once_and_given_back() {
        let admission = admission(|options| options.work_statements = 2);
        let [mut first, mut second, mut third] = [(); 3].map(|()| admission.place());
        first.work(1).unwrap();
        admission.room().unwrap();
        second.work(1).unwrap();
        assert!(matches!(admission.room(), Err(Fault::Busy { waiting: 2 })));
        assert!(matches!(third.work(1), Err(Fault::Busy { waiting: 2 })));
        drop(third);
        assert_eq!(admission.in_work(), 2, "who was sent away gives nothing back");
        drop(first);
        admission.room().unwrap();
        admission.place().work(1).unwrap();
        assert_eq!(admission.in_work(), 1);
    }

    #[test]
    fn a_batch_is_as_many_as_it_holds() {
        let admission = admission(|options| options.work_statements = 10);
        let mut batch = admission.place();
        batch.work(9).unwrap();
        let mut large = admission.place();
        large.work(1000).unwrap();
        assert!(admission.place().work(1).is_err());
        drop(large);
        admission.place().work(1).unwrap();
    }

    #[test]
    fn large_bodies_leave_room_for_small_ones() {
        let admission =
            admission(|options| (options.statement_bytes, options.work_bytes) = (100, 1000));
        let mut large = admission.place();
        large.hold(60).unwrap();
        large.hold(690).unwrap();
        assert!(matches!(large.hold(1), Err(Fault::Busy { .. })), "three quarters");
        let mut small = [(); 2].map(|()| admission.place());
        small.iter_mut().for_each(|one| one.hold(100).unwrap());
        assert!(matches!(small[0].hold(1), Err(Fault::Busy { .. })), "it would be a large one");
        admission.place().hold(50).unwrap();
        assert!(matches!(admission.place().hold(51), Err(Fault::Busy { .. })), "all of it");
        assert_eq!(admission.held(), 950, "who was sent away holds nothing");
        drop((large, small));
        assert_eq!(admission.held(), 0);
    }

    #[test]
    fn large_answers_leave_room_for_batches() {
        let admission =
            admission(|options| (options.statement_bytes, options.work_bytes) = (100, 1600));
        let mut slow = admission.place();
        slow.hold_answer(600).unwrap();
        let mut other = admission.place();
        assert!(matches!(other.hold_answer(101), Err(Fault::Busy { .. })), "three eighths");
        other.hold_answer(100).unwrap();
        admission.place().hold(500).unwrap();
        drop(slow);
        other.hold_answer(600).unwrap();
        drop(other);
        assert_eq!((admission.held(), admission.answers.load(Ordering::Relaxed)), (0, 0));
    }

    /// The runtime of this test has one thread, which is busy with the test:
    /// the pulse waits until the test lets go.
    #[tokio::test]
    async fn a_runtime_that_is_late_takes_nothing_new() {
        let admission = admission(|options| options.deadline = Duration::ZERO);
        admission.room().unwrap();
        admission.watch(tokio::runtime::Handle::current()).unwrap();
        while admission.room().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        while admission.room().is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
