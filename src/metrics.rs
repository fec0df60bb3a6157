//! Every metric, named and described in one table.
//!
//! In: events, as method calls. Out: OpenMetrics text, and the reference page
//! generated from the same table. Label values come from the program, never
//! from a client, so their number is bounded.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// One row: the name as it is scraped, without the `_total` of a counter.
struct Row {
    name: &'static str,
    kind: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
}

macro_rules! table {
    ($($row:ident: $kind:literal $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(const $row: Row = Row { name: $name, kind: $kind, labels: &[$($label),*], help: $help };)+
        const TABLE: &[Row] = &[$($row),+];
    };
}

// The encoder ends every help text with a full stop.
table! {
    REGISTRATIONS: "counter" "capstan_registrations" ["outcome", "code"]
        "Submitted statements by outcome; code is the error code, or ok";
    REGISTER_DURATION: "histogram" "capstan_register_duration_seconds" []
        "Time from a received registration request to its response";
    BATCH_SIZE: "histogram" "capstan_batch_size" []
        "Statements in one commit";
    COMMIT_DURATION: "histogram" "capstan_commit_duration_seconds" []
        "Duration of a commit, including disk sync and signature";
    TREE_SIZE: "gauge" "capstan_tree_size" []
        "Leaves in the log";
    CHECKPOINT_TIMESTAMP: "gauge" "capstan_checkpoint_timestamp_seconds" []
        "Unix time of the last published checkpoint";
    HELD: "gauge" "capstan_held_statements" []
        "Statements pending until the records they name are logged";
    QUEUE_DEPTH: "gauge" "capstan_queue_depth" []
        "Statements waiting for a commit";
    QUEUE_BYTES: "gauge" "capstan_queue_bytes" []
        "Bytes of the statements waiting for a commit";
    DISK_FREE: "gauge" "capstan_disk_free_bytes" []
        "Free bytes on the disk of the data directory";
    OPEN_ITEMS: "gauge" "capstan_open_items" []
        "Records that need a decision or an outcome, among the newest 1000 that did";
    UNCONFIRMED: "gauge" "capstan_unconfirmed_effects" []
        "Records of dispatched effects, neither confirmed nor superseded, among the newest 1000";
    READ_ONLY: "gauge" "capstan_read_only" []
        "1 while the log is read-only, else 0";
    RELOAD_FAILED: "gauge" "capstan_reload_failed" []
        "1 while the policy or trust file is invalid and the previous rules stay in effect";
    SELF_AUDIT_FAILURES: "counter" "capstan_self_audit_failures" []
        "Receipts or heads of this log that failed its own verification; must stay 0";
    SCRUBBED: "counter" "capstan_scrubbed_bytes" []
        "Bytes of the store that were read again and are intact";
    SCRUB_FINDINGS: "counter" "capstan_scrub_findings" []
        "Damage found by the scrubber; must stay 0";
    HTTP_REQUESTS: "counter" "capstan_http_requests" ["route", "method", "status"]
        "Requests answered";
    RATE_LIMITED: "counter" "capstan_rate_limited" []
        "Requests rejected because their address exceeded its rate limit";
    TURNED_AWAY: "counter" "capstan_turned_away" []
        "Requests answered with 503 without being read, because of load";
    READS_TURNED_AWAY: "counter" "capstan_reads_turned_away" []
        "Searches and traversals answered with 503 because too many ran at once";
    READS_CUT: "counter" "capstan_reads_cut" []
        "Reads whose response was truncated because their budget was exhausted";
    IN_WORK: "gauge" "capstan_in_work_statements" []
        "Statements between arrival and response";
    HELD_BYTES: "gauge" "capstan_held_bytes" []
        "Bytes of requests and responses in memory";
    POLICY: "gauge" "capstan_policy_info" ["digest"]
        "Always 1; digest is that of the registration policy in effect";
    BUILD: "gauge" "capstan_build_info" ["version"]
        "Always 1; version is the version of this binary";
}

/// 0.5 ms to 10 s, about three to a decade: a receipt takes milliseconds, and
/// the request deadline is 5 s.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Powers of two up to the default size of a commit.
const SIZES: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// How a registration ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Outcome {
    /// Appended to the log.
    Registered,
    /// Already in the log.
    Known,
    /// Not a valid statement.
    Rejected,
    /// Refused by policy.
    Refused,
    /// Server fault: overloaded, or an error.
    Fault,
}

