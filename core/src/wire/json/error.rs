//! Why bytes are not the JSON we take.

use strum::VariantNames as _;

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
#[derive(
    Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, strum::VariantNames, thiserror::Error,
)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "json-")]
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

/// Every code of `Fault`.
pub const CODES: &[&str] = Fault::VARIANTS;

impl Fault {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
