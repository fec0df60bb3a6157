//! Authentication: which key signed, and why it speaks for the issuer.

use std::borrow::Cow;

use strum::VariantArray as _;

use super::name::{needs_proof, refuse_look_alikes};
use super::{AuthContext, Error, RulesVersion, SignedStatement, StatementId};
use crate::key::{self, Algorithm, PublicKey};
use crate::trust::did_key::key_in_name;
use crate::trust::x509::{VerifiedChain, x5t_matches};
use crate::wire::cbor::{self, Value};
use crate::wire::label::collateral;

/// Why a key speaks for the issuer. Deliberately not ordered: one kind never
/// replaces another, so a policy lists those it accepts.
#[derive(
    Clone,
    Copy,
    Debug,
    Eq,
    Hash,
    PartialEq,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Binding {
    /// The name contains the key: did:key or did:jwk.
    #[strum(serialize = "did:key")]
    DidKey,
    /// The key was in the issuer's did:web document.
    #[strum(serialize = "did:web")]
    DidWeb,
    /// The key is in the trust file under the issuer's name.
    Pinned,
    /// The key is in the statement itself: only its possession is proven.
    SelfCertified,
    /// A certificate path to a trust anchor names the issuer.
    #[strum(serialize = "x5chain")]
    X5Chain,
}

impl Binding {
    /// Every kind.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its name in policies and reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// Who signed, with which key, and how the two are bound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Issuer {
    /// Claim 1.
    pub name: String,
    /// How the key is bound to the name.
    pub binding: Binding,
    /// The key that verified.
    pub key: PublicKey,
    /// The name of the trust anchor, if a certificate binds the two.
    pub anchor: Option<String>,
}

/// Keys that may speak for an issuer, all of one kind of binding.
struct Candidates {
    binding: Binding,
    keys: Vec<PublicKey>,
    anchor: Option<String>,
}

impl Candidates {
    fn new(binding: Binding, keys: Vec<PublicKey>) -> Self {
        Self { binding, keys, anchor: None }
    }
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
    /// S, if the unprotected map is not empty.
    canonical: Option<Vec<u8>>,
    id: StatementId,
    /// Its id with the other ECDSA signature that verifies.
    twin: Option<StatementId>,
    issuer: Issuer,
    rules: RulesVersion,
}

/// A statement that is not authentic, and why.
#[derive(Clone, Debug)]
pub struct Unauthentic {
    /// The statement.
    pub statement: SignedStatement,
    /// What is wrong with it.
    pub error: Error,
}

impl SignedStatement {
    /// Checks conformance, finds the issuer's key, verifies the signature.
    pub fn authenticate(self, context: &AuthContext<'_>) -> Result<Authentic, Error> {
        self.authenticate_or_keep(context).map_err(|unauthentic| unauthentic.error)
    }

    /// The same; an error returns the statement.
    pub fn authenticate_or_keep(
        self,
        context: &AuthContext<'_>,
    ) -> Result<Authentic, Box<Unauthentic>> {
        let issuer = match self.conforming_issuer(context) {
            Ok(issuer) => issuer,
            Err(error) => return Err(Box::new(Unauthentic { statement: self, error })),
        };
        let canonical = self.canonical();
        let other = self.algorithm().ok().filter(|_| context.rules >= RulesVersion::V2);
        let other = other.and_then(|algorithm| key::twin(algorithm, self.signature()));
        let (id, twin) = match other {
            None => (StatementId::of_canonical(&canonical), None),
            Some(other) => {
                let [id, twin] = StatementId::with_signature(&canonical, &other);
                (id, Some(twin))
            }
        };
        let canonical = if let Cow::Owned(canonical) = canonical { Some(canonical) } else { None };
        Ok(Authentic { issuer, id, twin, canonical, statement: self, rules: context.rules })
    }

