//! What a registration costs its issuer, where the policy limits the rate.
//!
//! Charged is what the policy admitted and nothing else, by the key that
//! signed it: whoever writes another's name into a statement spends nothing of
//! his. What is logged already, or waits for its commit, was paid for.

use std::sync::PoisonError;

use super::queue::{Basis, Ticket};
use super::rate::Pace;
use crate::envelope::{Authentic, Binding, Issuer};
use crate::key::KeyId;
use crate::policy::{Admitted, Rate};
use crate::service::{Fault, Rules, Service};

/// Who pays: a name, one of its keys, and how the two are tied. A key that
/// only claims a name is somebody else than a key that is pinned under it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::service) struct Payer {
    binding: Binding,
    name: String,
    key: KeyId,
}

impl From<&Issuer> for Payer {
    fn from(issuer: &Issuer) -> Self {
        Self { binding: issuer.binding, name: issuer.name.clone(), key: issuer.key.id() }
    }
}

fn pace(rate: Rate) -> Pace {
    Pace { per_second: f64::from(rate.per_minute) / 60.0, burst: rate.per_minute }
}

impl Service {
    /// Sends away who has nothing left, before the policy is asked. Costs
    /// nothing, also for what comes again while it waits for its commit.
    pub(in crate::service) fn refuse_too_often(
        &self,
        rules: &Rules,
        authentic: &Authentic,
    ) -> Result<(), Fault> {
        let Some(rate) = rules.policy.rate() else { return Ok(()) };
        let id = authentic.id();
        if self.queue.holds(&id) || self.shared.held.holds(&id) {
            return Ok(());
        }
        let issuer = authentic.issuer();
        let left = self.issuer_rate.look(&issuer.into(), pace(rate));
        left.map_err(|retry_seconds| too_often(issuer, rate, retry_seconds))
    }

    /// Charges the issuer of what was admitted, and puts it in the queue. What
    /// finds no room there has cost nothing.
    pub(in crate::service) fn take_in(
        &self,
        admitted: Admitted,
        basis: Basis,
        is_paid: bool,
    ) -> Result<Ticket, Fault> {
        let rate = self.shared.rules.load().policy.rate();
        let Some(rate) = rate else { return self.queue.push(admitted, basis) };
        let issuer = admitted.statement().issuer().clone();
        // Or two copies would both be found new, and both be paid for.
        let _one_by_one = self.charging.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !is_paid && !self.queue.holds(&admitted.statement().id());
        if is_new {
            let taken = self.issuer_rate.take(&Payer::from(&issuer), 1, pace(rate));
            taken.map_err(|retry_seconds| too_often(&issuer, rate, retry_seconds))?;
        }
        let is_paid = is_paid || is_new;
        match self.queue.push(admitted, basis) {
            Ok(mut ticket) => {
                ticket.is_paid = is_paid;
                Ok(ticket)
            }
            Err(fault) => {
                self.give_back(is_paid.then_some(&issuer));
                Err(fault)
            }
        }
    }

    /// Gives back what was charged for a statement that is logged once, and
    /// came twice.
    pub(in crate::service) fn give_back(&self, issuer: Option<&Issuer>) {
        let rate = self.shared.rules.load().policy.rate();
        if let (Some(issuer), Some(rate)) = (issuer, rate) {
            self.issuer_rate.give_back(&issuer.into(), 1, pace(rate));
        }
    }
}

fn too_often(issuer: &Issuer, rate: Rate, retry_seconds: u64) -> Fault {
    let (issuer, per_minute) = (issuer.name.clone(), rate.per_minute);
    Fault::IssuerRate { issuer, per_minute, retry_seconds }
}
