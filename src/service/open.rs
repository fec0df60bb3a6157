//! Making a log, and opening one: the only ways to a `Service`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;

use super::write::committer::{Committer, QueueLimits};
use super::write::control;
use super::write::recent_commits::RecentCommits;
use super::write::refusals::Refusals;
use super::{Buckets, Identity, Rules, Service, Shared, Snapshot, Writer};
use crate::checkpoint::{SignedCheckpoint, VerifierKey};
use crate::config::Config;
use crate::envelope::{RulesVersion, SignedStatement, StatementId};
use crate::key::{Algorithm, SigningKey};
use crate::log::{Edge, LeafIndex};
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::profile::Control;
use crate::receipt::{Head, SignedHead};
use crate::resolve::{DidWebResolver, ResolveOptions};
use crate::store::{
    self, Backend, DataDir, Guard, HeadRecord, Store, read_private, write_private, write_public,
};
use crate::trust::TrustAnchors;
use crate::verify::Memo;
use crate::wire::time::UnixSeconds;

/// The settings that the service itself needs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The largest statement taken.
    pub statement_bytes: usize,
    /// Limits of what a record may hold, by the names of their settings.
    pub record_limits: BTreeMap<&'static str, usize>,
    /// Limits of the queue.
    pub queue: QueueLimits,
    /// The guard, unless it is beside the data directory.
    pub guard: Option<PathBuf>,
    /// Whether the guard is written with every batch.
    pub guard_every_batch: bool,
    /// Free bytes below which nothing is registered.
    pub min_free_bytes: u64,
    /// The did:web resolver, if allowed.
    pub did_web: Option<ResolveOptions>,
    /// Serve what is there, register nothing.
    pub read_only: bool,
}

impl Options {
    /// From all settings.
    pub fn from_config(config: &Config) -> Self {
        let milliseconds = std::time::Duration::from_millis;
        let did_web = config.did_web.enabled.then(|| ResolveOptions {
            timeout: milliseconds(config.did_web.timeout_ms),
            ttl: std::time::Duration::from_secs(config.did_web.cache_seconds),
            allow_private: config.did_web.allow_private,
            ..ResolveOptions::default()
        });
        Self {
            statement_bytes: config.limits.statement_bytes,
            record_limits: BTreeMap::from([
                ("pacr.predecessors", config.pacr.predecessors),
                ("pacr.payload_bytes", config.pacr.payload_bytes),
            ]),
            queue: QueueLimits {
                statements: config.queue.statements,
                bytes: config.queue.bytes,
                batch: config.queue.batch_max,
            },
            guard: config.guard.path.clone(),
            guard_every_batch: config.guard.every_batch,
            min_free_bytes: config.disk.min_free_bytes,
            did_web,
            read_only: false,
        }
    }
}

/// Makes a new log: keys, policy as entry 0, trust as entry 1.
pub fn init(
    path: &Path,
    name: &str,
    policy: &str,
    algorithm: Algorithm,
) -> Result<Identity, control::Error> {
    init_guarded(path, name, policy, algorithm, None)
}

/// The same with the guard elsewhere than beside the directory.
pub fn init_guarded(
    path: &Path,
    name: &str,
    policy: &str,
    algorithm: Algorithm,
    guard: Option<&Path>,
) -> Result<Identity, control::Error> {
    let policy = Policy::parse(policy)?;
    DataDir::check_free(path)?;
    let guard = guard.map_or_else(|| DataDir::guard_beside(path), Guard::at);
    if let Some(head) = guard.read()? {
        let (path, size) = (guard.path().to_owned(), head.size);
        return Err(store::Error::GuardLeft { path, size }.into());
    }
    init_on(Backend::create(path)?, name, policy, algorithm, &guard)
}

