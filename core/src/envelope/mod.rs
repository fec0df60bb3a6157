//! A Signed Statement from bytes to `Authentic`.
//!
//! In: bytes. `SignedStatement::parse` keeps them unchanged;
//! `authenticate` checks RFC 9943 conformance, binds a key to the issuer and
//! verifies the signature. Out: `Authentic`, which nothing else can make.

mod context;
mod error;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixture;
mod header;
mod issuer;
mod name;
mod seal;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Range;

use crate::key::{self, Algorithm};
use crate::wire::cbor::{self, Reader, Value};
use crate::wire::digest::Digest;
use crate::wire::label::COSE_SIGN1_TAG;
use crate::wire::limits::STATEMENT_BYTES_MAX;

pub use context::{AuthContext, RulesVersion};
pub use error::Error;
pub use header::{Claims, ContentType, HashEnvelope, Header};
pub use issuer::{Authentic, Binding, Issuer, Resolved, Unauthentic};
pub use seal::{Draft, Sign1, seal, seal_certified, seal_with_claims, sig_structure};

/// Parsed, not yet authenticated. Keeps the exact bytes that were signed.
///
/// ```cddl
/// Signed_Statement = #6.18([
///   protected: bstr .cbor protected,
///   unprotected: unprotected,
///   payload: bstr / nil,
///   signature: bstr
/// ])
/// ```
/// `Header` has the two maps.
#[derive(Clone, Debug)]
pub struct SignedStatement {
    bytes: Vec<u8>,
    protected: Range<usize>,
    unprotected: Range<usize>,
    payload: Option<Range<usize>>,
    signature: Range<usize>,
    header: Header,
}

impl SignedStatement {
    /// Parses exactly one strictly encoded COSE_Sign1.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Error> {
        if bytes.len() > STATEMENT_BYTES_MAX {
            return Err(Error::TooLarge { size: bytes.len(), limit: STATEMENT_BYTES_MAX });
        }
        Self::parse_any_size(bytes)
    }

    /// The same without size limit, for statements with receipts.
    pub fn parse_any_size(bytes: Vec<u8>) -> Result<Self, Error> {
        let mut reader = Reader::new(&bytes);
        let found = reader.tag().map_err(|source| Error::NotSign1 { source })?;
        if found != COSE_SIGN1_TAG {
            return Err(Error::WrongTag { found });
        }
        let elements = reader.array().map_err(|source| Error::NotSign1 { source })?;
        if elements != 4 {
            return Err(Error::WrongLength { found: elements });
        }
        let protected = bytes_range(&mut reader)?;
        let unprotected_start = reader.position();
        let unprotected_map = reader.value()?;
        let unprotected = unprotected_start..reader.position();
        let payload = payload_range(&mut reader, &bytes)?;
        let signature = bytes_range(&mut reader)?;
        reader.end()?;
        let header = Header::read(slice(&bytes, &protected), &unprotected_map)?;
        header.check_payload(payload.as_ref().map(ExactSizeIterator::len))?;
        Ok(Self { protected, unprotected, payload, signature, header, bytes })
    }

    /// The bytes as received.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes as received.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The parsed protected header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The content of the protected byte string, exactly as signed.
    pub fn protected(&self) -> &[u8] {
        slice(&self.bytes, &self.protected)
    }

    /// The encoded unprotected map.
    pub fn unprotected(&self) -> &[u8] {
        slice(&self.bytes, &self.unprotected)
    }

    /// The payload, unless it is detached.
    pub fn payload(&self) -> Option<&[u8]> {
        self.payload.as_ref().map(|range| slice(&self.bytes, range))
    }

    /// The signature.
    pub fn signature(&self) -> &[u8] {
        slice(&self.bytes, &self.signature)
    }

    /// S: the statement as it enters the log, its unprotected map emptied
    /// (RFC 9943, 6.3). Nothing that was signed is re-encoded. The
    /// encoding is unique, so a statement with an empty map is already S.
    pub fn canonical(&self) -> Cow<'_, [u8]> {
        if self.unprotected() == Sign1::EMPTY_MAP {
            return Cow::Borrowed(&self.bytes);
        }
        Cow::Owned(self.with_unprotected(Sign1::EMPTY_MAP))
    }

    /// The statement with another unprotected map, which is given encoded.
    /// Nothing that was signed is re-encoded.
    pub fn with_unprotected(&self, unprotected: &[u8]) -> Vec<u8> {
        let (protected, payload, signature) = (self.protected(), self.payload(), self.signature());
        Sign1 { protected, unprotected, payload, signature }.encode()
    }

    /// The id of the statement with the other ECDSA signature that verifies;
    /// none for algorithms that have no other.
    pub fn twin(&self) -> Option<StatementId> {
        let other = key::twin(self.algorithm().ok()?, self.signature())?;
        let [_, twin] = StatementId::with_signature(&self.canonical(), &other);
        Some(twin)
    }

    /// The algorithm the protected header names, if we verify it.
    pub fn algorithm(&self) -> Result<Algorithm, Error> {
        let number = self.header.algorithm.ok_or(Error::AlgorithmMissing)?;
        Algorithm::from_cose(number).ok_or(Error::AlgorithmUnsupported { number })
    }
}

