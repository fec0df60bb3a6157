//! Parts of a bundle cannot be replaced by those of another log, and unsigned
//! parts are not trusted.

use std::ops::Range;

use super::*;
use crate::checkpoint::VerifierKey;
use crate::profile::Control;

const OTHER: &str = "https://other.example";
const POLICY: &str = "name = \"all\"\n[[allow]]\nbinding = [\"pinned\", \"did:web\"]\n";
/// The index of the statement the bundle is about.
const SUBJECT: u64 = 3;

/// A log with what a bundle is made of: policy, trust, an earlier record, the
/// statement, and leaves that follow.
struct Log {
    name: &'static str,
    log: SmallLog,
    checkpoints: SigningKey,
    statements: [Vec<u8>; 4],
}

/// What differs between the logs of these tests.
struct Plan<'a> {
    name: &'static str,
    /// The trust that the log applied.
    trust: &'a str,
    policy_time: u64,
}

impl<'a> Plan<'a> {
    fn new(name: &'static str, trust: &'a str) -> Self {
        Self { name, trust, policy_time: 0 }
    }

    fn build(&self, agent: &SigningKey) -> Log {
        let key = es256();
        let control = |kind: Control, text: &str| {
            let sketch = Sketch::new(&key).claim(1, self.name).claim(2, kind.subject());
            let sketch = sketch.with(3, kind.content_type()).claim(6, self.policy_time);
            sketch.payload(text.as_bytes()).sign(&key)
        };
        let of_agent = |payload: &[u8]| Sketch::new(agent).payload(payload).sign(agent);
        let statements = [
            control(Control::Policy, POLICY),
            control(Control::Trust, self.trust),
            of_agent(b"earlier"),
            of_agent(b"the statement"),
        ];
        let log = grown(key, self.name, &statements, 0..4);
        Log { name: self.name, log, checkpoints: ed25519(), statements }
    }
}

/// A log of the statements and then these leaves.
fn grown(key: SigningKey, name: &str, statements: &[Vec<u8>], rest: Range<u8>) -> SmallLog {
    let rest: Vec<Vec<u8>> = rest.map(|n| vec![n]).collect();
    let leaves: Vec<&[u8]> = statements.iter().chain(&rest).map(Vec::as_slice).collect();
    SmallLog::of(key, &leaves).called(name)
}

fn copy(key: &SigningKey) -> SigningKey {
    SigningKey::from_pem(&key.to_pem().unwrap()).unwrap()
}

impl Log {
    fn transparent(&self, index: u64) -> Vec<u8> {
        let bytes = self.statements[usize::try_from(index).unwrap()].clone();
        attach(&SignedStatement::parse(bytes).unwrap(), &self.log.receipt(index)).unwrap()
    }

    /// The same log and keys with another history after the statement.
    fn forked(&self, rest: Range<u8>) -> Self {
        let log = grown(copy(&self.log.key), self.name, &self.statements, rest);
        let (checkpoints, statements) = (copy(&self.checkpoints), self.statements.clone());
        Self { name: self.name, log, checkpoints, statements }
    }

    fn origin(&self) -> &str {
        self.name.strip_prefix("https://").unwrap()
    }

    fn checkpoint(&self, size: u64, root: Digest) -> String {
        let checkpoint =
            Checkpoint { origin: self.origin().to_owned(), size: TreeSize::new(size), root };
        checkpoint.sign(self.origin(), &self.checkpoints).unwrap()
    }

    fn bundle(&self) -> Bundle {
        let size = self.log.head().head().size.get();
        Bundle {
            statement: self.transparent(SUBJECT),
            policy: self.transparent(0),
            trust: self.transparent(1),
            chain: vec![self.transparent(2)],
            checkpoint: self.checkpoint(size, self.log.root(size)),
            collateral: vec![0xa0],
            time: NOW,
        }
    }

