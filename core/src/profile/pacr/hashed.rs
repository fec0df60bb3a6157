//! Payloads that say nothing in clear: how personal data stays off the log.
//!
//! What the application says, behind an intervention tag if there is one, is
//! replaced by `[{258: -16}, digest]`: header and payload of a hash envelope
//! (RFC 9995) whose signature is that of the record. The digest is the SHA-256
//! of a disclosure, which the producer keeps: 32 random bytes, then the words
//! in clear. The random bytes are there because few words are easily guessed.

use super::tag::Tag;
use super::tuple::SixTuple;
use crate::profile::PayloadForm;
use crate::wire::digest::Digest;

/// Random bytes at the start of a disclosure.
pub const SALT_BYTES: usize = 32;

/// Deterministic CBOR up to the digest: an array of the map {258: -16}
/// (payload-hash-alg: SHA-256) and a byte string of 32.
const ENVELOPE: &[u8] = &[0x82, 0xa1, 0x19, 0x01, 0x02, 0x2f, 0x58, 0x20];

/// The form of a payload, if there is one that can be read. An intervention tag
/// alone is empty.
pub(super) fn form(payload: Option<&[u8]>) -> PayloadForm {
    match payload.map(Tag::read) {
        Some(Ok(tag)) if tag.inner.is_empty() => PayloadForm::Empty,
        Some(Ok(tag)) if digest(tag.inner).is_some() => PayloadForm::Hashed,
        Some(_) | None => PayloadForm::Clear,
    }
}

/// What a hashed payload was made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Disclosure(Vec<u8>);

impl Disclosure {
    /// Of words in clear.
    fn new(salt: &[u8; SALT_BYTES], inner: &[u8]) -> Self {
        Self([salt.as_slice(), inner].concat())
    }

    /// The bytes that the producer keeps.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn envelope(&self) -> Vec<u8> {
        [ENVELOPE, Digest::of(&self.0).as_bytes()].concat()
    }
}

/// The digest in a hashed payload, behind its tag.
fn digest(inner: &[u8]) -> Option<&[u8; 32]> {
    inner.strip_prefix(ENVELOPE)?.try_into().ok()
}

/// Whether a payload was made of this disclosure; none if it is not hashed.
pub(super) fn discloses(payload: &[u8], disclosure: &[u8]) -> Option<bool> {
    let stated = digest(Tag::read(payload).ok()?.inner)?;
    Some(disclosure.len() >= SALT_BYTES && Digest::of(disclosure).as_bytes() == stated)
}

impl SixTuple {
    /// Puts the digest of what the application says in its place. The tag
    /// stays as it is: what kind of event this was is no secret.
    pub(super) fn hash_payload(&mut self, salt: &[u8; SALT_BYTES]) -> Option<Disclosure> {
        let inner = Tag::read(&self.payload).ok()?.inner;
        let disclosure = Disclosure::new(salt, inner);
        let tag = self.payload.len() - inner.len();
        self.payload.truncate(tag);
        self.payload.extend(disclosure.envelope());
        Some(disclosure)
    }
}
