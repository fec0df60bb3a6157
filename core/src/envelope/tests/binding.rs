//! Which key may speak for an issuer, and which may not.

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use super::*;
use crate::envelope::fixture::cnf;
use crate::key::{Algorithm, Material, PublicKey};
use crate::trust::did_key::did_key;
use crate::trust::x509::fixture::{Ca, uri};
use crate::wire::digest::Digest;
use crate::wire::text;

fn binding(bytes: Vec<u8>, trust: &TrustAnchors) -> Result<Binding, &'static str> {
    outcome(bytes, trust).map(|a| a.issuer().binding).map_err(|e| e.code())
}

/// The same by the rules of logs that name no version.
fn before(bytes: Vec<u8>, trust: &TrustAnchors) -> Result<Binding, &'static str> {
    let resolved = Resolved::default();
    let context =
        AuthContext { rules: RulesVersion::V1, ..AuthContext::new(trust, &resolved, NOW) };
    let authentic = SignedStatement::parse(bytes).unwrap().authenticate(&context);
    authentic.map(|a| a.issuer().binding).map_err(|e| e.code())
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
fn pinned_name_is_never_self_certified() {
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
fn pinned_key_has_validity_period() {
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
fn keys_in_statements() {
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
fn resolved_keys() {
    let (key, other) = (es256(), es256());
    let resolved = Resolved { keys: vec![other.public().clone(), key.public().clone()] };
    const RESOLVED: &str = "did:web:agent.example";
    let signed = |issuer: &str| Sketch::new(&key).claim(1, issuer).sign(&key);
    let statement = SignedStatement::parse(signed(RESOLVED)).unwrap();
    let nobody = TrustAnchors::default();
    let authentic = statement.clone().authenticate(&AuthContext::new(&nobody, &resolved, NOW));
    let authentic = authentic.unwrap();
    assert_eq!(authentic.issuer().binding, Binding::DidWeb);
    // An auditor cannot ask the network of the past: the key is kept.
    let collateral = decode(&authentic.collateral());
    let kept = collateral.as_map().unwrap()[0].1.as_bytes().unwrap();
    assert_eq!(PublicKey::from_cose_key(kept).as_ref(), Ok(key.public()));
    // A pin outranks what was resolved.
    let pin = nobody.clone().with_issuer(RESOLVED, std::slice::from_ref(other.public()));
    let pinned = statement.authenticate(&AuthContext::new(&pin, &resolved, NOW));
    assert_eq!(pinned.unwrap_err().code(), "signature-invalid");
    // Nothing was resolved for a name of another kind, whoever says so.
    let statement = SignedStatement::parse(signed(ISSUER)).unwrap();
    let unresolvable = statement.authenticate(&AuthContext::new(&nobody, &resolved, NOW));
    assert_eq!(unresolvable.unwrap_err().code(), "issuer-unknown");
    for binding in Binding::ALL {
        assert_eq!(Binding::from_name(binding.name()), Some(*binding));
    }
    assert_eq!(Binding::ALL.len(), 5);
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
    let (name, pem) = ("[[anchor]]\nname = \"root\"\n", root.pem());
    let text = format!("{name}certificate = '''{pem}'''\nuri = [\"{ISSUER}\"]\n");
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
            Err("issuer-unknown"),
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
fn certificate_must_agree_with_pin() {
    let (root, leaf, key) = certified();
    let signed = Sketch::new(&key).with(33, leaf).sign(&key);
    let pin =
        |key: &SigningKey| anchored(&root).with_issuer(ISSUER, std::slice::from_ref(key.public()));
    assert_eq!(binding(signed.clone(), &pin(&key)), Ok(Binding::X5Chain));
    assert_eq!(binding(signed, &pin(&es256())), Err("identifier-conflict"));
}

#[test]
fn unprotected_certificates_become_collateral() {
    let (root, leaf, key) = certified();
    let trust = anchored(&root);
    let inside = outcome(Sketch::new(&key).with(33, leaf.clone()).sign(&key), &trust).unwrap();
    assert_eq!(inside.collateral(), [0xa0]);
    let named = Sketch::new(&key).with(34, x5t(-16, Digest::of(&leaf).as_bytes()));
    let beside = named.unprotected(33, leaf.clone()).sign(&key);
    let collateral = decode(&outcome(beside, &trust).unwrap().collateral());
    assert_eq!(collateral, Value::Map(vec![(1.into(), Value::Array(vec![bytes(&leaf)]))]));
}

/// The message names the label and says what to do.
#[test]
fn error_messages() {
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

/// The unprotected header is not signed: an entry that the signed part does not
/// name changes nothing.
#[test]
fn unprotected_chain_does_not_change_identity() {
    let (root, leaf, key) = certified();
    let raw = ed25519();
    let raw_kid = raw.public().raw_ed25519().unwrap().to_vec();
    let pinned = anchored(&root).with_issuer(ISSUER, std::slice::from_ref(key.public()));
    let did = did_key(key.public()).unwrap();
    let rows = [
        ("a bare kid", Sketch::new(&key), &key, anchored(&root)),
        ("cnf", Sketch::self_certified(&key), &key, anchored(&root)),
        ("a raw key", Sketch::new(&raw).with(4, raw_kid), &raw, anchored(&root)),
        ("a pin", Sketch::new(&key), &key, pinned),
        ("did:key", Sketch::new(&key).claim(1, did), &key, anchored(&root)),
        ("SPIFFE", Sketch::new(&key).claim(1, "spiffe://a.example/b"), &key, anchored(&root)),
    ];
    for (what, sketch, key, trust) in rows {
        let chained = sketch.clone().unprotected(33, leaf.clone()).sign(key);
        let plain = binding(sketch.sign(key), &trust);
        assert_eq!(binding(chained.clone(), &trust), plain, "{what}");
        assert_ne!(plain, Ok(Binding::X5Chain), "{what}");
        if let Ok(authentic) = outcome(chained, &trust) {
            assert_eq!(authentic.collateral(), [0xa0], "{what}: what does not count is not kept");
        }
    }
    let chained = Sketch::new(&key).unprotected(33, leaf).sign(&key);
    let message = outcome(chained.clone(), &anchored(&root)).unwrap_err().to_string();
    assert!(message.contains("protected header, or name the leaf there by x5t (34)"), "{message}");
    assert_eq!(before(chained, &anchored(&root)), Ok(Binding::X5Chain));
}

/// A name with a proof of its own is not had by saying it.
#[test]
fn names_that_need_proof_are_not_self_certified() {
    const LOG: &str = "https://log.example";
    let key = es256();
    let nobody = TrustAnchors::default();
    let rows = [
        ("https://agent.example", "ok"),
        ("agent@1", "ok"),
        ("didactic.example", "ok"),
        ("urn:did:web:a.example", "ok"),
        ("https://other.log.example", "ok"),
        ("did:web:bank.example", "name-needs-proof"),
        ("DID:web:bank.example", "name-needs-proof"),
        (" did:web:bank.example", "name-needs-proof"),
        ("did:x509:0:sha256:AA::subject:O:Bank", "name-needs-proof"),
        ("did:ion:abc", "name-needs-proof"),
        ("spiffe://prod.example/agent", "name-needs-proof"),
        ("SPIFFE://prod.example/agent", "name-needs-proof"),
        ("", "name-needs-proof"),
        (" \n", "name-needs-proof"),
        (LOG, "name-needs-proof"),
        ("https://log.example/", "name-needs-proof"),
        ("http://LOG.example", "name-needs-proof"),
        ("log.example", "name-needs-proof"),
        ("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", "identifier-conflict"),
        ("did:key:nothing", "name-key"),
        ("did:jwk:nothing", "name-key"),
    ];
    for (name, expected) in rows {
        let signed = Sketch::self_certified(&key).claim(1, name).sign(&key);
        let resolved = Resolved::default();
        let context = AuthContext { log: Some(LOG), ..AuthContext::new(&nobody, &resolved, NOW) };
        let statement = SignedStatement::parse(signed.clone()).unwrap();
        let found = statement.authenticate(&context).map_or_else(|e| e.code(), |_| "ok");
        assert_eq!(found, expected, "{name:?}");
        assert_eq!(before(signed.clone(), &nobody), Ok(Binding::SelfCertified), "{name:?}");
        let pinned = nobody.clone().with_issuer(name, std::slice::from_ref(key.public()));
        if expected != "name-key" && expected != "identifier-conflict" {
            assert_eq!(binding(signed, &pinned), Ok(Binding::Pinned), "{name:?}");
        }
    }
}

#[test]
fn names_that_contain_their_key() {
    let nobody = TrustAnchors::default();
    let es384 = SigningKey::generate(Algorithm::Es384).unwrap();
    for key in [es256(), ed25519(), es384] {
        let name = did_key(key.public()).unwrap();
        let s = || Sketch::new(&key).claim(1, name.as_str());
        let other = es256();
        let pin = |key: &SigningKey| {
            nobody.clone().with_issuer(&name, std::slice::from_ref(key.public()))
        };
        let broken = Sketch::new(&key).claim(1, format!("{name}x")).sign(&key);
        let rows = [
            ("any kid", s().with(4, bytes(b"key-1")).sign(&key), &nobody, Ok(Binding::DidKey)),
            ("with cnf", s().claim(8, cnf(key.public())).sign(&key), &nobody, Ok(Binding::DidKey)),
            (
                "cnf of another key",
                s().claim(8, cnf(other.public())).sign(&key),
                &nobody,
                Err("identifier-conflict"),
            ),
            ("pinned as well", s().sign(&key), &pin(&key), Ok(Binding::Pinned)),
            ("another key pinned", s().sign(&key), &pin(&other), Err("identifier-conflict")),
            ("another name", broken, &nobody, Err("name-key")),
        ];
        for (what, bytes, trust, expected) in rows {
            assert_eq!(binding(bytes, trust), expected, "{what}, {name}");
        }
        let mut forged = s().sign(&key);
        *forged.last_mut().unwrap() ^= 1;
        assert_eq!(binding(forged, &nobody), Err("signature-invalid"), "{name}");
    }
    let key = es256();
    let Material::Ec { x, y, .. } = key.public().material() else { panic!() };
    let (x, y) = (text::base64url(x), text::base64url(y));
    let jwk = format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"}}"#);
    let name = format!("did:jwk:{}", text::base64url(jwk.as_bytes()));
    let signed = |by: &SigningKey| Sketch::new(&key).claim(1, name.as_str()).sign(by);
    assert_eq!(binding(signed(&key), &nobody), Ok(Binding::DidKey));
    assert_eq!(binding(signed(&es256()), &nobody), Err("signature-invalid"));
}

/// Who reads claims by name must not meet two of one name.
#[test]
fn lookalike_claims_are_refused() {
    let key = es256();
    let nobody = TrustAnchors::default();
    let reserved = [
        "iss",
        "sub",
        "aud",
        "exp",
        "nbf",
        "iat",
        "cti",
        "jti",
        "cnf",
        "scope",
        "nonce",
        "ueid",
        "eat_profile",
        "swname",
        "psa-client-id",
        "status",
        "hcert",
        "ISS",
        "Iat",
        "1",
        "-260",
        "007",
    ];
    for name in reserved {
        let signed = Sketch::self_certified(&key).named(name, "https://bank.example").sign(&key);
        assert_eq!(binding(signed.clone(), &nobody), Err("claim-name-reserved"), "{name}");
        assert_eq!(before(signed, &nobody), Ok(Binding::SelfCertified), "{name}");
        let other = Sketch::self_certified(&key).named(name, 7).sign(&key);
        assert_eq!(binding(other, &nobody), Err("claim-name-reserved"), "{name}: not text");
    }
    for name in ["capsule_statement_type", "svn", "issuer", "capstan_rules", "1a", ""] {
        let signed = Sketch::self_certified(&key).named(name, "x").sign(&key);
        assert_eq!(binding(signed, &nobody), Ok(Binding::SelfCertified), "{name}");
    }
}