    fn believed_by(&self, trust: TrustAnchors) -> TrustAnchors {
        let vkey = VerifierKey::new(self.origin(), self.checkpoints.public()).unwrap();
        let checkpoint = Some(vkey.to_string());
        trust.with_log(TrustedLog { checkpoint, ..trusted(self.name, &self.log.key) })
    }
}

fn pinned(agent: &SigningKey, bounds: &str) -> String {
    let pem = agent.public().to_pem().unwrap();
    format!("[[issuer]]\nname = {ISSUER:?}\n{bounds}\nkeys = ['''\n{pem}''']\n")
}

/// Believes the agent.
fn agent_trust(agent: &SigningKey) -> TrustAnchors {
    TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(agent.public()))
}

/// A good bundle, and the trust for it.
pub(super) fn sample() -> (Vec<u8>, TrustAnchors) {
    let agent = ed25519();
    let log = Plan::new(LOG, &pinned(&agent, "")).build(&agent);
    (log.bundle().encode(), log.believed_by(agent_trust(&agent)))
}

/// Every way to take some parts from one bundle and the rest from another.
fn splices(one: &Bundle, other: &Bundle) -> Vec<(u8, Bundle)> {
    let pick = |mask: u8, bit: u8| if mask & (1 << bit) == 0 { one } else { other };
    let splice = |mask: u8| Bundle {
        statement: pick(mask, 0).statement.clone(),
        policy: pick(mask, 1).policy.clone(),
        trust: pick(mask, 2).trust.clone(),
        chain: pick(mask, 3).chain.clone(),
        checkpoint: pick(mask, 4).checkpoint.clone(),
        ..one.clone()
    };
    (1..31).map(|mask| (mask, splice(mask))).collect()
}

#[test]
fn bundle_of_two_logs_fails() {
    let agent = ed25519();
    let text = pinned(&agent, "");
    let one = Plan::new(LOG, &text).build(&agent);
    let two = Plan::new(OTHER, &text).build(&agent);
    let trust = two.believed_by(one.believed_by(agent_trust(&agent)));
    for log in [&one, &two] {
        let report = verify(&log.bundle().encode(), &evidence(&trust));
        assert_eq!((report.artefact, report.code()), ("bundle", "ok"), "{report:?}");
    }
    for (mask, bundle) in splices(&one.bundle(), &two.bundle()) {
        let report = verify(&bundle.encode(), &evidence(&trust));
        assert_eq!(report.verdict(), Outcome::No, "{mask:05b}: {report:?}");
        assert_eq!(named(&report, "one-log").code, "bundle-other-log", "{mask:05b}");
    }
}

/// The same name, the same keys, the same statements, and two histories: the
/// receipts and the checkpoint of a bundle are of one of them.
#[test]
fn bundle_of_two_histories_fails() {
    let agent = ed25519();
    let log = Plan::new(LOG, &pinned(&agent, "")).build(&agent);
    let trust = log.believed_by(agent_trust(&agent));
    for (rest, expected) in [
        (4..8, (Outcome::No, "bundle-other-tree")),
        (0..5, (Outcome::CannotTell, "bundle-tree-not-shown")),
    ] {
        let fork = log.forked(rest).bundle();
        assert_eq!(answer(&fork.encode(), &trust), (Outcome::Yes, "ok"));
        for (mask, bundle) in splices(&log.bundle(), &fork) {
            assert_eq!(answer(&bundle.encode(), &trust), expected, "{mask:05b}");
        }
    }
}

