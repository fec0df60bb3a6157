//! The three assurance modes, rederived (5.3). A claim is never copied.

use super::Known;
use super::payload::{Payload, is_digest};
use crate::wire::json::Json;

/// What stands behind the record.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum AttestationMode {
    /// The producer's word.
    SelfAttested,
    /// A receipt of this statement, verified under a trusted key.
    Anchored,
}

/// What is known of the effect.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum EffectMode {
    /// Nothing was attempted.
    NotApplicable,
    /// Something was attempted; its result is not bound.
    DispatchedUnconfirmed,
    /// The observed response is bound by digest.
    Confirmed,
}

/// How the record is held.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LedgerMode {
    /// Alone.
    Standalone,
    /// Linked to a predecessor.
    Chained,
    /// Linked, and the root of its chain is in a log. A statement and its own
    /// receipt cannot show that: it takes the chain.
    Anchored,
}

/// The modes as the evidence has them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Derived {
    /// What stands behind the record.
    pub attestation: AttestationMode,
    /// What is known of the effect.
    pub effect: EffectMode,
    /// How the record is held.
    pub ledger: LedgerMode,
}

impl AttestationMode {
    /// Its name in a Capsule.
    pub fn name(self) -> &'static str {
        match self {
            Self::SelfAttested => "self_attested",
            Self::Anchored => "anchored",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::SelfAttested, Self::Anchored].into_iter().find(|mode| mode.name() == name)
    }
}

impl EffectMode {
    /// Its name in a Capsule.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotApplicable => "not_applicable",
            Self::DispatchedUnconfirmed => "dispatched_unconfirmed",
            Self::Confirmed => "confirmed",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::NotApplicable, Self::DispatchedUnconfirmed, Self::Confirmed]
            .into_iter()
            .find(|mode| mode.name() == name)
    }

    /// The mode of an effect block, if there is one. Unknown statuses were
    /// dispatched as far as anybody can tell.
    pub fn derive(effect: Option<&Json>) -> Self {
        let Some(effect) = effect else { return Self::NotApplicable };
        let text = |name| effect.get(name).and_then(Json::text);
        match text("status") {
            Some("planned") => Self::NotApplicable,
            Some("confirmed") if text("response_digest").is_some_and(is_digest) => Self::Confirmed,
            _ => Self::DispatchedUnconfirmed,
        }
    }
}

impl LedgerMode {
    /// Its name in a Capsule.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Chained => "chained",
            Self::Anchored => "anchored",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Standalone, Self::Chained, Self::Anchored]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}

impl Derived {
    /// What a payload and what was verified of its statement give.
    pub(super) fn of(payload: &Payload<'_>, known: &Known<'_>) -> Self {
        let effect = EffectMode::derive(payload.block("effect"));
        let ledger = match payload.block("chain") {
            None => LedgerMode::Standalone,
            Some(_) if known.chain_is_logged => LedgerMode::Anchored,
            Some(_) => LedgerMode::Chained,
        };
        Self { attestation: known.attestation, effect, ledger }
    }
}
