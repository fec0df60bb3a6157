//! A registration on each storage engine, through the public API: receipt,
//! search, bundle, scrub and `fsck`, damaged reads, and a commit that fails.

use std::path::PathBuf;
use std::sync::Arc;

use capstan::config::Config;
use capstan::envelope::{Draft, seal};
use capstan::key::{Algorithm, SigningKey};
use capstan::metrics::Metrics;
use capstan::policy::Policy;
use capstan::service::{self, Checked, ControlError, Options, Registered, Service};
use capstan::store::memory::{Fault, Faulty, Memory};
use capstan::store::{Backend, DataDir, Field, Query};
use capstan::trust::{TrustAnchors, TrustedLog};
use capstan::verify::{Demand, Evidence, Outcome, verify};
use capstan::wire::budget::Budget;

const OPEN: &str = include_str!("../../policy/open.toml");
const NAME: &str = "https://log.example";
const AGENT: &str = "https://agent.example";

/// A closed log on one engine, with a switch for faults.
struct Log {
    engine: &'static str,
    outside: tempfile::TempDir,
    /// Its rows, unless the embedded engine has them.
    memory: Option<Memory>,
    key: SigningKey,
}

impl Log {
    fn on_each_engine() -> [Self; 2] {
        [("embedded", None), ("memory", Some(Memory::default()))].map(|(engine, memory)| {
            let outside = tempfile::tempdir().unwrap();
            let log = Self {
                engine,
                outside,
                memory,
                key: SigningKey::generate(Algorithm::Es256).unwrap(),
            };
            let guard = DataDir::guard_beside(&log.path());
            let backend = match &log.memory {
                None => Backend::create(&log.path()).unwrap(),
                Some(rows) => {
                    Backend::new(Box::new(rows.clone()), DataDir::create(&log.path()).unwrap())
                }
            };
            let policy = Policy::parse(OPEN).unwrap();
            service::init_on(backend, NAME, policy, Algorithm::Es256, &guard).unwrap();
            log
        })
    }

    fn path(&self) -> PathBuf {
        self.outside.path().join("data")
    }

    fn backend(&self) -> Backend {
        match &self.memory {
            None => Backend::open(&self.path()).unwrap(),
            Some(rows) => {
                Backend::new(Box::new(rows.clone()), DataDir::open(&self.path()).unwrap())
            }
        }
    }

    fn faulty(&self) -> (Faulty, Backend) {
        let Backend { engine, dir, .. } = self.backend();
        let faulty = Faulty::new(engine.into());
        (faulty.clone(), Backend::new(Box::new(faulty), dir))
    }

    fn open(&self) -> Arc<Service> {
        open_on(self.backend()).unwrap()
    }

    fn fsck(&self, backend: Backend) -> Result<Checked, ControlError> {
        service::fsck_on(backend, &DataDir::guard_beside(&self.path()), &mut |_, _| ())
    }

    fn assert_sound(&self) {
        assert_eq!(self.fsck(self.backend()).unwrap().findings, [], "{}", self.engine);
    }

    fn statement(&self, subject: &str) -> Vec<u8> {
        let (content_type, payload) = ("text/plain", subject.as_bytes());
        let draft = Draft { content_type, issuer: AGENT, subject, issued_at: None, payload };
        seal(&draft, &self.key).unwrap()
    }

    /// Verifies a receipt or a bundle with the log's public keys alone.
    fn assert_verifies(&self, service: &Service, bytes: &[u8], statement: Option<&[u8]>) {
        let (keys, checkpoint) = (service.keys().to_vec(), service.checkpoint_key().ok());
        let trust = TrustAnchors::default()
            .with_log(TrustedLog { name: NAME.to_owned(), keys, checkpoint })
            .with_issuer(AGENT, std::slice::from_ref(self.key.public()));
        let demand = Demand { allow_development: true, ..Demand::default() };
        let evidence = Evidence::new(&trust, service::now());
        let report = verify(bytes, &Evidence { statement, demand: &demand, ..evidence });
        assert_eq!(report.verdict(), Outcome::Yes, "{}: {report:?}", self.engine);
    }
}

fn open_on(backend: Backend) -> Result<Arc<Service>, ControlError> {
    let options = Options { min_free_bytes: 0, ..Options::from_config(&Config::default()) };
    service::open_on(backend, options, Metrics::new("test"))
}

