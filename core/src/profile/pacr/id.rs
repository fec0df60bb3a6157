//! Causal identities: 128 bits that name a record and order nothing.

use std::fmt;

use crate::wire::text;

/// The name of a record; 32 uppercase hex digits in text.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CausalId([u8; 16]);

impl CausalId {
    /// The 16 bytes of CBOR.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Exactly 32 uppercase hex digits.
    pub fn from_hex(hex: &str) -> Option<Self> {
        if hex.bytes().any(|b| b.is_ascii_lowercase()) {
            return None;
        }
        Self::from_bytes(&text::from_hex(hex)?)
    }

    /// A ULID: 26 characters of Crockford's alphabet, uppercase, of which the
    /// first holds three bits. For imports alone.
    pub(super) fn from_ulid(ulid: &str) -> Option<Self> {
        const ALPHABET: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        if ulid.len() != 26 || !ulid.starts_with(|first| ('0'..='7').contains(&first)) {
            return None;
        }
        let number = ulid.chars().try_fold(0_u128, |number, c| {
            let digit = u128::try_from(ALPHABET.find(c)?).ok()?;
            Some(number << 5 | digit)
        })?;
        Some(Self(number.to_be_bytes()))
    }

    /// A whole number, written in decimal. For imports alone.
    pub(super) fn from_number(token: &str) -> Option<Self> {
        token.parse::<u128>().ok().map(|number| Self(number.to_be_bytes()))
    }

    /// Whether this is the genesis sentinel, which stands for "nothing".
    pub fn is_sentinel(self) -> bool {
        self.0 == [0; 16]
    }

    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for CausalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::hex(&self.0).to_ascii_uppercase())
    }
}

impl fmt::Debug for CausalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
