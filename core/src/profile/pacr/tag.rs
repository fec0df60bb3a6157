//! The intervention tag (section 5): what kind of event a payload describes.
//!
//! `"PACR" | kind | sim_real_corr, only for Counterfactual | inner payload`.
//! Every payload that starts with the magic is tagged; there is no escape.

use strum::{EnumString, IntoStaticStr, VariantArray};

/// The first four bytes of a tagged payload.
const MAGIC: &[u8; 4] = b"PACR";

/// How a record relates to the world (Pearl's hierarchy).
#[derive(Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, PartialEq, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    Observe,
    DoPhysical,
    DoDigital,
    DoChemical,
    DoGenetic,
    /// A simulation: it never happened.
    Counterfactual,
}

impl Kind {
    /// All of them, in the order of their bytes.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The kind of a byte.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Its byte in a tag.
    pub fn byte(self) -> u8 {
        match self {
            Self::Observe => 0,
            Self::DoPhysical => 1,
            Self::DoDigital => 2,
            Self::DoChemical => 3,
            Self::DoGenetic => 4,
            Self::Counterfactual => 5,
        }
    }

    /// Its name in policies, reports and the API.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Its name in the draft's registry.
    pub fn registered_name(self) -> &'static str {
        match self {
            Self::Observe => "Observe",
            Self::DoPhysical => "DoPhysical",
            Self::DoDigital => "DoDigital",
            Self::DoChemical => "DoChemical",
            Self::DoGenetic => "DoGenetic",
            Self::Counterfactual => "Counterfactual",
        }
    }
}

/// The tag of a payload, and the payload behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tag<'a> {
    /// `Observe` if there is no tag.
    pub kind: Kind,
    /// Only of a Counterfactual. Any double: rule 9 checks the range.
    pub sim_real_corr: Option<f64>,
    /// The application's data.
    pub inner: &'a [u8],
}

impl<'a> Tag<'a> {
    /// Reads the tag of a payload, if it has one.
    pub fn read(payload: &'a [u8]) -> Result<Self, Error> {
        let Some(tagged) = payload.strip_prefix(MAGIC) else {
            return Ok(Self { kind: Kind::Observe, sim_real_corr: None, inner: payload });
        };
        let Some((&byte, rest)) = tagged.split_first() else { return Err(Error::KindMissing) };
        match Kind::from_byte(byte) {
            None if byte == 0xff => Err(Error::KindReserved),
            None => Err(Error::KindUnknown { byte }),
            Some(kind @ Kind::Counterfactual) => {
                let (score, inner) = rest
                    .split_first_chunk::<8>()
                    .ok_or(Error::CorrelationTruncated { bytes: rest.len() })?;
                let sim_real_corr = Some(f64::from_be_bytes(*score));
                Ok(Self { kind, sim_real_corr, inner })
            }
            Some(kind) => Ok(Self { kind, sim_real_corr: None, inner: rest }),
        }
    }

    /// The tagged payload, always with the magic.
    pub fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(self.kind.byte());
        out.extend(self.sim_real_corr.iter().flat_map(|score| score.to_be_bytes()));
        out.extend(self.inner);
        out
    }
}

/// Why a tag cannot be read (rule 8).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("a counterfactual needs 8 bytes of sim_real_corr, {bytes} follow its kind")]
    CorrelationTruncated { bytes: usize },
    #[error("the tag ends after its magic")]
    KindMissing,
    #[error("kind 0xff is reserved")]
    KindReserved,
    #[error("kind {byte:#04x} is not defined")]
    KindUnknown { byte: u8 },
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::CorrelationTruncated { .. } | Self::KindMissing => "pacr-tag-truncated",
            Self::KindReserved => "pacr-kind-reserved",
            Self::KindUnknown { .. } => "pacr-kind-unknown",
        }
    }
}