#[test]
fn checkpoint_covers_every_leaf() {
    let agent = ed25519();
    let log = Plan::new(LOG, &pinned(&agent, "")).build(&agent);
    let trust = log.believed_by(agent_trust(&agent));
    let with = |checkpoint: String| answer(&Bundle { checkpoint, ..log.bundle() }.encode(), &trust);
    for size in 1..=8 {
        let expected = match size {
            1..=SUBJECT => (Outcome::No, "bundle-not-covered"),
            8 => (Outcome::Yes, "ok"),
            _ => (Outcome::CannotTell, "bundle-tree-not-shown"),
        };
        assert_eq!(with(log.checkpoint(size, log.log.root(size))), expected, "{size}");
    }
    let other_root = log.checkpoint(8, Digest::of(b"other"));
    assert_eq!(with(other_root), (Outcome::No, "bundle-other-tree"));
    let other_size = log.checkpoint(9, log.log.root(8));
    assert_eq!(with(other_size), (Outcome::No, "bundle-other-tree"));
    let stranger = Plan::new(LOG, "").build(&agent);
    assert_eq!(with(stranger.bundle().checkpoint), (Outcome::No, "note-signature"));
    assert_eq!(with("x".to_owned()), (Outcome::No, "checkpoint-malformed"));
    // Nobody's word for the checkpoint, or for the log at all.
    let receipts = agent_trust(&agent).with_log(trusted(LOG, &log.log.key));
    let report = verify(&log.bundle().encode(), &evidence(&receipts));
    assert_eq!((report.verdict(), report.code()), (Outcome::CannotTell, "log-unknown"));
    let covered = named(&report, "covered");
    assert_eq!((covered.outcome, covered.code), (Outcome::NotChecked, "not-checked"));
    let report = verify(&log.bundle().encode(), &evidence(&agent_trust(&agent)));
    assert_eq!((report.verdict(), report.code()), (Outcome::CannotTell, "log-unknown"));
    assert_eq!(named(&report, "one-log").outcome, Outcome::NotChecked);
    assert_eq!(named(&report, "admitted").outcome, Outcome::Yes, "decided without the log");
}

/// The time in the bundle is unsigned. It is used only if the decision is the
/// same for every time that the log's signatures allow.
#[test]
fn registration_time_is_bounded() {
    let agent = ed25519();
    let at = |offset: i64| UnixSeconds::new(NOW.seconds().saturating_add_signed(offset));
    let (hour, day) = (3600, 86_400);
    let rows = [
        ("", 0, (Outcome::Yes, "ok")),
        ("", -day, (Outcome::Yes, "ok")),
        ("", 1, (Outcome::No, "bundle-time")),
        // The key was good until an hour before the receipt.
        ("until", -day, (Outcome::CannotTell, "time-not-shown")),
        ("until", 0, (Outcome::CannotTell, "time-not-shown")),
        // And from an hour before the receipt: the rules were written earlier.
        ("from", 0, (Outcome::CannotTell, "time-not-shown")),
        ("from", -day, (Outcome::CannotTell, "time-not-shown")),
    ];
    for (bound, offset, expected) in rows {
        let bounds =
            if bound.is_empty() { String::new() } else { format!("{bound} = {}", at(-hour)) };
        let text = pinned(&agent, &bounds);
        let plan = Plan { policy_time: at(-2 * day).seconds(), ..Plan::new(LOG, &text) };
        let log = plan.build(&agent);
        let bundle = Bundle { time: at(offset), ..log.bundle() };
        let trust = log.believed_by(agent_trust(&agent));
        let report = verify(&bundle.encode(), &evidence(&trust));
        let admitted = named(&report, "admitted");
        assert_eq!((admitted.outcome, admitted.code), expected, "{bound} {offset}: {report:?}");
        assert_eq!(report.verdict(), expected.0);
    }
    // The rules were written after the key had ended, whatever the time says.
    let text = pinned(&agent, &format!("until = {}", at(-day)));
    let plan = Plan { policy_time: at(-hour).seconds(), ..Plan::new(LOG, &text) };
    let log = plan.build(&agent);
    let bundle = Bundle { time: at(-2 * day), ..log.bundle() };
    let report = verify(&bundle.encode(), &evidence(&log.believed_by(agent_trust(&agent))));
    assert_eq!(named(&report, "admitted").code, "time-not-shown");
}

