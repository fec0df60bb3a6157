//! The signatures of a C2SP signed note, of type Ed25519.
//!
//! In: key names and keys, signature lines. Out: the line for a signature, and
//! the signatures of a note with key name and key hash.

use std::fmt;

use super::{Error, SIGNATURES_MAX};
use crate::key::{Material, PublicKey};
use crate::wire::digest::Digest;
use crate::wire::text;

/// The signature type of Ed25519 in key hashes and verifier keys.
const ED25519: u8 = 1;

/// An Ed25519 key that signs notes under a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VerifierKey {
    name: String,
    key: PublicKey,
    raw: [u8; 32],
}

impl VerifierKey {
    /// Names a key. A name has no spaces and no plus.
    pub fn new(name: &str, key: &PublicKey) -> Result<Self, Error> {
        let Material::Ed25519(raw) = key.material() else { return Err(Error::KeyKind) };
        if !is_name(name) {
            return Err(Error::Malformed { part: "key name" });
        }
        Ok(Self { name: name.to_owned(), key: key.clone(), raw: *raw })
    }

    /// Reads `name+hash+key`: 8 hex digits, then base64 of type and key.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let read = || {
            let (name, rest) = text.split_once('+')?;
            let (_, key) = rest.split_once('+')?;
            let (kind, raw) =
                text::from_base64(key)?.split_first().map(|(k, r)| (*k, r.to_vec()))?;
            let key = PublicKey::from_ed25519(&raw).ok().filter(|_| kind == ED25519)?;
            Self::new(name, &key).ok()
        };
        // Comparing with the formatted key also checks the hash.
        read().filter(|key| key.to_string() == text).ok_or(Error::VerifierKey)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key.
    pub fn public(&self) -> &PublicKey {
        &self.key
    }

    /// Four bytes that distinguish keys of one name; they prove nothing.
    fn hash(&self) -> [u8; 4] {
        let digest =
            Digest::of_parts(&[self.name.as_bytes(), b"\n", &[ED25519], self.raw.as_slice()]);
        let [a, b, c, d, ..] = *digest.as_bytes();
        [a, b, c, d]
    }

    pub(super) fn signature_line(&self, signature: &[u8]) -> String {
        let bytes = [self.hash().as_slice(), signature].concat();
        format!("— {} {}\n", self.name, text::base64(&bytes))
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = text::base64(&[&[ED25519], self.raw.as_slice()].concat());
        write!(f, "{}+{}+{key}", self.name, text::hex(&self.hash()))
    }
}

/// One signature line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Signature {
    name: String,
    hash: [u8; 4],
    bytes: Vec<u8>,
}

impl Signature {
    pub(super) fn is_by(&self, key: &VerifierKey) -> bool {
        self.name == key.name && self.hash == key.hash()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn parse(line: &str) -> Option<Self> {
        let (name, signature) = line.strip_prefix("— ")?.split_once(' ')?;
        let bytes = text::from_base64(signature)?;
        let (hash, signature) = bytes.split_first_chunk()?;
        let well_formed = is_name(name) && !signature.is_empty();
        let (name, bytes) = (name.to_owned(), signature.to_vec());
        well_formed.then_some(Self { name, hash: *hash, bytes })
    }
}

/// Reads the lines after the blank one: at least one, each with a line break.
pub(super) fn signatures(text: &str) -> Result<Vec<Signature>, Error> {
    const MALFORMED: Error = Error::Malformed { part: "signature line" };
    let lines = text.strip_suffix('\n').ok_or(MALFORMED)?;
    if lines.split('\n').count() > SIGNATURES_MAX {
        return Err(Error::TooManySignatures);
    }
    lines.split('\n').map(|line| Signature::parse(line).ok_or(MALFORMED)).collect()
}

/// Characters that a note must not contain, except its line breaks.
pub(super) fn is_control(c: char) -> bool {
    c < ' '
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c == '+' || c.is_whitespace() || is_control(c))
}
