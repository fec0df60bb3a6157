//! From a parsed statement to one whose issuer we know.

use std::borrow::Cow;
use std::fmt;

use super::{Door, Error, RulesVersion, SignedStatement, StatementId};
use crate::key::{Algorithm, PublicKey};
use crate::trust::TrustAnchors;
use crate::trust::x509::{VerifiedChain, x5t_matches};
use crate::wire::cbor::{self, Value};
use crate::wire::time::UnixSeconds;

/// How we know the key speaks for the issuer. Deliberately not ordered: one
/// way must never stand in for another, so a policy lists those it accepts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Binding {
    /// The key was in the issuer's did:web document.
    DidWeb,
    /// The key is in the trust file under the issuer's name.
    Pinned,
    /// The statement brought its own key: possession is proven, nothing else.
    SelfCertified,
    /// A certificate path to a trust anchor names the issuer.
    X5Chain,
}

impl Binding {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::DidWeb, Self::Pinned, Self::SelfCertified, Self::X5Chain];

    /// The word for it in policies and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::DidWeb => "did:web",
            Self::Pinned => "pinned",
            Self::SelfCertified => "self-certified",
            Self::X5Chain => "x5chain",
        }
    }

    /// The kind with this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who signed, by which key, and how the two are tied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Issuer {
    /// Claim 1.
    pub name: String,
    /// How the key is tied to the name.
    pub binding: Binding,
    /// The key that verified.
    pub key: PublicKey,
}

/// Keys a resolver found for one issuer before authentication began.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// The candidates; none when nothing was resolved.
    pub keys: Vec<PublicKey>,
}

/// A statement whose signature we checked under a key bound to its issuer.
/// There is no other way to obtain one.
#[derive(Clone, Debug)]
pub struct Authentic {
    statement: SignedStatement,
    /// S, where the statement came with something in its unprotected map.
    canonical: Option<Vec<u8>>,
    id: StatementId,
    issuer: Issuer,
    rules: RulesVersion,
}

impl SignedStatement {
    /// Checks conformance, finds the issuer's key, verifies the signature.
    pub fn authenticate(self, door: &Door<'_>) -> Result<Authentic, Error> {
        self.algorithm()?;
        self.header().conformance()?;
        let issuer = self.issuer(door, None)?;
        let canonical = self.canonical();
        let id = StatementId::of_canonical(&canonical);
        let canonical = if let Cow::Owned(canonical) = canonical { Some(canonical) } else { None };
        Ok(Authentic { issuer, id, canonical, statement: self, rules: door.rules })
    }

    /// Who signed, over `detached` if the statement has no payload of its
    /// own. A registration needs `authenticate`; this is also for verifiers of
    /// statements that no log would take.
    pub fn issuer(&self, door: &Door<'_>, detached: Option<&[u8]>) -> Result<Issuer, Error> {
        let algorithm = self.algorithm()?;
        let payload = self.payload().or(detached).ok_or(Error::PayloadMissing)?;
        let (binding, candidates) = self.candidates(algorithm, door)?;
        let message = super::sig_structure(self.protected(), payload);
        let key = verify_any(&candidates, algorithm, &message, self.signature())?;
        let name = self.header().claims.issuer.clone().unwrap_or_default();
        Ok(Issuer { name, binding, key })
    }

    /// The keys that may speak for the issuer, all of one kind of binding.
    /// A certificate always decides; a pinned name is never self-certified.
    fn candidates(
        &self,
        algorithm: Algorithm,
        door: &Door<'_>,
    ) -> Result<(Binding, Vec<PublicKey>), Error> {
        let Door { trust, resolved, now, .. } = *door;
        let issuer = self.header().claims.issuer.as_deref().unwrap_or_default();
        let pinned = trust.pinned(issuer, self.header().kid.as_deref(), now);
        if self.header().x5t.is_some() || !self.header().chain.is_empty() {
            let key = self.verified_chain(trust, issuer, now)?.leaf_key;
            return match pinned {
                Some(keys) if !keys.contains(&key) => {
                    Err(Error::IdentifierConflict { issuer: issuer.to_owned() })
                }
                _ => Ok((Binding::X5Chain, vec![key])),
            };
        }
        if let Some(keys) = pinned {
            if keys.is_empty() {
                let hint = "every key pinned for it is outside its from and until";
                return Err(Error::IssuerUnknown { issuer: issuer.to_owned(), hint });
            }
            return Ok((Binding::Pinned, keys));
        }
        if !resolved.keys.is_empty() {
            return Ok((Binding::DidWeb, resolved.keys.clone()));
        }
        let kid = self.header().kid.as_deref().unwrap_or_default();
        self.self_certified(kid, algorithm, issuer).map(|key| (Binding::SelfCertified, vec![key]))
    }

