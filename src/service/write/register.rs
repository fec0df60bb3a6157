//! The journey of a statement, in order. Read this first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::hold::{Waited, Waiting};
use super::queue::{Answer, Basis, Ticket};
use super::refusals::About;
use crate::envelope::{
    self, Authentic, Binding, Door, Issuer, Resolved, RulesVersion, SignedStatement, StatementId,
};
use crate::log::{LeafIndex, TreeSize};
use crate::policy::{Admitted, Decision};
use crate::profile::{self, Read, Record, Size};
use crate::receipt::Receipt;
use crate::service::{Fault, Rejected, Rules, Service, Snapshot, now};
use crate::store::{Term, Terms, fact_terms};
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
    /// It waits for records it names.
    Waiting(Box<Waiting>),
    /// It was sent before and waits for records it names.
    Held(StatementId),
}

/// What came of asking the policy.
pub(in crate::service) enum Decided {
    Admitted(Admitted, Basis),
    Waits(Waiting),
    /// The same statement waits already.
    Held,
}

/// How far a statement comes by itself, without a word of the log before it.
pub enum Recognised {
    /// It was logged before; here is its receipt.
    Known(Box<Registered>),
    /// It is authentic and new.
    New(Box<Candidate>),
}

/// An authentic statement that was read and not yet decided about.
pub struct Candidate {
    /// Those it was authenticated under, which must also decide.
    pub(in crate::service) rules: Arc<Rules>,
    pub(in crate::service) authentic: Authentic,
    /// The size of the log before the first look into it: whatever is logged
    /// from there on may change what was seen, and the writer sees to that.
    size: TreeSize,
    pub(in crate::service) read: Read,
    terms: Terms,
    /// It was admitted before, and its issuer was charged for it then.
    pub(in crate::service) is_paid: bool,
}

impl Candidate {
    fn new(rules: Arc<Rules>, authentic: Authentic, size: TreeSize) -> Self {
        let read = profile::read(&authentic);
        let terms = Terms::of(authentic.statement().header(), &read);
        Self { rules, authentic, size, read, terms, is_paid: false }
    }

    /// Under which terms earlier statements can change the decision about it.
    pub fn names(&self) -> impl Iterator<Item = Term> + '_ {
        fact_terms(&self.authentic.issuer().name, &self.read.summary)
    }

    /// By which terms it can change the decision about later ones.
    pub fn tells(&self) -> impl Iterator<Item = &Term> {
        self.terms.telling()
    }
}

impl Service {
    /// Takes a statement all the way to its receipt.
    pub async fn register(&self, bytes: Vec<u8>) -> Result<Registered, Rejected> {
        match self.prepare(bytes).await? {
            Prepared::Known(registered) => Ok(*registered),
            Prepared::Queued(ticket) => self.finish(ticket).await,
            Prepared::Waiting(waiting) => self.wait(*waiting).await,
            Prepared::Held(_) => Err(Fault::Busy { waiting: self.shared.held.len() }.into()),
        }
    }

    /// Everything up to the queue: authenticate, recognise, read, decide.
    pub async fn prepare(&self, bytes: Vec<u8>) -> Result<Prepared, Rejected> {
        match self.recognise(bytes).await? {
            Recognised::Known(registered) => Ok(Prepared::Known(registered)),
            Recognised::New(candidate) => self.enqueue(*candidate),
        }
    }

    /// Authenticates a statement, and reads it if it is new.
    pub async fn recognise(&self, bytes: Vec<u8>) -> Result<Recognised, Rejected> {
        self.refuse_read_only()?;
        self.refuse_oversize(&bytes)?;
        let statement = SignedStatement::parse(bytes)?;
        let resolved = self.resolve(&statement).await?;
        let rules = self.shared.rules.load_full();
        let door = self.door(&rules, &resolved);
        let authentic = match statement.authenticate_or_keep(&door) {
            Ok(authentic) => authentic,
            Err(refused) => match self.logged_by_older_rules(&refused.statement, &door)? {
                Some(entry) => return Ok(Recognised::Known(Box::new(self.again(entry)?))),
                None => {
                    self.refusals.keep_unproven(&refused);
                    return Err(refused.error.into());
                }
            },
        };
        // Only after authentication: nobody collects a receipt with a
        // signature that does not verify.
        let size = self.head().size;
        if let Some(entry) = self.standing(&authentic)? {
            return Ok(Recognised::Known(Box::new(self.again(entry)?)));
        }
        self.refuse_twin(&authentic)?;
        self.refuse_too_often(&rules, &authentic)?;
        let candidate = Candidate::new(rules, authentic, size);
        self.refuse_over_limit(candidate.read.record.as_ref())?;
        Ok(Recognised::New(Box::new(candidate)))
    }

