//! What only the inside can see: rules that change while statements are queued,
//! faults of the service, the first entries of a log. Registration as clients
//! see it is in `tests/it/journey.rs`.

mod crashes;
mod limits;
mod twins;

use std::path::Path;
use std::sync::mpsc;

use tempfile::TempDir;

use super::*;
use crate::config::Config;
use crate::envelope::fixture::{Sketch, ed25519, es256};
use crate::envelope::{Draft, SignedStatement, seal};
use crate::key::Algorithm;
use crate::profile::Control;
use crate::wire::digest::Digest;

pub(crate) const OPEN: &str = include_str!("../../policy/open.toml");

pub(crate) fn options() -> Options {
    Options { min_free_bytes: 0, ..Options::from_config(&Config::default()) }
}

/// A new log with this policy, open.
pub(crate) fn log_with(policy: &str, options: Options) -> (TempDir, Arc<Service>) {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("data");
    init(&path, "log.example", policy, Algorithm::Es256).unwrap();
    let service = open(&path, options, Metrics::new("test")).unwrap();
    (outside, service)
}

pub(crate) fn data(outside: &TempDir) -> std::path::PathBuf {
    outside.path().join("data")
}

pub(crate) fn statement(payload: &[u8]) -> Vec<u8> {
    statement_by(&es256(), payload)
}

fn statement_by(key: &SigningKey, payload: &[u8]) -> Vec<u8> {
    Sketch::self_certified(key).payload(payload).sign(key)
}

pub(crate) fn code<T>(result: Result<T, Rejected>) -> &'static str {
    result.map_or_else(|e| e.code(), |_| "ok")
}

#[test]
fn names() {
    for (name, issuer, origin) in [
        ("log.example", "https://log.example", "log.example"),
        ("https://log.example/", "https://log.example/", "log.example"),
        ("https://log.example/a", "https://log.example/a", "log.example/a"),
        ("urn:log", "urn:log", "urn:log"),
    ] {
        let identity = Identity::from_name(name);
        assert_eq!((identity.issuer.as_str(), identity.origin.as_str()), (issuer, origin));
    }
}

/// RFC 9943: the policy in force is itself on the log; ours is entry 0.
#[tokio::test]
async fn new_log_contains_its_policy_and_trust() {
    let (outside, service) = log_with(OPEN, options());
    assert_eq!(service.head().size.get(), 2);
    let (index, id) = service.rules().policy_entry();
    assert_eq!((index.get(), service.rules().policy().name()), (0, "open"));
    for (index, control) in [(0, Control::Policy), (1, Control::Trust)] {
        let entry = service.entry_at(LeafIndex::new(index)).unwrap().unwrap();
        let stored = service.store.statement(entry.index).unwrap().unwrap();
        let statement = SignedStatement::parse(stored.canonical).unwrap();
        let claims = &statement.header().claims;
        assert_eq!(claims.issuer.as_deref(), Some("https://log.example"));
        assert_eq!(claims.subject.as_deref(), Some(control.subject()));
        if control == Control::Policy {
            assert_eq!(entry.id, id);
            assert_eq!(statement.payload(), Some(OPEN.as_bytes()));
            let named = RulesVersion::of_policy(statement.header());
            assert_eq!(named, Ok(RulesVersion::CURRENT));
        }
    }
    assert!(service.entry_at(LeafIndex::new(2)).unwrap().is_none());
    assert_eq!(service.keys().len(), 1);
    let again = init(&data(&outside), "log.example", OPEN, Algorithm::Es256);
    assert!(matches!(again, Err(ControlError::Store(e)) if e.code() == "store-exists"));
    let bad = init(&outside.path().join("other"), "x", "name = 1", Algorithm::Es256);
    assert!(matches!(bad, Err(ControlError::Policy(_))));
    assert!(!outside.path().join("other").exists(), "nothing is made for a policy that cannot run");
}

/// Keeps the writer busy until the answer is dropped.
pub(crate) async fn hold_writer(service: &Arc<Service>) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let service = service.clone();
    tokio::spawn(async move {
        let work = move |_: &mut Writer| {
            begin.send(()).unwrap();
            let _released = held.recv();
            Ok(())
        };
        service.committer.with_writer(work).await.unwrap();
    });
    begun.await.unwrap();
    release
}

/// Takes a new statement as far as the queue.
async fn queued(service: &Service, bytes: Vec<u8>) -> Result<Ticket, Rejected> {
    match service.decided(service.recognise(bytes).await?)? {
        Progress::Queued(ticket) => Ok(ticket),
        _ => panic!("not queued"),
    }
}

