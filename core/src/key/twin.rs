//! The second signature that comes with every ECDSA signature.
//!
//! If (r, s) verifies, so does (r, n - s), where n is the order of the curve:
//! anybody can make the one from the other without a key. RFC 9053 prefers
//! neither, and signers in use write both, so neither can be refused by itself.

use super::Algorithm;

const P256: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

const P384: [u8; 48] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc7, 0x63, 0x4d, 0x81, 0xf4, 0x37, 0x2d, 0xdf,
    0x58, 0x1a, 0x0d, 0xb2, 0x48, 0xb0, 0xa7, 0x7a, 0xec, 0xec, 0x19, 0x6a, 0xcc, 0xc5, 0x29, 0x73,
];

const P521: [u8; 66] = [
    0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xfa, 0x51, 0x86, 0x87, 0x83, 0xbf, 0x2f, 0x96, 0x6b, 0x7f, 0xcc, 0x01, 0x48, 0xf7, 0x09,
    0xa5, 0xd0, 0x3b, 0xb5, 0xc9, 0xb8, 0x89, 0x9c, 0x47, 0xae, 0xbb, 0x6f, 0xb7, 0x1e, 0x91, 0x38,
    0x64, 0x09,
];

/// The other signature over the same message by the same key, for algorithms
/// that have one. `signature` is one that verified, so s is below n.
pub fn twin(algorithm: Algorithm, signature: &[u8]) -> Option<Vec<u8>> {
    let order: &[u8] = match algorithm {
        Algorithm::Es256 | Algorithm::Esp256 => &P256,
        Algorithm::Es384 | Algorithm::Esp384 => &P384,
        Algorithm::Es512 | Algorithm::Esp512 => &P521,
        _ => return None,
    };
    let (r, s) = signature.split_at_checked(order.len()).filter(|(_, s)| s.len() == order.len())?;
    let mut other = signature.to_vec();
    let mut borrow = false;
    for ((to, n), s) in other.iter_mut().skip(r.len()).zip(order).zip(s).rev() {
        let (once, under) = n.overflowing_sub(*s);
        let (twice, under_again) = once.overflowing_sub(u8::from(borrow));
        (*to, borrow) = (twice, under || under_again);
    }
    Some(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SigningKey;

    #[test]
    fn both_signatures_verify() {
        let rows = [(Algorithm::Es256, Algorithm::Esp256), (Algorithm::Es384, Algorithm::Esp384)];
        for (algorithm, same) in rows {
            let key = SigningKey::generate(algorithm).unwrap();
            for n in 0..32_u8 {
                let signature = key.sign(&[n]).unwrap();
                let other = twin(algorithm, &signature).unwrap();
                assert_ne!(other, signature);
                assert_eq!(key.public().verify(algorithm, &[n], &other), Ok(()), "{algorithm:?}");
                assert_eq!(twin(algorithm, &other), Some(signature), "{algorithm:?}");
                assert_eq!(twin(same, &other), twin(algorithm, &other));
            }
        }
    }

    #[test]
    fn other_algorithms_have_one_signature() {
        for algorithm in Algorithm::all() {
            let is_ecdsa = algorithm.name().starts_with("ES");
            let lengths = [64, 96, 132].map(|length| twin(algorithm, &vec![1; length]).is_some());
            assert_eq!(lengths.contains(&true), is_ecdsa, "{}", algorithm.name());
            assert_eq!(twin(algorithm, &[1; 63]), None, "{}", algorithm.name());
        }
    }
}
