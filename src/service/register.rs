//! The journey of a statement, in order. Read this first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::queue::{Basis, Ticket};
use super::refusals::About;
use super::{Fault, Rejected, Rules, Service, Snapshot, now};
use crate::envelope::{self, Authentic, Binding, Issuer, Resolved, SignedStatement, StatementId};
use crate::log::{LeafIndex, TreeSize};
use crate::policy::Decision;
use crate::profile;
use crate::store::Terms;
use crate::wire::digest::Digest;

/// A statement with its place in the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The statement's name.
    pub id: StatementId,
    /// Its leaf.
    pub index: LeafIndex,
}

/// A statement that is in the log, with a receipt that was verified.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Which statement, where.
    pub entry: Entry,
    /// The COSE Receipt.
    pub receipt: Vec<u8>,
    /// Whether it had been logged before.
    pub known: bool,
}

/// How far a statement comes without waiting for the writer.
pub enum Prepared {
    /// It was logged before; here is its receipt.
    Known(Box<Registered>),
    /// It is in the queue.
    Queued(Ticket),
}

impl Service {
    /// Takes a statement all the way to its receipt.
    pub async fn register(&self, bytes: Vec<u8>) -> Result<Registered, Rejected> {
        match self.prepare(bytes).await? {
            Prepared::Known(registered) => Ok(*registered),
            Prepared::Queued(ticket) => self.finish(ticket).await,
        }
    }

    /// Everything up to the queue: authenticate, recognise, read, decide.
    pub async fn prepare(&self, bytes: Vec<u8>) -> Result<Prepared, Rejected> {
        self.refuse_read_only()?;
        self.refuse_oversize(&bytes)?;
        let statement = SignedStatement::parse(bytes)?;
        let resolved = self.resolve(&statement).await?;
        let rules = self.shared.rules.load_full();
        let authentic = statement.authenticate(&rules.trust, &resolved, now())?;
        // Only after authentication: nobody collects a receipt with a
        // signature that does not verify.
        let size = self.head().size;
        if let Some(entry) = self.standing(&authentic)? {
            return Ok(Prepared::Known(Box::new(self.again(entry)?)));
        }
        self.check_issuer_rate(&rules, &authentic)?;
        Ok(Prepared::Queued(self.enqueue(&rules, authentic, size)?))
    }

    /// Waits for the commit that covers the statement; then its receipt.
    pub async fn finish(&self, ticket: Ticket) -> Result<Registered, Rejected> {
        let mut ticket = ticket;
        loop {
            let placed = ticket.placed().await?;
            // The rules, or what the log says, changed while it waited: it is
            // decided anew.
            let Some(placed) = placed.into_result() else {
                let rules = self.shared.rules.load_full();
                let again = ticket.into_statement().ok_or(Fault::ShuttingDown)?;
                let resolved = resolved_before(again.issuer());
                let statement = again.statement().clone();
                let authentic = statement.authenticate(&rules.trust, &resolved, now())?;
                let size = self.head().size;
                if let Some(entry) = self.standing(&authentic)? {
                    return Ok(self.again(entry)?);
                }
                ticket = self.enqueue(&rules, authentic, size)?;
                continue;
            };
            let entry = Entry { id: ticket.id(), index: placed.index };
            let Some(path) = &placed.path else { return Ok(self.again(entry)?) };
            let canonical = ticket.canonical();
            let receipt = self.release(&placed.snapshot, &entry, path, canonical)?;
            return Ok(Registered { entry, receipt, known: false });
        }
    }

    /// A fresh receipt, at the newest head, for a statement that is logged.
    pub fn again(&self, entry: Entry) -> Result<Registered, Fault> {
        let receipt = self.receipt(&entry)?;
        Ok(Registered { entry, receipt, known: true })
    }

