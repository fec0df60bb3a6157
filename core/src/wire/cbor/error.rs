//! Everything that can be wrong with CBOR, by the byte.

/// Why bytes are not the CBOR we take; every variant names its byte.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A map has the same key twice.
    #[error("byte {at}: the map has the key {key} twice")]
    DuplicateKey { at: usize, key: String },
    /// An item of indefinite length.
    #[error("byte {at}: indefinite lengths are not accepted")]
    IndefiniteLength { at: usize },
    /// A length or number spelt longer than needed.
    #[error("byte {at}: the length or number is not in its shortest form")]
    LongHead { at: usize },
    /// Not CBOR at all.
    #[error("byte {at}: not well-formed CBOR")]
    NotWellFormed { at: usize },
    /// Bytes remain after the item.
    #[error("byte {at}: {count} bytes follow the end of the item")]
    TrailingBytes { at: usize, count: usize },
    /// Nested beyond the limit.
    #[error("byte {at}: nested deeper than {limit}")]
    TooDeep { at: usize, limit: usize },
    /// More items than the limit.
    #[error("byte {at}: more than {limit} items")]
    TooManyItems { at: usize, limit: usize },
    /// The bytes stop inside an item.
    #[error("byte {at}: the bytes end inside an item")]
    UnexpectedEnd { at: usize },
    /// Another kind of item was needed here.
    #[error("byte {at}: expected {expected}")]
    UnexpectedType { at: usize, expected: &'static str },
}

/// Every word that `Error::code` can give.
pub const CODES: &[&str] = &[
    "cbor-duplicate-key",
    "cbor-indefinite-length",
    "cbor-long-head",
    "cbor-not-well-formed",
    "cbor-too-deep",
    "cbor-too-many-items",
    "cbor-trailing-bytes",
    "cbor-unexpected-end",
    "cbor-unexpected-type",
];

impl Error {
    /// The stable word for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::DuplicateKey { .. } => "cbor-duplicate-key",
            Self::IndefiniteLength { .. } => "cbor-indefinite-length",
            Self::LongHead { .. } => "cbor-long-head",
            Self::NotWellFormed { .. } => "cbor-not-well-formed",
            Self::TrailingBytes { .. } => "cbor-trailing-bytes",
            Self::TooDeep { .. } => "cbor-too-deep",
            Self::TooManyItems { .. } => "cbor-too-many-items",
            Self::UnexpectedEnd { .. } => "cbor-unexpected-end",
            Self::UnexpectedType { .. } => "cbor-unexpected-type",
        }
    }
}