/// A key from a did:web document travels beside the statement, unsigned.
#[test]
fn resolved_key_is_not_trusted() {
    let agent = ed25519();
    let log = Plan::new(LOG, "").build(&agent);
    let collateral = |key: &SigningKey| {
        encode(&Other::Map(vec![(2.into(), bytes(&key.public().to_cose_key()))]))
    };
    let nobody = log.believed_by(TrustAnchors::default());
    let known = log.believed_by(agent_trust(&agent));
    let stranger = ed25519();
    for (trust, key, expected) in [
        (&nobody, &agent, (Outcome::CannotTell, "key-not-shown")),
        (&known, &agent, (Outcome::Yes, "ok")),
        (&known, &stranger, (Outcome::No, "signature-invalid")),
    ] {
        let bundle = Bundle { collateral: collateral(key), ..log.bundle() };
        let report = verify(&bundle.encode(), &evidence(trust));
        let admitted = named(&report, "admitted");
        assert_eq!((admitted.outcome, admitted.code), expected, "{report:?}");
    }
    let certificates = encode(&Other::Map(vec![(1.into(), Other::Array(Vec::new()))]));
    let bundle = Bundle { collateral: certificates, ..log.bundle() };
    let report = verify(&bundle.encode(), &evidence(&known));
    assert_eq!(named(&report, "admitted").code, "certificates-outside");
}

/// The first policy and trust entries of a log are admitted by its key alone;
/// those of another key are not.
#[test]
fn first_control_statements_are_admitted() {
    let agent = ed25519();
    let log = Plan::new(LOG, &pinned(&agent, "")).build(&agent);
    let trust = log.believed_by(TrustAnchors::default());
    for index in [0, 1] {
        let bundle =
            Bundle { statement: log.transparent(index), chain: Vec::new(), ..log.bundle() };
        assert_eq!(answer(&bundle.encode(), &trust), (Outcome::Yes, "ok"), "{index}");
    }
    let mut forged = Plan::new(LOG, "").build(&agent);
    let text = Control::Policy.content_type();
    let sketch = Sketch::new(&agent).claim(1, LOG).with(3, text).payload(POLICY.as_bytes());
    forged.statements[3] = sketch.sign(&agent);
    let forged = forged.forked(0..4);
    let trust = forged.believed_by(agent_trust(&agent));
    let report = verify(&forged.bundle().encode(), &evidence(&trust));
    assert_eq!(named(&report, "admitted").outcome, Outcome::No, "{report:?}");
}

#[test]
fn demands_apply_to_bundles() {
    let agent = ed25519();
    let log = Plan::new(LOG, &pinned(&agent, "")).build(&agent);
    let bundle = log.bundle().encode();
    let trust = log.believed_by(agent_trust(&agent));
    let require = |required| Demand { required: vec![required], ..Demand::default() };
    let self_certified = Demand { allow_self_certified: true, ..Demand::default() };
    let rows = [
        (require(Requirement::Admitted), "ok"),
        (require(Requirement::Receipt), "ok"),
        (require(Requirement::Witness), "witness-unsupported"),
        (Demand { logs: vec![OTHER.to_owned()], ..Demand::default() }, "log-other"),
        (Demand { logs: vec![LOG.to_owned()], ..Demand::default() }, "ok"),
    ];
    for (demand, expected) in rows {
        let report = verify(&bundle, &Evidence { demand: &demand, ..evidence(&trust) });
        assert_eq!(report.code(), expected, "{demand:?}");
    }
    let nobody = log.believed_by(TrustAnchors::default());
    let given = Evidence { issuer_key: Some(agent.public()), ..evidence(&nobody) };
    assert_eq!(verify(&bundle, &given).code(), "ok", "a key given by hand");
    let given = Evidence { demand: &self_certified, ..evidence(&nobody) };
    assert_ne!(verify(&bundle, &given).verdict(), Outcome::Yes);
}
