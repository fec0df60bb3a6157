//! Statements by which the log governs itself: policy, trust, succession,
//! resumption.

use std::path::Path;
use std::sync::Arc;

use super::writer::{self, Change};
use crate::envelope::{
    self, AuthContext, Authentic, Draft, Resolved, RulesVersion, SignedStatement, seal_with_claims,
};
use crate::key::{self, SigningKey};
use crate::log::LeafIndex;
use crate::policy::{self, Policy};
use crate::profile::{Control, Resumption, Succession};
use crate::service::open::{guard_of, read_rule_files};
use crate::service::{Identity, Rules, Service, Writer, now};
use crate::store::{self, write_private};
use crate::trust::{self, TrustAnchors};
use crate::wire::time::UnixSeconds;

impl Writer {
    /// Puts a policy in force by logging it, with the current built-in rules.
    pub(in crate::service) fn set_policy(&mut self, policy: Policy) -> Result<(), Error> {
        let text = policy.text().to_owned();
        let statement = self.own_statement(Control::Policy, text.as_bytes())?;
        let entry = (LeafIndex::new(self.size().get()), statement.id());
        let old = self.shared.rules.load();
        let rules = Rules {
            epoch: old.epoch + 1,
            version: RulesVersion::CURRENT,
            policy,
            policy_entry: entry,
            trust: old.trust.clone(),
            trust_text: old.trust_text.clone(),
        };
        self.change(&statement, Control::Policy, Some(rules), None)
    }

    /// Puts trust anchors in force by logging them.
    pub(in crate::service) fn set_trust(
        &mut self,
        trust: TrustAnchors,
        text: &str,
    ) -> Result<(), Error> {
        let statement = self.own_statement(Control::Trust, text.as_bytes())?;
        let old = self.shared.rules.load();
        let rules = Rules {
            epoch: old.epoch + 1,
            version: old.version,
            policy: old.policy.clone(),
            policy_entry: old.policy_entry,
            trust,
            trust_text: text.to_owned(),
        };
        self.change(&statement, Control::Trust, Some(rules), None)
    }

    /// Replaces the service key: the old key signs a statement that names the
    /// new one, and the new one countersigns it.
    pub(in crate::service) fn succeed(&mut self, successor: SigningKey) -> Result<(), Error> {
        let payload = Succession::encode(self.key().public().id(), &successor)?;
        let statement = self.own_statement(Control::Succession, &payload)?;
        self.change(&statement, Control::Succession, None, Some(successor))
    }

    /// Logs why this log may be written to after a restore or a move.
    pub(in crate::service) fn resume(&mut self, resumption: &Resumption) -> Result<(), Error> {
        let statement = self.own_statement(Control::Resumption, &resumption.encode())?;
        self.change(&statement, Control::Resumption, None, None)
    }

    fn change(
        &mut self,
        statement: &Authentic,
        control: Control,
        rules: Option<Rules>,
        successor: Option<SigningKey>,
    ) -> Result<(), Error> {
        let change = Change { control, rules, successor };
        Ok(self.append_control(statement, change, now())?)
    }

    /// A statement of the log itself, authenticated like any other.
    fn own_statement(&self, control: Control, payload: &[u8]) -> Result<Authentic, Error> {
        own_statement(&self.identity, &self.key(), (control, payload), now())
    }
}

fn own_statement(
    identity: &Identity,
    key: &SigningKey,
    (control, payload): (Control, &[u8]),
    now: UnixSeconds,
) -> Result<Authentic, Error> {
    let draft = Draft {
        content_type: control.content_type(),
        issuer: &identity.issuer,
        subject: control.subject(),
        issued_at: Some(now),
        payload,
    };
    let claims = match control {
        Control::Policy => RulesVersion::CURRENT.claims(),
        Control::Resumption | Control::Succession | Control::Trust => &[],
    };
    let claims: Vec<_> = claims.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
    let statement = SignedStatement::parse(seal_with_claims(&draft, &claims, key)?)?;
    let trust = TrustAnchors::default().with_issuer(&identity.issuer, &[key.public().clone()]);
    let log = Some(identity.issuer.as_str());
    let resolved = Resolved::default();
    let authentic =
        statement.authenticate(&AuthContext { log, ..AuthContext::new(&trust, &resolved, now) })?;
    let (admitted, _) = Policy::own(authentic, &identity.issuer).ok_or(Error::NotOwn)?;
    Ok(admitted.into_statement())
}

