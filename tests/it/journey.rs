//! A statement's whole way through a log, without HTTP: what clients may
//! rely on, checked by our verifier and by two of other makers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan::config::Config;
use capstan::envelope::{Draft, seal};
use capstan::key::{Algorithm, PublicKey, SigningKey};
use capstan::log::{LeafIndex, TreeSize};
use capstan::metrics::Metrics;
use capstan::service::{self, ControlError, EntryStatus, Options, Rejected, Service, Writer};
use capstan::trust::{TrustAnchors, TrustedLog};
use capstan::verify::{Demand, Evidence, Outcome, Report, verify};
use capstan::wire::digest::Digest;
use capstan::wire::text;
use tempfile::TempDir;

const OPEN: &str = include_str!("../../policy/open.toml");
const ISSUERS: &str = include_str!("../../policy/issuers.toml");
const NAME: &str = "https://log.example";

struct Log {
    outside: TempDir,
    service: Arc<Service>,
}

impl Log {
    fn new(policy: &str, algorithm: Algorithm) -> Self {
        let outside = tempfile::tempdir().unwrap();
        let path = outside.path().join("data");
        service::init(&path, NAME, policy, algorithm).unwrap();
        let service = start(&path).unwrap();
        Self { outside, service }
    }

    fn open() -> Self {
        Self::new(OPEN, Algorithm::Es256)
    }

    fn path(&self) -> PathBuf {
        self.outside.path().join("data")
    }

    fn size(&self) -> u64 {
        self.service.head().size.get()
    }

    /// Ends the process, as far as the log can tell.
    fn stop(self) -> TempDir {
        self.service.shut_down().unwrap();
        assert_eq!(Arc::strong_count(&self.service), 1);
        self.outside
    }

    /// Believes this log's keys, past and present.
    fn trust(&self) -> TrustAnchors {
        believe(&self.service.keys())
    }
}

fn believe(keys: &[PublicKey]) -> TrustAnchors {
    let checkpoint = None;
    TrustAnchors::default().with_log(TrustedLog {
        name: NAME.to_owned(),
        keys: keys.to_vec(),
        checkpoint,
    })
}

fn start(path: &Path) -> Result<Arc<Service>, ControlError> {
    let options = Options { min_free_bytes: 0, ..Options::from_config(&Config::default()) };
    service::open(path, options, Metrics::new("test"))
}

fn draft(payload: &str) -> Draft<'_> {
    Draft {
        content_type: "text/plain",
        issuer: "https://agent.example",
        subject: "urn:example:run:1",
        issued_at: None,
        payload: payload.as_bytes(),
    }
}

fn statement(payload: &str) -> Vec<u8> {
    seal(&draft(payload), &SigningKey::generate(Algorithm::Es256).unwrap()).unwrap()
}

fn check(bytes: &[u8], trust: &TrustAnchors, statement: Option<&[u8]>) -> Report {
    let now = service::now();
    // The issuers of these tests bring their own keys.
    let demand = Demand { allow_self_certified: true, ..Demand::default() };
    verify(bytes, &Evidence { statement, demand: &demand, ..Evidence::new(trust, now) })
}

fn der(key: &PublicKey) -> Vec<u8> {
    let pem = key.to_pem().unwrap();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    text::from_base64(&body).unwrap()
}

#[tokio::test]
async fn a_receipt_that_every_verifier_takes() {
    for algorithm in [Algorithm::Es256, Algorithm::EdDsa] {
        let log = Log::new(OPEN, algorithm);
        for n in 0..5 {
            let bytes = statement(&format!("{n}"));
            let registered = log.service.register(bytes.clone()).await.unwrap();
            assert_eq!(registered.entry.index.get(), 2 + n);
            assert_eq!(registered.entry.id.to_string(), Digest::of(&bytes).to_string());
            let report = check(&registered.receipt, &log.trust(), Some(&bytes));
            assert_eq!(report.verdict(), Outcome::Yes, "{report:?}");
            foreign_verifiers_agree(&registered.receipt, &bytes, &log.service.keys()[0]);
        }
    }
}

