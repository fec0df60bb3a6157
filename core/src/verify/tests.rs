//! Yes, no and cannot tell for each artefact; and no mutation gets a yes.

mod bits;
mod bundle;
mod capsule;
mod mutate;
mod proofs;
mod verdict;

use ciborium::Value as Other;

use super::*;
use crate::checkpoint::Checkpoint;
use crate::envelope::fixture::{ISSUER, NOW, Sketch, bytes, decode, ed25519, encode, es256};
use crate::envelope::{SignedStatement, StatementId};
use crate::key::SigningKey;
use crate::log::TreeSize;
use crate::receipt::attach;
use crate::receipt::fixture::{LOG, SmallLog};
use crate::trust::TrustedLog;

/// A signed statement, its key, and a log that holds it.
struct Scene {
    issuer: SigningKey,
    statement: Vec<u8>,
    log: SmallLog,
}

impl Scene {
    fn new() -> Self {
        let issuer = ed25519();
        let statement = Sketch::new(&issuer).sign(&issuer);
        // Eight leaves: no single bit turns this size into another one with
        // the same shape of path (see `tree_size_is_unsigned`).
        let log = SmallLog::around(es256(), &statement, 2, 8);
        Self { issuer, statement, log }
    }

    fn pins(&self) -> TrustAnchors {
        TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(self.issuer.public()))
    }

    /// Believes the issuer and the log.
    fn trust(&self) -> TrustAnchors {
        self.pins().with_log(trusted(LOG, &self.log.key))
    }

    fn transparent(&self) -> Vec<u8> {
        let statement = SignedStatement::parse(self.statement.clone()).unwrap();
        attach(&statement, &self.log.receipt(2)).unwrap()
    }
}

fn trusted(name: &str, key: &SigningKey) -> TrustedLog {
    TrustedLog { name: name.to_owned(), keys: vec![key.public().clone()], checkpoint: None }
}

fn evidence(trust: &TrustAnchors) -> Evidence<'_> {
    Evidence::new(trust, NOW)
}

fn answer(bytes: &[u8], trust: &TrustAnchors) -> (Outcome, &'static str) {
    let report = verify(bytes, &evidence(trust));
    (report.verdict(), report.code())
}

const SIGNED_ONLY: &Demand = &Demand::SIGNED_ONLY;

/// The answer of somebody who asks only who signed.
fn signed(bytes: &[u8], trust: &TrustAnchors) -> (Outcome, &'static str) {
    let report = verify(bytes, &Evidence { demand: SIGNED_ONLY, ..evidence(trust) });
    (report.verdict(), report.code())
}

fn named<'a>(report: &'a Report, name: &str) -> &'a Check {
    let found = report.checks.iter().find(|check| check.name == name);
    found.unwrap_or_else(|| panic!("{name} in {report:?}"))
}