/// Rotates the service key of a log that nobody else has open. The new key
/// is on disk before the log names it, so a crash leaves either key in force
/// and usable.
pub fn rotate(writer: &mut Writer, guard: Option<&Path>) -> Result<key::KeyId, Error> {
    let guard = guard_of(writer.store.dir(), guard);
    let successor = SigningKey::generate(writer.key().algorithm())?;
    let id = successor.public().id();
    let path = writer.store.dir().service_key_path(id);
    write_private(&path, successor.to_pem()?.as_bytes())?;
    writer.succeed(successor)?;
    guard.advance(&writer.head.head())?;
    Ok(id)
}

impl Service {
    /// Reads policy and trust files again, and logs what changed. A file
    /// that cannot be used changes nothing.
    pub async fn reload(self: &Arc<Self>) -> Result<Vec<&'static str>, Error> {
        let files = read_rule_files(&self.store);
        let outcome = match files {
            Ok((policy, trust, text)) => self.put_in_force(policy, trust, text).await,
            Err(error) => Err(error),
        };
        let failed = outcome.is_err();
        self.reload_failed.store(failed, std::sync::atomic::Ordering::Relaxed);
        self.metrics.reload_failed(failed);
        outcome
    }

    async fn put_in_force(
        self: &Arc<Self>,
        policy: Policy,
        trust: TrustAnchors,
        trust_text: String,
    ) -> Result<Vec<&'static str>, Error> {
        if self.damaged() {
            return Err(Error::Damaged);
        }
        let rules = self.rules();
        let mut changed = Vec::new();
        if trust_text != rules.trust_text {
            self.committer.with_writer(move |w| w.set_trust(trust, &trust_text)).await?;
            changed.push("trust");
        }
        if policy.text() != rules.policy.text() {
            self.committer.with_writer(move |w| w.set_policy(policy)).await?;
            changed.push("policy");
        }
        self.metrics.policy_in_force(&self.rules().policy.digest().to_string());
        Ok(changed)
    }
}

/// Why a control statement could not be logged, or the log not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The published checkpoint is not ours.
    #[error("the published checkpoint in the data directory is not one this log signed")]
    Checkpoint(#[from] crate::checkpoint::Error),
    /// The scrub found something.
    #[error("the store is damaged: nothing is written any more")]
    Damaged,
    /// A statement of our own did not authenticate.
    #[error("a statement of the log itself is not valid: {0}")]
    Envelope(#[from] envelope::Error),
    /// The first checkpoint could not be published.
    #[error("the checkpoint could not be published")]
    Publish(#[from] crate::service::Fault),
    /// A key could not be made or used.
    #[error("a service key cannot be used")]
    Key(#[from] key::Error),
    /// Not a control statement under our own name.
    #[error("not a control statement of this log")]
    NotOwn,
    /// The log names built-in rules that this program does not know.
    #[error("{0}")]
    Rules(#[source] envelope::Error),
    /// The policy file is invalid.
    #[error("policy.toml: {0}")]
    Policy(#[from] policy::Error),
    /// The did:web resolver cannot start.
    #[error("the did:web resolver cannot start")]
    Resolver(#[source] crate::resolve::Error),
    /// The writer has stopped.
    #[error("the log is shutting down")]
    ShuttingDown,
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] store::Error),
    /// The trust file cannot be used.
    #[error("trust.toml: {0}")]
    Trust(#[from] trust::Error),
    /// The commit failed.
    #[error("the commit failed")]
    Writer(#[from] writer::Error),
}