/// Indices of the statements about a subject, newest first.
fn search(service: &Service, subject: &str) -> Vec<u64> {
    let fields = vec![(Field::Subject, subject.to_owned())];
    let query = Query { fields, limit: 10, ..Query::default() };
    let page = service.reader(Budget::unlimited()).search(&query).unwrap();
    page.statements.iter().map(|entry| entry.index.get()).collect()
}

#[tokio::test]
async fn registration_to_bundle_on_each_engine() {
    for log in Log::on_each_engine() {
        let engine = log.engine;
        let service = log.open();
        let statements: Vec<_> = (0..5).map(|n| log.statement(&format!("urn:run:{n}"))).collect();
        for (index, bytes) in (2..).zip(&statements) {
            let Registered { entry, receipt, known } =
                service.register(bytes.clone()).await.unwrap();
            assert_eq!((entry.index.get(), known), (index, false), "{engine}");
            log.assert_verifies(&service, &receipt, Some(bytes));
        }
        assert_eq!(search(&service, "urn:run:3"), [5], "{engine}");
        assert_eq!(search(&service, "urn:run:9"), [0; 0], "{engine}");
        assert!(service.scrub_step(0).is_ok(), "{engine}");
        service.shut_down().unwrap();
        drop(service);
        log.assert_sound();

        let service = log.open();
        for (index, bytes) in (2..).zip(&statements) {
            let Registered { entry, receipt, known } =
                service.register(bytes.clone()).await.unwrap();
            assert_eq!((entry.index.get(), known), (index, true), "{engine}: reopened");
            log.assert_verifies(&service, &receipt, Some(bytes));
            let bundle = service.reader(Budget::unlimited()).bundle(&entry).unwrap();
            log.assert_verifies(&service, &bundle, None);
        }
        service.shut_down().unwrap();
    }
}

#[tokio::test]
async fn fsck_and_scrub_find_damaged_reads_on_each_engine() {
    for log in Log::on_each_engine() {
        let engine = log.engine;
        let (faults, backend) = log.faulty();
        let service = open_on(backend).unwrap();
        service.register(log.statement("urn:run:1")).await.unwrap();
        assert!(service.scrub_step(0).is_ok(), "{engine}");
        for fault in [Fault::Reads, Fault::FlippedBit(100)] {
            faults.set(Some(fault));
            assert!(service.scrub_step(0).is_err(), "{engine} {fault:?}");
        }
        faults.set(None);
        service.shut_down().unwrap();
        drop((service, faults));

        // A bit that only statements are long enough to have.
        for (fault, expected) in [
            (None, "sound"),
            (Some(Fault::Reads), "error"),
            (Some(Fault::FlippedBit(8 * 400)), "findings"),
        ] {
            let (faults, backend) = log.faulty();
            faults.set(fault);
            let found = match log.fsck(backend) {
                Ok(checked) if checked.findings.is_empty() => "sound",
                Ok(_) => "findings",
                Err(_) => "error",
            };
            assert_eq!(found, expected, "{engine} {fault:?}");
        }
    }
}

/// A failed commit of the running service ends the process, so the one that
/// fails here is made while the log opens: the policy file has changed.
#[tokio::test]
async fn failed_commit_is_repeated_by_the_next_open_on_each_engine() {
    for log in Log::on_each_engine() {
        let service = log.open();
        let bytes = log.statement("urn:run:1");
        service.register(bytes.clone()).await.unwrap();
        service.shut_down().unwrap();
        drop(service);
        let faults = [Fault::CommitLost(0), Fault::CommitApplied(0), Fault::Deposed(0)];
        for (size, fault) in (4..).zip(faults) {
            let what = format!("{} {fault:?}", log.engine);
            std::fs::write(log.path().join("policy.toml"), format!("{OPEN}# {size}\n")).unwrap();
            let (injected, backend) = log.faulty();
            injected.set(Some(fault));
            assert!(matches!(open_on(backend), Err(ControlError::Writer(_))), "{what}");
            drop(injected);
            log.assert_sound();

            let service = log.open();
            assert_eq!(service.head().size.get(), size, "{what}: the policy is logged once");
            let again = service.register(bytes.clone()).await.unwrap();
            assert!(again.known, "{what}");
            log.assert_verifies(&service, &again.receipt, Some(&bytes));
            service.shut_down().unwrap();
        }
    }
}
