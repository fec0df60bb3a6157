//! How often an issuer may register, where the policy limits it.
//!
//! Only statements that the policy admitted are charged, to the key that signed
//! them: writing another issuer's name into a statement does not use up that
//! issuer's rate. Statements that are logged or queued already are not charged
//! again.

use std::sync::PoisonError;

use super::committer::{Basis, Ticket};
use super::rate::Pace;
use crate::envelope::{Authentic, Binding, Issuer};
use crate::key::KeyId;
use crate::policy::{Admitted, Rate};
use crate::service::{Fault, Rules, Service};

/// Whose rate is charged: a name, one of its keys, and how the two are tied. A
/// key that only claims a name has another rate than a key pinned under it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::service) struct RateKey {
    binding: Binding,
    name: String,
    key: KeyId,
}

impl From<&Issuer> for RateKey {
    fn from(issuer: &Issuer) -> Self {
        Self { binding: issuer.binding, name: issuer.name.clone(), key: issuer.key.id() }
    }
}

fn pace(rate: Rate) -> Pace {
    Pace { per_second: f64::from(rate.per_minute) / 60.0, burst: rate.per_minute }
}

impl Service {
    /// Refuses an issuer whose rate is used up, before the policy is asked.
    /// Charges nothing; a statement that is queued or pending already passes.
    pub(super) fn refuse_too_often(
        &self,
        rules: &Rules,
        authentic: &Authentic,
    ) -> Result<(), Fault> {
        let Some(rate) = rules.policy.rate() else { return Ok(()) };
        let id = authentic.id();
        if self.committer.contains(&id) || self.shared.pending.contains(&id) {
            return Ok(());
        }
        let issuer = authentic.issuer();
        let left = self.issuer_rate.look(&issuer.into(), pace(rate));
        left.map_err(|retry_seconds| too_often(issuer, rate, retry_seconds))
    }

    /// Charges the issuer of an admitted statement and queues it. If the queue
    /// has no room, the charge is refunded.
    pub(super) fn charge_and_queue(
        &self,
        admitted: Admitted,
        basis: Basis,
        is_charged: bool,
    ) -> Result<Ticket, Fault> {
        let rate = self.shared.rules.load().policy.rate();
        let Some(rate) = rate else { return self.committer.push(admitted, basis, is_charged) };
        let issuer = admitted.statement().issuer().clone();
        // Without the lock two copies of a statement could both be found new
        // and both be charged.
        let _charging = self.charging.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !is_charged && !self.committer.contains(&admitted.statement().id());
        if is_new {
            let taken = self.issuer_rate.take(&RateKey::from(&issuer), 1, pace(rate));
            taken.map_err(|retry_seconds| too_often(&issuer, rate, retry_seconds))?;
        }
        let is_charged = is_charged || is_new;
        let queued = self.committer.push(admitted, basis, is_charged);
        if queued.is_err() {
            self.refund(&issuer, is_charged);
        }
        queued
    }

    /// Undoes the charge for a statement that was not appended.
    pub(super) fn refund(&self, issuer: &Issuer, is_charged: bool) {
        if is_charged && let Some(rate) = self.shared.rules.load().policy.rate() {
            self.issuer_rate.give_back(&issuer.into(), 1, pace(rate));
        }
    }
}

fn too_often(issuer: &Issuer, rate: Rate, retry_seconds: u64) -> Fault {
    let (issuer, per_minute) = (issuer.name.clone(), rate.per_minute);
    Fault::IssuerRate { issuer, per_minute, retry_seconds }
}
