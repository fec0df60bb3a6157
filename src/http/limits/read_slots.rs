//! Slots for reads that search the log: a few at once, on blocking threads,
//! each with a budget. A read that gets no slot in time is answered with 503,
//! and no other request waits for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::client::{ClientNetwork, ClientSlots};
use crate::http::HttpOptions;
use crate::http::response::problem::Problem;
use crate::metrics::Metrics;
use crate::service::{Fault, Reader, Service};
use crate::wire::budget::{Allowance, Budget};

/// The slots there are, shared by all request tasks.
#[derive(Clone)]
pub(in crate::http) struct ReadSlots {
    /// Slots of everybody. A permit moves to the blocking thread of its read.
    free: Arc<Semaphore>,
    /// Slots of each client.
    per_client: ClientSlots,
    // Fixed at start.
    wait: Duration,
    allowance: Allowance,
    metrics: Metrics,
}

/// No slot can be had.
struct NoSlot;

impl ReadSlots {
    pub(in crate::http) fn new(options: &HttpOptions, metrics: Metrics) -> Self {
        Self {
            free: Arc::new(Semaphore::new(options.reads_at_once)),
            per_client: ClientSlots::new(options.reads_per_address),
            wait: options.reads_wait,
            allowance: options.reads,
            metrics,
        }
    }

    /// The budget of one read.
    pub(in crate::http) fn budget(&self) -> Budget {
        Budget::new(self.allowance)
    }

    /// Runs a read in a slot. The slot is kept until the read has ended, even
    /// if the client is gone, because the limit is one on threads and memory.
    pub(in crate::http) async fn run<T: Send + 'static>(
        &self,
        service: Arc<Service>,
        client: Option<ClientNetwork>,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Problem> {
        let slot = async {
            let own = match client {
                Some(client) => Some(self.per_client.acquire(client).await.ok_or(NoSlot)?),
                None => None,
            };
            let shared = self.free.clone().acquire_owned().await.map_err(|_| NoSlot)?;
            Ok::<_, NoSlot>((own, shared))
        };
        let Ok(Ok(slot)) = tokio::time::timeout(self.wait, slot).await else {
            self.metrics.read_turned_away();
            return Err(Problem::reads_busy());
        };
        let (budget, metrics) = (self.budget(), self.metrics.clone());
        let work = move || {
            let _slot = slot;
            let mut reader = service.reader(budget);
            let answer = read(&mut reader);
            if reader.is_cut() {
                metrics.read_cut();
            }
            answer
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(answer) => Ok(answer?),
            // Answered with 500 by the layer that catches panics.
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            Err(_) => Err(Fault::ShuttingDown.into()),
        }
    }
}
