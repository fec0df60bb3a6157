//! X.509 chains (RFC 9360 `x5chain`) validated to an anchor of ours.
//!
//! In: trust anchors as PEM with what each may speak for, a leaf-first DER
//! chain, the issuer, the time. Out: a `VerifiedChain` with the leaf's key and
//! names, valid for a known window.
//!
//! Paths are built by webpki, which takes v3 certificates only and refuses a
//! CA as leaf, unique identifiers, unknown critical extensions, empty
//! extended key usages and RSA below 2048 bits. It ignores key usage bits and
//! everything about the anchor but its name and key, so those are checked here.

mod certificate;
#[cfg(test)]
pub(crate) mod fixture;
mod identity;
mod path;
mod scope;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use quick_cache::sync::Cache;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::key::{self, PublicKey};
use crate::trust::did_x509;
use crate::wire::digest::Digest;
use crate::wire::label::hash as hash_alg;
use crate::wire::limits::CHAIN_CERTIFICATES_MAX;
use crate::wire::time::UnixSeconds;

pub use certificate::{Certificate, Fingerprints};
pub use identity::Identity;
pub use scope::{Scope, Unscoped};

/// Chains remembered. One takes about 2 KiB, so the whole cache 2 MiB; an
/// issuer rarely has more than one chain in use.
const CACHED_CHAINS: usize = 1024;

/// The roots that issuers' chains may end in.
#[derive(Clone)]
pub struct ChainTrust {
    anchors: Vec<Anchor>,
    /// The same anchors in webpki's form, at the same places.
    roots: Vec<TrustAnchor<'static>>,
    fingerprint: Digest,
    cache: Arc<Cache<Digest, VerifiedChain>>,
}

#[derive(Clone)]
struct Anchor {
    name: String,
    required_eku: Option<String>,
    scope: Option<Arc<Scope>>,
    der: Vec<u8>,
    certificate: Certificate,
}

/// A chain that led to an anchor; `ChainTrust::validate` alone makes one.
#[derive(Clone, Debug)]
pub struct VerifiedChain {
    /// The key of the leaf.
    pub leaf_key: PublicKey,
    /// The name the anchor was added under.
    pub anchor: String,
    /// The first second at which every certificate of the path is valid.
    pub not_before: UnixSeconds,
    /// The last such second.
    pub not_after: UnixSeconds,
    /// What the leaf says.
    pub leaf: Arc<Certificate>,
    /// Every other certificate of the path, the anchor last. Certificates
    /// that came along in the x5chain but lie off the path are not here.
    pub authorities: Arc<[Fingerprints]>,
    /// What the anchor may speak for; `None` where nobody has said.
    scope: Option<Arc<Scope>>,
}

impl ChainTrust {
    /// Trusts nobody.
    pub fn empty() -> Self {
        Self {
            anchors: Vec::new(),
            roots: Vec::new(),
            fingerprint: Digest::of(&[]),
            cache: Arc::new(Cache::new(CACHED_CHAINS)),
        }
    }

    /// Trusts the CA certificates of a PEM text, under one name. With
    /// `required_eku`, leaves below them must name that purpose. Without a
    /// `scope` they speak for whom the caller of `speaking_for` says.
    pub fn add(
        &mut self,
        name: &str,
        certificate_pem: &str,
        required_eku: Option<&str>,
        scope: Option<Scope>,
    ) -> Result<(), Error> {
        let unreadable = || Error::AnchorUnreadable { anchor: name.to_owned() };
        if let Some(oid) = required_eku.filter(|oid| !did_x509::is_dotted_oid(oid)) {
            return Err(Error::AnchorEku { anchor: name.to_owned(), oid: oid.to_owned() });
        }
        if let Some((entry, problem)) = scope.as_ref().and_then(Scope::mistake) {
            return Err(Error::AnchorScope { anchor: name.to_owned(), entry, problem });
        }
        let scope = scope.map(Arc::new);
        let mut added = Vec::new();
        for der in CertificateDer::pem_slice_iter(certificate_pem.as_bytes()) {
            let der = der.map_err(|_| unreadable())?;
            let certificate = Certificate::read(&der).map_err(|_| unreadable())?;
            let root = webpki::anchor_from_trusted_cert(&der).map_err(|_| unreadable())?;
            if !certificate.is_ca || !certificate.key_usage.is_none_or(|u| u.key_cert_sign) {
                return Err(Error::AnchorNotCa { anchor: name.to_owned() });
            }
            let required_eku = required_eku.map(str::to_owned);
            let (name, der, root) = (name.to_owned(), der.to_vec(), root.to_owned());
            let scope = scope.clone();
            added.push((Anchor { name, required_eku, scope, der, certificate }, root));
        }
        if added.is_empty() {
            return Err(unreadable());
        }
        for (anchor, root) in added {
            self.anchors.push(anchor);
            self.roots.push(root);
        }
        self.fingerprint = fingerprint(&self.anchors);
        Ok(())
    }