/// Makes a new log on an empty backend. The guard is written before the log is
/// complete, so a log without one was copied or moved.
pub fn init_on(
    backend: Backend,
    name: &str,
    policy: Policy,
    algorithm: Algorithm,
    guard: &Guard,
) -> Result<Identity, control::Error> {
    let identity = Identity::from_name(name);
    let dir = &backend.dir;
    let key = SigningKey::generate(algorithm)?;
    write_private(&dir.service_key_path(key.public().id()), key.to_pem()?.as_bytes())?;
    let checkpoint = SigningKey::generate(Algorithm::EdDsa)?;
    write_private(&dir.checkpoint_key_path(), checkpoint.to_pem()?.as_bytes())?;
    write_public(&dir.policy_path(), policy.text().as_bytes())?;
    write_public(&dir.trust_path(), FIRST_TRUST.as_bytes())?;
    write_public(&dir.config_path(), crate::config::default_file().as_bytes())?;
    write_public(&dir.path().join("name"), identity.issuer.as_bytes())?;
    let store = Arc::new(Store::create(backend)?);
    let head = HeadRecord::empty();
    let shared = Arc::new(Shared {
        snapshot: ArcSwap::from_pointee(Snapshot {
            signed: SignedHead::sign(head.head(), &identity.issuer, &key)?,
            edge: Arc::new(Edge::empty()),
            memo: Memo::default(),
        }),
        rules: ArcSwap::from_pointee(Rules {
            epoch: 0,
            version: RulesVersion::CURRENT,
            policy: policy.clone(),
            policy_entry: (LeafIndex::new(0), StatementId::of_canonical(b"")),
            trust: TrustAnchors::default(),
            trust_text: String::new(),
        }),
        keys: ArcSwap::from_pointee(vec![key.public().clone()]),
        signer: ArcSwap::from_pointee(key),
        pending: Arc::default(),
    });
    let mut writer = Writer {
        identity: identity.clone(),
        lease: store.take_over()?,
        store,
        shared,
        recent: RecentCommits::new(head.size()),
        head,
        edge: Arc::new(Edge::empty()),
        guard: None,
        _guard_lock: None,
    };
    writer.set_policy(policy)?;
    writer.set_trust(TrustAnchors::parse(FIRST_TRUST)?, FIRST_TRUST)?;
    guard.advance(&writer.head.head())?;
    writer.store.dir().write_format()?;
    Ok(identity)
}

/// The trust file of a new log: it trusts no issuer.
const FIRST_TRUST: &str = "\
# Whom this log believes. Keys and certificates stand in this file, because
# the file itself is registered on the log whenever it changes.
#
# [[issuer]]
# name = \"https://agents.example\"          # iss of the statements
# keys = [\"\"\"-----BEGIN PUBLIC KEY----- ...\"\"\"]
# from = 2026-01-01T00:00:00Z              # optional, like until
#
# [[anchor]]                               # for statements with x5chain
# name = \"Example root\"
# certificate = \"\"\"-----BEGIN CERTIFICATE----- ...\"\"\"
# eku = \"1.3.6.1.5.5.7.3.3\"                # optional, demanded of the leaf
# spiffe = [\"prod.example\"]               # whom it may speak for: trust domains,
# dns = [\"*.agents.example\"]              # hosts, * for one label or more,
# uri = [\"urn:example:agent:*\"]           # URIs; one of these is needed,
# did_x509 = true                          # or this, for did:x509 names
";

impl Writer {
    /// Opens a log for one process. Whatever was signed before must be a
    /// prefix of what is found, or nothing is opened.
    pub fn open(
        path: &Path,
        guard: Option<&Path>,
        read_only: bool,
    ) -> Result<Self, control::Error> {
        let backend = Backend::open(path)?;
        let guard = guard_of(&backend.dir, guard);
        Self::open_on(backend, &guard, read_only)
    }

