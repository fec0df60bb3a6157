//! The pipeline without HTTP: bytes in, verified receipt out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use capstan::config::Config;
use capstan::key::Algorithm;
use capstan::metrics::Metrics;
use capstan::service::{self, Options, Service};
use tokio::runtime::Runtime;

use crate::cores::{Rate, core_us};
use crate::statements::{Agent, Kind};

/// Enough that the cores verify while the disk syncs.
const IN_FLIGHT: usize = 1024;

/// Registrations per second of one kind of statement under one policy.
pub(crate) fn rate(kind: Kind, policy: &str, count: usize) -> Rate {
    let log = Log::new(policy);
    let statements = log.agent.sign(kind, 0, count);
    // The first quarter makes the process warm: its memory has been touched,
    // its journal has its blocks.
    log.run(&statements[..count / 4]);
    let timed = &statements[count / 4..];
    let (started, before) = (Instant::now(), core_us("self"));
    log.run(timed);
    let (each, seconds) = (timed.len() as f64, started.elapsed().as_secs_f64());
    let core_us = (core_us("self") - before) / each;
    log.service.shut_down().expect("shut down");
    Rate { per_second: each / seconds, core_us }
}

/// Signs the same number whatever is registered of it, so that two runs differ
/// by registrations alone: for those who count instructions.
pub(crate) fn some(signed: usize, registered: usize) {
    let log = Log::new(include_str!("../../policy/open.toml"));
    let statements = log.agent.sign(Kind::Opaque, 0, signed);
    log.run(&statements[..registered]);
    log.service.shut_down().expect("shut down");
}

/// A log of its own, opened in this process.
struct Log {
    _dir: tempfile::TempDir,
    agent: Agent,
    runtime: Runtime,
    service: Arc<Service>,
}

impl Log {
    fn new(policy: &str) -> Self {
        let dir = tempfile::tempdir_in(".").expect("a directory");
        let data = dir.path().join("data");
        let agent = Agent::new();
        service::init(&data, "bench.invalid", policy, Algorithm::Es256).expect("a log");
        std::fs::write(data.join("trust.toml"), agent.trust()).expect("trust");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let options = Options::from_config(&Config::default());
        let service = service::open(&data, options, Metrics::new("bench")).expect("open");
        Self { _dir: dir, agent, runtime: runtime.expect("runtime"), service }
    }

    /// Registers all, with enough in flight.
    fn run(&self, statements: &[Vec<u8>]) {
        let statements: Arc<[Vec<u8>]> = Arc::from(statements);
        let next = Arc::new(AtomicUsize::new(0));
        self.runtime.block_on(async {
            let tasks: Vec<_> = (0..IN_FLIGHT)
                .map(|_| {
                    let (service, statements, next) =
                        (self.service.clone(), statements.clone(), next.clone());
                    tokio::spawn(async move {
                        while let Some(bytes) = statements.get(next.fetch_add(1, Ordering::Relaxed))
                        {
                            service.register(bytes.clone()).await.expect("registered");
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("a task");
            }
        });
    }
}
