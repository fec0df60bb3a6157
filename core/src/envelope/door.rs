//! What a statement is judged by at the door of a log.
//!
//! The rules there become stricter over time. Each set has a version, and a
//! log names the one it works by in its own policy statement, so whoever reads
//! the log later judges every entry by the version that was in force then.

use super::{Error, Header, Resolved};
use crate::trust::TrustAnchors;
use crate::trust::x509::Unscoped;
use crate::wire::time::UnixSeconds;

/// A version of the rules by which statements are authenticated and shown to
/// the policy.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RulesVersion {
    /// Logs that name no version.
    V1,
    /// Names cannot be forged or borrowed.
    V2,
}

impl RulesVersion {
    /// The one that new entries are judged by.
    pub const CURRENT: Self = Self::V2;

    /// The CWT claim of a policy statement that names the version.
    pub const CLAIM: &'static str = "capstan_rules";

    /// The version that a log's policy statement puts in force.
    pub fn of_policy(header: &Header) -> Result<Self, Error> {
        let found = header.claims.named.iter().find(|(name, _)| name == Self::CLAIM);
        match found.map(|(_, text)| text.as_deref()) {
            None => Ok(Self::V1),
            Some(Some("2")) => Ok(Self::V2),
            Some(text) => {
                let found = text.unwrap_or("something that is not text").to_owned();
                Err(Error::RulesVersionUnknown { found })
            }
        }
    }

    /// The claims by which a policy statement names it.
    pub fn claims(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::V1 => &[],
            Self::V2 => &[(Self::CLAIM, "2")],
        }
    }

    /// What an anchor speaks for whose trust file does not say.
    pub fn unscoped(self) -> Unscoped {
        match self {
            Self::V1 => Unscoped::Anything,
            Self::V2 => Unscoped::Nobody,
        }
    }

    /// Its number.
    pub fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// Everything besides the statement itself that decides who signed it.
#[derive(Clone, Copy, Debug)]
pub struct Door<'a> {
    /// The rules.
    pub rules: RulesVersion,
    /// What the log calls itself, where there is one: nobody else may.
    pub log: Option<&'a str>,
    /// Whom it believes.
    pub trust: &'a TrustAnchors,
    /// What a resolver found for the issuer.
    pub resolved: &'a Resolved,
    /// The time of registration: chains and pins must hold then.
    pub now: UnixSeconds,
}

impl<'a> Door<'a> {
    /// The rules of today, at no log in particular.
    pub fn new(trust: &'a TrustAnchors, resolved: &'a Resolved, now: UnixSeconds) -> Self {
        Self { rules: RulesVersion::CURRENT, log: None, trust, resolved, now }
    }
}