/// SHA-256(S). As lowercase hex it is the statement's name in every URL; as
/// 32 bytes it is the entry that the Merkle leaf commits to. Two statements
/// with one id are the same bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StatementId(Digest);

impl StatementId {
    /// The id of a statement; its unprotected map does not matter.
    pub fn of(statement: &SignedStatement) -> Self {
        Self::of_canonical(&statement.canonical())
    }

    /// The id of S.
    pub fn of_canonical(canonical: &[u8]) -> Self {
        Self(Digest::of(canonical))
    }

    /// The id of S, and the id with another signature of the same length. The
    /// signature is at the end of S.
    fn with_signature(canonical: &[u8], other: &[u8]) -> [Self; 2] {
        let at = canonical.len().saturating_sub(other.len());
        let (beginning, signature) = canonical.split_at_checked(at).unwrap_or_default();
        Digest::of_ends(beginning, [signature, other]).map(Self)
    }

    /// The id that a log stored or a client sent.
    pub fn from_digest(digest: Digest) -> Self {
        Self(digest)
    }

    /// The log entry: the 32 bytes under the leaf hash.
    pub fn entry(&self) -> &Digest {
        &self.0
    }
}

impl fmt::Display for StatementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Serialize for StatementId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StatementId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digest = Digest::from_hex(&text);
        digest.map(Self).ok_or_else(|| serde::de::Error::custom("not a statement id"))
    }
}

/// A byte string's content as a range of the whole.
fn bytes_range(reader: &mut Reader<'_>) -> Result<Range<usize>, Error> {
    let content = reader.bytes()?;
    let end = reader.position();
    Ok(end - content.len()..end)
}

fn payload_range(reader: &mut Reader<'_>, bytes: &[u8]) -> Result<Option<Range<usize>>, Error> {
    if bytes.get(reader.position()) == Some(&cbor::NULL) {
        reader.value()?;
        return Ok(None);
    }
    bytes_range(reader).map(Some)
}

/// Ranges are made from this buffer by `parse`, so they are inside it.
fn slice<'a>(bytes: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    bytes.get(range.clone()).unwrap_or_default()
}

/// The keys of a header map as labels, or the first that is not a label.
fn labels<'a>(map: &'a Value<'a>) -> impl Iterator<Item = Result<cbor::Label<'a>, Error>> {
    let entries = if let Value::Map(entries) = map { entries.as_slice() } else { &[] };
    entries.iter().map(|(key, _)| match key {
        Value::Text(t) => Ok(cbor::Label::Text(t)),
        key => key
            .int::<i64>()
            .map(cbor::Label::Int)
            .ok_or_else(|| Error::LabelKind { found: key.to_string() }),
    })
}