    /// Decides by what the log says now, and puts what is admitted in the
    /// queue.
    pub fn enqueue(&self, candidate: Candidate) -> Result<Prepared, Rejected> {
        let (id, is_paid) = (candidate.authentic.id(), candidate.is_paid);
        match self.decide(candidate, &mut None)? {
            Decided::Admitted(admitted, basis) => {
                Ok(Prepared::Queued(self.take_in(admitted, basis, is_paid)?))
            }
            Decided::Waits(waiting) => Ok(Prepared::Waiting(Box::new(waiting))),
            Decided::Held => Ok(Prepared::Held(id)),
        }
    }

    /// Waits for the commit that covers the statement; then its receipt.
    pub async fn finish(&self, ticket: Ticket) -> Result<Registered, Rejected> {
        let mut ticket = ticket;
        loop {
            let is_paid = ticket.is_paid;
            let placed = match ticket.placed().await? {
                Answer::Placed(placed) => Some(placed),
                Answer::Twin(entry) => {
                    self.give_back(is_paid.then(|| ticket.issuer()));
                    return Err(Rejected::Twin { entry });
                }
                Answer::Stale => None,
            };
            // The rules, or what the log says, changed while it waited: it is
            // decided anew.
            let Some(placed) = placed else {
                let rules = self.shared.rules.load_full();
                let again = ticket.into_statement().ok_or(Fault::ShuttingDown)?;
                let resolved = resolved_before(again.issuer());
                let statement = again.statement().clone();
                let authentic = statement.authenticate(&self.door(&rules, &resolved))?;
                let size = self.head().size;
                if let Some(entry) = self.standing(&authentic)? {
                    self.give_back(is_paid.then(|| authentic.issuer()));
                    return Ok(self.again(entry)?);
                }
                if let Err(refused) = self.refuse_twin(&authentic) {
                    self.give_back(is_paid.then(|| authentic.issuer()));
                    return Err(refused);
                }
                let candidate = Candidate { is_paid, ..Candidate::new(rules, authentic, size) };
                match self.decide(candidate, &mut None)? {
                    Decided::Admitted(admitted, basis) => {
                        ticket = self.take_in(admitted, basis, is_paid)?;
                        continue;
                    }
                    Decided::Waits(waiting) => return Box::pin(self.wait(waiting)).await,
                    Decided::Held => return Err(Fault::Busy { waiting: 1 }.into()),
                }
            };
            let entry = Entry { id: ticket.id(), index: placed.index };
            let Some(path) = &placed.path else {
                self.give_back(is_paid.then(|| ticket.issuer()));
                return Ok(self.again(entry)?);
            };
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
    pub(in crate::service) fn release(
        &self,
        snapshot: &Arc<Snapshot>,
        entry: &Entry,
        path: &[Digest],
        canonical: &[u8],
    ) -> Result<Vec<u8>, Fault> {
        let receipt = snapshot.signed.receipt(entry.index, path);
        let parsed = Receipt::parse(receipt).map_err(|_| Fault::SelfCheck);
        let keys = self.shared.keys.load();
        let mut memo = snapshot.memo.clone();
        let verified = parsed.and_then(|receipt| {
            match crate::verify::inclusion(&receipt, canonical, &keys, &mut memo) {
                Ok(_) => Ok(receipt.into_bytes()),
                Err(_) => Err(Fault::SelfCheck),
            }
        });
        if verified.is_err() {
            self.metrics.self_audit_failed();
            tracing::error!(id = %entry.id, index = %entry.index, "a receipt failed its own verification");
        }
        verified
    }

    /// Where a statement stands that today's rules would refuse: what was
    /// logged once gets its receipt for ever.
    fn logged_by_older_rules(
        &self,
        statement: &SignedStatement,
        door: &Door<'_>,
    ) -> Result<Option<Entry>, Fault> {
        if self.store.find(&StatementId::of(statement))?.is_none() {
            return Ok(None);
        }
        let older = Door { rules: RulesVersion::V1, ..*door };
        match statement.clone().authenticate(&older) {
            Ok(authentic) => self.standing(&authentic),
            Err(_) => Ok(None),
        }
    }

    /// Refuses a statement that is logged with its other signature. One that
    /// is not logged yet is found by the writer.
    fn refuse_twin(&self, authentic: &Authentic) -> Result<(), Rejected> {
        let Some(id) = authentic.twin() else { return Ok(()) };
        match self.store.find(&id).map_err(Fault::from)? {
            Some(index) => Err(Rejected::Twin { entry: Entry { id, index } }),
            None => Ok(()),
        }
    }

    /// Where a statement stands already. An index beyond the signed head is
    /// on disk and not yet signed: the writer, which is about to sign it,
    /// answers.
    fn standing(&self, authentic: &Authentic) -> Result<Option<Entry>, Fault> {
        let index = self.store.find(&authentic.id())?;
        let index = index.filter(|index| self.head().size.contains(*index));
        Ok(index.map(|index| Entry { id: authentic.id(), index }))
    }

    /// Asks the log about what the statement names, and lets the policy
    /// decide.
    pub(in crate::service) fn decide(
        &self,
        candidate: Candidate,
        waited: &mut Option<Waited>,
    ) -> Result<Decided, Rejected> {
        let Candidate { rules, authentic, read, .. } = &candidate;
        let issuer = &authentic.issuer().name;
        let facts = self.store.facts(issuer, &read.summary, &authentic.id(), authentic.rules());
        let facts = facts.map_err(Fault::from)?;
        let candidate = match rules.policy.may_wait(authentic, read, &facts) {
            None => candidate,
            Some(pending) => match self.hold(candidate, pending, waited) {
                Ok(held) => return Ok(held),
                Err(candidate) => *candidate,
            },
        };
        let Candidate { rules, authentic, size, read, terms, .. } = candidate;
        let terms = match (&read.summary.session, facts.session) {
            (Some(span), Some(how)) => match how.head_after(span) {
                Some(head) => {
                    terms.ending(Term::session(&authentic.issuer().name, &span.session), &head)
                }
                None => terms,
            },
            _ => terms,
        };
        let about = About::of(&authentic);
        if let Some(refusal) = rules.policy.refuses_clock(&read, now()) {
            self.refusals.keep(&about, &refusal);
            return Err(Rejected::Refused(Box::new(refusal)));
        }
        match rules.policy.decide(authentic, &read, &facts) {
            Decision::Admit(admitted) => {
                let epoch = rules.epoch;
                let basis = Basis { epoch, size, facts, summary: read.summary, terms };
                Ok(Decided::Admitted(*admitted, basis))
            }
            Decision::Refuse(refusal) => {
                self.refusals.keep(&about, &refusal);
                Err(Rejected::Refused(Box::new(refusal)))
            }
        }
    }

    /// What a statement that comes now is judged by.
    fn door<'a>(&'a self, rules: &'a Rules, resolved: &'a Resolved) -> Door<'a> {
        let log = Some(self.identity.issuer.as_str());
        Door { rules: rules.version, log, trust: &rules.trust, resolved, now: now() }
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

    fn refuse_oversize(&self, bytes: &[u8]) -> Result<(), envelope::Error> {
        let (size, limit) = (bytes.len(), self.options.statement_bytes);
        if size > limit { Err(envelope::Error::TooLarge { size, limit }) } else { Ok(()) }
    }

    /// Refuses a record beyond the operator's limits. Only new statements are
    /// checked, never what is replayed: the settings are not on the log.
    fn refuse_over_limit(&self, record: &dyn Record) -> Result<(), Rejected> {
        for Size { what, setting, count: saw } in record.sizes() {
            let limit = self.options.record_limits.get(setting).copied().unwrap_or(usize::MAX);
            if saw > limit {
                return Err(Rejected::OverLimit { what, saw, limit, setting });
            }
        }
        Ok(())
    }

    fn refuse_read_only(&self) -> Result<(), Fault> {
        if self.options.read_only {
            return Err(Fault::ReadOnly { why: "it was started so" });
        }
        if self.damaged() {
            return Err(Fault::ReadOnly { why: "its store is damaged" });
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
