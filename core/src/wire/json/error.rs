//! Errors of the JSON reader.

use strum::VariantNames as _;

/// What is wrong, and where.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{fault} at byte {offset}, JSON pointer {pointer:?}")]
pub struct Error {
    /// What is wrong.
    pub fault: Fault,
    /// The byte, from 0.
    pub offset: usize,
    /// The JSON pointer of the value.
    pub pointer: String,
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.fault.code()
    }
}

/// The kind of error.
#[derive(
    Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, strum::VariantNames, thiserror::Error,
)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "json-")]
pub enum Fault {
    /// An escape that RFC 8259 does not define.
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
    /// An unescaped control character in a string.
    #[error("control character in a string")]
    ControlCharacter,
    /// A name appears twice in one object.
    #[error("name {name:?} appears twice")]
    DuplicateKey {
        /// The name, unescaped.
        name: String,
    },
    /// An unpaired surrogate.
    #[error("lone surrogate")]
    LoneSurrogate,
    /// Containers are nested too deep.
    #[error("nested deeper than {limit}")]
    TooDeep {
        /// The deepest accepted.
        limit: usize,
    },
    /// The text is too long.
    #[error("{size} bytes, at most {limit} are read")]
    TooLarge {
        /// Its length.
        size: usize,
        /// The longest accepted.
        limit: usize,
    },
    /// Something follows the value.
    #[error("something follows the value")]
    TrailingBytes,
    /// The text ends early.
    #[error("the text ends early")]
    Truncated,
    /// An unexpected byte.
    #[error("expected {expected}")]
    Unexpected {
        /// What was expected.
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
