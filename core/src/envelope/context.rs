//! What authentication depends on besides the statement.
//!
//! The rules become stricter over time. Each set has a version, and a log names
//! the version in effect in its policy statement, so that an auditor can check
//! every entry by the rules of its time.

use super::{Error, Header, Resolved};
use crate::trust::TrustAnchors;
use crate::trust::x509::Unscoped;
use crate::wire::time::UnixSeconds;

/// A version of the rules by which statements are authenticated and shown to
/// the policy.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RulesVersion {
    /// The rules of logs that name no version.
    V1,
    /// Issuer names need proof; unprotected certificates do not count.
    V2,
}

impl RulesVersion {
    /// The version for new entries.
    pub const CURRENT: Self = Self::V2;

    /// The CWT claim of a policy statement that names the version.
    pub const CLAIM: &'static str = "capstan_rules";

    /// The version that a log's policy statement puts into effect.
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

    /// What an anchor without a scope may speak for.
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
pub struct AuthContext<'a> {
    /// The rules.
    pub rules: RulesVersion,
    /// The name of the log, if there is one; no issuer may use it.
    pub log: Option<&'a str>,
    /// Whom the log trusts.
    pub trust: &'a TrustAnchors,
    /// Keys that a resolver found for the issuer.
    pub resolved: &'a Resolved,
    /// The time of registration, at which certificates and pins must be valid.
    pub now: UnixSeconds,
}

impl<'a> AuthContext<'a> {
    /// The current rules, without a log.
    pub fn new(trust: &'a TrustAnchors, resolved: &'a Resolved, now: UnixSeconds) -> Self {
        Self { rules: RulesVersion::CURRENT, log: None, trust, resolved, now }
    }
}
