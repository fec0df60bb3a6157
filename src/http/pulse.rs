//! How late the runtime is.
//!
//! A connection with something to read waits among the tasks of the runtime
//! until a thread has time for it, and nobody counts it there. So a task that
//! does nothing is sent through the same queue: as long as it is under way,
//! everything behind it waits at least as long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Between two beats. Far below any deadline, and few enough to cost nothing.
const REST: Duration = Duration::from_millis(50);
/// No beat is under way.
const RESTING: u64 = 0;
/// Requests that the runtime must have taken on while a beat waited. With
/// fewer it is not our work that makes it late: somebody else has the cores.
const TAKEN_MIN: usize = 8;

/// One beat at a time.
pub(super) struct Pulse {
    start: Instant,
    /// When the beat under way was sent, in microseconds after the start.
    sent: AtomicU64,
    /// Requests taken on since then.
    taken: AtomicUsize,
}

impl Default for Pulse {
    fn default() -> Self {
        let (sent, taken) = (AtomicU64::new(RESTING), AtomicUsize::new(0));
        Self { start: Instant::now(), sent, taken }
    }
}

impl Pulse {
    /// Beats on a thread of its own, for as long as somebody holds the pulse.
    pub(super) fn start(self: &Arc<Self>, runtime: Handle) -> std::io::Result<()> {
        let weak = Arc::downgrade(self);
        let beating = move || {
            while let Some(pulse) = weak.upgrade() {
                let asked = pulse.taken.load(Ordering::Relaxed) > 0;
                if asked && !pulse.beat(&runtime) {
                    return;
                }
                drop(pulse);
                std::thread::sleep(REST);
            }
        };
        std::thread::Builder::new().name("pulse".to_owned()).spawn(beating).map(drop)
    }

    /// A request was taken on.
    pub(super) fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// How long our work has kept the beat under way from its turn.
    pub(super) fn late(&self) -> Duration {
        match self.sent.load(Ordering::Relaxed) {
            _ if self.taken.load(Ordering::Relaxed) < TAKEN_MIN => Duration::ZERO,
            RESTING => Duration::ZERO,
            sent => self.start.elapsed().saturating_sub(Duration::from_micros(sent)),
        }
    }

    /// Waits until a task had its turn; false when the runtime is gone. Sent
    /// from outside, the task stands behind all that found no place in the
    /// queues of the threads themselves.
    fn beat(&self, runtime: &Handle) -> bool {
        let (had, turn) = std::sync::mpsc::channel();
        let now = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.taken.store(0, Ordering::Relaxed);
        self.sent.store(now.max(RESTING + 1), Ordering::Relaxed);
        runtime.spawn(async move {
            let _gone = had.send(());
        });
        let alive = turn.recv().is_ok();
        self.sent.store(RESTING, Ordering::Relaxed);
        alive
    }
}
