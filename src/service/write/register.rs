//! The registration of a statement, step by step. Read this first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::commit_queue::Announcement;
use super::committer::{Basis, Placement, Ticket};
use super::pending::{Pending, PendingSlot};
use super::refusals::About;
use crate::envelope::{
    self, AuthContext, Authentic, Binding, Issuer, Resolved, RulesVersion, SignedStatement,
    StatementId,
};
use crate::log::{LeafIndex, TreeSize};
use crate::policy::Decision;
use crate::profile::{self, Read, Record, Size};
use crate::receipt::Receipt;
use crate::service::{Fault, Rejected, Rules, Service, Snapshot, history, now};
use crate::store::{Term, Terms, fact_terms};
use crate::wire::digest::Digest;

/// A statement with its place in the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The statement id.
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

/// How far a registration has come. Each state carries what its next step
/// needs, so no step can be left out.
pub enum Progress {
    /// Authentic, new and read; the policy has not decided.
    Undecided(Box<Candidate>),
    /// Waits for records it refers to.
    Pending(Box<Pending>),
    /// The same statement was sent before and is pending.
    AlreadyPending(StatementId),
    /// Admitted by the policy; waits for its commit.
    Queued(Ticket),
    /// In the log, with its receipt.
    Registered(Box<Registered>),
}

/// What a client can be told at its deadline.
pub enum Registration {
    /// Here is the receipt.
    Complete(Box<Registered>),
    /// The commit was not done in time.
    Queued(StatementId),
    /// It waits for records it refers to.
    Pending(StatementId),
}

/// An authentic statement that was read and not yet decided about.
pub struct Candidate {
    /// Those it was authenticated under, which must also decide.
    rules: Arc<Rules>,
    authentic: Authentic,
    /// The size of the log before the first look into it. Whatever is logged
    /// from there on may change the decision; the committer checks that.
    size: TreeSize,
    read: Read,
    terms: Terms,
    /// It was admitted before, and its issuer was charged for it then.
    is_charged: bool,
    /// Tells the committer that a statement may come soon.
    announcement: Option<Announcement>,
}

impl Candidate {
    /// The terms under which earlier statements can change the decision
    /// about this one.
    pub fn depends_on(&self) -> impl Iterator<Item = Term> + '_ {
        fact_terms(&self.authentic.issuer().name, &self.read.summary)
    }

    /// The terms under which this one can change the decision about later
    /// statements.
    pub fn affects(&self) -> impl Iterator<Item = &Term> {
        self.terms.affecting()
    }
}

impl Service {
    /// Takes a statement all the way to its receipt.
    pub async fn register(&self, bytes: Vec<u8>) -> Result<Registered, Rejected> {
        let progress = self.recognise(bytes).await?;
        self.finish(progress).await
    }

    /// Parses and authenticates a statement, looks whether it is logged, and
    /// reads it if it is new.
    pub async fn recognise(&self, bytes: Vec<u8>) -> Result<Progress, Rejected> {
        self.refuse_read_only()?;
        self.refuse_oversize(&bytes)?;
        let statement = SignedStatement::parse(bytes)?;
        let resolved = self.resolve(&statement).await?;
        let announcement = self.committer.announce();
        let rules = self.shared.rules.load_full();
        let context = self.context(&rules, &resolved);
        match statement.authenticate_or_keep(&context) {
            Ok(authentic) => self.compare_with_log(rules, authentic, false, announcement),
            Err(refused) => match self.logged_by_older_rules(&refused.statement, &context)? {
                Some(entry) => Ok(self.known(entry)?),
                None => {
                    self.refusals.keep_unproven(&refused);
                    Err(refused.error.into())
                }
            },
        }
    }

    /// Takes a registration to its end. A decision that no longer holds when
    /// its turn to be committed comes, because the rules or the log changed
    /// meanwhile, is made again.
    pub async fn finish(&self, mut progress: Progress) -> Result<Registered, Rejected> {
        loop {
            progress = match progress {
                Progress::Undecided(candidate) => self.decide(*candidate, None)?,
                Progress::Pending(pending) => self.wait_for_records(*pending).await?,
                Progress::Queued(ticket) => self.wait_for_commit(ticket).await?,
                Progress::Registered(registered) => return Ok(*registered),
                Progress::AlreadyPending(_) => {
                    return Err(Fault::Busy { waiting: self.shared.pending.len() }.into());
                }
            }
        }
    }