#[test]
fn a_statement() {
    let scene = Scene::new();
    assert_eq!(signed(&scene.statement, &scene.pins()), (Outcome::Yes, "ok"));
    let report = verify(&scene.statement, &evidence(&scene.pins()));
    assert_eq!((report.verdict(), report.code()), (Outcome::CannotTell, "receipt-missing"));
    assert_eq!(report.artefact, "statement");
    let outcomes: Vec<_> = report.checks.iter().map(|c| (c.name, c.outcome)).collect();
    let expected = [
        ("signed", Outcome::Yes),
        ("issuer", Outcome::Yes),
        ("conformant", Outcome::Yes),
        ("logged", Outcome::CannotTell),
    ];
    assert_eq!(outcomes, expected);
    let nobody = TrustAnchors::default();
    // Without a pin the Ed25519 kid is a thumbprint that is not a key.
    assert_eq!(signed(&scene.statement, &nobody), (Outcome::No, "signature-invalid"));
    let key = es256();
    let unknown = Sketch::new(&key).sign(&key);
    assert_eq!(signed(&unknown, &nobody), (Outcome::CannotTell, "issuer-unknown"));
    let own = Sketch::self_certified(&key).sign(&key);
    assert_eq!(signed(&own, &nobody), (Outcome::CannotTell, "self-certified"));
    let demand = Demand { allow_self_certified: true, ..SIGNED_ONLY.clone() };
    let report = verify(&own, &Evidence { demand: &demand, ..evidence(&nobody) });
    assert_eq!(report.verdict(), Outcome::Yes);
    assert!(report.warnings[0].contains("but the statement itself"), "{:?}", report.warnings);
    let mut detached = Sketch::self_certified(&key);
    let whole = detached.sign(&key);
    detached.payload = Other::Null;
    let signature = SignedStatement::parse(whole).unwrap().signature().to_vec();
    let detached = detached.sign_with(|_| signature);
    assert_eq!(signed(&detached, &nobody), (Outcome::CannotTell, "payload-missing"));
    let given = |payload| Evidence { payload: Some(payload), demand: &demand, ..evidence(&nobody) };
    assert_eq!(verify(&detached, &given(b"{}")).verdict(), Outcome::Yes);
    assert_eq!(verify(&detached, &given(b"[]")).code(), "signature-invalid");
}

/// Authentic and conformant are two questions; a yes needs both, unless only
/// the signature was asked for.
#[test]
fn nonconforming_statement_fails() {
    let key = es256();
    let trust = TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(key.public()));
    for (sketch, code) in [
        (Sketch::new(&key).without(4), "key-identifier-missing"),
        (Sketch::new(&key).without_claim(2), "subject-missing"),
    ] {
        let bytes = sketch.sign(&key);
        let report = verify(&bytes, &evidence(&trust));
        assert_eq!((report.verdict(), report.code()), (Outcome::No, code));
        assert_eq!(named(&report, "signed").outcome, Outcome::Yes);
        assert_eq!(named(&report, "conformant").outcome, Outcome::No);
        assert_eq!(signed(&bytes, &trust), (Outcome::Yes, "ok"));
    }
}

#[test]
fn chain_to_unknown_anchor() {
    use crate::trust::x509::fixture::{Ca, uri};
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let key = SigningKey::from_pkcs8(pair.serialized_der()).unwrap();
    let root = Ca::root("root");
    let leaf = root.issue_for(&pair, |p| p.subject_alt_names = vec![uri(ISSUER)]);
    let statement = Sketch::new(&key).with(33, leaf).sign(&key);
    let unknown = answer(&statement, &TrustAnchors::default());
    assert_eq!(unknown, (Outcome::CannotTell, "x509-untrusted"));
    let text = format!("[[anchor]]\nname = \"r\"\ncertificate = '''{}'''\n", root.pem());
    let unscoped = TrustAnchors::parse_any(&text).unwrap();
    assert_eq!(signed(&statement, &unscoped), (Outcome::CannotTell, "x509-anchor-unscoped"));
    let other = TrustAnchors::parse(&format!("{text}dns = [\"*\"]\n")).unwrap();
    assert_eq!(signed(&statement, &other), (Outcome::No, "x509-out-of-scope"));
    let trust = TrustAnchors::parse(&format!("{text}uri = [\"{ISSUER}\"]\n")).unwrap();
    assert_eq!(signed(&statement, &trust), (Outcome::Yes, "ok"));
    let report = verify(&statement, &evidence(&trust));
    let by = &named(&report, "signed").detail;
    assert!(by.ends_with("certified to a trusted anchor, \"r\""), "{by}");
    assert!(named(&report, "issuer").detail.ends_with("by the anchor \"r\""), "{report:?}");
    // The time of registration counts, not the time of verification.
    let later = Evidence { now: UnixSeconds::new(2_000_000_000), ..evidence(&trust) };
    assert_eq!(verify(&statement, &later).code(), "x509-expired");
    let log = SmallLog::around(es256(), &statement, 0, 2);
    let parsed = SignedStatement::parse(statement).unwrap();
    let transparent = attach(&parsed, &log.receipt(0)).unwrap();
    let with_log = trust.clone().with_log(trusted(LOG, &log.key));
    let later = Evidence { trust: &with_log, ..later };
    assert_eq!(verify(&transparent, &later).verdict(), Outcome::Yes);
    // A receipt from after the certificate's end does not show when the
    // statement was registered.
    let short = root.issue_for(&pair, |p| {
        p.subject_alt_names = vec![uri(ISSUER)];
        p.not_after = rcgen::date_time_ymd(2026, 1, 1);
    });
    let statement = Sketch::new(&key).with(33, short).sign(&key);
    let log = SmallLog::around(es256(), &statement, 0, 2);
    let parsed = SignedStatement::parse(statement.clone()).unwrap();
    let transparent = attach(&parsed, &log.receipt(0)).unwrap();
    let with_log = trust.clone().with_log(trusted(LOG, &log.key));
    assert_eq!(answer(&transparent, &with_log), (Outcome::CannotTell, "x509-expired"));
    assert_eq!(answer(&statement, &with_log), (Outcome::No, "x509-expired"));
}

