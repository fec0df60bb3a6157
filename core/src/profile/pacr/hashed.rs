//! Hashed payloads, which keep personal data off the log.
//!
//! The application's data, behind an intervention tag if there is one, is
//! replaced by `[{258: -16}, digest]`: header and payload of a hash envelope
//! (RFC 9995) whose signature is that of the record. The digest is the SHA-256
//! of a disclosure, which the producer keeps: 32 random bytes, then the data.
//! Without the random bytes short data could be guessed.

use super::tag::Tag;
use super::tuple::SixTuple;
use crate::profile::PayloadForm;
use crate::wire::digest::Digest;

/// Random bytes at the start of a disclosure.
pub const SALT_BYTES: usize = 32;

/// Deterministic CBOR up to the digest: an array of the map {258: -16}
/// (payload-hash-alg: SHA-256) and a byte string of 32.
const ENVELOPE: &[u8] = &[0x82, 0xa1, 0x19, 0x01, 0x02, 0x2f, 0x58, 0x20];

/// The form of a payload; an intervention tag alone is empty.
pub(super) fn form(payload: Option<&[u8]>) -> PayloadForm {
    match payload.map(Tag::read) {
        Some(Ok(tag)) if tag.inner.is_empty() => PayloadForm::Empty,
        Some(Ok(tag)) if digest(tag.inner).is_some() => PayloadForm::Hashed,
        Some(_) | None => PayloadForm::Clear,
    }
}

/// The salted data behind a hashed payload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Disclosure(Vec<u8>);

impl Disclosure {
    /// The bytes that the producer keeps.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The digest in a hashed payload, without its tag.
fn digest(inner: &[u8]) -> Option<&[u8; 32]> {
    inner.strip_prefix(ENVELOPE)?.try_into().ok()
}

/// Whether a payload has this disclosure; none if it is not hashed.
pub(super) fn discloses(payload: &[u8], disclosure: &[u8]) -> Option<bool> {
    let stated = digest(Tag::read(payload).ok()?.inner)?;
    Some(disclosure.len() >= SALT_BYTES && Digest::of(disclosure).as_bytes() == stated)
}

impl SixTuple {
    /// Replaces the application's data by its digest. The tag stays: the kind
    /// of event is not secret.
    pub(super) fn hash_payload(&mut self, salt: &[u8; SALT_BYTES]) -> Option<Disclosure> {
        let inner = Tag::read(&self.payload).ok()?.inner;
        let disclosure = Disclosure([salt.as_slice(), inner].concat());
        let tag = self.payload.len() - inner.len();
        self.payload.truncate(tag);
        self.payload.extend([ENVELOPE, Digest::of(&disclosure.0).as_bytes()].concat());
        Some(disclosure)
    }
}
