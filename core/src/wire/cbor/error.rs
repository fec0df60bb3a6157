//! Errors of the CBOR reader.

use strum::VariantNames as _;

/// Why bytes are not strict CBOR; every variant has the byte offset.
#[derive(
    Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, strum::VariantNames, thiserror::Error,
)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "cbor-")]
pub enum Error {
    /// A map has the same key twice.
    #[error("byte {at}: the map has the key {key} twice")]
    DuplicateKey { at: usize, key: String },
    /// An item of indefinite length.
    #[error("byte {at}: indefinite lengths are not accepted")]
    IndefiniteLength { at: usize },
    /// A length or number not in shortest form.
    #[error("byte {at}: the length or number is not in its shortest form")]
    LongHead { at: usize },
    /// Not CBOR at all.
    #[error("byte {at}: not well-formed CBOR")]
    NotWellFormed { at: usize },
    /// Nested beyond the limit.
    #[error("byte {at}: nested deeper than {limit}")]
    TooDeep { at: usize, limit: usize },
    /// More items than the limit.
    #[error("byte {at}: more than {limit} items")]
    TooManyItems { at: usize, limit: usize },
    /// Bytes remain after the item.
    #[error("byte {at}: {count} bytes follow the end of the item")]
    TrailingBytes { at: usize, count: usize },
    /// The bytes stop inside an item.
    #[error("byte {at}: the bytes end inside an item")]
    UnexpectedEnd { at: usize },
    /// An item of another kind.
    #[error("byte {at}: expected {expected}")]
    UnexpectedType { at: usize, expected: &'static str },
}

/// Every code of `Error`.
pub const CODES: &[&str] = Error::VARIANTS;

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