impl Outcome {
    /// Its label value.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RegistrationLabels {
    outcome: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ResponseLabels {
    route: &'static str,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Policy {
    digest: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct Build {
    version: &'static str,
}

type Level = Gauge<u64, AtomicU64>;

/// The metrics of one process. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    registrations: Family<RegistrationLabels, Counter>,
    register_duration: Histogram,
    batch_size: Histogram,
    commit_duration: Histogram,
    tree_size: Level,
    checkpoint_timestamp: Level,
    held: Level,
    queue_depth: Level,
    queue_bytes: Level,
    disk_free: Level,
    open_items: Level,
    unconfirmed: Level,
    read_only: Level,
    reload_failed: Level,
    self_audit_failures: Counter,
    scrubbed: Counter,
    scrub_findings: Counter,
    http_requests: Family<ResponseLabels, Counter>,
    rate_limited: Counter,
    turned_away: Counter,
    reads_turned_away: Counter,
    reads_cut: Counter,
    in_work: Level,
    held_bytes: Level,
    policy: Family<Policy, Level>,
}

fn register<M: Metric + Clone>(registry: &mut Registry, row: &Row, metric: M) -> M {
    registry.register(row.name, row.help, metric.clone());
    metric
}

impl Metrics {
    /// All metrics at zero.
    pub fn new(version: &'static str) -> Self {
        let mut registry = Registry::default();
        let r = &mut registry;
        let build: Family<Build, Level> = Family::default();
        build.get_or_create(&Build { version }).set(1);
        register(r, &BUILD, build);
        Self(Arc::new(Inner {
            registrations: register(r, &REGISTRATIONS, Family::default()),
            register_duration: register(r, &REGISTER_DURATION, Histogram::new(SECONDS)),
            batch_size: register(r, &BATCH_SIZE, Histogram::new(SIZES)),
            commit_duration: register(r, &COMMIT_DURATION, Histogram::new(SECONDS)),
            tree_size: register(r, &TREE_SIZE, Level::default()),
            checkpoint_timestamp: register(r, &CHECKPOINT_TIMESTAMP, Level::default()),
            held: register(r, &HELD, Level::default()),
            queue_depth: register(r, &QUEUE_DEPTH, Level::default()),
            queue_bytes: register(r, &QUEUE_BYTES, Level::default()),
            disk_free: register(r, &DISK_FREE, Level::default()),
            open_items: register(r, &OPEN_ITEMS, Level::default()),
            unconfirmed: register(r, &UNCONFIRMED, Level::default()),
            read_only: register(r, &READ_ONLY, Level::default()),
            reload_failed: register(r, &RELOAD_FAILED, Level::default()),
            self_audit_failures: register(r, &SELF_AUDIT_FAILURES, Counter::default()),
            scrubbed: register(r, &SCRUBBED, Counter::default()),
            scrub_findings: register(r, &SCRUB_FINDINGS, Counter::default()),
            http_requests: register(r, &HTTP_REQUESTS, Family::default()),
            rate_limited: register(r, &RATE_LIMITED, Counter::default()),
            turned_away: register(r, &TURNED_AWAY, Counter::default()),
            reads_turned_away: register(r, &READS_TURNED_AWAY, Counter::default()),
            reads_cut: register(r, &READS_CUT, Counter::default()),
            in_work: register(r, &IN_WORK, Level::default()),
            held_bytes: register(r, &HELD_BYTES, Level::default()),
            policy: register(r, &POLICY, Family::default()),
            registry,
        }))
    }

    /// A registration ended after `seconds`; `code` is its error code, or "ok".
    pub fn registered(&self, outcome: Outcome, code: &'static str, seconds: f64) {
        let ending = RegistrationLabels { outcome: outcome.as_str(), code };
        self.0.registrations.get_or_create(&ending).inc();
        self.0.register_duration.observe(seconds);
    }

    /// A batch became durable and signed.
    pub fn committed(&self, batch_size: u32, seconds: f64, tree_size: u64) {
        self.0.batch_size.observe(f64::from(batch_size));
        self.0.commit_duration.observe(seconds);
        self.0.tree_size.set(tree_size);
    }

