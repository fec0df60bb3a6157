//! The producer's half: a payload becomes a Signed Statement.

use super::SIGN1_TAG;
use crate::key::{Error, SigningKey};
use crate::wire::cbor;
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

/// What a statement will say, before it is signed.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// Label 3.
    pub content_type: &'a str,
    /// CWT claim 1.
    pub issuer: &'a str,
    /// CWT claim 2.
    pub subject: &'a str,
    /// CWT claim 6.
    pub issued_at: Option<UnixSeconds>,
    /// The payload, as it is.
    pub payload: &'a [u8],
}

/// Signs a draft. The key travels along in the confirmation claim and `kid`
/// is its thumbprint, so that the statement works with a log that has pinned
/// the key and with one that has never seen it.
pub fn seal(draft: &Draft<'_>, key: &SigningKey) -> Result<Vec<u8>, Error> {
    seal_with_claims(draft, &[], key)
}

/// The same with further CWT claims under text names.
pub fn seal_with_claims(
    draft: &Draft<'_>,
    claims: &[(&str, String)],
    key: &SigningKey,
) -> Result<Vec<u8>, Error> {
    assemble(draft, claims, key, None)
}

/// The same with a certificate of the key: the protected header names it by
/// its hash (x5t), the unprotected one carries it (x5chain).
pub fn seal_certified(
    draft: &Draft<'_>,
    claims: &[(&str, String)],
    key: &SigningKey,
    leaf: &[u8],
) -> Result<Vec<u8>, Error> {
    assemble(draft, claims, key, Some(leaf))
}

fn assemble(
    draft: &Draft<'_>,
    claims: &[(&str, String)],
    key: &SigningKey,
    leaf: Option<&[u8]>,
) -> Result<Vec<u8>, Error> {
    let protected = protected(draft, claims, key, leaf);
    let signature = key.sign(&sig_structure(&protected, draft.payload))?;
    let room = protected.len() + draft.payload.len() + leaf.map_or(0, <[u8]>::len) + 80;
    let mut out = Vec::with_capacity(room);
    cbor::tag(&mut out, SIGN1_TAG);
    cbor::array(&mut out, 4);
    cbor::bytes(&mut out, &protected);
    cbor::map(&mut out, usize::from(leaf.is_some()));
    if let Some(leaf) = leaf {
        cbor::int(&mut out, 33);
        cbor::bytes(&mut out, leaf);
    }
    cbor::bytes(&mut out, draft.payload);
    cbor::bytes(&mut out, &signature);
    Ok(out)
}

/// `{1: alg, 3: content type, 4: kid, 15: {1: iss, 2: sub, ? 6: iat, 8: {1: key}, * name: text},
///   ? 34: [-16, SHA-256 of the certificate]}`
fn protected(
    draft: &Draft<'_>,
    claims: &[(&str, String)],
    key: &SigningKey,
    leaf: Option<&[u8]>,
) -> Vec<u8> {
    let mut out = Vec::new();
    cbor::map(&mut out, 4 + usize::from(leaf.is_some()));
    cbor::int(&mut out, 1);
    cbor::int(&mut out, key.algorithm().cose());
    cbor::int(&mut out, 3);
    cbor::text(&mut out, draft.content_type);
    cbor::int(&mut out, 4);
    cbor::bytes(&mut out, key.public().id().as_bytes());
    cbor::int(&mut out, 15);
    cbor::map(&mut out, 3 + usize::from(draft.issued_at.is_some()) + claims.len());
    cbor::int(&mut out, 1);
    cbor::text(&mut out, draft.issuer);
    cbor::int(&mut out, 2);
    cbor::text(&mut out, draft.subject);
    if let Some(at) = draft.issued_at {
        cbor::int(&mut out, 6);
        cbor::int(&mut out, at.seconds());
    }
    cbor::int(&mut out, 8);
    cbor::map(&mut out, 1);
    cbor::int(&mut out, 1);
    out.extend(key.public().to_cose_key());
    for (name, value) in claims {
        cbor::text(&mut out, name);
        cbor::text(&mut out, value);
    }
    if let Some(leaf) = leaf {
        cbor::int(&mut out, 34);
        cbor::array(&mut out, 2);
        cbor::int(&mut out, -16);
        cbor::bytes(&mut out, Digest::of(leaf).as_bytes());
    }
    out
}

/// What a COSE_Sign1 signature covers (RFC 9052, 4.4):
/// `["Signature1", protected, h'', payload]`.
pub fn sig_structure(protected: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(protected.len() + payload.len() + 24);
    cbor::array(&mut out, 4);
    cbor::text(&mut out, "Signature1");
    cbor::bytes(&mut out, protected);
    cbor::bytes(&mut out, b"");
    cbor::bytes(&mut out, payload);
    out
}
