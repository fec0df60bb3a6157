//! Every algorithm we claim to verify, and each with the wrong key.

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, ML_DSA_44_SIGNING,
    ML_DSA_65_SIGNING, PqdsaKeyPair, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaKeyPair,
};

use super::*;
use crate::key::{Curve, Material, PublicKey};

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// A signer for the algorithm, also for those the crate itself does not sign
/// with, and the public key.
fn signer(algorithm: Algorithm) -> (PublicKey, Sign) {
    match algorithm {
        Algorithm::Es512 | Algorithm::Esp512 => p521(),
        Algorithm::Ps256 | Algorithm::Ps384 | Algorithm::Ps512 => rsa(algorithm),
        Algorithm::MlDsa44 | Algorithm::MlDsa65 => ml_dsa(algorithm),
        _ => {
            let own = match algorithm {
                Algorithm::Esp256 => Algorithm::Es256,
                Algorithm::Esp384 => Algorithm::Es384,
                Algorithm::Ed25519 => Algorithm::EdDsa,
                same => same,
            };
            let key = SigningKey::generate(own).unwrap();
            (key.public().clone(), Box::new(move |message| key.sign(message).unwrap()))
        }
    }
}

fn p521() -> (PublicKey, Sign) {
    let pair = EcdsaKeyPair::generate(&ECDSA_P521_SHA512_FIXED_SIGNING).unwrap();
    let (x, y) = pair.public_key().as_ref()[1..].split_at(66);
    let material = Material::Ec { curve: Curve::P521, x: x.to_vec(), y: y.to_vec() };
    let sign: Sign = Box::new(move |message| {
        pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec()
    });
    (PublicKey::new(material).unwrap(), sign)
}

fn rsa(algorithm: Algorithm) -> (PublicKey, Sign) {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let spki: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let public = PublicKey::from_spki(spki.as_ref()).unwrap();
    let padding = match algorithm {
        Algorithm::Ps256 => &RSA_PSS_SHA256,
        Algorithm::Ps384 => &RSA_PSS_SHA384,
        _ => &RSA_PSS_SHA512,
    };
    let sign: Sign = Box::new(move |message| {
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(padding, &SystemRandom::new(), message, &mut signature).unwrap();
        signature
    });
    (public, sign)
}

fn ml_dsa(algorithm: Algorithm) -> (PublicKey, Sign) {
    let level = match algorithm {
        Algorithm::MlDsa44 => &ML_DSA_44_SIGNING,
        _ => &ML_DSA_65_SIGNING,
    };
    let pair = PqdsaKeyPair::generate(level).unwrap();
    let public = pair.public_key().as_ref().to_vec();
    let sign: Sign = Box::new(move |message| {
        let mut signature = vec![0; pair.algorithm().signature_len()];
        let len = pair.sign(message, &mut signature).unwrap();
        signature.truncate(len);
        signature
    });
    (PublicKey::new(Material::MlDsa { algorithm, bytes: public }).unwrap(), sign)
}

#[test]
fn every_algorithm_verifies() {
    for algorithm in Algorithm::all() {
        let (public, sign) = signer(algorithm);
        let trust = TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(&public));
        let sketch = Sketch::new(&es256()).with(1, algorithm.cose());
        let signed = sketch.sign_with(&sign);
        assert_eq!(code(signed.clone(), &trust), "ok", "{}", algorithm.name());
        let mut broken = signed;
        let last = broken.len() - 1;
        broken[last] ^= 1;
        assert_eq!(code(broken, &trust), "signature-invalid", "{}", algorithm.name());
        assert_eq!(
            code(sketch.clone().payload(b"[]").sign_with(|_| sign(b"other")), &trust),
            "signature-invalid"
        );
        assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        let again = PublicKey::from_cose_key(&public.to_cose_key()).unwrap();
        assert_eq!(again, public, "{}", algorithm.name());
    }
}