    /// The log was opened with this many leaves.
    pub fn opened(&self, tree_size: u64) {
        self.0.tree_size.set(tree_size);
    }

    /// A checkpoint was published at this Unix time.
    pub fn published(&self, unix_seconds: u64) {
        self.0.checkpoint_timestamp.set(unix_seconds);
    }

    /// The current length of the commit queue.
    pub fn queued(&self, statements: usize, bytes: usize) {
        self.0.queue_depth.set(clamped(statements));
        self.0.queue_bytes.set(clamped(bytes));
    }

    /// The current number of pending statements.
    pub fn held(&self, statements: usize) {
        self.0.held.set(clamped(statements));
    }

    /// The current free disk space.
    pub fn disk_free(&self, bytes: u64) {
        self.0.disk_free.set(bytes);
    }

    /// The current numbers of open items and unconfirmed effects.
    pub fn waiting(&self, open_items: usize, unconfirmed: usize) {
        self.0.open_items.set(clamped(open_items));
        self.0.unconfirmed.set(clamped(unconfirmed));
    }

    /// The log became read-only, or writable again.
    pub fn read_only(&self, yes: bool) {
        self.0.read_only.set(u64::from(yes));
    }

    /// A changed policy or trust file is invalid, or valid again.
    pub fn reload_failed(&self, yes: bool) {
        self.0.reload_failed.set(u64::from(yes));
    }

    /// The log failed its own verification.
    pub fn self_audit_failed(&self) {
        self.0.self_audit_failures.inc();
    }

    /// These bytes of the store were read again and are intact.
    pub fn scrubbed(&self, bytes: u64) {
        self.0.scrubbed.inc_by(bytes);
    }

    /// The store is damaged.
    pub fn scrub_found(&self) {
        self.0.scrub_findings.inc();
    }

    /// A request was answered. `route` is the pattern, never the path.
    pub fn answered(&self, route: &'static str, method: &str, status: u16) {
        let answer = ResponseLabels { route, method: known_method(method), status };
        self.0.http_requests.get_or_create(&answer).inc();
    }

    /// A request was rejected by the rate limit.
    pub fn rate_limited(&self) {
        self.0.rate_limited.inc();
    }

    /// A registration was rejected because of load.
    pub fn turned_away(&self) {
        self.0.turned_away.inc();
    }

    /// A search or traversal got no free slot.
    pub fn read_turned_away(&self) {
        self.0.reads_turned_away.inc();
    }

    /// A read exhausted its budget.
    pub fn read_cut(&self) {
        self.0.reads_cut.inc();
    }

    /// The current bytes of requests and responses in memory.
    pub fn held_bytes(&self, bytes: usize) {
        self.0.held_bytes.set(clamped(bytes));
    }

    /// The current number of statements in progress.
    pub fn in_work(&self, statements: usize) {
        self.0.in_work.set(clamped(statements));
    }

    /// This policy is in effect from now on.
    pub fn policy_in_force(&self, digest: &str) {
        self.0.policy.clear();
        self.0.policy.get_or_create(&Policy { digest: digest.to_owned() }).set(1);
    }

    /// All metrics as OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        match text::encode(&mut out, &self.0.registry) {
            Ok(()) => out,
            // Writing to a string does not fail; scrapers reject an empty text.
            Err(std::fmt::Error) => String::new(),
        }
    }

    /// The media type of `encode`.
    pub fn content_type() -> &'static str {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    }
}

fn clamped(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Clients can invent methods, so unknown ones share a label.
fn known_method(method: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"];
    KNOWN.into_iter().find(|known| *known == method).unwrap_or("other")
}

/// The content of `docs/metrics.md`.
pub fn reference() -> String {
    let mut out = "# Metrics\n\nServed at `/metrics` as OpenMetrics text.\n\n\
        | name | kind | labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for Row { name, kind, labels, help } in TABLE {
        let total = if *kind == "counter" { "_total" } else { "" };
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        out.push_str(&format!("| `{name}{total}` | {kind} | {} | {help}. |\n", labels.join(", ")));
    }
    let words = |bounds: &[f64]| bounds.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
    out.push_str(&format!(
        "\nDurations fall into buckets up to {} seconds; sizes into buckets up to {}.\n",
        words(&SECONDS),
        words(&SIZES)
    ));
    out
}
