//! What happened so far, counted while it happens.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use capstan::wire::printable::{Printable, printable};
use capstan::wire::text::grouped;
use serde::Serialize;

use super::latency::{Latencies, Quantiles};
use super::lock;

/// A number that only grows.
#[derive(Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn more(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Everything that is counted.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) registered: Count,
    pub(super) duplicates: Count,
    pub(super) refused: Count,
    /// Requests that bring statements, those that were sent again too.
    requests: Count,
    /// When the last of them was sent, in microseconds of the run.
    last_sent: AtomicU64,
    pub(super) pending: Count,
    pub(super) connection_errors: Count,
    /// Under way when the time was over, and not acknowledged.
    pub(super) unfinished: Count,
    /// Receipts of another log that our verifier cannot judge.
    pub(super) not_verified: Count,
    pub(super) receipts_read: Count,
    pub(super) growth_checked: Count,
    pub(super) checkpoints_read: Count,
    pub(super) tiles_read: Count,
    by_kind: Mutex<BTreeMap<&'static str, u64>>,
    /// By status and code.
    pushes: Mutex<BTreeMap<String, u64>>,
    /// From sending to being sent away.
    turned_away: Mutex<Latencies>,
    /// From sending to the answer that acknowledges, without earlier tries.
    answers: Mutex<Latencies>,
    /// From the moment it was due to the verified receipt.
    whole: Mutex<Latencies>,
}

/// The counts in the words of the report.
#[derive(Serialize)]
pub(super) struct Counted {
    registered: u64,
    duplicates: u64,
    refused: u64,
    requests: u64,
    requests_per_second: f64,
    pushed_back: u64,
    pushed_back_by: BTreeMap<String, u64>,
    pushed_back_ms: Quantiles,
    pending: u64,
    connection_errors: u64,
    unfinished: u64,
    not_verified: u64,
    by_kind: BTreeMap<&'static str, u64>,
    pub(super) per_second: f64,
    pub(super) answer_ms: Quantiles,
    pub(super) whole_ms: Quantiles,
    reads: Reads,
}

#[derive(Serialize)]
struct Reads {
    receipts: u64,
    consistency: u64,
    checkpoints: u64,
    tiles: u64,
}

impl Counts {
    /// One more statement was acknowledged.
    pub(super) fn acknowledged(&self, kind: &'static str) {
        self.registered.add();
        *lock(&self.by_kind).entry(kind).or_default() += 1;
    }

    /// A request was sent, so long after the start.
    pub(super) fn sent(&self, after: Duration) {
        self.requests.add();
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.last_sent.fetch_max(micros, Ordering::Relaxed);
    }

    /// The log had no time.
    pub(super) fn pushed_back(&self, status: u16, code: &str, took: Duration) {
        *lock(&self.pushes).entry(format!("{status} {code}")).or_default() += 1;
        lock(&self.turned_away).record(took);
    }

    /// How long requests were sent; the last answers come later.
    fn sending(&self) -> Duration {
        Duration::from_micros(self.last_sent.load(Ordering::Relaxed))
    }

    fn pushes(&self) -> u64 {
        lock(&self.pushes).values().sum()
    }

    pub(super) fn took(&self, answer: Duration, whole: Duration) {
        lock(&self.answers).record(answer);
        lock(&self.whole).record(whole);
    }

    /// Acknowledged statements for each second; duplicates are answered by
    /// the log too, and counted.
    pub(super) fn per_second(&self, elapsed: Duration) -> f64 {
        rate(self.registered.get() + self.duplicates.get(), elapsed)
    }

    pub(super) fn report(&self, elapsed: Duration) -> Counted {
        Counted {
            registered: self.registered.get(),
            duplicates: self.duplicates.get(),
            refused: self.refused.get(),
            requests: self.requests.get(),
            requests_per_second: rate(self.requests.get(), self.sending()),
            pushed_back: self.pushes(),
            pushed_back_by: lock(&self.pushes).clone(),
            pushed_back_ms: lock(&self.turned_away).quantiles(),
            pending: self.pending.get(),
            connection_errors: self.connection_errors.get(),
            unfinished: self.unfinished.get(),
            not_verified: self.not_verified.get(),
            by_kind: lock(&self.by_kind).clone(),
            per_second: self.per_second(elapsed),
            answer_ms: lock(&self.answers).quantiles(),
            whole_ms: lock(&self.whole).quantiles(),
            reads: Reads {
                receipts: self.receipts_read.get(),
                consistency: self.growth_checked.get(),
                checkpoints: self.checkpoints_read.get(),
                tiles: self.tiles_read.get(),
            },
        }
    }
}

fn rate(count: u64, elapsed: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / elapsed.as_secs_f64().max(1e-9)
}

impl Counted {
    /// The same for people.
    pub(super) fn text(&self) -> Printable {
        let row = |name: &str, q: &Quantiles| {
            printable!(
                "  {:<8} p50 {:.1} ms, p90 {:.1} ms, p99 {:.1} ms, max {:.1} ms\n",
                name,
                q.p50,
                q.p90,
                q.p99,
                q.max
            )
        };
        let mut text = printable!(
            "  {} registered, {} again, {} refused as they must be; {:.0}/s\n",
            grouped(self.registered),
            grouped(self.duplicates),
            grouped(self.refused),
            self.per_second
        );
        text.push(row("answer", &self.answer_ms));
        text.push(row("whole", &self.whole_ms));
        if self.pushed_back > 0 {
            text.push(row("no time", &self.pushed_back_ms));
        }
        text.line(printable!(
            "  {} pushed back, {} pending, {} connection errors, {} unfinished",
            self.pushed_back,
            self.pending,
            self.connection_errors,
            self.unfinished
        ));
        let Reads { receipts, consistency, checkpoints, tiles } = &self.reads;
        text.push(printable!(
            "  read     {} receipts, {} consistency receipts, {} checkpoints, {} tiles",
            receipts,
            consistency,
            checkpoints,
            tiles
        ));
        if self.not_verified > 0 {
            text.push(printable!("\n  {} receipts could not be judged", self.not_verified));
        }
        text
    }
}