#[test]
fn a_transparent_statement() {
    let scene = Scene::new();
    let transparent = scene.transparent();
    let report = verify(&transparent, &evidence(&scene.trust()));
    assert_eq!((report.artefact, report.verdict()), ("transparent statement", Outcome::Yes));
    let logged = named(&report, "logged");
    let expected = "https://log.example #2, tree of 8, 2026-06-01T00:00:00Z \
                    (RFC 9162, leaf of the digest)";
    assert_eq!(logged.detail, expected);
    assert_eq!(answer(&transparent, &scene.pins()), (Outcome::CannotTell, "log-unknown"));
    let other = scene.pins().with_log(trusted(LOG, &es256()));
    assert_eq!(answer(&transparent, &other), (Outcome::No, "head-signature"));
    let logged = verify(&transparent, &evidence(&other)).checks.last().unwrap().detail.clone();
    assert!(logged.contains("capstan trust follow"), "a key that was never believed: {logged}");
    let renamed = scene.pins().with_log(trusted("https://other.example", &scene.log.key));
    assert_eq!(answer(&transparent, &renamed), (Outcome::CannotTell, "log-unknown"));
    let any = scene.pins().with_log(trusted(ANY_LOG, &scene.log.key));
    assert_eq!(answer(&transparent, &any), (Outcome::Yes, "ok"));
    // The receipt of another leaf, and a list that is none.
    let statement = SignedStatement::parse(scene.statement.clone()).unwrap();
    let foreign = attach(&statement, &scene.log.receipt(3)).unwrap();
    assert_eq!(answer(&foreign, &scene.trust()), (Outcome::No, "head-signature"));
    let rubbish = attach(&statement, b"r").unwrap();
    assert_eq!(answer(&rubbish, &scene.trust()), (Outcome::No, "not-sign1"));
    let sketch = Sketch::new(&scene.issuer).unprotected(394, 1).sign(&scene.issuer);
    assert_eq!(answer(&sketch, &scene.trust()), (Outcome::No, "receipt-list"));
}

/// One good receipt does not excuse a bad one beside it.
#[test]
fn every_attached_receipt_counts() {
    let scene = Scene::new();
    let good = SignedStatement::parse_any_size(scene.transparent()).unwrap();
    let both = attach(&good, &scene.log.receipt(3)).unwrap();
    assert_eq!(answer(&both, &scene.trust()), (Outcome::No, "head-signature"));
}

