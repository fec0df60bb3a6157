//! How much the log works on at once. A registration over the limit is
//! answered with 503 from its head alone: its body is not parsed and no
//! signature is verified.
//!
//! Three things can run out: statements in work, when commits are slow; bytes
//! of requests and responses in memory; and time, when more requests arrive
//! than the cores can look at, which only `RuntimeLag` can see.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::runtime_lag::RuntimeLag;
use crate::http::HttpOptions;
use crate::metrics::Metrics;
use crate::service::Fault;

/// Between two lines in the log that say the same.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// What is in use, and how much may be. Shared by all request tasks; each
/// counter is changed by the `Reservation` that accounts for it.
pub(in crate::http) struct Capacity {
    // Fixed at start.
    limits: Limits,
    metrics: Metrics,
    lag: Arc<RuntimeLag>,

    statements: AtomicUsize,
    bytes: AtomicUsize,
    /// Of the bytes, those of large responses.
    response_bytes: AtomicUsize,

    turned_away: AtomicU64,
    /// When a refusal was last logged. The task that gets the lock logs;
    /// others skip it.
    logged: Mutex<Option<Instant>>,
}

struct Limits {
    statements: usize,
    bytes: usize,
    /// For requests that hold more than `small_bytes`. Less than `bytes`, or a
    /// few large requests would keep out many small ones.
    large_bytes: usize,
    /// For large responses, part of `large_bytes`: clients that read slowly
    /// delay other large responses and no registration.
    response_bytes: usize,
    small_bytes: usize,
    lag: Duration,
}

impl Capacity {
    pub(in crate::http) fn new(options: &HttpOptions, metrics: Metrics) -> Self {
        let limits = Limits {
            statements: options.work_statements,
            bytes: options.work_bytes,
            large_bytes: options.work_bytes - options.work_bytes / 4,
            response_bytes: options.work_bytes / 8 * 3,
            small_bytes: options.statement_bytes,
            // A registration passes through the runtime's queue several times,
            // to be read and to learn of its commit. All of that and the
            // commit must fit into the deadline.
            lag: options.deadline / 10,
        };
        Self {
            limits,
            metrics,
            lag: Arc::default(),
            statements: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            response_bytes: AtomicUsize::new(0),
            turned_away: AtomicU64::new(0),
            logged: Mutex::new(None),
        }
    }

    /// Starts to measure the lag of a runtime.
    pub(in crate::http) fn watch_runtime(
        &self,
        runtime: tokio::runtime::Handle,
    ) -> std::io::Result<()> {
        self.lag.start(runtime)
    }

    /// Whether a registration is accepted, decided when its head has arrived.
    pub(super) fn check_registration(&self) -> Result<(), Fault> {
        let statements = self.statements();
        if statements >= self.limits.statements || self.lag.current() > self.limits.lag {
            return Err(self.busy(statements));
        }
        self.lag.count_accepted();
        Ok(())
    }

    /// An empty reservation for one request.
    pub(in crate::http) fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation { capacity: self.clone(), statements: 0, bytes: 0, response_bytes: 0 }
    }

    /// Bytes that are reserved.
    pub(in crate::http) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Statements in work.
    pub(in crate::http) fn statements(&self) -> usize {
        self.statements.load(Ordering::Relaxed)
    }

    /// Counts a request that is turned away, and logs some of them: a line for
    /// each would be too much work.
    fn busy(&self, waiting: usize) -> Fault {
        self.metrics.turned_away();
        let so_far = self.turned_away.fetch_add(1, Ordering::Relaxed) + 1;
        if let Ok(mut logged) = self.logged.try_lock()
            && logged.is_none_or(|at| at.elapsed() > LOG_INTERVAL)
        {
            *logged = Some(Instant::now());
            let lag_ms = self.lag.current().as_millis();
            tracing::warn!(so_far, waiting, lag_ms, "overloaded: registrations get 503");
        }
        Fault::Busy { waiting }
    }
}

/// What one request uses; returned when dropped.
pub(in crate::http) struct Reservation {
    capacity: Arc<Capacity>,
    statements: usize,
    bytes: usize,
    response_bytes: usize,
}

impl Reservation {
    /// Reserves bytes of the request.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), Fault> {
        let limits = &self.capacity.limits;
        let is_large = self.bytes + bytes > limits.small_bytes;
        let most = if is_large { limits.large_bytes } else { limits.bytes };
        self.add(&self.capacity.bytes, bytes, most)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Reserves the bytes of the response.
    pub(super) fn reserve_response(&mut self, bytes: usize) -> Result<(), Fault> {
        let limits = &self.capacity.limits;
        if bytes > limits.small_bytes {
            self.add(&self.capacity.response_bytes, bytes, limits.response_bytes)?;
            self.response_bytes += bytes;
        }
        self.reserve(bytes)
    }

