//! The protected header of a Signed Statement or Receipt.

use std::fmt;

use super::{Error, labels};
use crate::wire::cbor::{Label, Value};
use crate::wire::label::header::{
    ALG, CONTENT_TYPE, CRIT, CWT_CLAIMS, KID, PAYLOAD_HASH_ALG, PAYLOAD_LOCATION,
    PREIMAGE_CONTENT_TYPE, TYP, VDS, X5CHAIN, X5T,
};
use crate::wire::label::{claim, hash};
use crate::wire::limits::{CHAIN_CERTIFICATES_MAX, ISSUER_CHARS_MAX};
use crate::wire::time::UnixSeconds;

/// Labels whose meaning we know, so `crit` may name them.
const UNDERSTOOD: &[i64] = &[
    ALG,
    CRIT,
    CONTENT_TYPE,
    KID,
    CWT_CLAIMS,
    TYP,
    X5CHAIN,
    X5T,
    PAYLOAD_HASH_ALG,
    PREIMAGE_CONTENT_TYPE,
    PAYLOAD_LOCATION,
    VDS,
];

/// What a protected header says, and the certificates of the unprotected one.
///
/// ```cddl
/// protected = {
///   1 => int,                       ; alg
///   ? 2 => [+ label],               ; crit
///   ? 3 => tstr / uint,             ; content type, not beside 258
///   ? 4 => bstr,                    ; kid
///   15 => claims,
///   ? 16 => tstr / uint,            ; typ
///   ? 33 => bstr / [2* bstr],       ; x5chain
///   ? 34 => [int, bstr],            ; x5t: hash algorithm and hash
///   ? 258 => int,                   ; payload hash algorithm
///   ? 259 => tstr / uint,           ; preimage content type
///   ? 260 => tstr,                  ; payload location
///   ? 395 => int,                   ; vds, in receipts only
///   * label => any
/// }
/// unprotected = { ? 33 => bstr / [2* bstr], ? 394 => receipts, ? 396 => proofs, * label => any }
/// claims = { 1 => tstr, 2 => tstr, ? 6 => time, ? 8 => { 1 => COSE_Key }, * label => any }
/// label = int / tstr
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// Label 1, as a COSE number.
    pub algorithm: Option<i64>,
    /// Label 3.
    pub content_type: Option<ContentType>,
    /// Label 4.
    pub kid: Option<Vec<u8>>,
    /// Label 15; empty when absent.
    pub claims: Claims,
    /// Label 33 of either bucket, leaf first.
    pub chain: Vec<Vec<u8>>,
    /// Whether the chain stood in the protected header.
    pub chain_is_protected: bool,
    /// Label 34: hash algorithm and hash of the leaf certificate.
    pub x5t: Option<(i64, Vec<u8>)>,
    /// Labels 258 to 260.
    pub hash_envelope: Option<HashEnvelope>,
    /// Label 395.
    pub vds: Option<i64>,
}

/// A media type, or a CoAP number for one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ContentType {
    /// A CoAP content-format number.
    Coap(u16),
    /// A media type.
    Media(String),
}

impl fmt::Display for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Coap(number) => write!(f, "{number}"),
            Self::Media(name) => f.write_str(name),
        }
    }
}

/// The payload is a digest (RFC 9995).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HashEnvelope {
    /// COSE hash algorithm.
    pub algorithm: i64,
    /// Media type of what was hashed.
    pub preimage: Option<ContentType>,
    /// Where the preimage may be found.
    pub location: Option<String>,
}

/// CWT claims of the header (RFC 9597).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// Claim 1.
    pub issuer: Option<String>,
    /// Claim 2.
    pub subject: Option<String>,
    /// Claim 6, plain or under tag 1.
    pub issued_at: Option<UnixSeconds>,
    /// The key inside claim 8, encoded as COSE_Key.
    pub confirmation: Option<Vec<u8>>,
    /// Claims labelled by text, in order: their text, or none if they hold
    /// something else.
    pub named: Vec<(String, Option<String>)>,
}

