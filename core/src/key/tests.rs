//! Two libraries, one verdict; and the RFC 9679 check value.

mod edges;

use super::*;
use crate::wire::text;

/// The example of RFC 9679, section 5.
#[test]
fn thumbprint_of_the_rfc_example() {
    let hex = |s: &str| text::from_hex(s).unwrap();
    let key = PublicKey::new(Material::Ec {
        curve: Curve::P256,
        x: hex("65eda5a12577c2bae829437fe338701a10aaa375e1bb5b5de108de439c08551d"),
        y: hex("1e52ed75701163f7f9e40ddf9f341b3dc9ba860af7e0ca7ca7e9eecd0084d19c"),
    })
    .unwrap();
    let expected = "496bd8afadf307e5b08c64b0421bf9dc01528a344a43bda88fadd1669da253ec";
    assert_eq!(key.id().to_string(), expected);
}

/// What the portable library says of a signature.
fn second_opinion(key: &PublicKey, message: &[u8], signature: &[u8]) -> bool {
    match key.material() {
        Material::Ec { curve: Curve::P256, x, y } => {
            use p256::ecdsa::{Signature, VerifyingKey, signature::Verifier as _};
            let point = [&[4], x.as_slice(), y.as_slice()].concat();
            let key = VerifyingKey::from_sec1_bytes(&point).unwrap();
            Signature::from_slice(signature).is_ok_and(|s| key.verify(message, &s).is_ok())
        }
        Material::Ec { curve: Curve::P384, x, y } => {
            use p384::ecdsa::{Signature, VerifyingKey, signature::Verifier as _};
            let point = [&[4], x.as_slice(), y.as_slice()].concat();
            let key = VerifyingKey::from_sec1_bytes(&point).unwrap();
            Signature::from_slice(signature).is_ok_and(|s| key.verify(message, &s).is_ok())
        }
        Material::Ed25519(bytes) => {
            let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).unwrap();
            ed25519_dalek::Signature::from_slice(signature)
                .is_ok_and(|s| key.verify_strict(message, &s).is_ok())
        }
        other => panic!("no second library for {other:?}"),
    }
}

#[test]
fn libraries_agree_on_bit_flips() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::EdDsa] {
        let key = SigningKey::generate(algorithm).unwrap();
        let message = b"what the agent did";
        let good = key.sign(message).unwrap();
        assert!(key.public().verify(algorithm, message, &good).is_ok());
        assert!(second_opinion(key.public(), message, &good));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let ours = key.public().verify(algorithm, message, &bad).is_ok();
            assert!(!ours, "{algorithm:?}: a flip of bit {bit} verified");
            assert_eq!(ours, second_opinion(key.public(), message, &bad));
        }
        for cut in 0..good.len() {
            assert!(key.public().verify(algorithm, message, &good[..cut]).is_err());
        }
    }
}

#[test]
fn keys_round_trip_in_every_format() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::EdDsa] {
        let key = SigningKey::generate(algorithm).unwrap();
        let again = SigningKey::from_pem(&key.to_pem().unwrap()).unwrap();
        assert_eq!(again.public(), key.public());
        let public = key.public();
        assert_eq!(&PublicKey::from_pem(&public.to_pem().unwrap()).unwrap(), public);
        assert_eq!(&PublicKey::from_cose_key(&public.to_cose_key()).unwrap(), public);
    }
}

/// Each refusal of a key, by its code.
#[test]
fn refusals() {
    let es256 = SigningKey::generate(Algorithm::Es256).unwrap();
    let wrong = es256.public().verify(Algorithm::EdDsa, b"", b"").unwrap_err();
    assert_eq!(wrong.code(), "key-algorithm-mismatch");
    assert_eq!(
        es256.public().verify(Algorithm::Es256, b"", b"").unwrap_err().code(),
        "signature-invalid"
    );
    assert_eq!(PublicKey::from_pem("no").unwrap_err().code(), "key-not-pem");
    let cases = [
        ("ff", "key-cose-key"),
        ("a0", "key-cose-key-member"),
        ("a10119ffff", "key-unsupported-kind"),
        (
            "a401022001215820000000000000000000000000000000000000000000000000000000000000000022f5",
            "key-compressed-point",
        ),
        ("a3010120062141aa", "key-invalid-material"),
    ];
    for (hex, code) in cases {
        let error = PublicKey::from_cose_key(&text::from_hex(hex).unwrap()).unwrap_err();
        assert_eq!(error.code(), code, "{hex}");
    }
}
