//! Every way a statement can be wrong, who may sign for whom, and what the
//! signature covers.

mod algorithms;
mod binding;
mod bits;

use ciborium::Value;

use super::fixture::{ISSUER, NOW, SUBJECT, Sketch, bytes, decode, ed25519, encode, es256};
use super::*;
use crate::key::SigningKey;
use crate::trust::TrustAnchors;
use crate::wire::limits::STATEMENT_BYTES_MAX;
use crate::wire::time::UnixSeconds;

/// Trust in one key for the issuer of every sketch.
fn trust(key: &SigningKey) -> TrustAnchors {
    TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(key.public()))
}

fn outcome(bytes: Vec<u8>, trust: &TrustAnchors) -> Result<Authentic, Error> {
    SignedStatement::parse(bytes)?.authenticate(&AuthContext::new(trust, &Resolved::default(), NOW))
}

fn code(bytes: Vec<u8>, trust: &TrustAnchors) -> &'static str {
    outcome(bytes, trust).map_or_else(|e| e.code(), |_| "ok")
}

/// Labels and claims: (what is different, statement, code).
fn wrong_headers(good: &Sketch) -> Vec<(&'static str, Sketch, &'static str)> {
    let list = |items: &[i64]| Value::Array(items.iter().map(|n| (*n).into()).collect());
    let s = || good.clone();
    let hashed = || s().without(3).with(258, -16);
    vec![
        ("nothing", s(), "ok"),
        ("no alg", s().without(1), "algorithm-missing"),
        ("alg 0", s().with(1, 0), "algorithm-unsupported"),
        ("RS1", s().with(1, -65535), "algorithm-unsupported"),
        ("alg as text", s().with(1, "ES256"), "header-value"),
        ("EdDSA with an EC key", s().with(1, -8), "key-algorithm-mismatch"),
        ("ES384 with a P-256 key", s().with(1, -35), "key-algorithm-mismatch"),
        ("ESP256, the same signature", s().with(1, -9), "ok"),
        ("crit of what is there", s().with(2, list(&[1, 15])), "ok"),
        ("crit of what is not", s().with(2, list(&[16])), "crit-absent"),
        ("crit unknown", s().with(2, list(&[4711])).with(4711, 1), "crit-unknown"),
        ("crit of text", s().with(2, Value::Array(vec!["x".into()])), "crit-unknown"),
        ("crit empty", s().with(2, list(&[])), "header-value"),
        ("crit a number", s().with(2, 1), "header-value"),
        ("crit unprotected", s().unprotected(2, list(&[1])), "must-be-protected"),
        ("both buckets", s().unprotected(4, bytes(b"k")), "label-in-both-buckets"),
        ("both, text", s().with("x", 1).unprotected("x", 2), "label-in-both-buckets"),
        ("label a byte string", s().with(bytes(b"x"), 1), "label-kind"),
        ("label beyond 64 bits", s().with(u64::MAX, 1), "label-kind"),
        ("unprotected label a float", s().unprotected(1.5, 1), "label-kind"),
        ("claim label a byte string", s().claim(9, 1).with(15, odd_claims()), "label-kind"),
        ("text labels", s().with("x", 1).unprotected("y", 2), "ok"),
        ("kid as text", s().with(4, "kid"), "header-value"),
        ("content type a byte string", s().with(3, bytes(b"x")), "header-value"),
        ("content type 70000", s().with(3, 70_000), "header-value"),
        ("content format 50", s().with(3, 50), "ok"),
        ("typ", s().with(16, "application/x"), "ok"),
        ("no kid", s().without(4), "key-identifier-missing"),
        ("kid unprotected", s().without(4).unprotected(4, bytes(b"k")), "key-identifier-missing"),
        ("no claims", s().without(15), "issuer-missing"),
        ("claims a list", s().with(15, list(&[1])), "claims-kind"),
        ("no iss", s().without_claim(1), "issuer-missing"),
        ("no sub", s().without_claim(2), "subject-missing"),
        ("iss a number", s().claim(1, 1), "claim-kind"),
        ("sub bytes", s().claim(2, bytes(b"x")), "claim-kind"),
        ("iat", s().claim(6, 1_780_000_000), "ok"),
        ("iat under tag 1", s().claim(6, tagged(1, 1_780_000_000.into())), "ok"),
        ("iat a float", s().claim(6, 1_780_000_000.5), "ok"),
        ("iat text", s().claim(6, "now"), "claim-kind"),
        ("iat under tag 0", s().claim(6, tagged(0, "2026".into())), "claim-kind"),
        ("iat before 1970", s().claim(6, -1), "claim-kind"),
        ("iat infinite", s().claim(6, f64::INFINITY), "claim-kind"),
        ("x5t without a chain", s().with(34, x5t(-16, &[0; 32])), "chain-missing"),
        ("x5t a byte string", s().with(34, bytes(b"x")), "header-value"),
        ("x5chain a list of one", s().with(33, Value::Array(vec![bytes(b"x")])), "header-value"),
        ("x5chain a number", s().with(33, 1), "header-value"),
        ("x5chain of 9", s().with(33, Value::Array(vec![bytes(b"x"); 9])), "header-value"),
        ("x5chain rubbish", s().with(33, bytes(b"x")), "x509-bad-certificate"),
        ("iss empty beside x5chain", s().claim(1, "").with(33, bytes(b"x")), "issuer-length"),
        ("iss too long", s().claim(1, "i".repeat(8193)).with(33, bytes(b"x")), "issuer-length"),
        ("hash of 32 bytes", hashed().payload(&[7; 32]), "ok"),
        ("hash of 31 bytes", hashed().payload(&[7; 31]), "hash-length"),
        ("SHA-384 of 32 bytes", hashed().with(258, -43).payload(&[7; 32]), "hash-length"),
        ("SHA-512", hashed().with(258, -44).payload(&[7; 64]), "ok"),
        ("unknown hash", hashed().with(258, -999).payload(&[7; 3]), "ok"),
        ("hash beside content type", s().with(258, -16), "content-type-in-hash-envelope"),
        ("hash, type unprotected", hashed().unprotected(3, 50), "content-type-in-hash-envelope"),
        ("hash algorithm text", hashed().with(258, "sha"), "header-value"),
        ("258 unprotected", s().unprotected(258, -16), "must-be-protected"),
        ("259 unprotected", s().unprotected(259, "a/b"), "must-be-protected"),
        ("260 unprotected", s().unprotected(260, "x:y"), "must-be-protected"),
        ("preimage type a list", hashed().with(259, list(&[1])), "header-value"),
        ("location a number", hashed().with(260, 1).payload(&[7; 32]), "header-value"),
    ]
}