    pub(super) fn open_on(
        backend: Backend,
        guard: &Guard,
        read_only: bool,
    ) -> Result<Self, control::Error> {
        let identity = identity_of(backend.dir.path())?;
        let (mut store, head, edge) = Store::open(backend)?;
        let lease = store.take_over()?;
        store.filter_ids(&edge)?;
        let mut held = None;
        if !read_only {
            held = guard.lock()?;
            check_known_heads(&store, &head, &edge, guard, &identity)?;
        }
        let edge = Arc::new(edge);
        let keys = store.keys()?;
        let active = keys.first().ok_or(store::Error::KeysUnreadable)?;
        let pem = read_private(&store.dir().service_key_path(active.id()))?;
        let key = SigningKey::from_pem(&pem)?;
        let shared = Arc::new(Shared {
            snapshot: ArcSwap::from_pointee(Snapshot {
                signed: SignedHead::sign(head.head(), &identity.issuer, &key)?,
                edge: edge.clone(),
                memo: Memo::default(),
            }),
            rules: ArcSwap::from_pointee(rules_in_force(&store)?),
            keys: ArcSwap::from_pointee(keys),
            signer: ArcSwap::from_pointee(key),
            pending: Arc::default(),
        });
        let recent = RecentCommits::new(head.size());
        Ok(Self {
            identity,
            lease,
            store: Arc::new(store),
            shared,
            head,
            edge,
            recent,
            guard: None,
            _guard_lock: held,
        })
    }
}

/// What the log in a data directory calls itself.
pub(super) fn identity_of(path: &Path) -> Result<Identity, control::Error> {
    let name = path.join("name");
    let issuer = std::fs::read_to_string(&name);
    let issuer = issuer.map_err(|source| store::Error::Io { path: name, source })?;
    Ok(Identity::from_name(&issuer))
}

/// The name of the log in a data directory.
pub fn name(path: &Path) -> Result<String, control::Error> {
    Ok(identity_of(path)?.issuer)
}

/// Compares the store with the guard and the last published checkpoint. A
/// copy, and a log without a guard, may be outdated: neither writes until
/// `resume` has compared it with a head known elsewhere.
fn check_known_heads(
    store: &Store,
    head: &HeadRecord,
    edge: &Edge,
    guard: &Guard,
    identity: &Identity,
) -> Result<(), control::Error> {
    let guarded = guard.read()?;
    if let Some(known) = &guarded {
        store.check_extends(head, edge, known, "guard")?;
    }
    check_published(store, head, edge, identity)?;
    let size = head.size();
    if store.dir().is_copy()? {
        return Err(store::Error::Unproven { size, compared: String::new() }.into());
    }
    if guarded.is_none() {
        return Err(store::Error::GuardMissing { path: guard.path().to_owned(), size }.into());
    }
    Ok(())
}

/// The published checkpoint in the data directory, if there is one, must be of
/// this tree.
pub(super) fn check_published(
    store: &Store,
    head: &HeadRecord,
    edge: &Edge,
    identity: &Identity,
) -> Result<(), control::Error> {
    let Some(note) = store.checkpoint()? else { return Ok(()) };
    let known = published_head(&note, &checkpoint_verifier(store.dir(), identity)?)?;
    Ok(store.check_extends(head, edge, &known, "published checkpoint")?)
}

/// The head in a checkpoint, if the key signed it.
pub(super) fn published_head(note: &str, key: &VerifierKey) -> Result<Head, control::Error> {
    let published = SignedCheckpoint::parse(note)?.verify(key)?;
    Ok(Head { size: published.size, root: published.root, time: UnixSeconds::default() })
}

/// The key that verifies checkpoints; a copy has only the public one.
pub(super) fn checkpoint_verifier(
    dir: &DataDir,
    identity: &Identity,
) -> Result<VerifierKey, control::Error> {
    let path = dir.path().join(store::CHECKPOINT_PUB);
    if dir.checkpoint_key_path().exists() || !path.exists() {
        return Ok(VerifierKey::new(&identity.origin, checkpoint_key(dir)?.public())?);
    }
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|source| store::Error::Io { path, source })?;
    Ok(VerifierKey::parse(text.trim())?)
}

/// The guard at a path that the settings name, or beside the data directory.
pub(super) fn guard_of(dir: &DataDir, path: Option<&Path>) -> Guard {
    Guard::at(path.unwrap_or(&dir.guard_path()))
}

pub(super) fn checkpoint_key(dir: &DataDir) -> Result<SigningKey, control::Error> {
    let pem = read_private(&dir.checkpoint_key_path())?;
    Ok(SigningKey::from_pem(&pem)?)
}