    /// Adds to a counter, unless it would exceed its limit.
    fn add(&self, counter: &AtomicUsize, bytes: usize, most: usize) -> Result<(), Fault> {
        let more = |now: usize| now.checked_add(bytes).filter(|sum| *sum <= most);
        let added = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        added.map(drop).map_err(|_| self.capacity.busy(self.capacity.statements()))
    }

    /// Counts the statements of the request as in work. The last batch may
    /// exceed the limit, or large batches would never be accepted among small
    /// ones.
    pub(in crate::http) fn start_work(&mut self, statements: usize) -> Result<(), Fault> {
        let most = self.capacity.limits.statements;
        let more = |now: usize| (now < most).then_some(now + statements);
        let order = Ordering::Relaxed;
        let added = self.capacity.statements.fetch_update(order, order, more);
        added.map_err(|waiting| self.capacity.busy(waiting))?;
        self.statements += statements;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.capacity.statements.fetch_sub(self.statements, Ordering::Relaxed);
        self.capacity.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.capacity.response_bytes.fetch_sub(self.response_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn capacity(change: impl FnOnce(&mut HttpOptions)) -> Arc<Capacity> {
        let mut options = HttpOptions::from_config(&Config::default()).unwrap();
        change(&mut options);
        Arc::new(Capacity::new(&options, Metrics::new("test")))
    }

    #[test]
    fn reservation_is_counted_once_and_returned() {
        let capacity = capacity(|options| options.work_statements = 2);
        let [mut first, mut second, mut third] = [(); 3].map(|()| capacity.reservation());
        first.start_work(1).unwrap();
        capacity.check_registration().unwrap();
        second.start_work(1).unwrap();
        assert!(matches!(capacity.check_registration(), Err(Fault::Busy { waiting: 2 })));
        assert!(matches!(third.start_work(1), Err(Fault::Busy { waiting: 2 })));
        drop(third);
        assert_eq!(capacity.statements(), 2, "a refused request returns nothing");
        drop(first);
        capacity.check_registration().unwrap();
        capacity.reservation().start_work(1).unwrap();
        assert_eq!(capacity.statements(), 1);
    }

    #[test]
    fn batch_counts_each_statement() {
        let capacity = capacity(|options| options.work_statements = 10);
        let mut batch = capacity.reservation();
        batch.start_work(9).unwrap();
        let mut large = capacity.reservation();
        large.start_work(1000).unwrap();
        assert!(capacity.reservation().start_work(1).is_err());
        drop(large);
        capacity.reservation().start_work(1).unwrap();
    }

    #[test]
    fn large_bodies_leave_room_for_small_bodies() {
        let capacity =
            capacity(|options| (options.statement_bytes, options.work_bytes) = (100, 1000));
        let mut large = capacity.reservation();
        large.reserve(60).unwrap();
        large.reserve(690).unwrap();
        assert!(matches!(large.reserve(1), Err(Fault::Busy { .. })), "three quarters");
        let mut small = [(); 2].map(|()| capacity.reservation());
        small.iter_mut().for_each(|one| one.reserve(100).unwrap());
        assert!(matches!(small[0].reserve(1), Err(Fault::Busy { .. })), "it would be a large one");
        capacity.reservation().reserve(50).unwrap();
        assert!(matches!(capacity.reservation().reserve(51), Err(Fault::Busy { .. })), "all of it");
        assert_eq!(capacity.bytes(), 950, "a refused request reserves nothing");
        drop((large, small));
        assert_eq!(capacity.bytes(), 0);
    }

    #[test]
    fn large_answers_leave_room_for_batches() {
        let capacity =
            capacity(|options| (options.statement_bytes, options.work_bytes) = (100, 1600));
        let mut slow = capacity.reservation();
        slow.reserve_response(600).unwrap();
        let mut other = capacity.reservation();
        assert!(matches!(other.reserve_response(101), Err(Fault::Busy { .. })), "three eighths");
        other.reserve_response(100).unwrap();
        capacity.reservation().reserve(500).unwrap();
        drop(slow);
        other.reserve_response(600).unwrap();
        drop(other);
        assert_eq!((capacity.bytes(), capacity.response_bytes.load(Ordering::Relaxed)), (0, 0));
    }

    /// The runtime of this test has one thread, which the test occupies: the
    /// probe waits until the test yields.
    #[tokio::test]
    async fn lagging_runtime_accepts_no_registration() {
        let capacity = capacity(|options| options.deadline = Duration::ZERO);
        capacity.check_registration().unwrap();
        capacity.watch_runtime(tokio::runtime::Handle::current()).unwrap();
        while capacity.check_registration().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        while capacity.check_registration().is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
