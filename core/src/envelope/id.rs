//! One function names a statement and makes its leaf.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::SignedStatement;
use crate::wire::digest::Digest;

/// SHA-256(S). As lowercase hex it is the statement's name in every URL; as
/// 32 bytes it is the entry that the Merkle leaf commits to. Two statements
/// with one id are the same bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StatementId(Digest);

impl StatementId {
    /// The id of a statement, whatever its unprotected map holds.
    pub fn of(statement: &SignedStatement) -> Self {
        Self::of_canonical(&statement.canonical())
    }

    /// The id of S itself.
    pub fn of_canonical(canonical: &[u8]) -> Self {
        Self(Digest::of(canonical))
    }

    /// The id of S itself, and the one it would have with another signature
    /// of the same length in place of its own, which is the last thing in it.
    pub(super) fn with_signature(canonical: &[u8], other: &[u8]) -> [Self; 2] {
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