/// The policy and the trust that the files in the data directory ask for.
pub(super) fn read_rule_files(
    store: &Store,
) -> Result<(Policy, TrustAnchors, String), control::Error> {
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).map_err(|source| store::Error::Io { path, source })
    };
    let policy = Policy::parse(&read(store.dir().policy_path())?)?;
    let text = read(store.dir().trust_path())?;
    let trust = TrustAnchors::parse(&text)?;
    Ok((policy, trust, text))
}

/// The rules most recently committed to the log are the ones in force
/// (RFC 9943, 5.1.1.1), whatever the files say.
fn rules_in_force(store: &Store) -> Result<Rules, control::Error> {
    let (policy_index, policy_statement) = control_statement(store, Control::Policy)?;
    let (_, trust_statement) = control_statement(store, Control::Trust)?;
    let text =
        |s: &SignedStatement| String::from_utf8_lossy(s.payload().unwrap_or_default()).into_owned();
    let trust_text = text(&trust_statement);
    Ok(Rules {
        epoch: 0,
        version: RulesVersion::of_policy(policy_statement.header())
            .map_err(control::Error::Rules)?,
        policy: Policy::parse(&text(&policy_statement))?,
        policy_entry: (policy_index, StatementId::of(&policy_statement)),
        trust: TrustAnchors::parse_any(&trust_text)?,
        trust_text,
    })
}

fn control_statement(
    store: &Store,
    control: Control,
) -> Result<(LeafIndex, SignedStatement), control::Error> {
    let index = store.control(control)?.ok_or(store::Error::HeadUnreadable)?;
    let stored = store.statement(index)?.ok_or(store::Error::StatementMissing { index })?;
    Ok((index, SignedStatement::parse_any_size(stored.canonical)?))
}

/// Opens a log for serving. Changed policy and trust files and the current
/// built-in rules are logged first, then the committer starts.
pub fn open(
    path: &Path,
    options: Options,
    metrics: Metrics,
) -> Result<Arc<Service>, control::Error> {
    open_on(Backend::open(path)?, options, metrics)
}

/// The same on any backend.
pub fn open_on(
    backend: Backend,
    options: Options,
    metrics: Metrics,
) -> Result<Arc<Service>, control::Error> {
    let guard = guard_of(&backend.dir, options.guard.as_deref());
    let mut writer = Writer::open_on(backend, &guard, options.read_only)?;
    if options.guard_every_batch {
        writer.guard = Some(guard.clone());
    }
    if !options.read_only {
        let (policy, trust, text) = read_rule_files(&writer.store)?;
        if text != writer.shared.rules.load().trust_text {
            writer.set_trust(trust, &text)?;
        }
        let rules = writer.shared.rules.load_full();
        if rules.version < RulesVersion::CURRENT {
            let (from, to) = (rules.version.number(), RulesVersion::CURRENT.number());
            tracing::info!(
                from,
                to,
                "the built-in rules get a new version, logged with the policy"
            );
        }
        if rules.version < RulesVersion::CURRENT || policy.text() != rules.policy.text() {
            writer.set_policy(policy)?;
        }
    }
    metrics.opened(writer.size().get());
    metrics.policy_in_force(&writer.shared.rules.load().policy.digest().to_string());
    let resolver = options.did_web.clone().map(DidWebResolver::new).transpose();
    let service = Arc::new(Service {
        identity: writer.identity.clone(),
        store: writer.store.clone(),
        shared: writer.shared.clone(),
        checkpoint_key: checkpoint_key(writer.store.dir())?,
        resolver: resolver.map_err(control::Error::Resolver)?,
        guard,
        publishing: std::sync::Mutex::new(()),
        counted: std::sync::Mutex::new(None),
        issuer_rate: Buckets::new(),
        charging: std::sync::Mutex::new(()),
        read_only: AtomicBool::new(false),
        reload_failed: AtomicBool::new(false),
        damaged: AtomicBool::new(false),
        refusals: Refusals::new(writer.store.dir().path()),
        committer: Committer::start(writer, options.queue, metrics.clone()),
        options,
        metrics,
    });
    // From the first request on there is a checkpoint that covers the log.
    if !service.options.read_only {
        service.scrub_saved_position();
        service.publish()?;
    }
    Ok(service)
}
