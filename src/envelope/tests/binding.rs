//! Which key may speak for an issuer, and which may not.

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use super::*;
use crate::envelope::fixture::cnf;
use crate::key::PublicKey;
use crate::trust::x509::fixture::{Ca, uri};
use crate::wire::digest::Digest;
use crate::wire::text;

fn binding(bytes: Vec<u8>, trust: &TrustAnchors) -> Result<Binding, &'static str> {
    outcome(bytes, trust).map(|a| a.issuer().binding).map_err(|e| e.code())
}

#[test]
fn pinned_keys() {
    let (key, other) = (es256(), es256());
    let signed = Sketch::new(&key).sign(&key);
    assert_eq!(binding(signed.clone(), &trust(&key)), Ok(Binding::Pinned));
    assert_eq!(binding(signed.clone(), &trust(&other)), Err("signature-invalid"));
    let both = trust(&other).with_issuer(ISSUER, std::slice::from_ref(key.public()));
    assert_eq!(binding(signed.clone(), &both), Ok(Binding::Pinned), "any pinned key may sign");
    let elsewhere = TrustAnchors::default().with_issuer("https://other.example", &[]);
    assert_eq!(binding(signed, &elsewhere), Err("issuer-unknown"));
    // kid is a hint among pinned keys, never a reason to refuse.
    let named = Sketch::new(&key).with(4, bytes(b"key-1")).sign(&key);
    assert_eq!(binding(named, &trust(&key)), Ok(Binding::Pinned));
}

#[test]
fn a_pinned_name_is_never_self_certified() {
    let (pinned, intruder) = (es256(), es256());
    let own = Sketch::self_certified(&intruder).sign(&intruder);
    assert_eq!(binding(own.clone(), &TrustAnchors::default()), Ok(Binding::SelfCertified));
    assert_eq!(binding(own.clone(), &trust(&pinned)), Err("signature-invalid"));
    let raw = ed25519();
    let kid = raw.public().raw_ed25519().unwrap().to_vec();
    let own = Sketch::new(&raw).with(4, kid).sign(&raw);
    assert_eq!(binding(own.clone(), &TrustAnchors::default()), Ok(Binding::SelfCertified));
    assert_eq!(binding(own, &trust(&pinned)), Err("key-algorithm-mismatch"));
}

#[test]
fn a_key_pinned_for_a_while_speaks_for_that_while() {
    let key = es256();
    let pem = key.public().to_pem().unwrap();
    let file = |bound: &str| {
        let text = format!("[[issuer]]\nname = \"{ISSUER}\"\nkeys = ['''{pem}''']\n{bound}\n");
        TrustAnchors::parse(&text).unwrap()
    };
    let cases = [
        ("from = 2026-06-01T00:00:00Z", Ok(Binding::Pinned)),
        ("from = 2026-06-01T00:00:01Z", Err("issuer-unknown")),
        ("until = 2026-06-01T00:00:01Z", Ok(Binding::Pinned)),
        ("until = 2026-06-01T00:00:00Z", Err("issuer-unknown")),
        ("from = 2026-01-01T00:00:00Z\nuntil = 2027-01-01T00:00:00Z", Ok(Binding::Pinned)),
    ];
    for (bound, expected) in cases {
        // Also when the statement brings its key along: nobody stands in.
        for sketch in [Sketch::new(&key), Sketch::self_certified(&key)] {
            assert_eq!(binding(sketch.sign(&key), &file(bound)), expected, "{bound}");
        }
    }
}

#[test]
fn keys_that_statements_bring_along() {
    let (key, other, raw) = (es256(), es256(), ed25519());
    let nobody = TrustAnchors::default();
    let raw_kid = raw.public().raw_ed25519().unwrap().to_vec();
    let s = || Sketch::self_certified(&key);
    let broken = Value::Map(vec![(1.into(), Value::Map(Vec::new()))]);
    let cases = [
        ("cnf and thumbprint", s().sign(&key), Ok(Binding::SelfCertified)),
        ("cnf of another key", s().claim(8, cnf(other.public())).sign(&key), Err("issuer-unknown")),
        ("kid of another key", s().with(4, vec![0_u8; 32]).sign(&key), Err("issuer-unknown")),
        ("signed by another key", s().sign(&other), Err("signature-invalid")),
        ("cnf not a key", s().claim(8, broken).sign(&key), Err("confirmation-key")),
        ("cnf without a key", s().claim(8, 1).sign(&key), Err("issuer-unknown")),
        ("only a thumbprint", Sketch::new(&key).sign(&key), Err("issuer-unknown")),
        ("thumbprint of Ed25519", Sketch::new(&raw).sign(&raw), Err("signature-invalid")),
        (
            "kid is the Ed25519 key",
            Sketch::new(&raw).with(4, raw_kid.clone()).sign(&raw),
            Ok(Binding::SelfCertified),
        ),
        (
            "kid is the Ed25519 key, and cnf",
            Sketch::self_certified(&raw).with(4, raw_kid.clone()).sign(&raw),
            Ok(Binding::SelfCertified),
        ),
        (
            "an Ed25519 kid for ES256",
            Sketch::new(&key).with(4, raw_kid).sign(&key),
            Err("issuer-unknown"),
        ),
    ];
    for (what, bytes, expected) in cases {
        assert_eq!(binding(bytes, &nobody), expected, "{what}");
    }
}