/// Prepares `bytes` under the rules in force, but puts it in the queue behind
/// a change to `policy`; what then becomes of it.
async fn overtaken_by(policy: &str, bytes: Vec<u8>) -> Result<Registered, Rejected> {
    let (outside, service) = log_with(OPEN, options());
    let release = hold_writer(&service).await;
    std::fs::write(data(&outside).join("policy.toml"), policy).unwrap();
    let reload = tokio::spawn({
        let service = service.clone();
        async move { service.reload().await }
    });
    tokio::task::yield_now().await;
    let ticket = queued(&service, bytes).await.unwrap();
    let id = ticket.id();
    assert!(matches!(service.find(&id), Ok(EntryStatus::Pending)));
    drop(release);
    let outcome = service.finish(Progress::Queued(ticket)).await;
    assert_eq!(reload.await.unwrap().unwrap(), ["policy"]);
    let logged = matches!(service.find(&id), Ok(EntryStatus::Logged(_)));
    assert_eq!(logged, outcome.is_ok(), "logged exactly when it got a receipt");
    assert_eq!(service.head().size.get(), 3 + u64::from(logged));
    outcome
}

#[tokio::test]
async fn changed_rules_decide_queued_statements_again() {
    let rule = |rule: &str| format!("name = \"new\"\n[[allow]]\n{rule}\n");
    let cases = [
        ("binding = \"self-certified\"", "ok"),
        ("issuer = \"https://other.example\"", "policy-refused"),
        ("binding = \"pinned\"", "policy-refused"),
        // What the statement itself brought is not what a resolver found.
        ("binding = \"did:web\"", "policy-refused"),
    ];
    for (condition, expected) in cases {
        let outcome = overtaken_by(&rule(condition), statement(b"waiting")).await;
        assert_eq!(code(outcome), expected, "{condition}");
    }
}

/// A statement ahead of the change in the queue is decided by the old rules.
#[tokio::test]
async fn queued_before_a_rule_change_is_decided_by_the_old_rules() {
    let (outside, service) = log_with(OPEN, options());
    let release = hold_writer(&service).await;
    let ticket = queued(&service, statement(b"first")).await.unwrap();
    std::fs::write(data(&outside).join("policy.toml"), "name = \"nobody\"\n").unwrap();
    let reload = tokio::spawn({
        let service = service.clone();
        async move { service.reload().await }
    });
    tokio::task::yield_now().await;
    drop(release);
    assert_eq!(service.finish(Progress::Queued(ticket)).await.unwrap().entry.index.get(), 2);
    assert_eq!(reload.await.unwrap().unwrap(), ["policy"]);
    assert_eq!(service.rules().policy_entry().0.get(), 3);
    assert_eq!(code(service.register(statement(b"second")).await), "policy-refused");
}

#[tokio::test]
async fn full_queue_is_busy_then_recovers() {
    let limits = QueueLimits { statements: 2, bytes: 100_000, batch: 8 };
    let (_outside, service) = log_with(OPEN, Options { queue: limits, ..options() });
    let release = hold_writer(&service).await;
    let mut tickets = Vec::new();
    for n in 0..2 {
        let ticket = queued(&service, statement(&[n])).await.unwrap();
        tickets.push(ticket);
    }
    assert_eq!(code(queued(&service, statement(b"third")).await), "busy");
    drop(release);
    for ticket in tickets {
        assert!(service.finish(Progress::Queued(ticket)).await.is_ok());
    }
    assert_eq!(code(service.register(statement(b"third")).await), "ok");
}

#[tokio::test]
async fn queue_is_also_bounded_in_bytes() {
    let limits = QueueLimits { statements: 100, bytes: 1000, batch: 8 };
    let (_outside, service) = log_with(OPEN, Options { queue: limits, ..options() });
    let release = hold_writer(&service).await;
    let ticket = queued(&service, statement(&[0; 500])).await.unwrap();
    assert_eq!(code(queued(&service, statement(&[1; 500])).await), "busy");
    drop(release);
    assert!(service.finish(Progress::Queued(ticket)).await.is_ok());
    assert_eq!(code(service.register(statement(&[1; 500])).await), "ok");
}

/// The committer advances the guard before readers see the new head, so a
/// publisher in between comes with an older one.
#[tokio::test]
async fn publisher_never_moves_the_guard_back() {
    let (_outside, service) = log_with(OPEN, Options { guard_every_batch: true, ..options() });
    let newer = crate::receipt::Head { size: TreeSize::new(3), ..service.head() };
    service.guard.advance(&newer).unwrap();
    service.publish().unwrap();
    assert_eq!(service.guard.read().unwrap(), Some(newer));
}

