//! SHA-256. A digest is never truncated, compared in part or padded.

use std::fmt;

use sha2::block_api::compress256;
use sha2::{Digest as _, Sha256};

use crate::wire::text;

/// A SHA-256 digest; lowercase hex in text.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of the concatenated parts.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The digests of one prefix with each of two suffixes.
    pub fn of_ends(beginning: &[u8], ends: [&[u8]; 2]) -> [Self; 2] {
        let mut hasher = Sha256::new();
        hasher.update(beginning);
        ends.map(|end| Self(hasher.clone().chain_update(end).finalize().into()))
    }

    /// The digest of one byte and two digests, as for inner nodes. Proofs need
    /// many of them: the padding of the two blocks is constant, so no buffer.
    pub fn of_node(prefix: u8, left: &Self, right: &Self) -> Self {
        let mut input = PADDED_NODE;
        let (first, rest) = input.split_at_mut(1);
        let (one, rest) = rest.split_at_mut(32);
        let (two, _) = rest.split_at_mut(32);
        first.fill(prefix);
        one.copy_from_slice(&left.0);
        two.copy_from_slice(&right.0);
        let mut state = INITIAL;
        compress256(&mut state, input.as_chunks().0);
        let mut digest = [0; 32];
        let words = digest.as_chunks_mut().0;
        words.iter_mut().zip(state).for_each(|(word, value)| *word = value.to_be_bytes());
        Self(digest)
    }

    /// A digest computed elsewhere.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A digest computed elsewhere, if `bytes` has its length.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The digest written as 64 lowercase hex digits.
    pub fn from_hex(hex: &str) -> Option<Self> {
        Self::from_slice(&base16ct::lower::decode_vec(hex).ok()?)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// FIPS 180-4, 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The last of 65 bytes (set later), a one bit, zeros, and the length in bits: 520.
const PADDED_NODE: [u8; 128] = {
    let mut input = [0; 128];
    input[65] = 0x80;
    [input[126], input[127]] = 520_u16.to_be_bytes();
    input
};

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_hash_equals_plain_sha256() {
        let mut left = Digest::of(b"left");
        for prefix in 0..=255 {
            let right = Digest::of(&[prefix]);
            let node = Digest::of_node(prefix, &left, &right);
            assert_eq!(node, Digest::of_parts(&[&[prefix], left.as_bytes(), right.as_bytes()]));
            left = node;
        }
    }
}
