//! The log at work: the journey of a statement, and the one writer at its
//! end.
//!
//! `register.rs` is the journey, read it first. `writer.rs` turns a batch of
//! admitted statements into one durable commit and one signature; `queue.rs`
//! runs it at its own pace. Everything a reader needs comes from the last
//! `Snapshot`, so reads never wait for the writer.

mod anchors;
mod backup;
mod bundle;
mod catalog;
mod charge;
mod clock;
mod control;
mod error;
mod facts;
mod fsck;
mod held;
mod hold;
mod ledger;
mod line;
mod lineage;
mod names;
mod open;
mod proof;
mod publish;
mod queue;
mod rate;
mod reader;
mod recent;
mod refusals;
mod register;
mod replay;
mod restore;
mod scrub;
mod telling;
#[cfg(test)]
pub(crate) mod tests;
mod waiting;
mod writer;

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
use crate::store::Store;
use crate::trust::TrustAnchors;
use crate::verify::Memo;
use held::Held;

pub use anchors::anchors_used;
pub use backup::backup;
pub use catalog::{NOT_PROOF, reindex};
pub use clock::now;
pub use control::{Error as ControlError, rotate};
pub use error::{Fault, Rejected};
pub use facts::facts;
pub use fsck::{Checked, Finding, fsck};
pub use hold::Waiting;
pub use ledger::Wrong;
pub use open::{Options, init, init_guarded, name, open};
pub use proof::Whereabouts;
pub use publish::keep_publishing;
pub use queue::{QueueLimits, Ticket};
pub use rate::{Buckets, Pace};
pub use reader::Reader;
pub use refusals::{Refused, refusals};
pub use register::{Candidate, Entry, Prepared, Recognised, Registered};
pub use replay::{Differs, Found, Replay, ReplayOptions, Replayed, replay};
pub use restore::{Note, Proof, RestoreOptions, Restored, Resumed, restore, resume};
pub use scrub::{Step, keep_scrubbing};
#[cfg(feature = "cli")]
pub(crate) use telling::summary_json;
pub use writer::{Error as CommitError, Writer};

/// A running log.
pub struct Service {
    identity: Identity,
    options: Options,
    store: Arc<Store>,
    shared: Arc<Shared>,
    queue: queue::Queue,
    checkpoint_key: SigningKey,
    /// Held while publishing: two at once would rename each other's files.
    publishing: Mutex<()>,
    /// The tree whose open items were counted last.
    counted: Mutex<Option<TreeSize>>,
    resolver: Option<DidWebResolver>,
    issuer_rate: Buckets<charge::Payer>,
    /// Held while an issuer is charged.
    charging: Mutex<()>,
    read_only: AtomicBool,
    reload_failed: AtomicBool,
    /// Set once, by the scrub.
    damaged: AtomicBool,
    refusals: refusals::Refusals,
    metrics: Metrics,
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

/// What the writer publishes to everybody else.
struct Shared {
    signer: ArcSwap<SigningKey>,
    snapshot: ArcSwap<Snapshot>,
    rules: ArcSwap<Rules>,
    keys: ArcSwap<Vec<PublicKey>>,
    held: Arc<Held>,
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

    /// The version of the rules at the door.
    pub fn version(&self) -> RulesVersion {
        self.version
    }

    /// Where it stands on the log.
    pub fn policy_entry(&self) -> (LeafIndex, StatementId) {
        self.policy_entry
    }
}