    /// Takes a registration as far as it comes before the deadline. What is
    /// not complete by then continues in the background.
    pub async fn finish_within(
        self: &Arc<Self>,
        progress: Progress,
        deadline: Duration,
    ) -> Result<Registration, Rejected> {
        let progress = self.decided(progress)?;
        let id = match &progress {
            Progress::AlreadyPending(id) => return Ok(Registration::Pending(*id)),
            Progress::Pending(pending) => pending.id(),
            Progress::Queued(ticket) => ticket.id(),
            Progress::Undecided(_) | Progress::Registered(_) => {
                let registered = self.finish(progress).await?;
                return Ok(Registration::Complete(Box::new(registered)));
            }
        };
        let is_pending = matches!(progress, Progress::Pending(_));
        let service = self.clone();
        let mut registration = Box::pin(async move { service.finish(progress).await });
        if !is_pending && let Ok(done) = tokio::time::timeout(deadline, &mut registration).await {
            return done.map(|registered| Registration::Complete(Box::new(registered)));
        }
        tokio::spawn(async move {
            if let Err(rejected) = registration.await {
                let reason = rejected.to_string();
                tracing::warn!(%id, code = rejected.code(), reason, "accepted, then not registered");
            }
        });
        Ok(if is_pending { Registration::Pending(id) } else { Registration::Queued(id) })
    }

    /// Decides and queues, unless that has been done.
    pub fn decided(&self, progress: Progress) -> Result<Progress, Rejected> {
        match progress {
            Progress::Undecided(candidate) => self.decide(*candidate, None),
            decided => Ok(decided),
        }
    }

    /// Looks for an authentic statement in the log; what is not there is read.
    /// Only after authentication, so that nobody collects a receipt with a
    /// signature that does not verify.
    fn compare_with_log(
        &self,
        rules: Arc<Rules>,
        authentic: Authentic,
        is_charged: bool,
        announcement: Announcement,
    ) -> Result<Progress, Rejected> {
        let size = self.head().size;
        if let Some(entry) = self.logged(&authentic)? {
            self.refund(authentic.issuer(), is_charged);
            return Ok(self.known(entry)?);
        }
        // A twin that is still in the queue is found by the writer.
        if let Some(id) = authentic.twin()
            && let Some(index) = self.store.find(&id).map_err(Fault::from)?
        {
            self.refund(authentic.issuer(), is_charged);
            return Err(Rejected::Twin { entry: Entry { id, index } });
        }
        if !is_charged {
            self.refuse_too_often(&rules, &authentic)?;
        }
        let read = profile::read(&authentic);
        self.refuse_over_limit(read.record.as_ref())?;
        let terms = Terms::of(authentic.statement().header(), &read);
        let announcement = Some(announcement);
        let candidate = Candidate { rules, authentic, size, read, terms, is_charged, announcement };
        Ok(Progress::Undecided(Box::new(candidate)))
    }

    /// Looks up what the statement refers to, lets the policy decide, and
    /// queues what it admits. A statement that is pending keeps its slot until
    /// it is in the queue: a client that asks for it must always find it.
    fn decide(
        &self,
        mut candidate: Candidate,
        slot: Option<PendingSlot>,
    ) -> Result<Progress, Rejected> {
        let Candidate { rules, authentic, read, .. } = &candidate;
        let (id, issuer) = (authentic.id(), &authentic.issuer().name);
        let rules_version = authentic.rules();
        let facts = history::look_up_facts(&self.store, issuer, &read.summary, &id, rules_version);
        let facts = facts.map_err(Fault::from)?;
        let mut slot = slot;
        if let Some(limits) = rules.policy.may_wait(authentic, read, &facts) {
            let is_new = slot.is_none();
            let pending = slot.take().or_else(|| self.shared.pending.acquire(id, limits));
            self.metrics.held(self.shared.pending.len());
            match pending {
                Some(slot) if slot.until > tokio::time::Instant::now() => {
                    candidate.announcement = None;
                    return Ok(Progress::Pending(Box::new(Pending { candidate, slot })));
                }
                None if is_new && self.shared.pending.contains(&id) => {
                    return Ok(Progress::AlreadyPending(id));
                }
                // There is no room, or it has waited long enough: the policy
                // decides without what is missing.
                expired => slot = expired,
            }
        }
        let Candidate { rules, authentic, size, read, terms, is_charged, announcement } = candidate;
        let terms = match (&read.summary.session, facts.session) {
            (Some(span), Some(continuity)) => match continuity.head_after(span) {
                Some(head) => {
                    terms.ending(Term::session(&authentic.issuer().name, &span.session), &head)
                }
                None => terms,
            },
            _ => terms,
        };
        let about = About::of(&authentic);
        let decision = match rules.policy.refuses_clock(&read, now()) {
            Some(refusal) => Decision::Refuse(refusal),
            None => rules.policy.decide(authentic, &read, &facts),
        };
        let admitted = match decision {
            Decision::Admit(admitted) => *admitted,
            Decision::Refuse(refusal) => {
                self.refusals.keep(&about, &refusal);
                return Err(Rejected::Refused(Box::new(refusal)));
            }
        };
        let basis = Basis { epoch: rules.epoch, size, facts, summary: read.summary, terms };
        let ticket = self.charge_and_queue(admitted, basis, is_charged)?;
        drop((slot, announcement));
        Ok(Progress::Queued(ticket))
    }