    fn conforming_issuer(&self, context: &AuthContext<'_>) -> Result<Issuer, Error> {
        self.algorithm()?;
        self.header().conformance()?;
        if context.rules >= RulesVersion::V2 {
            refuse_look_alikes(self.header())?;
        }
        self.issuer(context, None)
    }

    /// Who signed, over `detached` if the statement has no payload. Unlike
    /// `authenticate`, it also accepts statements that do not conform.
    pub fn issuer(
        &self,
        context: &AuthContext<'_>,
        detached: Option<&[u8]>,
    ) -> Result<Issuer, Error> {
        let algorithm = self.algorithm()?;
        let payload = self.payload().or(detached).ok_or(Error::PayloadMissing)?;
        let Candidates { binding, keys, anchor } = self.candidates(algorithm, context)?;
        let message = super::sig_structure(self.protected(), payload);
        let key = verify_any(&keys, algorithm, &message, self.signature())?;
        let name = self.header().claims.issuer.clone().unwrap_or_default();
        Ok(Issuer { name, binding, key, anchor })
    }

    /// The certificates that count. The unprotected header is not signed, so
    /// anyone could add or remove a chain there: it counts only if a protected
    /// x5t names its leaf.
    fn has_chain(&self, rules: RulesVersion) -> bool {
        let header = self.header();
        let counts = header.chain_is_protected || rules < RulesVersion::V2;
        header.x5t.is_some() || (counts && !header.chain.is_empty())
    }

    /// The keys that may speak for the issuer, all of one kind of binding.
    /// A certificate takes precedence; a pinned name is never self-certified.
    fn candidates(
        &self,
        algorithm: Algorithm,
        context: &AuthContext<'_>,
    ) -> Result<Candidates, Error> {
        let AuthContext { rules, log, trust, resolved, now } = *context;
        let header = self.header();
        let issuer = header.claims.issuer.as_deref().unwrap_or_default();
        let pinned = trust.pinned(issuer, header.kid.as_deref(), now);
        let in_name = self.key_in_name(issuer, rules)?;
        // Every other binding must give the key that the name contains.
        let conflict = || Error::IdentifierConflict { issuer: issuer.to_owned() };
        let agrees = |key: &PublicKey| in_name.as_ref().is_none_or(|in_name| in_name == key);
        if self.has_chain(rules) {
            let VerifiedChain { leaf_key: key, anchor, .. } =
                self.verified_chain(context, issuer)?;
            let is_pinned = pinned.is_none_or(|keys| keys.contains(&key));
            return match is_pinned && agrees(&key) {
                true => Ok(Candidates {
                    anchor: Some(anchor),
                    ..Candidates::new(Binding::X5Chain, vec![key])
                }),
                false => Err(conflict()),
            };
        }
        if let Some(keys) = pinned {
            if keys.is_empty() {
                let hint = "every key pinned for it is outside its from and until";
                return Err(Error::IssuerUnknown { issuer: issuer.to_owned(), hint });
            }
            let keys: Vec<PublicKey> = keys.into_iter().filter(agrees).collect();
            return if keys.is_empty() {
                Err(conflict())
            } else {
                Ok(Candidates::new(Binding::Pinned, keys))
            };
        }
        if let Some(key) = in_name {
            return Ok(Candidates::new(Binding::DidKey, vec![key]));
        }
        let is_resolvable = issuer.starts_with("did:web:") || rules < RulesVersion::V2;
        if is_resolvable && !resolved.keys.is_empty() {
            return Ok(Candidates::new(Binding::DidWeb, resolved.keys.clone()));
        }
        if let Some(hint) = needs_proof(issuer, log).filter(|_| rules >= RulesVersion::V2) {
            return Err(Error::NameNeedsProof { issuer: issuer.to_owned(), hint });
        }
        let kid = header.kid.as_deref().unwrap_or_default();
        match self.self_certified(kid, algorithm, issuer) {
            Err(Error::IssuerUnknown { issuer, .. }) if !header.chain.is_empty() => {
                Err(Error::IssuerUnknown { issuer, hint: CHAIN_IGNORED })
            }
            found => found.map(|key| Candidates::new(Binding::SelfCertified, vec![key])),
        }
    }

