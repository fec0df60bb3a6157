//! The pipeline without HTTP: bytes in, verified receipt out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use capstan::config::Config;
use capstan::key::Algorithm;
use capstan::metrics::Metrics;
use capstan::service::{self, Options, Service};
use tokio::runtime::Runtime;

use crate::statements::{Agent, Kind};

/// Enough that the cores verify while the disk syncs.
const IN_FLIGHT: usize = 1024;

/// Registrations per second of one kind of statement under one policy.
pub(crate) fn rate(kind: Kind, policy: &str, count: usize) -> f64 {
    let dir = tempfile::tempdir_in(".").expect("a directory");
    let data = dir.path().join("data");
    let agent = Agent::new();
    service::init(&data, "bench.invalid", policy, Algorithm::Es256).expect("a log");
    std::fs::write(data.join("trust.toml"), agent.trust()).expect("trust");
    let statements = agent.sign(kind, 0, count);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
    let options = Options::from_config(&Config::default());
    let service = service::open(&data, options, Metrics::new("bench")).expect("open");
    // The first quarter makes the process warm: its memory has been touched,
    // its journal has its blocks.
    run(&runtime, &service, &statements[..count / 4]);
    let timed = &statements[count / 4..];
    let started = Instant::now();
    run(&runtime, &service, timed);
    let rate = timed.len() as f64 / started.elapsed().as_secs_f64();
    service.shut_down().expect("shut down");
    rate
}

fn run(runtime: &Runtime, service: &Arc<Service>, statements: &[Vec<u8>]) {
    let statements: Arc<[Vec<u8>]> = Arc::from(statements);
    let next = Arc::new(AtomicUsize::new(0));
    runtime.block_on(async {
        let tasks: Vec<_> = (0..IN_FLIGHT)
            .map(|_| {
                let (service, statements, next) =
                    (service.clone(), statements.clone(), next.clone());
                tokio::spawn(async move {
                    while let Some(bytes) = statements.get(next.fetch_add(1, Ordering::Relaxed)) {
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
