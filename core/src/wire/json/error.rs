//! Why bytes are not the JSON we take.

/// What is wrong, and where.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{fault} at byte {offset}, JSON pointer {pointer:?}")]
pub struct Error {
    /// What is wrong.
    pub fault: Fault,
    /// The byte, from 0.
    pub offset: usize,
    /// The value the reader was in.
    pub pointer: String,
}

impl Error {
    /// A stable word.
    pub fn code(&self) -> &'static str {
        self.fault.code()
    }
}

/// Why a text is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A backslash is followed by nothing RFC 8259 knows.
    #[error("unknown escape")]
    BadEscape,
    /// A number breaks the grammar.
    #[error("not a number")]
    BadNumber,
    /// The bytes are not UTF-8.
    #[error("not UTF-8")]
    BadUtf8,
    /// The text starts with a byte order mark.
    #[error("byte order mark")]
    ByteOrderMark,
    /// A control character stands in a string unescaped.
    #[error("control character in a string")]
    ControlCharacter,
    /// A name appears twice in one object.
    #[error("name {name:?} appears twice")]
    DuplicateKey {
        /// The name, unescaped.
        name: String,
    },
    /// A surrogate stands alone.
    #[error("lone surrogate")]
    LoneSurrogate,
    /// Containers are nested too deep.
    #[error("nested deeper than {limit}")]
    TooDeep {
        /// The deepest we take.
        limit: usize,
    },
    /// The text is too long.
    #[error("{size} bytes, at most {limit} are read")]
    TooLarge {
        /// Its length.
        size: usize,
        /// The longest we take.
        limit: usize,
    },
    /// Something follows the value.
    #[error("something follows the value")]
    TrailingBytes,
    /// The text ends early.
    #[error("the text ends early")]
    Truncated,
    /// Another byte was expected.
    #[error("expected {expected}")]
    Unexpected {
        /// What would have been right.
        expected: &'static str,
    },
}

/// Every word that `Fault::code` can give.
pub const CODES: &[&str] = &[
    "json-bad-escape",
    "json-bad-number",
    "json-bad-utf8",
    "json-byte-order-mark",
    "json-control-character",
    "json-duplicate-key",
    "json-lone-surrogate",
    "json-too-deep",
    "json-too-large",
    "json-trailing-bytes",
    "json-truncated",
    "json-unexpected",
];

impl Fault {
    /// A stable word.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadEscape => "json-bad-escape",
            Self::BadNumber => "json-bad-number",
            Self::BadUtf8 => "json-bad-utf8",
            Self::ByteOrderMark => "json-byte-order-mark",
            Self::ControlCharacter => "json-control-character",
            Self::DuplicateKey { .. } => "json-duplicate-key",
            Self::LoneSurrogate => "json-lone-surrogate",
            Self::TooDeep { .. } => "json-too-deep",
            Self::TooLarge { .. } => "json-too-large",
            Self::TrailingBytes => "json-trailing-bytes",
            Self::Truncated => "json-truncated",
            Self::Unexpected { .. } => "json-unexpected",
        }
    }
}