#[test]
fn unusable_published_checkpoint_is_an_error() {
    let (outside, service) = log_with(OPEN, options());
    drop(service);
    let path = data(&outside).join("checkpoint");
    let reopened = || open(&data(&outside), options(), Metrics::new("test")).map(drop);
    std::fs::write(&path, "garbage").unwrap();
    assert!(matches!(reopened(), Err(ControlError::Checkpoint(_))));
    std::fs::write(&path, [0xff]).unwrap();
    assert!(matches!(reopened(), Err(ControlError::Store(e)) if e.code() == "store-io"));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(reopened(), Err(ControlError::Store(e)) if e.code() == "store-io"));
    std::fs::remove_dir(&path).unwrap();
    reopened().unwrap();
}

#[tokio::test]
async fn service_faults_have_codes() {
    let (outside, service) = log_with(OPEN, Options { min_free_bytes: u64::MAX, ..options() });
    assert_eq!(code(service.register(statement(b"a")).await), "ok", "nobody looked yet");
    service.watch_disk().unwrap();
    assert_eq!(code(service.register(statement(b"b")).await), "disk-full");
    assert_eq!(service.writable(), Err("the disk is nearly full"));
    service.shut_down().unwrap();
    service.read_only.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(code(service.register(statement(b"c")).await), "shutting-down");
    assert!(matches!(service.reload().await, Ok(unchanged) if unchanged.is_empty()));
    drop(service);
    let read_only = Options { read_only: true, ..options() };
    let service = open(&data(&outside), read_only, Metrics::new("test")).unwrap();
    assert_eq!(code(service.register(statement(b"d")).await), "read-only");
    assert_eq!(service.head().size.get(), 3);
    assert_eq!(service.writable(), Err("started read-only"));
}

#[tokio::test]
async fn issuer_over_its_rate_gets_retry_seconds() {
    let policy = format!("{OPEN}\n[rate]\nper_minute = 2\n");
    let (_outside, service) = log_with(&policy, options());
    let key = es256();
    let first = statement_by(&key, b"1");
    assert_eq!(code(service.register(first.clone()).await), "ok");
    assert_eq!(code(service.register(statement_by(&key, b"2")).await), "ok");
    let rejected = service.register(statement_by(&key, b"3")).await.unwrap_err();
    assert_eq!(rejected.code(), "issuer-rate");
    let Rejected::Fault(Fault::IssuerRate { retry_seconds, .. }) = rejected else { panic!() };
    assert!((1..=30).contains(&retry_seconds));
    // Asking again for what is logged costs nothing.
    for _ in 0..5 {
        assert!(service.register(first.clone()).await.unwrap().known);
    }
}

/// Whoever writes an issuer's name into statements of his own spends his own
/// quota, and what the policy refuses spends nobody's.
#[tokio::test]
async fn quota_is_charged_to_the_signer() {
    let policy =
        "name = \"two\"\n[[allow]]\nsubject = \"urn:example:run:*\"\n[rate]\nper_minute = 2\n";
    let (_outside, service) = log_with(policy, options());
    let (issuer, stranger) = (es256(), ed25519());
    let signed = |key: &SigningKey, subject: &str, payload: &[u8]| {
        Sketch::self_certified(key).claim(2, subject).payload(payload).sign(key)
    };
    let (taken, other) = ("urn:example:run:1", "urn:example:other");
    let rows = [
        (&stranger, taken, "ok"),
        (&stranger, taken, "ok"),
        (&stranger, taken, "issuer-rate"),
        (&issuer, other, "policy-refused"),
        (&issuer, other, "policy-refused"),
        (&issuer, other, "policy-refused"),
        (&issuer, taken, "ok"),
        (&issuer, taken, "ok"),
        (&issuer, taken, "issuer-rate"),
        (&issuer, other, "issuer-rate"),
    ];
    for (number, (key, subject, expected)) in (0_u8..).zip(rows) {
        let bytes = signed(key, subject, &[number]);
        assert_eq!(code(service.register(bytes).await), expected, "row {number}");
    }
}