impl Header {
    /// Reads both maps; refuses what RFC 9052 and RFC 9995 forbid.
    pub fn read(protected: &[u8], unprotected: &Value<'_>) -> Result<Self, Error> {
        let map = if protected.is_empty() {
            Value::Map(Vec::new())
        } else {
            Value::read(protected).map_err(|source| Error::ProtectedHeader { source })?
        };
        for (bucket, value) in [("protected", &map), ("unprotected", unprotected)] {
            if !matches!(value, Value::Map(_)) {
                return Err(Error::HeaderKind { bucket, found: value.kind() });
            }
        }
        refuse_shared_labels(&map, unprotected)?;
        refuse_unknown_crit(&map)?;
        let mut header = Self {
            algorithm: field(&map, ALG, "an integer", |v| v.int())?,
            content_type: field(&map, CONTENT_TYPE, "a media type", content_type)?,
            kid: field(&map, KID, "a byte string", owned_bytes)?,
            claims: map.get(CWT_CLAIMS).map(Claims::read).transpose()?.unwrap_or_default(),
            x5t: field(&map, X5T, "[algorithm, hash]", x5t)?,
            hash_envelope: hash_envelope(&map, unprotected)?,
            vds: field(&map, VDS, "an integer", |v| v.int())?,
            ..Self::default()
        };
        header.chain_is_protected = map.get(X5CHAIN).is_some();
        let bucket = if header.chain_is_protected { &map } else { unprotected };
        header.chain =
            field(bucket, X5CHAIN, "one or more certificates", chain)?.unwrap_or_default();
        Ok(header)
    }

    /// What RFC 9943, section 6 demands of a Signed Statement, beyond a good
    /// signature. The first thing missing.
    pub fn conformance(&self) -> Result<(), Error> {
        let issuer = self.claims.issuer.as_deref().ok_or(Error::IssuerMissing)?;
        self.claims.subject.as_deref().ok_or(Error::SubjectMissing)?;
        if self.x5t.is_none() && !self.chain_is_protected {
            return self.kid.as_ref().map(|_| ()).ok_or(Error::KeyIdentifierMissing);
        }
        let chars = issuer.chars().count();
        if chars == 0 || chars > ISSUER_CHARS_MAX {
            return Err(Error::IssuerLength { chars, limit: ISSUER_CHARS_MAX });
        }
        Ok(())
    }

    /// A hash envelope's payload is as long as its hash.
    pub(super) fn check_payload(&self, payload_len: Option<usize>) -> Result<(), Error> {
        let (Some(envelope), Some(found)) = (&self.hash_envelope, payload_len) else {
            return Ok(());
        };
        match envelope.digest_len() {
            Some(expected) if expected != found => Err(Error::HashLength { expected, found }),
            _ => Ok(()),
        }
    }
}

impl HashEnvelope {
    /// The length of the digest, for algorithms we know.
    pub fn digest_len(&self) -> Option<usize> {
        match self.algorithm {
            hash::SHA_256 => Some(32),
            hash::SHA_384 => Some(48),
            hash::SHA_512 => Some(64),
            _ => None,
        }
    }
}

impl Claims {
    fn read(claims: &Value<'_>) -> Result<Self, Error> {
        if !matches!(claims, Value::Map(_)) {
            return Err(Error::ClaimsKind { found: claims.kind() });
        }
        labels(claims).try_for_each(|label| label.map(drop))?;
        let text = |label: i64, name| {
            let found = claims.get(label);
            found
                .map(|v| v.text().map(str::to_owned).ok_or(Error::ClaimKind { claim: name }))
                .transpose()
        };
        let confirmation =
            claims.get(claim::CNF).and_then(|cnf| cnf.get(claim::CNF_COSE_KEY)).map(Value::encode);
        Ok(Self {
            issuer: text(claim::ISS, "iss (1)")?,
            subject: text(claim::SUB, "sub (2)")?,
            issued_at: claims
                .get(claim::IAT)
                .map(|v| numeric_date(v).ok_or(Error::ClaimKind { claim: "iat (6)" }))
                .transpose()?,
            confirmation,
            named: named(claims),
        })
    }

    /// The text of a claim labelled by text.
    pub fn named(&self, name: &str) -> Option<&str> {
        self.named.iter().find(|(n, _)| n == name).and_then(|(_, text)| text.as_deref())
    }
}

fn named(claims: &Value<'_>) -> Vec<(String, Option<String>)> {
    let Value::Map(entries) = claims else { return Vec::new() };
    let texts = entries.iter().filter_map(|(label, value)| Some((label.text()?, value.text())));
    texts.map(|(name, text)| (name.to_owned(), text.map(str::to_owned))).collect()
}