fn tagged(tag: u64, value: Value) -> Value {
    Value::Tag(tag, Box::new(value))
}

fn odd_claims() -> Value {
    Value::Map(vec![(bytes(b"x"), 1.into())])
}

fn x5t(algorithm: i64, hash: &[u8]) -> Value {
    Value::Array(vec![algorithm.into(), bytes(hash)])
}

#[test]
fn headers_by_code() {
    let key = es256();
    let trust = trust(&key);
    for (what, sketch, expected) in wrong_headers(&Sketch::new(&key)) {
        assert_eq!(code(sketch.sign(&key), &trust), expected, "{what}");
    }
}

/// Bytes that are not S-shaped: (what is different, bytes, code).
fn wrong_shapes(good: &Sketch, key: &SigningKey) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let signed = good.sign(key);
    let untagged = signed[1..].to_vec();
    let with = |from: usize, to: usize, new: &[u8]| [&signed[..from], new, &signed[to..]].concat();
    let sign = |message: &[u8]| key.sign(message).unwrap();
    let protected = |bytes: &[u8]| good.assemble(bytes.to_vec(), sign);
    let mut detached = good.clone();
    detached.payload = Value::Null;
    let mut text_payload = good.clone();
    text_payload.payload = "x".into();
    let mut undefined = detached.sign(key);
    let nil = undefined.len() - 67;
    assert_eq!(undefined[nil], 0xf6);
    undefined[nil] = 0xf7;
    let nested = (0..20).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let large = good.clone().payload(&vec![0; STATEMENT_BYTES_MAX]);
    vec![
        ("nothing", Vec::new(), "not-sign1"),
        ("untagged", untagged, "not-sign1"),
        ("tag 98", with(0, 1, &[0xd8, 98]), "wrong-tag"),
        ("tag 17", with(0, 1, &[0xd1]), "wrong-tag"),
        ("long tag", with(0, 1, &[0xd8, 18]), "not-sign1"),
        ("array of 3", with(1, 2, &[0x83]), "wrong-length"),
        ("array of 5", with(1, 2, &[0x85]), "wrong-length"),
        ("long array head", with(1, 2, &[0x98, 4]), "not-sign1"),
        ("indefinite array", [with(1, 2, &[0x9f]), vec![0xff]].concat(), "not-sign1"),
        ("a map", with(1, 2, &[0xa2]), "not-sign1"),
        ("trailing byte", [signed.as_slice(), &[0]].concat(), "cbor-trailing-bytes"),
        ("cut", signed[..signed.len() - 1].to_vec(), "cbor-unexpected-end"),
        ("protected a map", with(2, 3, &[0xb8]), "cbor-unexpected-type"),
        ("long head inside", protected(&[0xa1, 0x18, 0x01, 0x26]), "cbor-long-head"),
        ("indefinite inside", protected(&[0xbf, 0x01, 0x26, 0xff]), "cbor-indefinite-length"),
        ("duplicate inside", protected(&[0xa2, 1, 0x26, 1, 0x26]), "cbor-duplicate-key"),
        ("trailing inside", protected(&[0xa1, 1, 0x26, 0]), "cbor-trailing-bytes"),
        ("protected an array", protected(&[0x80]), "header-kind"),
        ("protected empty", protected(&[]), "algorithm-missing"),
        ("protected an empty map", protected(&[0xa0]), "algorithm-missing"),
        ("unprotected an array", unprotected_array(good, key), "header-kind"),
        ("deep nesting", good.clone().unprotected(99, nested).sign(key), "cbor-too-deep"),
        ("detached", detached.sign(key), "payload-missing"),
        ("payload undefined", undefined, "cbor-unexpected-type"),
        ("payload text", text_payload.sign(key), "cbor-unexpected-type"),
        ("too large", large.sign(key), "too-large"),
    ]
}

