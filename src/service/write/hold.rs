//! Waiting for predecessors, for as long as the policy lets a statement wait.

use std::time::Duration;

use tokio::time::Instant;

use super::held::Place;
use super::register::{Candidate, Decided, Registered};
use crate::envelope::StatementId;
use crate::policy::Pending;
use crate::service::{Fault, Rejected, Service};

/// A statement that is fine but for predecessors that are not logged.
pub struct Waiting {
    candidate: Candidate,
    place: Place,
    until: Instant,
}

impl Waiting {
    /// The statement's name.
    pub fn id(&self) -> StatementId {
        self.candidate.authentic.id()
    }
}

/// A place among those that wait, and until when.
pub(in crate::service) type Waited = (Place, Instant);

impl Service {
    /// Waits until every predecessor is logged, or for as long as the policy
    /// allows; then it is decided and takes its way.
    pub async fn wait(&self, waiting: Waiting) -> Result<Registered, Rejected> {
        let outcome = self.wait_out(waiting).await;
        self.metrics.held(self.shared.held.len());
        outcome
    }

    async fn wait_out(&self, mut waiting: Waiting) -> Result<Registered, Rejected> {
        loop {
            let heard = self.shared.held.listen(waiting.candidate.names());
            let mut waited = Some((waiting.place, waiting.until));
            let is_paid = waiting.candidate.is_paid;
            match self.decide(waiting.candidate, &mut waited)? {
                Decided::Admitted(admitted, basis) => {
                    let ticket = self.take_in(admitted, basis, is_paid)?;
                    // Only now, or there were a moment at which nobody has it.
                    drop(waited);
                    return self.finish(ticket).await;
                }
                Decided::Waits(again) => waiting = again,
                Decided::Held => return Err(Fault::Busy { waiting: 1 }.into()),
            }
            // Past its time it is decided once more, and then for good.
            let _late = tokio::time::timeout_at(waiting.until, heard.notified()).await;
        }
    }

    /// Lets a candidate wait that the policy would admit but for its
    /// predecessors, if there is room and it has not waited long enough.
    pub(in crate::service) fn hold(
        &self,
        candidate: Candidate,
        pending: Pending,
        waited: &mut Option<Waited>,
    ) -> Result<Decided, Box<Candidate>> {
        let (id, is_new) = (candidate.authentic.id(), waited.is_none());
        let now = Instant::now();
        let place = match waited.take() {
            Some(waited) => Some(waited).filter(|(_, until)| *until > now),
            None => {
                let until = now + Duration::from_secs(pending.seconds);
                let place = self.shared.held.place(id, pending.statements);
                place.map(|place| (place, until))
            }
        };
        self.metrics.held(self.shared.held.len());
        match place {
            Some((place, until)) => Ok(Decided::Waits(Waiting { candidate, place, until })),
            None if is_new && self.shared.held.holds(&id) => Ok(Decided::Held),
            None => Err(Box::new(candidate)),
        }
    }
}
