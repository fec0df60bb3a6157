//! How late the runtime is.
//!
//! A connection with something to read waits in the queue of the runtime until
//! a thread is free, and no counter shows it there. So an empty task, a probe,
//! is sent through the same queue: while it has not run, everything behind it
//! has waited at least as long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Between two probes: far below any deadline, and rare enough to cost
/// nothing.
const INTERVAL: Duration = Duration::from_millis(50);
/// No probe is in the queue.
const NO_PROBE: u64 = 0;
/// Requests that must have been accepted while a probe waited. With fewer the
/// lag is not caused by our work: another process has the cores.
const ACCEPTED_MIN: usize = 8;

/// Measures one runtime with one probe at a time. The probing thread writes
/// `sent` and resets `accepted`; request tasks count `accepted` up and read
/// both.
pub(super) struct RuntimeLag {
    start: Instant,
    /// When the probe in the queue was sent, in microseconds after the start.
    sent: AtomicU64,
    /// Requests accepted since then.
    accepted: AtomicUsize,
}

impl Default for RuntimeLag {
    fn default() -> Self {
        let (sent, accepted) = (AtomicU64::new(NO_PROBE), AtomicUsize::new(0));
        Self { start: Instant::now(), sent, accepted }
    }
}

impl RuntimeLag {
    /// Probes from a thread of its own, until `self` is dropped elsewhere.
    pub(super) fn start(self: &Arc<Self>, runtime: Handle) -> std::io::Result<()> {
        let weak = Arc::downgrade(self);
        let probing = move || {
            while let Some(lag) = weak.upgrade() {
                let is_needed = lag.accepted.load(Ordering::Relaxed) > 0;
                if is_needed && !lag.probe(&runtime) {
                    return;
                }
                drop(lag);
                std::thread::sleep(INTERVAL);
            }
        };
        std::thread::Builder::new().name("runtime-lag".to_owned()).spawn(probing).map(drop)
    }

    /// Counts a request that was accepted.
    pub(super) fn count_accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// How long our own work has kept the current probe waiting.
    pub(super) fn current(&self) -> Duration {
        match self.sent.load(Ordering::Relaxed) {
            _ if self.accepted.load(Ordering::Relaxed) < ACCEPTED_MIN => Duration::ZERO,
            NO_PROBE => Duration::ZERO,
            sent => self.start.elapsed().saturating_sub(Duration::from_micros(sent)),
        }
    }

    /// Waits until a task has run; false when the runtime is gone. Sent from
    /// outside the runtime, the task goes to the end of the shared queue.
    fn probe(&self, runtime: &Handle) -> bool {
        let (sender, receiver) = std::sync::mpsc::channel();
        let now = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.accepted.store(0, Ordering::Relaxed);
        self.sent.store(now.max(NO_PROBE + 1), Ordering::Relaxed);
        runtime.spawn(async move {
            let _gone = sender.send(());
        });
        let has_run = receiver.recv().is_ok();
        self.sent.store(NO_PROBE, Ordering::Relaxed);
        has_run
    }
}
