//! Commits that fail, on each engine: what is found at the next start is the
//! log before the commit or after it, and nothing with a receipt is lost.

use super::*;
use crate::envelope::{AuthContext, Authentic, Resolved};
use crate::policy::Policy;
use crate::service::write::writer::NewStatement;
use crate::store::fixture::TestLog;
use crate::store::memory::{Fault as Injected, Faulty};
use crate::store::{Backend, Terms};

fn make(log: &TestLog) {
    let policy = Policy::parse(OPEN).unwrap();
    init_on(log.create(), "log.example", policy, Algorithm::Es256, &log.guard()).unwrap();
}

fn serve(log: &TestLog) -> Arc<Service> {
    open_on(log.open().unwrap(), options(), Metrics::new("test")).unwrap()
}

/// The log's engine, with a switch for faults.
fn faulty(log: &TestLog) -> (Faulty, Backend) {
    let Backend { engine, dir, .. } = log.open().unwrap();
    let engine = Faulty::new(engine.into());
    (engine.clone(), Backend::new(Box::new(engine), dir))
}

fn authentic(bytes: Vec<u8>) -> Authentic {
    let (trust, resolved) = (TrustAnchors::default(), Resolved::default());
    let context = AuthContext::new(&trust, &resolved, now());
    SignedStatement::parse(bytes).unwrap().authenticate(&context).unwrap()
}

fn append(writer: &mut Writer, statement: &Authentic) -> Result<(), &'static str> {
    let read = crate::profile::read(statement);
    let terms = &Terms::of(statement.statement().header(), &read);
    let new = NewStatement { statement, terms, size: writer.size() };
    writer.append(&[new], now()).map(drop).map_err(|error| error.code())
}

#[tokio::test]
async fn failed_commit_leaves_the_log_before_or_after_it() {
    type Faults = [(fn(u64) -> Injected, &'static str, u64); 3];
    let faults: Faults = [
        (Injected::CommitLost, "store-engine", 0),
        (Injected::CommitApplied, "store-engine", 1),
        (Injected::Deposed, "store-deposed", 0),
    ];
    for log in TestLog::on_each_engine() {
        make(&log);
        let mut acknowledged = Vec::new();
        for (nth, (fault, code, kept)) in (0_u8..).zip(faults) {
            for after in 0..3 {
                let what = format!("{:?} on {}", fault(after), log.engine());
                let service = serve(&log);
                let registered = service.register(statement(&[nth, 9])).await.unwrap();
                acknowledged.push(registered.entry);
                service.shut_down().unwrap();
                drop(service);

                let (engine, backend) = faulty(&log);
                let mut writer = Writer::open_on(backend, &log.guard(), false).unwrap();
                let before = writer.size().get();
                engine.set(Some(fault(after)));
                let payloads = (0..=after).map(|n| authentic(statement(&n.to_be_bytes())));
                let failed = payloads.map(|one| append(&mut writer, &one)).find_map(Result::err);
                assert_eq!(failed, Some(code), "{what}");
                drop((engine, writer));

                let service = serve(&log);
                let size = service.head().size.get();
                assert_eq!(size, before + after + kept, "{what}");
                for entry in &acknowledged {
                    assert!(service.receipt(entry).is_ok(), "{what}");
                }
                drop(service);
                let checked = fsck_on(log.open().unwrap(), &log.guard(), &mut |_, _| ()).unwrap();
                assert_eq!(checked.findings, [], "{what}");
            }
        }
    }
}

/// The whole journey on an engine whose reads may wait, on a runtime with
/// workers; then with reads that fail, and with reads that lie.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reads_that_fail_or_lie_give_no_receipt() {
    for log in TestLog::on_each_engine() {
        make(&log);
        let (engine, backend) = faulty(&log);
        let service = open_on(backend, options(), Metrics::new("test")).unwrap();
        let one = statement(b"one");
        let registered = service.register(one.clone()).await.unwrap();
        let entry = &registered.entry;
        let again = service.register(one.clone()).await.unwrap();
        assert!(!registered.known && again.known, "{}", log.engine());
        engine.set(Some(Injected::Reads));
        assert_eq!(code(service.register(one).await), "store-engine");
        assert!(service.receipt(entry).is_err());
        // A bit of S, of its index, of a hash.
        engine.set(Some(Injected::FlippedBit(100)));
        assert!(service.receipt(entry).is_err(), "{}", log.engine());
        assert!(service.scrub_step(0).is_err(), "{}", log.engine());
        engine.set(None);
        assert!(service.receipt(entry).is_ok());
        assert_eq!(service.head().size.get(), 3);
        service.shut_down().unwrap();
    }
}
