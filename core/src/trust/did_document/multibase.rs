//! Multikey: `z`, then base58btc of a multicodec number and the key.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::signature as lc;

use crate::key::{Error, PublicKey};

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// The longest key we know is a compressed P-384 point: 2 + 49 bytes, 70
/// characters. Base58 costs the square of its length.
const CHARS_MAX: usize = 128;

/// The key, or `None` for kinds we do not verify with.
pub(in crate::trust) fn key(text: &str) -> Result<Option<PublicKey>, Error> {
    const INVALID: Error = Error::InvalidMaterial { kind: "multibase" };
    let encoded = text.strip_prefix('z').filter(|t| t.len() <= CHARS_MAX).ok_or(INVALID)?;
    let bytes = base58(encoded).ok_or(INVALID)?;
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

/// Multikeys hold compressed points; the library writes them out in full.
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

/// Base58btc, the other way.
pub(in crate::trust) fn to_base58(bytes: &[u8]) -> String {
    // Little-endian digits; each zero byte at the front is a `1`.
    let mut digits: Vec<u8> = Vec::new();
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = u8::try_from(carry % 58).unwrap_or_default();
            carry /= 58;
        }
        while carry > 0 {
            digits.push(u8::try_from(carry % 58).unwrap_or_default());
            carry /= 58;
        }
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).map(|_| &0);
    let digits = zeros.chain(digits.iter().rev());
    digits.filter_map(|digit| ALPHABET.get(usize::from(*digit))).map(|c| char::from(*c)).collect()
}

fn base58(text: &str) -> Option<Vec<u8>> {
    // Big-endian, without leading zeros; each `1` at the front is one of them.
    let mut number: Vec<u8> = Vec::new();
    for c in text.bytes() {
        let mut carry = ALPHABET.iter().position(|a| *a == c)?;
        for byte in number.iter_mut().rev() {
            carry += usize::from(*byte) * 58;
            *byte = u8::try_from(carry & 0xff).ok()?;
            carry >>= 8;
        }
        if carry > 0 {
            number.insert(0, u8::try_from(carry).ok()?);
        }
    }
    let zeros = text.bytes().take_while(|c| *c == b'1').count();
    number.splice(0..0, std::iter::repeat_n(0, zeros));
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base58_of_the_draft() {
        for (text, expected) in [
            ("2NEpo7TZRRrLZSi2U", b"Hello World!".as_slice()),
            ("11233QC4", &[0, 0, 0x28, 0x7f, 0xb4, 0xcd]),
            ("", &[]),
            ("11", &[0, 0]),
        ] {
            assert_eq!(base58(text).unwrap(), expected, "{text}");
            assert_eq!(to_base58(expected), text);
        }
        assert_eq!(base58("0OIl"), None);
    }
}
