//! The three assurance modes, rederived (5.3). A claim is never copied.

use strum::{EnumString, IntoStaticStr};

use super::Known;
use super::payload::{Payload, is_digest};
use crate::wire::json::Json;

/// What stands behind the record.
#[derive(Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd)]
#[strum(serialize_all = "snake_case")]
pub enum AttestationMode {
    /// The producer's word.
    SelfAttested,
    /// A receipt of this statement, verified under a trusted key.
    Anchored,
}

/// What is known of the effect.
#[derive(Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum EffectMode {
    /// Nothing was attempted.
    NotApplicable,
    /// Something was attempted; its result is not bound.
    DispatchedUnconfirmed,
    /// The observed response is bound by digest.
    Confirmed,
}

/// How the record is held.
#[derive(Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd)]
#[strum(serialize_all = "snake_case")]
pub enum LedgerMode {
    /// Alone.
    Standalone,
    /// Linked to a predecessor.
    Chained,
    /// Linked, and the root of its chain is in a log. Showing that takes the
    /// whole chain, not only a statement and its receipt.
    Anchored,
}

/// The modes as the evidence shows them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Derived {
    pub attestation: AttestationMode,
    pub effect: EffectMode,
    pub ledger: LedgerMode,
}

impl AttestationMode {
    /// Its name in a Capsule.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl EffectMode {
    /// Its name in a Capsule.
    pub const fn name(self) -> &'static str {
        self.into_str()
    }

    /// The mode of an effect block. An unknown status counts as dispatched.
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
        self.into()
    }
}

impl Derived {
    /// From a payload and what was verified of its statement.
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
