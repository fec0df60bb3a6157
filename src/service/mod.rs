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
use write::held::Held;

pub use clock::now;
pub use error::{Fault, Rejected};
pub use history::{facts, look_up_facts};
pub use maintain::anchors::anchors_used;
pub use maintain::backup::backup;
pub use maintain::fsck::{Checked, Finding, fsck, fsck_on};
pub use maintain::ledger::Wrong;
pub use maintain::publish::keep_publishing;
pub use maintain::replay::{Differs, Found, Replay, ReplayOptions, Replayed, replay};
pub use maintain::restore::{Note, Proof, RestoreOptions, Restored, Resumed, restore, resume};
pub use maintain::scrub::{Step, keep_scrubbing};
pub use open::{Options, init, init_guarded, init_on, name, open, open_on};
pub use read::catalog::{NOT_PROOF, reindex};
pub use read::proof::Whereabouts;
pub use read::reader::Reader;
#[cfg(feature = "cli")]
pub(crate) use read::telling::summary_json;
pub use write::control::{Error as ControlError, rotate};
pub use write::hold::Waiting;
pub use write::queue::{QueueLimits, Ticket};
pub use write::rate::{Buckets, Pace};
pub use write::refusals::{Refused, refusals};
pub use write::register::{Candidate, Entry, Prepared, Recognised, Registered};
pub use write::writer::{Error as CommitError, Writer};

/// A running log. Every request has it in an `Arc`; the writer, on a thread of
/// its own, has only `store`, `shared`, `guard` and `metrics`.
pub struct Service {
    // Constant while the log runs.
    identity: Identity,
    options: Options,
    checkpoint_key: SigningKey,
    resolver: Option<DidWebResolver>,

    // Synchronised inside.
    /// Everybody reads; the writer alone has the lease to commit.
    store: Arc<Store>,
    /// Stored by the writer, loaded by everybody.
    shared: Arc<Shared>,
    queue: write::queue::Queue,
    /// Written by whoever publishes, and by the writer if every batch is
    /// guarded.
    guard: Guard,
    issuer_rate: Buckets<write::charge::Payer>,
    refusals: write::refusals::Refusals,
    metrics: Metrics,

    /// Locked while the guard and the checkpoint are written, so that the
    /// checkpoint is never ahead of the guard.
    publishing: Mutex<()>,
    /// The size at which open items were counted last; the health route.
    counted: Mutex<Option<TreeSize>>,
    /// Locked while an issuer is charged.
    charging: Mutex<()>,
    /// Set and cleared by the publisher, which watches the disk.
    read_only: AtomicBool,
    /// Set and cleared by `reload`.
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