    fn verified_chain(
        &self,
        trust: &TrustAnchors,
        issuer: &str,
        now: UnixSeconds,
    ) -> Result<VerifiedChain, Error> {
        let header = self.header();
        let leaf = header.chain.first().ok_or(Error::ChainMissing)?;
        if let Some((algorithm, hash)) = &header.x5t
            && !x5t_matches(leaf, *algorithm, hash).map_err(Error::Chain)?
        {
            return Err(Error::X5tMismatch);
        }
        let chain = trust.chains().validate(&header.chain, now).map_err(Error::Chain)?;
        chain.check_identity(issuer).map_err(Error::Chain)?;
        Ok(chain)
    }

    /// The key the statement brings along: kid is the raw Ed25519 key, or
    /// the thumbprint of the key in the confirmation claim (RFC 8747).
    fn self_certified(
        &self,
        kid: &[u8],
        algorithm: Algorithm,
        issuer: &str,
    ) -> Result<PublicKey, Error> {
        if let Some(cnf) = &self.header().claims.confirmation {
            let key = PublicKey::from_cose_key(cnf).map_err(Error::ConfirmationKey)?;
            if key.id().as_bytes() == kid || key.raw_ed25519() == Some(kid) {
                return Ok(key);
            }
        } else if matches!(algorithm, Algorithm::EdDsa | Algorithm::Ed25519)
            && let Ok(key) = PublicKey::from_ed25519(kid)
        {
            return Ok(key);
        }
        Err(Error::IssuerUnknown {
            issuer: issuer.to_owned(),
            hint: "pin its key in the trust file, or let the statement bring its key: \
                   kid = raw Ed25519 key, or kid = thumbprint of the key in CWT claim 8 (cnf)",
        })
    }
}

fn verify_any(
    candidates: &[PublicKey],
    algorithm: Algorithm,
    message: &[u8],
    signature: &[u8],
) -> Result<PublicKey, Error> {
    let mut last = None;
    for key in candidates {
        match key.verify(algorithm, message, signature) {
            Ok(()) => return Ok(key.clone()),
            Err(crate::key::Error::SignatureInvalid) => {
                last = Some(Error::SignatureInvalid { kid: key.id() });
            }
            Err(other) => last = last.or(Some(Error::Key(other))),
        }
    }
    Err(last.unwrap_or(Error::KeyIdentifierMissing))
}

impl Authentic {
    /// The statement as it came.
    pub fn statement(&self) -> &SignedStatement {
        &self.statement
    }

    /// S, the bytes that enter the log.
    pub fn canonical(&self) -> &[u8] {
        self.canonical.as_deref().unwrap_or(self.statement.bytes())
    }

    /// The statement's name and leaf entry.
    pub fn id(&self) -> StatementId {
        self.id
    }

    /// Who signed.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The rules it was authenticated by; a policy decides by the same.
    pub fn rules(&self) -> RulesVersion {
        self.rules
    }

    /// The payload; an authentic statement has one.
    pub fn payload(&self) -> &[u8] {
        self.statement.payload().unwrap_or_default()
    }

    /// What S no longer holds but an auditor needs to authenticate again:
    /// `{? 1: [certificates], ? 2: COSE_Key}` (RFC 9943, 5.1.1.2).
    pub fn collateral(&self) -> Vec<u8> {
        let header = self.statement.header();
        let certificates: Vec<Value<'_>> = match header.chain_is_protected {
            false => header.chain.iter().map(|c| Value::Bytes(c)).collect(),
            true => Vec::new(),
        };
        let key = (self.issuer.binding == Binding::DidWeb).then(|| self.issuer.key.to_cose_key());
        let mut out = Vec::new();
        cbor::map(&mut out, usize::from(!certificates.is_empty()) + usize::from(key.is_some()));
        if !certificates.is_empty() {
            cbor::int(&mut out, 1);
            out.extend(Value::Array(certificates).encode());
        }
        if let Some(key) = key {
            cbor::int(&mut out, 2);
            cbor::bytes(&mut out, &key);
        }
        out
    }
}