/// A header that names one algorithm never makes a key of another kind work.
#[test]
fn algorithm_must_fit_the_key() {
    let signers: Vec<_> = Algorithm::all().map(|a| (a, signer(a))).collect();
    for (claimed, _) in &signers {
        for (of_key, (public, sign)) in &signers {
            let trust = TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(public));
            let signed = Sketch::new(&es256()).with(1, claimed.cose()).sign_with(sign);
            let found = code(signed, &trust);
            let kind = |a: &Algorithm| a.name().trim_start_matches("ESP").trim_start_matches("ES");
            let same = claimed == of_key
                || (kind(claimed) == kind(of_key) && claimed.name().starts_with("ES"))
                || [*claimed, *of_key].iter().all(|a| a.name().starts_with("Ed"));
            let rsa = [*claimed, *of_key].iter().all(|a| a.name().starts_with("PS"));
            let expected = match (same, rsa) {
                (true, _) => "ok",
                (_, true) => "signature-invalid",
                _ => "key-algorithm-mismatch",
            };
            assert_eq!(found, expected, "{} with {public:?}", claimed.name());
        }
    }
}

/// Two statements that differ in nothing but which ECDSA signature they have
/// know each other by name; no other algorithm has a second signature.
#[test]
fn twins_name_each_other() {
    for algorithm in Algorithm::all() {
        let (public, sign) = signer(algorithm);
        let trust = TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(&public));
        let sketch = Sketch::new(&es256()).with(1, algorithm.cose()).unprotected(99, 1);
        let signed = sketch.sign_with(sign);
        let one = outcome(signed.clone(), &trust).unwrap();
        let signature = one.statement().signature();
        let Some(other) = key::twin(algorithm, signature) else {
            assert!(!algorithm.name().starts_with("ES"), "{}", algorithm.name());
            assert_eq!(one.twin(), None, "{}", algorithm.name());
            continue;
        };
        let turned = [&signed[..signed.len() - signature.len()], &other].concat();
        let two = outcome(turned, &trust).unwrap();
        assert_eq!((one.twin(), two.twin()), (Some(two.id()), Some(one.id())));
        assert_eq!(two.id(), StatementId::of_canonical(two.canonical()));
        assert_ne!(one.id(), two.id(), "{}", algorithm.name());
    }
}

/// What the portable libraries say of the same statement.
fn second_opinion(public: &PublicKey, message: &[u8], signature: &[u8]) -> bool {
    match public.material() {
        Material::Ec { curve: Curve::P256, x, y } => {
            use p256::ecdsa::{Signature, VerifyingKey, signature::Verifier as _};
            let key = VerifyingKey::from_sec1_bytes(&[&[4], &x[..], &y[..]].concat()).unwrap();
            Signature::from_slice(signature).is_ok_and(|s| key.verify(message, &s).is_ok())
        }
        Material::Ec { x, y, .. } => {
            use p384::ecdsa::{Signature, VerifyingKey, signature::Verifier as _};
            let key = VerifyingKey::from_sec1_bytes(&[&[4], &x[..], &y[..]].concat()).unwrap();
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
fn libraries_agree_on_mutated_statements() {
    for algorithm in [Algorithm::Es256, Algorithm::Es384, Algorithm::EdDsa] {
        let (public, sign) = signer(algorithm);
        let trust = TrustAnchors::default().with_issuer(ISSUER, std::slice::from_ref(&public));
        let signed = Sketch::new(&es256()).with(1, algorithm.cose()).sign_with(sign);
        for bit in (0..signed.len() * 8).step_by(3) {
            let mut changed = signed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let Ok(statement) = SignedStatement::parse(changed.clone()) else { continue };
            let Some(payload) = statement.payload() else { continue };
            let message = sig_structure(statement.protected(), payload);
            let theirs = second_opinion(&public, &message, statement.signature());
            assert!(!theirs, "{algorithm:?}: the other library takes a flip of bit {bit}");
            assert_ne!(code(changed, &trust), "ok", "{algorithm:?}: bit {bit}");
        }
    }
}