    /// The key that the issuer's name contains, if any.
    fn key_in_name(&self, issuer: &str, rules: RulesVersion) -> Result<Option<PublicKey>, Error> {
        let Some(found) = key_in_name(issuer).filter(|_| rules >= RulesVersion::V2) else {
            return Ok(None);
        };
        let issuer = || issuer.to_owned();
        let key = found.map_err(|source| Error::NameKey { issuer: issuer(), source })?;
        let brought = self.header().claims.confirmation.as_deref().map(PublicKey::from_cose_key);
        match brought.transpose().map_err(Error::ConfirmationKey)? {
            Some(brought) if brought != key => Err(Error::IdentifierConflict { issuer: issuer() }),
            _ => Ok(Some(key)),
        }
    }

    fn verified_chain(
        &self,
        context: &AuthContext<'_>,
        issuer: &str,
    ) -> Result<VerifiedChain, Error> {
        let header = self.header();
        let leaf = header.chain.first().ok_or(Error::ChainMissing)?;
        if let Some((algorithm, hash)) = &header.x5t
            && !x5t_matches(leaf, *algorithm, hash).map_err(Error::Chain)?
        {
            return Err(Error::X5tMismatch);
        }
        let (chains, unscoped) = (context.trust.chains(), context.rules.unscoped());
        let found = chains.speaking_for(&header.chain, issuer, unscoped, context.now);
        found.map(|(chain, _)| chain).map_err(Error::Chain)
    }

    /// The key in the statement itself: kid is the raw Ed25519 key, or
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
            hint: "pin its key in the trust file, or put the key into the statement: \
                   kid = raw Ed25519 key, or kid = thumbprint of the key in CWT claim 8 (cnf)",
        })
    }
}

const CHAIN_IGNORED: &str = "its certificates are in the unprotected header, which is not signed, so they are ignored; \
     put x5chain (33) into the protected header, or name the leaf there by x5t (34)";

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
    /// The statement as received.
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

    /// The id of the same statement with its other valid ECDSA signature, which
    /// anyone can compute. `None` by version 1 of the rules, which admit both.
    pub fn twin(&self) -> Option<StatementId> {
        self.twin
    }

    /// Who signed.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The rules it was authenticated by, which also apply to the policy.
    pub fn rules(&self) -> RulesVersion {
        self.rules
    }

    /// The payload; an authentic statement has one.
    pub fn payload(&self) -> &[u8] {
        self.statement.payload().unwrap_or_default()
    }

    /// What is not in S but needed to authenticate the statement again (RFC
    /// 9943, 5.1.1.2).
    ///
    /// ```cddl
    /// collateral = { ? 1 => [+ bstr], ? 2 => bstr .cbor COSE_Key }   ; certificates, key
    /// ```
    pub fn collateral(&self) -> Vec<u8> {
        let header = self.statement.header();
        let is_needed = self.issuer.binding == Binding::X5Chain || self.rules < RulesVersion::V2;
        let certificates: Vec<Value<'_>> = match header.chain_is_protected {
            false if is_needed => header.chain.iter().map(|c| Value::Bytes(c)).collect(),
            _ => Vec::new(),
        };
        let key = (self.issuer.binding == Binding::DidWeb).then(|| self.issuer.key.to_cose_key());
        let mut out = Vec::new();
        cbor::map(&mut out, usize::from(!certificates.is_empty()) + usize::from(key.is_some()));
        if !certificates.is_empty() {
            cbor::int(&mut out, collateral::CERTIFICATES);
            out.extend(Value::Array(certificates).encode());
        }
        if let Some(key) = key {
            cbor::int(&mut out, collateral::KEY);
            cbor::bytes(&mut out, &key);
        }
        out
    }
}