#[test]
fn a_bare_receipt() {
    let scene = Scene::new();
    let receipt = scene.log.receipt(2);
    let (trust, transparent) = (scene.trust(), scene.transparent());
    let other = Sketch::new(&scene.issuer).payload(b"other").sign(&scene.issuer);
    assert_eq!(answer(&receipt, &trust), (Outcome::CannotTell, "statement-needed"));
    let with = |statement| Evidence { statement: Some(statement), ..evidence(&trust) };
    let report = verify(&receipt, &with(scene.statement.as_slice()));
    assert_eq!((report.artefact, report.verdict()), ("receipt", Outcome::Yes));
    // It is judged like the Transparent Statement of the two.
    let attached = verify(&transparent, &evidence(&trust));
    assert_eq!(report.checks, attached.checks);
    // A statement that carries receipts is the same statement.
    assert_eq!(verify(&receipt, &with(&transparent)).verdict(), Outcome::Yes);
    assert_eq!(verify(&receipt, &with(b"x")).verdict(), Outcome::No);
    assert_eq!(verify(&receipt, &with(&other)).code(), "head-signature");
    let pins = scene.pins();
    let unknown = Evidence { trust: &pins, ..with(&scene.statement) };
    assert_eq!(verify(&receipt, &unknown).code(), "log-unknown");
    assert_eq!(answer(&receipt[..40], &trust).0, Outcome::No);
}

#[test]
fn a_consistency_receipt() {
    let scene = Scene::new();
    let trust = scene.trust();
    for from in 1..8 {
        let receipt = scene.log.consistency(from);
        assert_eq!(answer(&receipt, &trust), (Outcome::CannotTell, "older-needed"));
        let from_root = |older| Evidence { older: Some(older), ..evidence(&trust) };
        let report = verify(&receipt, &from_root(scene.log.root(from)));
        assert_eq!((report.artefact, report.verdict()), ("consistency receipt", Outcome::Yes));
        assert!(report.checks[0].detail.contains(&scene.log.root(8).to_string()));
        let other = verify(&receipt, &from_root(scene.log.root(8)));
        assert_eq!(other.verdict(), Outcome::No, "{}", other.code());
        let nobody = TrustAnchors::default();
        let unknown = Evidence { trust: &nobody, ..from_root(scene.log.root(from)) };
        assert_eq!(verify(&receipt, &unknown).code(), "log-unknown");
    }
}

#[test]
fn a_checkpoint() {
    let key = ed25519();
    let (size, root) = (TreeSize::new(8), Digest::of(b"root"));
    let checkpoint = Checkpoint { origin: "log.example".to_owned(), size, root };
    let note = checkpoint.sign("log.example", &key).unwrap();
    let believe = |name: &str, key: &SigningKey, origin: &str| {
        let vkey = crate::checkpoint::VerifierKey::new(origin, key.public()).unwrap();
        let checkpoint = Some(vkey.to_string());
        TrustAnchors::default().with_log(TrustedLog { checkpoint, ..trusted(name, &es256()) })
    };
    let cases = [
        (believe(LOG, &key, "log.example"), (Outcome::Yes, "ok")),
        (believe(ANY_LOG, &key, "log.example"), (Outcome::Yes, "ok")),
        (believe(LOG, &ed25519(), "log.example"), (Outcome::No, "note-signature")),
        (believe(LOG, &key, "other.example"), (Outcome::CannotTell, "log-unknown")),
        (TrustAnchors::default(), (Outcome::CannotTell, "log-unknown")),
    ];
    for (trust, expected) in cases {
        assert_eq!(answer(note.as_bytes(), &trust), expected);
    }
    let trust = believe(LOG, &key, "log.example");
    let larger = note.replacen("\n8\n", "\n9\n", 1);
    assert_eq!(answer(larger.as_bytes(), &trust), (Outcome::No, "note-signature"));
    let spaced = note.replacen("\n8\n", "\n08\n", 1);
    assert_eq!(answer(spaced.as_bytes(), &trust), (Outcome::No, "checkpoint-malformed"));
}

#[test]
fn garbage_fails() {
    let nobody = TrustAnchors::default();
    for bytes in [b"".as_slice(), b"hello", &[0xd2, 0x84], b"a\n\n\xe2\x80\x94 b"] {
        assert_eq!(answer(bytes, &nobody).0, Outcome::No);
    }
}
