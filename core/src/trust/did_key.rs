//! Keys as DIDs encode them: did:key and did:jwk names, Multikeys and JWKs.
//!
//! In: a name. Out: the key it contains. No lookup is needed, so a replay gives
//! the same result.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::signature as lc;
use serde::Deserialize;

use crate::key::{Curve, Error, Material, PublicKey};
use crate::wire::text;

/// Characters of a did:jwk name. A JWK of P-521, the longest we know, is some
/// 250 bytes and 340 characters.
const JWK_CHARS_MAX: usize = 1024;

/// Characters of a Multikey. The longest key we know is a compressed P-384
/// point: 2 + 49 bytes, 70 characters. Decoding base58 takes quadratic time.
const MULTIKEY_CHARS_MAX: usize = 128;

/// The key that a name contains; `None` for names of any other kind.
pub fn key_in_name(name: &str) -> Option<Result<PublicKey, Error>> {
    if let Some(encoded) = name.strip_prefix("did:key:") {
        return Some(multikey(encoded).and_then(known));
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
    Some(format!("did:key:z{}", bs58::encode(&bytes).into_string()))
}

fn compressed(codec: [u8; 2], x: &[u8], y: &[u8]) -> Vec<u8> {
    let is_odd = y.last().is_some_and(|byte| byte & 1 == 1);
    [codec.as_slice(), &[if is_odd { 3 } else { 2 }], x].concat()
}

fn jwk(encoded: &str) -> Result<PublicKey, Error> {
    const INVALID: Error = Error::InvalidMaterial { kind: "JWK" };
    let json = Some(encoded).filter(|e| e.len() <= JWK_CHARS_MAX).and_then(text::from_base64url);
    let jwk: Jwk = serde_json::from_slice(&json.ok_or(INVALID)?).map_err(|_| INVALID)?;
    // A name with the private key would let every reader sign.
    if jwk.is_private() { Err(INVALID) } else { jwk.key().and_then(known) }
}

fn known(key: Option<PublicKey>) -> Result<PublicKey, Error> {
    key.ok_or(Error::UnsupportedKind { kind: "in the name".to_owned() })
}

/// The key in a Multikey: `z`, then base58btc of a multicodec number and the
/// key. `None` for kinds of key we do not verify with.
pub(super) fn multikey(text: &str) -> Result<Option<PublicKey>, Error> {
    const INVALID: Error = Error::InvalidMaterial { kind: "multibase" };
    let encoded =
        text.strip_prefix('z').filter(|t| t.len() <= MULTIKEY_CHARS_MAX).ok_or(INVALID)?;
    let bytes = bs58::decode(encoded).into_vec().map_err(|_| INVALID)?;
    match bytes.as_slice() {
        [0xed, 0x01, key @ ..] => PublicKey::from_ed25519(key).map(Some),
        [0x80, 0x24, point @ ..] if point.len() == 33 => {
            decompress(&lc::ECDSA_P256_SHA256_FIXED, point).map(Some)
        }
        [0x81, 0x24, point @ ..] if point.len() == 49 => {
            decompress(&lc::ECDSA_P384_SHA384_FIXED, point).map(Some)
        }
        [0x80 | 0x81, 0x24, ..] => Err(INVALID),
        _ => Ok(None),
    }
}

/// Multikeys hold compressed points; the library expands them.
fn decompress(
    curve: &'static lc::EcdsaVerificationAlgorithm,
    point: &[u8],
) -> Result<PublicKey, Error> {
    let parsed = lc::ParsedPublicKey::new(curve, point)
        .map_err(|_| Error::InvalidMaterial { kind: "EC" })?;
    let spki: PublicKeyX509Der<'_> =
        parsed.as_der().map_err(|_| Error::InvalidMaterial { kind: "EC" })?;
    PublicKey::from_spki(spki.as_ref())
}

/// A public key as JSON (RFC 7517).
#[derive(Deserialize)]
pub(super) struct Jwk {
    kty: String,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
    #[serde(default)]
    d: Option<serde::de::IgnoredAny>,
}

impl Jwk {
    pub(super) fn is_private(&self) -> bool {
        self.d.is_some()
    }

    /// `None` for kinds of key we do not verify with.
    pub(super) fn key(&self) -> Result<Option<PublicKey>, Error> {
        let curve = match (self.kty.as_str(), self.crv.as_str()) {
            ("OKP", "Ed25519") => {
                let bytes = text::from_base64url(&self.x).unwrap_or_default();
                return PublicKey::from_ed25519(&bytes).map(Some);
            }
            ("EC", "P-256") => Curve::P256,
            ("EC", "P-384") => Curve::P384,
            ("EC", "P-521") => Curve::P521,
            _ => return Ok(None),
        };
        let coordinate = |text| text::from_base64url(text).unwrap_or_default();
        let (x, y) = (coordinate(&self.x), coordinate(&self.y));
        PublicKey::new(Material::Ec { curve, x, y }).map(Some)
    }
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
    fn base58_vectors_of_the_draft() {
        for (text, bytes) in [
            ("2NEpo7TZRRrLZSi2U", b"Hello World!".as_slice()),
            ("11233QC4", &[0, 0, 0x28, 0x7f, 0xb4, 0xcd]),
            ("", &[]),
            ("11", &[0, 0]),
        ] {
            assert_eq!(bs58::decode(text).into_vec().unwrap(), bytes, "{text}");
            assert_eq!(bs58::encode(bytes).into_string(), text);
        }
        assert!(bs58::decode("0OIl").into_vec().is_err());
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
