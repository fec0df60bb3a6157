//! Every bit of a statement counts.

use super::*;

/// Every flipped bit is refused: in the signed part because the signature
/// fails, elsewhere because S has one encoding.
#[test]
fn bit_flips_are_refused() {
    for key in [es256(), ed25519()] {
        let trust = trust(&key);
        let signed = Sketch::new(&key).sign(&key);
        assert_eq!(code(signed.clone(), &trust), "ok");
        for bit in 0..signed.len() * 8 {
            let mut changed = signed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(code(changed, &trust), "ok", "bit {} of byte {}", bit % 8, bit / 8);
        }
    }
}

/// The same without a pin: a flip in the key of the statement must not make
/// another statement authentic.
#[test]
fn bit_flips_of_self_certified_are_refused() {
    let key = ed25519();
    let kid = key.public().raw_ed25519().unwrap().to_vec();
    let nobody = TrustAnchors::default();
    for signed in
        [Sketch::self_certified(&key).sign(&key), Sketch::new(&key).with(4, kid.clone()).sign(&key)]
    {
        for bit in 0..signed.len() * 8 {
            let mut changed = signed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(code(changed, &nobody), "ok", "bit {} of byte {}", bit % 8, bit / 8);
        }
    }
}

/// Every prefix is refused, and so is every prefix with its length mended by
/// zeros.
#[test]
fn truncations_are_refused() {
    let key = es256();
    let trust = trust(&key);
    let signed = Sketch::new(&key).sign(&key);
    for end in 0..signed.len() {
        assert_ne!(code(signed[..end].to_vec(), &trust), "ok");
        let mut padded = signed[..end].to_vec();
        padded.resize(signed.len(), 0);
        assert!(padded == signed || code(padded, &trust) != "ok", "cut at {end}");
    }
}