    /// Whether nobody is trusted.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// The anchors by name, with what each may speak for.
    pub fn anchors(&self) -> impl Iterator<Item = (&str, Option<&Scope>)> {
        self.anchors.iter().map(|anchor| (anchor.name.as_str(), anchor.scope.as_deref()))
    }

    /// Names the set of anchors and their options, in whatever order added.
    pub fn fingerprint(&self) -> Digest {
        self.fingerprint
    }

    /// Validates a leaf-first DER chain at `now`, for a leaf that carries the
    /// name `issuer`, to an anchor that may speak for it. Of several paths one
    /// is enough.
    pub fn speaking_for<'a>(
        &self,
        chain: &[Vec<u8>],
        issuer: &'a str,
        unscoped: Unscoped,
        now: UnixSeconds,
    ) -> Result<(VerifiedChain, Identity<'a>), Error> {
        let verified = self
            .validate_if(chain, now, &|found| found.check_issuer(issuer, unscoped).map(|_| ()))?;
        let identity = verified.check_issuer(issuer, unscoped)?;
        Ok((verified, identity))
    }

    /// Validates a leaf-first DER chain at `now`, whatever the leaf is named.
    pub fn validate(&self, chain: &[Vec<u8>], now: UnixSeconds) -> Result<VerifiedChain, Error> {
        self.validate_if(chain, now, &|_| Ok(()))
    }

    fn validate_if(
        &self,
        chain: &[Vec<u8>],
        now: UnixSeconds,
        accepts: &dyn Fn(&VerifiedChain) -> Result<(), Error>,
    ) -> Result<VerifiedChain, Error> {
        let Some((leaf, others)) = chain.split_first() else { return Err(Error::EmptyChain) };
        if chain.len() > CHAIN_CERTIFICATES_MAX {
            let (count, limit) = (chain.len(), CHAIN_CERTIFICATES_MAX);
            return Err(Error::TooManyCertificates { count, limit });
        }
        let name = self.cache_key(chain);
        // Outside its window a remembered path says nothing, nor does one to
        // an anchor that may not speak for this issuer: another path through
        // the same certificates may still hold. Only paths are remembered;
        // whom they speak for is asked every time.
        if let Some(known) = self.cache.get(&name)
            && (known.not_before..=known.not_after).contains(&now)
            && accepts(&known).is_ok()
        {
            return Ok(known);
        }
        let verified = self.build_path(leaf, others, now, accepts)?;
        self.cache.insert(name, verified.clone());
        Ok(verified)
    }

    fn cache_key(&self, chain: &[Vec<u8>]) -> Digest {
        let each: Vec<Digest> = chain.iter().map(|der| Digest::of(der)).collect();
        let mut parts: Vec<&[u8]> = vec![self.fingerprint.as_bytes()];
        parts.extend(each.iter().map(|d| d.as_bytes().as_slice()));
        Digest::of_parts(&parts)
    }
}

impl fmt::Debug for ChainTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.anchors.iter().map(|a| &a.name)).finish()
    }
}

fn fingerprint(anchors: &[Anchor]) -> Digest {
    let mut each: Vec<Digest> = anchors
        .iter()
        .map(|anchor| {
            let eku = anchor.required_eku.as_deref().unwrap_or_default();
            let scope = anchor.scope.as_ref().map(|scope| scope.to_toml().join("\n"));
            let scope = scope.map_or_else(|| "?".to_owned(), |scope| format!("={scope}"));
            let parts = [anchor.name.as_bytes(), eku.as_bytes(), scope.as_bytes(), &anchor.der];
            let parts = parts.map(Digest::of);
            Digest::of_parts(&parts.each_ref().map(|d| d.as_bytes().as_slice()))
        })
        .collect();
    each.sort();
    Digest::of_parts(&each.iter().map(|d| d.as_bytes().as_slice()).collect::<Vec<_>>())
}

/// The key of a certificate, which nobody has vouched for yet.
pub fn leaf_key_of(der: &[u8]) -> Result<PublicKey, Error> {
    let info = certificate::public_key_info(der)
        .map_err(|because| Error::BadCertificate { index: 0, because })?;
    PublicKey::from_spki(&info).map_err(Error::LeafKeyUnsupported)
}

