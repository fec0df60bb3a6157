//! Reads that look through the log: off the threads that serve connections,
//! a few at once, each with a budget. Who does not get a turn in time is told
//! to come back; nobody else notices them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::HttpOptions;
use super::network::{Network, Shares};
use super::problem::Problem;
use crate::metrics::Metrics;
use crate::service::{Fault, Reader, Service};
use crate::wire::budget::{Allowance, Budget};

/// The turns there are.
#[derive(Clone)]
pub(super) struct Reads {
    turns: Arc<Semaphore>,
    shares: Shares,
    wait: Duration,
    allowance: Allowance,
    metrics: Metrics,
}

/// Too many read already.
struct NoTurn;

impl Reads {
    pub(super) fn new(options: &HttpOptions, metrics: Metrics) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(options.reads_at_once)),
            shares: Shares::new(options.reads_per_address),
            wait: options.reads_wait,
            allowance: options.reads,
            metrics,
        }
    }

    /// What one read may cost.
    pub(super) fn budget(&self) -> Budget {
        Budget::new(self.allowance)
    }

    /// Runs a read when it is its turn. The turn lasts as long as the work,
    /// also when the client is gone: the bound is one on threads and memory.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        service: Arc<Service>,
        network: Option<Network>,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = async {
            let seat = match network {
                Some(network) => Some(self.shares.user(network).seat().await.ok_or(NoTurn)?),
                None => None,
            };
            let turn = self.turns.clone().acquire_owned().await.map_err(|_| NoTurn)?;
            Ok::<_, NoTurn>((seat, turn))
        };
        let turn = tokio::time::timeout(self.wait, turn).await;
        let Ok(Ok(turn)) = turn else {
            self.metrics.read_turned_away();
            return Err(Problem::reads_busy());
        };
        let (budget, metrics) = (self.budget(), self.metrics.clone());
        let work = move || {
            let _turn = turn;
            let mut reader = service.reader(budget);
            let answer = read(&mut reader);
            if reader.is_cut() {
                metrics.read_cut();
            }
            answer
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(answer) => Ok(answer?),
            // A panic is one of ours, and answered like any other.
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            Err(_) => Err(Fault::ShuttingDown.into()),
        }
    }
}
