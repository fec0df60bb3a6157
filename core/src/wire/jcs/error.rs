//! Why a value has no canonical form.

/// Why a value has no canonical form.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "jcs-")]
pub enum Error {
    /// No double is this number.
    #[error("{token} at {pointer:?} is not held exactly by a double")]
    #[strum(serialize = "inexact-number")]
    Inexact {
        /// The number as written.
        token: String,
        /// Where it stands.
        pointer: String,
    },
    /// A fraction, an exponent or a negative zero.
    #[error("{token} at {pointer:?} is not a plain integer")]
    NotInteger {
        /// The number as written.
        token: String,
        /// Where it stands.
        pointer: String,
    },
    /// An integer that not every reader holds exactly.
    #[error("{token} at {pointer:?} is beyond 2^53 - 1")]
    UnsafeInteger {
        /// The number as written.
        token: String,
        /// Where it stands.
        pointer: String,
    },
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// Where the number stands.
    pub fn pointer(&self) -> &str {
        match self {
            Self::Inexact { pointer, .. }
            | Self::NotInteger { pointer, .. }
            | Self::UnsafeInteger { pointer, .. } => pointer,
        }
    }

    pub(super) fn pointer_mut(&mut self) -> &mut String {
        match self {
            Self::Inexact { pointer, .. }
            | Self::NotInteger { pointer, .. }
            | Self::UnsafeInteger { pointer, .. } => pointer,
        }
    }
}
