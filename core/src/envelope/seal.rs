//! The producer's half: a payload becomes a Signed Statement.

use crate::key::{Error, SigningKey};
use crate::wire::cbor;
use crate::wire::digest::Digest;
use crate::wire::label::{COSE_SIGN1_TAG, claim, hash, header};
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
    /// The payload.
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
    let mut unprotected = Vec::new();
    cbor::map(&mut unprotected, usize::from(leaf.is_some()));
    if let Some(leaf) = leaf {
        cbor::int(&mut unprotected, header::X5CHAIN);
        cbor::bytes(&mut unprotected, leaf);
    }
    let payload = Some(draft.payload);
    let (protected, unprotected, signature) = (&protected, &unprotected, &signature);
    Ok(Sign1 { protected, unprotected, payload, signature }.encode())
}

fn protected(
    draft: &Draft<'_>,
    claims: &[(&str, String)],
    key: &SigningKey,
    leaf: Option<&[u8]>,
) -> Vec<u8> {
    let mut out = Vec::new();
    cbor::map(&mut out, 4 + usize::from(leaf.is_some()));
    cbor::int(&mut out, header::ALG);
    cbor::int(&mut out, key.algorithm().cose());
    cbor::int(&mut out, header::CONTENT_TYPE);
    cbor::text(&mut out, draft.content_type);
    cbor::int(&mut out, header::KID);
    cbor::bytes(&mut out, key.public().id().as_bytes());
    cbor::int(&mut out, header::CWT_CLAIMS);
    cbor::map(&mut out, 3 + usize::from(draft.issued_at.is_some()) + claims.len());
    cbor::int(&mut out, claim::ISS);
    cbor::text(&mut out, draft.issuer);
    cbor::int(&mut out, claim::SUB);
    cbor::text(&mut out, draft.subject);
    if let Some(at) = draft.issued_at {
        cbor::int(&mut out, claim::IAT);
        cbor::int(&mut out, at.seconds());
    }
    cbor::int(&mut out, claim::CNF);
    cbor::map(&mut out, 1);
    cbor::int(&mut out, claim::CNF_COSE_KEY);
    out.extend(key.public().to_cose_key());
    for (name, value) in claims {
        cbor::text(&mut out, name);
        cbor::text(&mut out, value);
    }
    if let Some(leaf) = leaf {
        cbor::int(&mut out, header::X5T);
        cbor::array(&mut out, 2);
        cbor::int(&mut out, hash::SHA_256);
        cbor::bytes(&mut out, Digest::of(leaf).as_bytes());
    }
    out
}

/// The encoded parts of a COSE_Sign1.
///
/// ```cddl
/// COSE_Sign1 = #6.18([protected: bstr, unprotected: map, payload: bstr / nil, signature: bstr])
/// ```
pub struct Sign1<'a> {
    /// The content of the protected byte string.
    pub protected: &'a [u8],
    /// The encoded unprotected map.
    pub unprotected: &'a [u8],
    /// The payload; `None` when it is detached.
    pub payload: Option<&'a [u8]>,
    /// The signature.
    pub signature: &'a [u8],
}

impl Sign1<'_> {
    /// An unprotected map without entries.
    pub const EMPTY_MAP: &'static [u8] = &[0xa0];

    /// The tagged COSE_Sign1.
    pub fn encode(&self) -> Vec<u8> {
        let Self { protected, unprotected, payload, signature } = self;
        let payload_len = payload.map_or(0, <[u8]>::len);
        // Five heads of at most 9 bytes.
        let room = protected.len() + unprotected.len() + payload_len + signature.len() + 45;
        let mut out = Vec::with_capacity(room);
        cbor::tag(&mut out, COSE_SIGN1_TAG);
        cbor::array(&mut out, 4);
        cbor::bytes(&mut out, protected);
        out.extend_from_slice(unprotected);
        match payload {
            Some(payload) => cbor::bytes(&mut out, payload),
            None => cbor::null(&mut out),
        }
        cbor::bytes(&mut out, signature);
        out
    }
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