    /// Lets a receipt out once the verifier has seen it.
    pub(super) fn release(
        &self,
        snapshot: &Arc<Snapshot>,
        entry: &Entry,
        path: &[Digest],
        canonical: &[u8],
    ) -> Result<Vec<u8>, Fault> {
        let receipt = snapshot.signed.receipt(entry.index, path);
        let parsed = crate::receipt::Receipt::parse(receipt.clone()).map_err(|_| Fault::SelfCheck);
        let keys = self.shared.keys.load();
        let mut memo = snapshot.memo.clone();
        let verified = parsed.and_then(|parsed| {
            crate::verify::inclusion(&parsed, canonical, &keys, &mut memo)
                .map_err(|_| Fault::SelfCheck)
        });
        if verified.is_err() {
            self.metrics.self_audit_failed();
            tracing::error!(id = %entry.id, index = %entry.index, "a receipt failed its own verification");
        }
        verified.map(|_| receipt)
    }

    /// Where a statement stands already. An index beyond the signed head is
    /// on disk and not yet signed: the writer, which is about to sign it,
    /// answers.
    fn standing(&self, authentic: &Authentic) -> Result<Option<Entry>, Fault> {
        let index = self.store.find(&authentic.id())?;
        let index = index.filter(|index| self.head().size.contains(*index));
        Ok(index.map(|index| Entry { id: authentic.id(), index }))
    }

    /// Reads the statement, asks the log about what it names, lets the policy
    /// decide, and hands it to the writer. `size` is from before the first
    /// look into the log: whatever is logged from there on may change what
    /// was seen, and the writer sees to that.
    fn enqueue(
        &self,
        rules: &Rules,
        authentic: Authentic,
        size: TreeSize,
    ) -> Result<Ticket, Rejected> {
        let read = profile::read(&authentic);
        let summary = read.record.summary();
        let facts = self.store.facts(&summary, &authentic.id()).map_err(Fault::from)?;
        let terms = Terms::of(authentic.statement().header(), &read.record, &summary);
        let about = About::of(&authentic);
        match rules.policy.decide(authentic, &read, &facts) {
            Decision::Admit(admitted) => {
                let epoch = rules.epoch;
                let basis = Basis { epoch, size, facts, summary, terms };
                Ok(self.queue.push(*admitted, basis)?)
            }
            Decision::Refuse(refusal) => {
                self.refusals.keep(&about, &refusal);
                Err(Rejected::Refused(Box::new(refusal)))
            }
        }
    }

    /// Keys for issuers that publish them, when the operator allows asking.
    async fn resolve(&self, statement: &SignedStatement) -> Result<Resolved, Rejected> {
        let issuer = statement.header().claims.issuer.as_deref().unwrap_or_default();
        match &self.resolver {
            Some(resolver) if issuer.starts_with("did:web:") => {
                let keys = resolver.resolve(issuer).await?;
                Ok(Resolved { keys: keys.iter().map(|named| named.key.clone()).collect() })
            }
            _ => Ok(Resolved::default()),
        }
    }

    fn check_issuer_rate(&self, rules: &Rules, authentic: &Authentic) -> Result<(), Fault> {
        let Some(rate) = rules.policy.rate() else { return Ok(()) };
        let issuer = &authentic.issuer().name;
        self.issuer_rate
            .take(issuer.clone(), f64::from(rate.per_minute) / 60.0, rate.per_minute)
            .map_err(|retry_seconds| Fault::IssuerRate {
                issuer: issuer.clone(),
                per_minute: rate.per_minute,
                retry_seconds,
            })
    }

    fn refuse_oversize(&self, bytes: &[u8]) -> Result<(), envelope::Error> {
        let (size, limit) = (bytes.len(), self.options.statement_bytes);
        if size > limit { Err(envelope::Error::TooLarge { size, limit }) } else { Ok(()) }
    }

    fn refuse_read_only(&self) -> Result<(), Fault> {
        if self.options.read_only {
            return Err(Fault::ReadOnly);
        }
        if self.read_only.load(Ordering::Relaxed) { Err(Fault::DiskFull) } else { Ok(()) }
    }
}

/// What a resolver found for a statement that is judged again. Any other kind
/// of binding is established anew, or one kind would pass for another.
fn resolved_before(issuer: &Issuer) -> Resolved {
    let keys = (issuer.binding == Binding::DidWeb).then(|| issuer.key.clone());
    Resolved { keys: keys.into_iter().collect() }
}