/// RFC 8392 dates are untagged; deployed statements also carry tag 1.
fn numeric_date(value: &Value<'_>) -> Option<UnixSeconds> {
    match value {
        Value::Tag(1, inner) => numeric_date(inner),
        Value::Float(f) if f.is_finite() && *f >= 0.0 => {
            format!("{f:.0}").parse().ok().map(UnixSeconds::new)
        }
        value => value.int().map(UnixSeconds::new),
    }
}

fn field<T>(
    map: &Value<'_>,
    label: i64,
    expected: &'static str,
    read: impl FnOnce(&Value<'_>) -> Option<T>,
) -> Result<Option<T>, Error> {
    map.get(label).map(|v| read(v).ok_or(Error::HeaderValue { label, expected })).transpose()
}

fn owned_bytes(value: &Value<'_>) -> Option<Vec<u8>> {
    value.bytes().map(<[u8]>::to_vec)
}

fn content_type(value: &Value<'_>) -> Option<ContentType> {
    match value {
        Value::Text(name) => Some(ContentType::Media((*name).to_owned())),
        value => value.int().map(ContentType::Coap),
    }
}

fn x5t(value: &Value<'_>) -> Option<(i64, Vec<u8>)> {
    match value.array()? {
        [algorithm, hash] => Some((algorithm.int()?, owned_bytes(hash)?)),
        _ => None,
    }
}

/// One certificate, or an array of at least two (RFC 9360).
fn chain(value: &Value<'_>) -> Option<Vec<Vec<u8>>> {
    match value {
        Value::Bytes(one) => Some(vec![one.to_vec()]),
        Value::Array(many) if (2..=CHAIN_CERTIFICATES_MAX).contains(&many.len()) => {
            many.iter().map(owned_bytes).collect()
        }
        _ => None,
    }
}

fn hash_envelope(
    protected: &Value<'_>,
    unprotected: &Value<'_>,
) -> Result<Option<HashEnvelope>, Error> {
    for label in [PAYLOAD_HASH_ALG, PREIMAGE_CONTENT_TYPE, PAYLOAD_LOCATION] {
        if unprotected.get(label).is_some() {
            return Err(Error::MustBeProtected { label });
        }
    }
    let Some(algorithm) = field(protected, PAYLOAD_HASH_ALG, "an integer", |v| v.int())? else {
        return Ok(None);
    };
    if protected.get(CONTENT_TYPE).or(unprotected.get(CONTENT_TYPE)).is_some() {
        return Err(Error::ContentTypeInHashEnvelope);
    }
    Ok(Some(HashEnvelope {
        algorithm,
        preimage: field(protected, PREIMAGE_CONTENT_TYPE, "a media type", content_type)?,
        location: field(protected, PAYLOAD_LOCATION, "text", |v| v.text().map(str::to_owned))?,
    }))
}

fn refuse_shared_labels(protected: &Value<'_>, unprotected: &Value<'_>) -> Result<(), Error> {
    labels(protected).try_for_each(|label| label.map(drop))?;
    for label in labels(unprotected) {
        let label = label?;
        if protected.get(label).is_some() {
            return Err(Error::LabelInBothBuckets { label: spell(label) });
        }
    }
    if unprotected.get(CRIT).is_some() {
        return Err(Error::MustBeProtected { label: CRIT });
    }
    Ok(())
}

/// RFC 9052, 3.1: what `crit` lists is present, protected and understood.
fn refuse_unknown_crit(protected: &Value<'_>) -> Result<(), Error> {
    let Some(crit) = protected.get(CRIT) else { return Ok(()) };
    let listed = crit.array().filter(|list| !list.is_empty());
    for item in listed.ok_or(Error::HeaderValue { label: CRIT, expected: "a non-empty array" })? {
        let known = item.int::<i64>().filter(|n| UNDERSTOOD.contains(n));
        match known {
            None => return Err(Error::CritUnknown { label: item.to_string() }),
            Some(label) if protected.get(label).is_none() => {
                return Err(Error::CritAbsent { label });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn spell(label: Label<'_>) -> String {
    match label {
        Label::Int(n) => n.to_string(),
        Label::Text(t) => format!("{t:?}"),
    }
}