/// Whether an `x5t` (RFC 9360) names this certificate. Truncated hashes are
/// not taken.
pub fn x5t_matches(leaf_der: &[u8], alg: i64, hash: &[u8]) -> Result<bool, Error> {
    match alg {
        hash_alg::SHA_256 => Ok(Sha256::digest(leaf_der).as_slice() == hash),
        hash_alg::SHA_384 => Ok(Sha384::digest(leaf_der).as_slice() == hash),
        hash_alg::SHA_512 => Ok(Sha512::digest(leaf_der).as_slice() == hash),
        _ => Err(Error::UnknownHashAlgorithm { alg }),
    }
}

/// Why a chain, an anchor or a name on it was refused.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "x509-")]
pub enum Error {
    /// The purpose an anchor demands is not a dotted OID.
    #[error("anchor {anchor}: {oid:?} is not a dotted object identifier")]
    AnchorEku { anchor: String, oid: String },
    /// An anchor that may not certify.
    #[error("anchor {anchor}: the certificate is not a CA")]
    AnchorNotCa { anchor: String },
    /// What an anchor is to speak for is not written as it must be.
    #[error("anchor {anchor}: {entry:?}: {problem}")]
    AnchorScope { anchor: String, entry: String, problem: &'static str },
    /// An anchor that cannot be read.
    #[error("anchor {anchor}: not a certificate in PEM form")]
    AnchorUnreadable { anchor: String },
    /// A certificate of the chain cannot be read.
    #[error("certificate {index} of the chain is not readable")]
    BadCertificate {
        index: usize,
        #[source]
        because: webpki::Error,
    },
    /// The leaf is a CA.
    #[error("the first certificate of the chain is a CA, not a leaf")]
    CaAsLeaf,
    /// The issuer is a did:x509 that the chain does not bear out.
    #[error(transparent)]
    #[strum(transparent)]
    DidX509(#[from] did_x509::Error),
    /// The path does not allow the purpose the anchor demands.
    #[error("anchor {anchor} demands the extended key usage {required} on the leaf")]
    EkuMissing { required: String, anchor: String },
    /// No certificates at all.
    #[error("the chain is empty")]
    EmptyChain,
    /// A certificate of the path is past its time.
    #[error("a certificate of the chain expired at {not_after}, before {now}")]
    Expired { now: UnixSeconds, not_after: UnixSeconds },
    /// The leaf does not carry the issuer's name.
    #[error("the leaf does not name {issuer:?}; it names {}", listed(found))]
    IdentityMismatch { issuer: String, found: Vec<String> },
    /// A certificate may not be used this way.
    #[error("a certificate of the chain lacks the key usage {needed}")]
    KeyUsage { needed: &'static str },
    /// The leaf's key is of a kind we do not verify with.
    #[error("the leaf's key is not usable")]
    LeafKeyUnsupported(#[source] key::Error),
    /// A certificate of the path is not valid yet.
    #[error("a certificate of the chain is not valid before {not_before}; it is {now}")]
    NotYetValid { now: UnixSeconds, not_before: UnixSeconds },
    /// The anchor may not speak for the issuer.
    #[error("anchor {anchor} may not speak for {issuer:?}, only for {only}")]
    OutOfScope { anchor: String, issuer: String, only: String },
    /// The path breaks another rule of RFC 5280.
    #[error("the chain is not valid")]
    Path(#[source] webpki::Error),
    /// More CAs below a CA than it allows.
    #[error("the chain is longer than one of its CAs allows")]
    PathLength,
    /// More certificates than we look at.
    #[error("{count} certificates in the chain, at most {limit} are taken")]
    TooManyCertificates { count: usize, limit: usize },
    /// An x5t with a hash we do not compute.
    #[error("hash algorithm {alg} is not supported")]
    UnknownHashAlgorithm { alg: i64 },
    /// Nobody has said what the anchor may speak for.
    #[error(
        "the trust file does not say whom anchor {anchor} may speak for: \
         `capstan trust upgrade FILE` adds it"
    )]
    #[strum(serialize = "anchor-unscoped")]
    Unscoped { anchor: String },
    /// No path to an anchor.
    #[error("the chain does not lead to a trust anchor")]
    Untrusted,
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

fn listed(found: &[String]) -> String {
    if found.is_empty() { "nobody".to_owned() } else { found.join(", ") }
}