#[test]
fn resolved_keys_are_a_binding_of_their_own() {
    let (key, other) = (es256(), es256());
    let resolved = Resolved { keys: vec![other.public().clone(), key.public().clone()] };
    let statement = SignedStatement::parse(Sketch::new(&key).sign(&key)).unwrap();
    let authentic =
        statement.clone().authenticate(&Door::new(&TrustAnchors::default(), &resolved, NOW));
    let authentic = authentic.unwrap();
    assert_eq!(authentic.issuer().binding, Binding::DidWeb);
    // An auditor cannot ask the network of the past: the key is kept.
    let collateral = decode(&authentic.collateral());
    let kept = collateral.as_map().unwrap()[0].1.as_bytes().unwrap();
    assert_eq!(PublicKey::from_cose_key(kept).as_ref(), Ok(key.public()));
    // A pin outranks what was resolved.
    let pinned = statement.authenticate(&Door::new(&trust(&other), &resolved, NOW));
    assert_eq!(pinned.unwrap_err().code(), "signature-invalid");
    assert_eq!(Binding::ALL.map(|b| Binding::from_name(b.name())), Binding::ALL.map(Some));
}

/// A CA, and a leaf for the issuer whose key we hold.
fn certified() -> (Ca, Vec<u8>, SigningKey) {
    let root = Ca::root("root");
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let key = SigningKey::from_pkcs8(pair.serialized_der()).unwrap();
    let leaf = root.issue_for(&pair, |p| p.subject_alt_names = vec![uri(ISSUER)]);
    (root, leaf, key)
}

fn anchored(root: &Ca) -> TrustAnchors {
    let text = format!("[[anchor]]\nname = \"root\"\ncertificate = '''{}'''\n", root.pem());
    TrustAnchors::parse(&text).unwrap()
}

#[test]
fn certificates() {
    let (root, leaf, key) = certified();
    let trust = anchored(&root);
    let sha256 = Digest::of(&leaf);
    let s = || Sketch::new(&key).with(33, leaf.clone());
    let other = es256();
    let cases = [
        ("protected", s().sign(&key), Ok(Binding::X5Chain)),
        ("no kid beside it", s().without(4).sign(&key), Ok(Binding::X5Chain)),
        ("x5t", s().with(34, x5t(-16, sha256.as_bytes())).sign(&key), Ok(Binding::X5Chain)),
        ("x5t of another", s().with(34, x5t(-16, &[0; 32])).sign(&key), Err("x5t-mismatch")),
        (
            "x5t of an unknown hash",
            s().with(34, x5t(-15, &[0; 8])).sign(&key),
            Err("x509-unknown-hash-algorithm"),
        ),
        (
            "another name",
            s().claim(1, "https://x.example").sign(&key),
            Err("x509-identity-mismatch"),
        ),
        ("another key", s().sign(&other), Err("signature-invalid")),
        (
            "unprotected, with kid",
            Sketch::new(&key).unprotected(33, leaf.clone()).sign(&key),
            Ok(Binding::X5Chain),
        ),
        (
            "unprotected, with x5t",
            Sketch::new(&key)
                .without(4)
                .with(34, x5t(-16, sha256.as_bytes()))
                .unprotected(33, leaf.clone())
                .sign(&key),
            Ok(Binding::X5Chain),
        ),
        (
            "unprotected alone identifies nobody",
            Sketch::new(&key).without(4).unprotected(33, leaf.clone()).sign(&key),
            Err("key-identifier-missing"),
        ),
    ];
    for (what, bytes, expected) in cases {
        assert_eq!(binding(bytes, &trust), expected, "{what}");
    }
    let unknown = binding(s().sign(&key), &TrustAnchors::default());
    assert_eq!(unknown, Err("x509-untrusted"), "and no fall back to self-certification");
}

#[test]
fn a_certificate_against_a_pin() {
    let (root, leaf, key) = certified();
    let signed = Sketch::new(&key).with(33, leaf).sign(&key);
    let pin =
        |key: &SigningKey| anchored(&root).with_issuer(ISSUER, std::slice::from_ref(key.public()));
    assert_eq!(binding(signed.clone(), &pin(&key)), Ok(Binding::X5Chain));
    assert_eq!(binding(signed, &pin(&es256())), Err("identifier-conflict"));
}

#[test]
fn unprotected_certificates_are_kept_beside_the_statement() {
    let (root, leaf, key) = certified();
    let trust = anchored(&root);
    let inside = outcome(Sketch::new(&key).with(33, leaf.clone()).sign(&key), &trust).unwrap();
    assert_eq!(inside.collateral(), [0xa0]);
    let beside = Sketch::new(&key).unprotected(33, leaf.clone()).sign(&key);
    let collateral = decode(&outcome(beside, &trust).unwrap().collateral());
    assert_eq!(collateral, Value::Map(vec![(1.into(), Value::Array(vec![bytes(&leaf)]))]));
}

/// The message names the label and says what to do.
#[test]
fn messages_help() {
    let key = es256();
    let nobody = TrustAnchors::default();
    let error = outcome(Sketch::new(&key).sign(&key), &nobody).unwrap_err();
    let message = error.to_string();
    for word in [ISSUER, "trust file", "cnf"] {
        assert!(message.contains(word), "{message:?} lacks {word}");
    }
    let mut broken = Sketch::new(&key).sign(&key);
    let last = broken.len() - 1;
    broken[last] ^= 1;
    let message = outcome(broken, &trust(&key)).unwrap_err().to_string();
    assert!(message.contains(&text::hex(key.public().id().as_bytes())), "{message}");
}
