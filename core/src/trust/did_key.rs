//! Names that are their key: did:key and did:jwk.
//!
//! In: a name. Out: the one key that may speak for it. Nothing is asked of
//! anybody, so what holds today holds in any replay.

use super::did_document::{Jwk, multibase};
use crate::key::{Curve, Error, Material, PublicKey};
use crate::wire::text;

/// Characters of a did:jwk name. A JWK of P-521, the longest we know, is some
/// 250 bytes and 340 characters.
const JWK_CHARS_MAX: usize = 1024;

/// The key a name spells out; `None` for names of any other kind.
pub fn key_in_name(name: &str) -> Option<Result<PublicKey, Error>> {
    if let Some(spelt) = name.strip_prefix("did:key:") {
        return Some(multibase::key(spelt).and_then(known));
    }
    name.strip_prefix("did:jwk:").map(jwk)
}

/// The did:key name of a key, for kinds that have one here.
pub fn did_key(key: &PublicKey) -> Option<String> {
    let bytes = match key.material() {
        Material::Ed25519(x) => [[0xed, 0x01].as_slice(), x].concat(),
        Material::Ec { curve: Curve::P256, x, y } => compressed([0x80, 0x24], x, y),
        Material::Ec { curve: Curve::P384, x, y } => compressed([0x81, 0x24], x, y),
        _ => return None,
    };
    Some(format!("did:key:z{}", multibase::to_base58(&bytes)))
}

fn compressed(codec: [u8; 2], x: &[u8], y: &[u8]) -> Vec<u8> {
    let is_odd = y.last().is_some_and(|byte| byte & 1 == 1);
    [codec.as_slice(), &[if is_odd { 3 } else { 2 }], x].concat()
}

fn jwk(encoded: &str) -> Result<PublicKey, Error> {
    const INVALID: Error = Error::InvalidMaterial { kind: "JWK" };
    let json = Some(encoded).filter(|e| e.len() <= JWK_CHARS_MAX).and_then(text::from_base64url);
    let jwk: Jwk = serde_json::from_slice(&json.ok_or(INVALID)?).map_err(|_| INVALID)?;
    // Whoever reads the name could sign with a private key in it.
    if jwk.is_private() { Err(INVALID) } else { jwk.key().and_then(known) }
}

fn known(key: Option<PublicKey>) -> Result<PublicKey, Error> {
    key.ok_or(Error::UnsupportedKind { kind: "that of the name".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Algorithm, SigningKey};

    /// The examples of the did:key and did:jwk specifications.
    #[test]
    fn keys_are_read_from_names() {
        let ed25519 = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
        let p256 = "did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169";
        let p384 =
            "did:key:z82Lm1MpAkeJcix9K8TMiLd5NMAhnwkjjCBeWHXyu3U4oT2MVJJKXkcVBgjGhnLBn2Kaau9";
        for name in [ed25519, p256, p384] {
            let key = key_in_name(name).unwrap().unwrap();
            assert_eq!(did_key(&key).as_deref(), Some(name));
        }
        let jwk = "did:jwk:eyJjcnYiOiJQLTI1NiIsImt0eSI6IkVDIiwieCI6ImFjYklRaXVNczNpOF91c3pFakoydHBUdFJNNEVVM3l6OTFQSDZDZEgyVjAiLCJ5IjoiX0tjeUxqOXZXTXB0bm1LdG00NkdxRHo4d2Y3NEk1TEtncmwyR3pIM25TRSJ9";
        let key = key_in_name(jwk).unwrap().unwrap();
        assert_eq!(key.default_algorithm(), Some(Algorithm::Es256));
        for algorithm in [Algorithm::EdDsa, Algorithm::Es256, Algorithm::Es384] {
            let key = SigningKey::generate(algorithm).unwrap();
            let name = did_key(key.public()).unwrap();
            assert_eq!(key_in_name(&name).unwrap().as_ref(), Ok(key.public()), "{name}");
        }
    }

    #[test]
    fn names_without_a_key() {
        let jwk = |json: &str| format!("did:jwk:{}", text::base64url(json.as_bytes()));
        let rows = [
            "did:key:".to_owned(),
            "did:key:z".to_owned(),
            "did:key:z0OIl".to_owned(),
            // secp256k1, which we do not verify.
            "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme".to_owned(),
            // A DID URL is not a DID.
            "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK#1".to_owned(),
            format!("did:key:z{}", "1".repeat(200)),
            "did:jwk:".to_owned(),
            "did:jwk:!".to_owned(),
            format!("did:jwk:{}", "A".repeat(2000)),
            jwk("{}"),
            jwk(r#"{"kty":"oct","k":"AA"}"#),
            jwk(r#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#),
            jwk(r#"{"kty":"OKP","crv":"Ed25519","d":"AA",
                "x":"WGZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmY"}"#),
        ];
        for name in rows {
            assert!(key_in_name(&name).unwrap().is_err(), "{name}");
        }
        for name in ["", "did:web:a.example", "https://a.example", "DID:key:z6Mk", "key:z6Mk"] {
            assert!(key_in_name(name).is_none(), "{name}");
        }
    }
}