fn foreign_verifiers_agree(receipt: &[u8], statement: &[u8], key: &PublicKey) {
    let entry = Digest::of(statement);
    let pem = key.to_pem().unwrap();
    let found = scitt_cose_receipt::verify_receipt(receipt, entry.as_bytes(), &pem);
    assert!(found.ok, "{:?}", found.errors);
    let other = scitt_cose_receipt::verify_receipt(receipt, Digest::of(b"").as_bytes(), &pem);
    assert!(!other.ok, "it does not say yes to everything");
    use agent_action_capsule::witness::{check_anchor_receipt, verify_scrapi_receipt};
    let found = verify_scrapi_receipt(receipt, statement, Some(&der(key)));
    assert!(found.ok, "{}", found.reason);
    assert!(found.registration_time.is_some());
    assert!(!verify_scrapi_receipt(receipt, b"other", Some(&der(key))).ok);
    let keys = [text::hex(&der(key))];
    let policy = serde_json::json!({"witnesses": [{"name": "log", "keys": keys}]});
    let found = check_anchor_receipt(&entry.to_string(), receipt, &policy);
    assert_eq!(found.status, "PASS");
}

#[tokio::test]
async fn a_transparent_statement_stands_alone() {
    let log = Log::open();
    let bytes = statement("x");
    let registered = log.service.register(bytes.clone()).await.unwrap();
    let transparent = log.service.transparent_statement(&registered.entry).unwrap();
    let report = check(&transparent, &log.trust(), None);
    assert_eq!((report.artefact, report.verdict()), ("transparent statement", Outcome::Yes));
    // Registered again with its receipt attached, it is the same statement.
    let again = log.service.register(transparent).await.unwrap();
    assert!(again.known);
    assert_eq!(again.entry, registered.entry);
    assert_eq!(log.size(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_copies_at_once_are_one_leaf() {
    let log = Log::open();
    let bytes = statement("x");
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let (service, bytes) = (log.service.clone(), bytes.clone());
            tokio::spawn(async move { service.register(bytes).await })
        })
        .collect();
    let trust = log.trust();
    let mut fresh = 0;
    for task in tasks {
        let registered = task.await.unwrap().unwrap();
        assert_eq!(registered.entry.index.get(), 2);
        assert_eq!(registered.entry.id.entry(), &Digest::of(&bytes));
        let report = check(&registered.receipt, &trust, Some(&bytes));
        assert_eq!(report.verdict(), Outcome::Yes);
        fresh += u32::from(!registered.known);
    }
    assert_eq!((log.size(), fresh), (3, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_get_a_leaf_each() {
    let log = Log::open();
    let statements: Vec<_> = (0..300).map(|n| statement(&n.to_string())).collect();
    let tasks: Vec<_> = statements
        .iter()
        .map(|bytes| {
            let (service, bytes) = (log.service.clone(), bytes.clone());
            tokio::spawn(async move { service.register(bytes).await })
        })
        .collect();
    let trust = log.trust();
    let mut indices = Vec::new();
    for (task, bytes) in tasks.into_iter().zip(&statements) {
        let registered = task.await.unwrap().unwrap();
        let report = check(&registered.receipt, &trust, Some(bytes));
        assert_eq!(report.verdict(), Outcome::Yes);
        indices.push(registered.entry.index.get());
    }
    indices.sort_unstable();
    assert_eq!(indices, (2..302).collect::<Vec<_>>());
}

/// (what, bytes, code) of statements no log takes.
fn bad_statements() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let good = statement("x");
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let large = "x".repeat(61_440);
    vec![
        ("nothing", Vec::new(), "not-sign1"),
        ("text", b"hello".to_vec(), "not-sign1"),
        ("untagged", good[1..].to_vec(), "not-sign1"),
        ("another tag", with(&|b| b[0] = 0xd1), "wrong-tag"),
        ("cut", with(&|b| b.truncate(100)), "cbor-unexpected-end"),
        ("trailing", with(&|b| b.push(0)), "cbor-trailing-bytes"),
        ("forged", with(&|b| *b.last_mut().unwrap() ^= 1), "signature-invalid"),
        ("too large", seal(&draft(&large), &key).unwrap(), "too-large"),
        (
            "the log's own kind",
            seal(&Draft { content_type: "application/vnd.capstan.policy+toml", ..draft("") }, &key)
                .unwrap(),
            "control-reserved",
        ),
    ]
}

#[tokio::test]
async fn what_is_refused_leaves_no_trace() {
    let log = Log::open();
    let head = log.service.head();
    for (what, bytes, expected) in bad_statements() {
        let id = capstan::envelope::StatementId::of_canonical(&bytes);
        let rejected = log.service.register(bytes).await.unwrap_err();
        assert_eq!(rejected.code(), expected, "{what}");
        assert!(!matches!(rejected, Rejected::Fault(_)), "{what}");
        assert_eq!(log.service.head(), head, "{what}");
        assert!(matches!(log.service.find(&id), Ok(EntryStatus::Unknown)), "{what}");
    }
}

/// A forged copy of a logged statement is not answered with its receipt.
#[tokio::test]
async fn nobody_collects_a_receipt_with_a_forged_signature() {
    let log = Log::open();
    let bytes = statement("x");
    log.service.register(bytes.clone()).await.unwrap();
    let mut forged = bytes;
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(log.service.register(forged).await.unwrap_err().code(), "signature-invalid");
}

#[tokio::test]
async fn the_policy_decides_and_says_why() {
    let log = Log::new(ISSUERS, Algorithm::Es256);
    let key = SigningKey::generate(Algorithm::Es256).unwrap();
    let bytes = seal(&draft("x"), &key).unwrap();
    let rejected = log.service.register(bytes.clone()).await.unwrap_err();
    assert_eq!(rejected.code(), "policy-refused");
    let message = rejected.to_string();
    assert!(message.contains("binding is self-certified"), "{message}");
    // Pinning the key is one reload away.
    let pem = key.public().to_pem().unwrap();
    let pin = format!("[[issuer]]\nname = \"https://agent.example\"\nkeys = ['''{pem}''']\n");
    std::fs::write(log.path().join("trust.toml"), pin).unwrap();
    assert_eq!(log.service.reload().await.unwrap(), ["trust"]);
    assert_eq!(log.service.register(bytes).await.unwrap().entry.index.get(), 3);
    assert_eq!(log.size(), 4, "the new trust stands on the log before the statement");
}

#[tokio::test]
async fn a_policy_that_cannot_run_changes_nothing() {
    let log = Log::open();
    for (file, text) in [
        ("policy.toml", "name = 1"),
        ("policy.toml", "name = \"x\"\n[[allow]]\nisuer = \"*\""),
        ("trust.toml", "[[issuer]]\nname = \"x\"\nkeys = [\"y\"]"),
    ] {
        let path = log.path().join(file);
        let (before, size) = (std::fs::read_to_string(&path).unwrap(), log.size());
        std::fs::write(&path, text).unwrap();
        assert!(log.service.reload().await.is_err());
        assert!(log.service.reload_failed());
        assert_eq!(log.size(), size);
        assert_eq!(log.service.rules().policy().name(), "open");
        log.service.register(statement(text)).await.unwrap();
        std::fs::write(&path, before).unwrap();
        assert!(log.service.reload().await.unwrap().is_empty());
        assert!(!log.service.reload_failed());
        assert_eq!(log.size(), size + 1);
    }
}

#[tokio::test]
async fn keys_retire_and_their_receipts_stay() {
    let log = Log::open();
    let (old_statement, new_statement) = (statement("old"), statement("new"));
    let old = log.service.register(old_statement.clone()).await.unwrap();
    let old_keys = log.service.keys().as_ref().clone();
    let path = log.path();
    let outside = log.stop();
    let mut writer = Writer::open(&path, None, false).unwrap();
    let id = service::rotate(&mut writer, None).unwrap();
    drop(writer);
    let log = Log { service: start(&path).unwrap(), outside };
    let keys = log.service.keys();
    assert_eq!((keys.len(), keys[0].id(), &keys[1]), (2, id, &old_keys[0]));
    let new = log.service.register(new_statement.clone()).await.unwrap();
    let verdict = |receipt: &[u8], keys: &[PublicKey], of: &[u8]| {
        check(receipt, &believe(keys), Some(of)).verdict()
    };
    assert_eq!(verdict(&old.receipt, &keys, &old_statement), Outcome::Yes);
    assert_eq!(verdict(&old.receipt, &keys[..1], &old_statement), Outcome::No);
    assert_eq!(verdict(&new.receipt, &keys[..1], &new_statement), Outcome::Yes);
    assert_eq!(verdict(&new.receipt, &old_keys, &new_statement), Outcome::No);
    let fresh = log.service.again(old.entry).unwrap();
    assert_eq!(verdict(&fresh.receipt, &keys[..1], &old_statement), Outcome::Yes);
    // The succession itself is on the log, and the log grew over it.
    let succession = log.service.entry_at(LeafIndex::new(3)).unwrap().unwrap();
    let transparent = log.service.transparent_statement(&succession).unwrap();
    let trust = believe(&keys).with_issuer(NAME, &old_keys);
    assert_eq!(check(&transparent, &trust, None).verdict(), Outcome::Yes);
}

#[tokio::test]
async fn growth_is_shown_between_any_two_sizes() {
    let log = Log::open();
    let mut roots = vec![Digest::of(b""), log.service.root_at(TreeSize::new(1)).unwrap()];
    roots.push(log.service.head().root);
    for n in 2..40 {
        log.service.register(statement(&n.to_string())).await.unwrap();
        roots.push(log.service.head().root);
    }
    assert_eq!((log.size(), roots.len()), (40, 41));
    let trust = log.trust();
    for from in 1..40 {
        for to in from + 1..=40 {
            let sizes = (TreeSize::new(from), TreeSize::new(to));
            let receipt = log.service.consistency(sizes.0, sizes.1).unwrap();
            let older = Some(roots[usize::try_from(from).unwrap()]);
            let now = service::now();
            let evidence = Evidence { older, ..Evidence::new(&trust, now) };
            let report = verify(&receipt, &evidence);
            assert_eq!(report.verdict(), Outcome::Yes, "{from} to {to}: {report:?}");
            let newer = roots[usize::try_from(to).unwrap()].to_string();
            assert!(report.checks[0].detail.ends_with(&newer));
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn refusal(path: &Path) -> &'static str {
    match start(path).err() {
        Some(ControlError::Store(e)) => e.code(),
        Some(other) => panic!("{other}"),
        None => "ok",
    }
}

#[tokio::test]
async fn an_older_copy_put_back_is_noticed() {
    let log = Log::open();
    log.service.register(statement("1")).await.unwrap();
    let path = log.path();
    let outside = log.stop();
    let backup = outside.path().join("backup");
    copy_tree(&path, &backup);
    let log = Log { service: start(&path).unwrap(), outside };
    log.service.register(statement("2")).await.unwrap();
    let outside = log.stop();

    std::fs::remove_dir_all(&path).unwrap();
    copy_tree(&backup, &path);
    assert_eq!(refusal(&path), "store-rolled-back", "the guard beside the data remembers");
    // A read-only start shows what is there.
    let options = Options::from_config(&Config::default());
    let read_only = Options { read_only: true, ..options };
    let service = service::open(&path, read_only, Metrics::new("test")).unwrap();
    assert_eq!(service.head().size.get(), 3);
    drop(service);

    // Without the guard there is nothing to compare with but what was
    // published, and an old copy brings its own old checkpoint.
    let guard = outside.path().join("data.guard");
    std::fs::remove_file(&guard).unwrap();
    assert_eq!(refusal(&path), "store-guard-missing");
}

#[tokio::test]
async fn another_history_of_the_same_length_is_noticed() {
    let log = Log::open();
    let path = log.path();
    let outside = log.stop();
    let backup = outside.path().join("backup");
    copy_tree(&path, &backup);
    let guard = outside.path().join("data.guard");
    let before = std::fs::read(&guard).unwrap();
    let log = Log { service: start(&path).unwrap(), outside };
    log.service.register(statement("one history")).await.unwrap();
    let outside = log.stop();
    let after = std::fs::read(&guard).unwrap();

    std::fs::remove_dir_all(&path).unwrap();
    copy_tree(&backup, &path);
    std::fs::write(&guard, before).unwrap();
    let log = Log { service: start(&path).unwrap(), outside };
    log.service.register(statement("another history")).await.unwrap();
    let _outside = log.stop();
    std::fs::write(&guard, after).unwrap();
    assert_eq!(refusal(&path), "store-forked");
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let log = Log::open();
    let statements: Vec<_> = (0..300).map(|n| statement(&n.to_string())).collect();
    for bytes in &statements {
        let recognised = log.service.recognise(bytes.clone()).await.unwrap();
        let _queued = log.service.decided(recognised).unwrap();
    }
    let path = log.path();
    let outside = log.stop();
    let log = Log { service: start(&path).unwrap(), outside };
    assert_eq!(log.size(), 302, "what was taken was committed on the way down");
    let trust = log.trust();
    for bytes in statements.iter().step_by(7) {
        let again = log.service.register(bytes.clone()).await.unwrap();
        assert!(again.known);
        assert_eq!(check(&again.receipt, &trust, Some(bytes)).verdict(), Outcome::Yes);
    }
    let key = log.service.checkpoint_key().unwrap();
    log.service.publish().unwrap();
    let note = log.service.checkpoint().unwrap();
    let with_key = TrustAnchors::default().with_log(TrustedLog {
        name: NAME.to_owned(),
        keys: Vec::new(),
        checkpoint: Some(key),
    });
    assert_eq!(check(note.as_bytes(), &with_key, None).verdict(), Outcome::Yes);
}