fn unprotected_array(good: &Sketch, key: &SigningKey) -> Vec<u8> {
    let mut statement = decode(&good.sign(key));
    if let Value::Tag(_, inner) = &mut statement {
        inner.as_array_mut().unwrap()[1] = Value::Array(Vec::new());
    }
    encode(&statement)
}

#[test]
fn structure_by_code() {
    let key = es256();
    let trust = trust(&key);
    for (what, bytes, expected) in wrong_shapes(&Sketch::new(&key), &key) {
        assert_eq!(code(bytes, &trust), expected, "{what}");
    }
}

#[test]
fn verifier_reads_oversized_statements() {
    let key = es256();
    let large = Sketch::new(&key).payload(&vec![0; STATEMENT_BYTES_MAX]).sign(&key);
    let read = SignedStatement::parse_any_size(large).unwrap();
    assert_eq!(read.payload().unwrap().len(), STATEMENT_BYTES_MAX);
}

/// Clients send 3, 15, 4, 1; the signature covers that spelling.
#[test]
fn protected_bytes_are_kept() {
    let key = es256();
    let mut sketch = Sketch::new(&key);
    sketch.protected.rotate_left(1);
    sketch.protected.swap(1, 2);
    let order: Vec<Value> = sketch.protected.iter().map(|(label, _)| label.clone()).collect();
    assert_eq!(order, [3.into(), 15.into(), 4.into(), Value::from(1)]);
    let signed = sketch.sign(&key);
    let authentic = outcome(signed.clone(), &trust(&key)).unwrap();
    assert_eq!(authentic.statement().protected(), encode(&Value::Map(sketch.protected)));
    assert_eq!(authentic.canonical(), signed);
}

#[test]
fn canonical_bytes_ignore_unprotected_header() {
    let key = es256();
    let sign = |message: &[u8]| vec![message.len().to_be_bytes()[7]; 64];
    let plain = Sketch::new(&key).sign_with(sign);
    let statement = SignedStatement::parse(plain.clone()).unwrap();
    assert_eq!(statement.canonical(), plain, "S is the statement itself when nothing is added");
    let added = [
        Sketch::new(&key).unprotected(394, Value::Array(vec![bytes(b"receipt")])),
        Sketch::new(&key).unprotected("note", "x").unprotected(-70_000, 1),
        Sketch::new(&key).unprotected(33, bytes(b"certificate")),
    ];
    for sketch in added {
        let other = SignedStatement::parse(sketch.sign_with(sign)).unwrap();
        assert_ne!(other.bytes(), plain);
        assert_eq!(other.canonical(), plain);
        assert_eq!(StatementId::of(&other), StatementId::of(&statement));
    }
}

#[test]
fn sealed_draft_round_trips() {
    for key in [es256(), ed25519()] {
        let draft = Draft {
            content_type: "text/plain",
            issuer: ISSUER,
            subject: SUBJECT,
            issued_at: Some(NOW),
            payload: b"hello",
        };
        let sealed = seal(&draft, &key).unwrap();
        let authentic = outcome(sealed.clone(), &TrustAnchors::default()).unwrap();
        let header = authentic.statement().header();
        assert_eq!(header.content_type.as_ref().unwrap().to_string(), "text/plain");
        assert_eq!(header.claims.subject.as_deref(), Some(SUBJECT));
        assert_eq!(header.claims.issued_at, Some(NOW));
        assert_eq!(authentic.payload(), b"hello");
        assert_eq!(authentic.canonical(), sealed);
        assert_eq!(authentic.id().to_string().len(), 64);
    }
}

#[test]
fn iat_formats() {
    let key = es256();
    for (iat, expected) in [
        (Value::from(7), 7),
        (tagged(1, 7.into()), 7),
        (Value::from(7.0), 7),
        (tagged(1, 7.4.into()), 7),
    ] {
        let statement = SignedStatement::parse(Sketch::new(&key).claim(6, iat).sign(&key)).unwrap();
        assert_eq!(statement.header().claims.issued_at, Some(UnixSeconds::new(expected)));
    }
}
