//! Documents, good and bad.

use serde_json::{Value, json};

use super::*;
use crate::key::{Algorithm, SigningKey};
use crate::key::{Curve, Material};
use crate::wire::text;

const DID: &str = "did:web:example.org";

fn jwk(key: &PublicKey) -> Value {
    let url = text::base64url;
    match key.material() {
        Material::Ec { curve, x, y } => {
            let crv = match curve {
                Curve::P256 => "P-256",
                Curve::P384 => "P-384",
                Curve::P521 => "P-521",
            };
            json!({"kty": "EC", "crv": crv, "x": url(x), "y": url(y)})
        }
        Material::Ed25519(x) => json!({"kty": "OKP", "crv": "Ed25519", "x": url(x)}),
        other => panic!("{other:?}"),
    }
}

fn method(id: &str, key: Value) -> Value {
    json!({"id": id, "type": "JsonWebKey", "controller": DID, "publicKeyJwk": key})
}

fn document(methods: Value, assertion: Value) -> Vec<u8> {
    let doc = json!({"@context": ["https://www.w3.org/ns/did/v1"], "id": DID,
        "verificationMethod": methods, "assertionMethod": assertion});
    doc.to_string().into_bytes()
}

fn public(algorithm: Algorithm) -> PublicKey {
    SigningKey::generate(algorithm).unwrap().public().clone()
}

#[test]
fn jwks_of_every_kind() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::EdDsa] {
        let key = public(algorithm);
        for (id, listed) in [
            ("did:web:example.org#k", "did:web:example.org#k"),
            ("#k", "did:web:example.org#k"),
            ("did:web:example.org#k", "#k"),
        ] {
            let json = document(json!([method(id, jwk(&key))]), json!([listed]));
            let expected = DidKey { id: "did:web:example.org#k".into(), key: key.clone() };
            assert_eq!(parse_did_document(DID, &json), Ok(vec![expected]));
        }
    }
}

#[test]
fn p521_from_the_jwk_of_rfc_7515() {
    let key = json!({"kty": "EC", "crv": "P-521",
        "x": "AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",
        "y": "ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2"});
    let json = document(json!([]), json!([method("#k", key)]));
    let found = parse_did_document(DID, &json).unwrap();
    assert!(matches!(found[0].key.material(), Material::Ec { curve: Curve::P521, .. }));
}

/// Keys and their Multikey spellings from the did:key test vectors.
#[test]
fn multibase_keys() {
    let document = |text: &str| {
        let method = json!({"id": "#k", "type": "Multikey", "controller": DID,
            "publicKeyMultibase": text});
        document(json!([method]), json!(["#k"]))
    };
    let key = |text: &str| parse_did_document(DID, &document(text)).unwrap().remove(0).key;
    let ed25519 = key("z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK");
    assert!(matches!(ed25519.material(), Material::Ed25519(_)));
    let p256 = key("zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169");
    let Material::Ec { curve: Curve::P256, x, .. } = p256.material() else { panic!("{p256:?}") };
    assert_eq!(text::base64url(x), "fyNYMN0976ci7xqiSdag3buk-ZCwgXU4kz9XNkBlNUI");
    for (text, expected) in [
        // Another base, another codec, not base58, nothing at all.
        ("m6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", "did-document-bad-key"),
        ("zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU216", "did-document-no-assertion-key"),
        ("z6Mk0", "did-document-bad-key"),
        ("z", "did-document-no-assertion-key"),
        // X25519 cannot sign.
        ("z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc", "did-document-no-assertion-key"),
    ] {
        let error = parse_did_document(DID, &document(text)).unwrap_err();
        assert_eq!(error.code(), expected, "{text}");
    }
}

#[test]
fn p384_points_are_decompressed() {
    let key = public(Algorithm::Es384);
    let Material::Ec { x, y, .. } = key.material() else { panic!() };
    let point = [&[0x81, 0x24, 2 | (y[47] & 1)], x.as_slice()].concat();
    assert_eq!(multikey(&format!("z{}", to_base58(&point))), Ok(Some(key)));
}

fn to_base58(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut number = bytes.to_vec();
    let mut out = Vec::new();
    while number.iter().any(|b| *b != 0) {
        let mut rest = 0;
        for byte in &mut number {
            let value = rest * 256 + usize::from(*byte);
            *byte = u8::try_from(value / 58).unwrap();
            rest = value % 58;
        }
        out.push(char::from(ALPHABET[rest]));
    }
    out.into_iter().rev().collect()
}

#[test]
fn documents_without_usable_key() {
    let key = jwk(&public(Algorithm::Es256));
    let with = |name: &str, value: Value| {
        let mut changed = key.clone();
        changed[name] = value;
        changed
    };
    let one = |key: Value| document(json!([method("#k", key)]), json!(["#k"]));
    let mut foreign = method("#k", key.clone());
    foreign["controller"] = json!("did:web:example.com");
    let mut both = method("#k", key.clone());
    both["publicKeyMultibase"] = json!("z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK");
    let twice = json!([method("#k", key.clone()), method("#k", key.clone())]);
    let many: Vec<Value> = (0..65).map(|i| method(&format!("#{i}"), key.clone())).collect();
    let other = method("did:web:example.com#k", key.clone());
    for (name, json, expected) in [
        ("good", one(key.clone()), "ok"),
        ("not JSON", b"{".to_vec(), "did-document-unreadable"),
        ("no id", b"{}".to_vec(), "did-document-unreadable"),
        (
            "id twice",
            format!(r##"{{"id":"{DID}","id":"{DID}"}}"##).into(),
            "did-document-unreadable",
        ),
        ("other DID", br##"{"id":"did:web:example.com"}"##.to_vec(), "did-document-other-did"),
        ("no keys", document(json!([]), json!([])), "did-document-no-assertion-key"),
        (
            "not for assertions",
            document(json!([method("#k", key.clone())]), json!(["#other"])),
            "did-document-no-assertion-key",
        ),
        (
            "foreign controller",
            document(json!([foreign]), json!(["#k"])),
            "did-document-no-assertion-key",
        ),
        (
            "foreign id",
            document(json!([other]), json!(["did:web:example.com#k"])),
            "did-document-no-assertion-key",
        ),
        ("two keys", document(json!([both]), json!(["#k"])), "did-document-ambiguous-key"),
        ("one name", document(twice, json!(["#k"])), "did-document-duplicate-method"),
        ("too many", document(json!(many), json!([])), "did-document-too-many-methods"),
        ("private", one(with("d", json!("AA"))), "did-document-private-key"),
        ("secp256k1", one(with("crv", json!("secp256k1"))), "did-document-no-assertion-key"),
        ("off the curve", one(with("x", key["y"].clone())), "did-document-bad-key"),
        ("wrong curve", one(with("crv", json!("P-384"))), "did-document-bad-key"),
        ("not base64url", one(with("x", json!("=="))), "did-document-bad-key"),
    ] {
        let found = parse_did_document(DID, &json);
        assert_eq!(found.map_or_else(|e| e.code(), |_| "ok"), expected, "{name}");
    }
}