    /// Decides again, then waits until something that matters is logged, or
    /// for as long as the policy allows.
    async fn wait_for_records(&self, pending: Pending) -> Result<Progress, Rejected> {
        let logged = self.shared.pending.subscribe(pending.candidate.depends_on());
        let decided = self.decide(pending.candidate, Some(pending.slot));
        self.metrics.held(self.shared.pending.len());
        if let Ok(Progress::Pending(pending)) = &decided {
            let _timed_out = tokio::time::timeout_at(pending.slot.until, logged.notified()).await;
        }
        decided
    }

    /// Waits for the commit that covers the statement; then its receipt.
    async fn wait_for_commit(&self, ticket: Ticket) -> Result<Progress, Rejected> {
        let Ticket { admitted, is_charged, placement } = ticket;
        let statement = admitted.statement();
        let id = statement.id();
        match placement.await.map_err(|_| Fault::ShuttingDown)? {
            Placement::Appended { index, path, snapshot } => {
                let entry = Entry { id, index };
                let receipt = self.release(&snapshot, &entry, &path, statement.canonical())?;
                let registered = Registered { entry, receipt, known: false };
                Ok(Progress::Registered(Box::new(registered)))
            }
            Placement::Known(index) => {
                self.refund(statement.issuer(), is_charged);
                Ok(self.known(Entry { id, index })?)
            }
            Placement::Twin(entry) => {
                self.refund(statement.issuer(), is_charged);
                Err(Rejected::Twin { entry })
            }
            Placement::Outdated => {
                let announcement = self.committer.announce();
                let rules = self.shared.rules.load_full();
                let resolved = resolved_before(statement.issuer());
                let again = statement.statement().clone();
                let authentic = again.authenticate(&self.context(&rules, &resolved))?;
                self.compare_with_log(rules, authentic, is_charged, announcement)
            }
        }
    }

    fn known(&self, entry: Entry) -> Result<Progress, Fault> {
        Ok(Progress::Registered(Box::new(self.again(entry)?)))
    }

    /// A fresh receipt, at the newest head, for a statement that is logged.
    pub fn again(&self, entry: Entry) -> Result<Registered, Fault> {
        let receipt = self.receipt(&entry)?;
        Ok(Registered { entry, receipt, known: true })
    }

    /// Makes a receipt and verifies it before it leaves.
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

    /// Where a statement is logged that today's rules would refuse. What was
    /// logged once always gets its receipt.
    fn logged_by_older_rules(
        &self,
        statement: &SignedStatement,
        context: &AuthContext<'_>,
    ) -> Result<Option<Entry>, Fault> {
        if self.store.find(&StatementId::of(statement))?.is_none() {
            return Ok(None);
        }
        let older = AuthContext { rules: RulesVersion::V1, ..*context };
        match statement.clone().authenticate(&older) {
            Ok(authentic) => self.logged(&authentic),
            Err(_) => Ok(None),
        }
    }

    /// Where a statement is logged. An index beyond the signed head is on disk
    /// and not yet signed; the writer, which is about to sign it, answers for
    /// that one.
    fn logged(&self, authentic: &Authentic) -> Result<Option<Entry>, Fault> {
        let index = self.store.find(&authentic.id())?;
        let index = index.filter(|index| self.head().size.contains(*index));
        Ok(index.map(|index| Entry { id: authentic.id(), index }))
    }

    /// What a statement that arrives now is authenticated by.
    fn context<'a>(&'a self, rules: &'a Rules, resolved: &'a Resolved) -> AuthContext<'a> {
        let log = Some(self.identity.issuer.as_str());
        AuthContext { rules: rules.version, log, trust: &rules.trust, resolved, now: now() }
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

    /// Refuses a record beyond the operator's limits. These are settings and
    /// not on the log, so replay does not check them.
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

/// What the resolver found for a statement that is authenticated again. Every
/// other kind of binding is established anew: one kind must not pass for
/// another.
fn resolved_before(issuer: &Issuer) -> Resolved {
    let keys = (issuer.binding == Binding::DidWeb).then(|| issuer.key.clone());
    Resolved { keys: keys.into_iter().collect() }
}
