//! The log at work: the journey of a statement, and the one writer at its
//! end.
//!
//! `write/` takes a statement from its bytes to its receipt; begin with
//! `write/register.rs`. `read/` answers from the last `Snapshot`, so reads never
//! wait for the writer. `maintain/` is for operators: publication, backup,
//! fsck, replay.

mod clock;
mod error;
mod history;
mod maintain;
mod open;
mod read;
#[cfg(test)]
pub(crate) mod tests;
mod write;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;

use crate::envelope::{RulesVersion, StatementId};
use crate::key::{PublicKey, SigningKey};
use crate::log::{Edge, LeafIndex, TreeSize};
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::receipt::SignedHead;
use crate::resolve::DidWebResolver;
use crate::store::{Guard, Store};
use crate::trust::TrustAnchors;
use crate::verify::Memo;
use write::pending::PendingTable;

pub use clock::now;
pub use error::{Fault, Rejected};
pub use history::{facts, look_up_facts};
pub use maintain::admission_replay::{AdmissionError, anchors_used};
pub use maintain::backup::backup;
pub use maintain::fsck::{Checked, Finding, fsck, fsck_on};
pub use maintain::publish::keep_publishing;
pub use maintain::replay::{ChangedDecision, LoggedEntry, Replay, ReplayOptions, Replayed, replay};
pub use maintain::restore::{Note, Proof, RestoreOptions, Restored, Resumed, restore, resume};
pub use maintain::scrub::{ScrubStep, keep_scrubbing};
pub use open::{Options, init, init_guarded, init_on, name, open, open_on};
pub use read::proof::EntryStatus;
pub use read::reader::Reader;
pub use read::search::reindex;
pub use read::views;
pub use write::committer::{QueueLimits, Ticket};
pub use write::control::{Error as ControlError, rotate};
pub use write::pending::Pending;
pub use write::rate::{Buckets, Pace};
pub use write::refusals::{Refused, refusals};
pub use write::register::{Candidate, Entry, Progress, Registered, Registration};
pub use write::writer::{Error as CommitError, Writer};

/// A running log, shared by all request tasks.
pub struct Service {
    // Fixed at start.
    identity: Identity,
    options: Options,
    checkpoint_key: SigningKey,
    resolver: Option<DidWebResolver>,
    metrics: Metrics,

    /// Read by everybody; the committer's thread alone has the lease to
    /// commit.
    store: Arc<Store>,
    /// Replaced by the committer's thread, read by everybody without locks.
    shared: Arc<Shared>,
    /// Owns the thread that owns the writer.
    committer: write::committer::Committer,

    /// Has a lock of its own. Written by the task that publishes, and by the
    /// committer's thread if every batch is guarded.
    guard: Guard,
    /// Locked by the task that publishes, so that the checkpoint is never ahead
    /// of the guard.
    publishing: Mutex<()>,
    /// The tree whose open items were counted last. Locked by the task that
    /// counts; others skip counting meanwhile.
    counted: Mutex<Option<TreeSize>>,
    /// Has a lock of its own.
    issuer_rate: Buckets<write::issuer_rate::RateKey>,
    /// Locked from charging an issuer until the statement is queued.
    charging: Mutex<()>,
    /// Has a lock of its own.
    refusals: write::refusals::Refusals,

    /// Set and cleared by the publishing task: the disk is nearly full.
    read_only: AtomicBool,
    /// Set and cleared by reload.
    reload_failed: AtomicBool,
    /// Set once, by the scrub.
    damaged: AtomicBool,
}

/// What a log calls itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    /// `iss` of its receipts and control statements.
    pub issuer: String,
    /// The origin line of its checkpoints: the issuer without its scheme.
    pub origin: String,
}

impl Identity {
    /// From the name an operator gives: a host name or a URI.
    pub fn from_name(name: &str) -> Self {
        let issuer = if name.contains(':') { name.to_owned() } else { format!("https://{name}") };
        let origin = issuer.split_once("://").map_or(issuer.as_str(), |(_, rest)| rest);
        Self { origin: origin.trim_end_matches('/').to_owned(), issuer }
    }
}

/// What the writer publishes. Each field is replaced as a whole, after the
/// commit it belongs to is durable; readers take no lock.
struct Shared {
    signer: ArcSwap<SigningKey>,
    snapshot: ArcSwap<Snapshot>,
    rules: ArcSwap<Rules>,
    keys: ArcSwap<Vec<PublicKey>>,
    /// Not the writer's: request tasks wait in it, the committer wakes them.
    pending: Arc<PendingTable>,
}

/// The last signed head, and the right edge of its tree.
pub struct Snapshot {
    signed: SignedHead,
    edge: Arc<Edge>,
    /// Knows that the head's signature verifies.
    memo: Memo,
}

impl Snapshot {
    /// The head with its signature.
    pub fn signed(&self) -> &SignedHead {
        &self.signed
    }
}

/// The rules, policy and trust in force, and where they stand on the log.
pub struct Rules {
    /// Counts the changes: a statement judged under other rules than those
    /// in force at its turn is judged again.
    epoch: u64,
    version: RulesVersion,
    policy: Policy,
    policy_entry: (LeafIndex, StatementId),
    trust: TrustAnchors,
    trust_text: String,
}

impl Rules {
    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The version of the built-in rules.
    pub fn version(&self) -> RulesVersion {
        self.version
    }

    /// Where it stands on the log.
    pub fn policy_entry(&self) -> (LeafIndex, StatementId) {
        self.policy_entry
    }
}