/// A statement is paid for once, however often it comes before it is logged,
/// and one that finds no room is not paid for.
#[tokio::test]
async fn repeated_or_unqueued_statements_are_not_charged() {
    let policy = format!("{OPEN}\n[rate]\nper_minute = 2\n");
    let limits = QueueLimits { statements: 3, bytes: 100_000, batch: 8 };
    let (_outside, service) = log_with(&policy, Options { queue: limits, ..options() });
    let release = hold_writer(&service).await;
    let key = es256();
    let bytes = statement_by(&key, b"1");
    let mut tickets = Vec::new();
    for _ in 0..3 {
        let ticket = queued(&service, bytes.clone()).await.unwrap();
        tickets.push(ticket);
    }
    for _ in 0..3 {
        assert_eq!(code(queued(&service, statement_by(&key, b"2")).await), "busy");
    }
    drop(release);
    for ticket in tickets {
        assert_eq!(service.finish(Progress::Queued(ticket)).await.unwrap().entry.index.get(), 2);
    }
    assert_eq!(code(service.register(statement_by(&key, b"2")).await), "ok");
    assert_eq!(code(service.register(statement_by(&key, b"3")).await), "issuer-rate");
}

/// A copy that was recognised before the first was logged, and comes after it.
#[tokio::test]
async fn late_copy_is_not_charged() {
    let policy = format!("{OPEN}\n[rate]\nper_minute = 2\n");
    let (_outside, service) = log_with(&policy, options());
    let key = es256();
    let bytes = statement_by(&key, b"1");
    let copy = service.recognise(bytes.clone()).await.unwrap();
    assert!(matches!(copy, Progress::Undecided(_)));
    assert!(!service.register(bytes).await.unwrap().known);
    let Ok(Progress::Queued(ticket)) = service.decided(copy) else { panic!("there is room") };
    assert!(service.finish(Progress::Queued(ticket)).await.unwrap().known);
    assert_eq!(code(service.register(statement_by(&key, b"2")).await), "ok");
    assert_eq!(code(service.register(statement_by(&key, b"3")).await), "issuer-rate");
}

/// A receipt that does not verify is withheld, and counted.
#[tokio::test]
async fn unverified_receipt_is_withheld() {
    let (_outside, service) = log_with(OPEN, options());
    let registered = service.register(statement(b"x")).await.unwrap();
    let snapshot = service.snapshot();
    let canonical = service.store.statement(registered.entry.index).unwrap().unwrap().canonical;
    let wrong = [Digest::of(b"wrong")];
    for (path, bytes) in [(&wrong[..], canonical.as_slice()), (&[], b"other")] {
        let released = service.release(&snapshot, &registered.entry, path, bytes);
        assert_eq!(released.unwrap_err().code(), "self-check");
    }
    let metrics = service.metrics().encode();
    assert!(metrics.contains("self_audit_failures_total 2"), "{metrics}");
    assert_eq!(CommitError::RootMismatch.code(), "gate");
    assert_eq!(Fault::ShuttingDown.code(), "shutting-down");
}

#[tokio::test]
async fn control_statements_of_others_are_refused() {
    let (_outside, service) = log_with(OPEN, options());
    let key = ed25519();
    let issuers =
        [("https://log.example", "name-needs-proof"), ("https://a.example", "control-reserved")];
    for (control, (issuer, expected)) in
        Control::ALL.into_iter().flat_map(|control| issuers.map(|row| (control, row)))
    {
        let draft = Draft {
            content_type: control.content_type(),
            issuer,
            subject: control.subject(),
            issued_at: None,
            payload: OPEN.as_bytes(),
        };
        let rejected = service.register(seal(&draft, &key).unwrap()).await;
        assert_eq!(code(rejected), expected);
    }
    assert_eq!(service.head().size.get(), 2);
}

/// Rules survive a restart even when the files were changed to something
/// that cannot be used.
#[tokio::test]
async fn what_is_in_force_is_what_the_log_says() {
    let (outside, service) = log_with(OPEN, options());
    service.shut_down().unwrap();
    drop(service);
    let path = data(&outside);
    std::fs::write(path.join("policy.toml"), "name = 1").unwrap();
    let refused = open(&path, options(), Metrics::new("test"));
    assert!(matches!(refused.err(), Some(ControlError::Policy(_))));
    let writer = Writer::open(&path, None, true).unwrap();
    assert_eq!(writer.shared.rules.load().policy().name(), "open");
    drop(writer);
    changed_files_take_effect_at_the_start(&path);
}

fn changed_files_take_effect_at_the_start(path: &Path) {
    std::fs::write(path.join("policy.toml"), OPEN.replace("\"open\"", "\"wider\"")).unwrap();
    let trust = std::fs::read_to_string(path.join("trust.toml")).unwrap();
    std::fs::write(path.join("trust.toml"), format!("{trust}# more\n")).unwrap();
    let service = open(path, options(), Metrics::new("test")).unwrap();
    assert_eq!(service.head().size.get(), 4, "trust and policy, once each");
    assert_eq!(service.rules().policy().name(), "wider");
}
