//! X.509 chains (RFC 9360 `x5chain`), validated to a trust anchor.
//!
//! In: trust anchors as PEM with their scopes, a leaf-first DER chain, the
//! issuer, the time. Out: a `VerifiedChain` with the leaf's key and names and
//! the validity period of the path.
//!
//! Paths are built by webpki, which accepts only v3 certificates and refuses a
//! CA as leaf, unique identifiers, unknown critical extensions, empty
//! extended key usages and RSA below 2048 bits. It ignores key usage bits and
//! everything of the anchor but its name and key, so those are checked here.

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

/// Cached chains. One takes about 2 KiB, so the whole cache 2 MiB; an issuer
/// rarely uses more than one chain.
const CACHED_CHAINS: usize = 1024;

/// The trust anchors for issuers' chains.
#[derive(Clone)]
pub struct ChainTrust {
    anchors: Vec<Anchor>,
    /// The same anchors in webpki's form, in the same order.
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

/// A chain validated to an anchor; only `ChainTrust` makes one.
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
    /// The content of the leaf.
    pub leaf: Arc<Certificate>,
    /// Every other certificate of the path, the anchor last. Certificates of
    /// the x5chain outside the path are not included.
    pub authorities: Arc<[Fingerprints]>,
    /// The scope of the anchor, if it has one.
    scope: Option<Arc<Scope>>,
}

impl ChainTrust {
    /// No anchors.
    pub fn empty() -> Self {
        Self {
            anchors: Vec::new(),
            roots: Vec::new(),
            fingerprint: Digest::of(&[]),
            cache: Arc::new(Cache::new(CACHED_CHAINS)),
        }
    }

    /// Trusts the CA certificates of a PEM text, under one name. With
    /// `required_eku`, leaves must have that extended key usage. Without a
    /// `scope`, the caller of `speaking_for` decides what they may speak for.
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

    /// Whether there are no anchors.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// The names and scopes of the anchors.
    pub fn anchors(&self) -> impl Iterator<Item = (&str, Option<&Scope>)> {
        self.anchors.iter().map(|anchor| (anchor.name.as_str(), anchor.scope.as_deref()))
    }

    /// A digest of the anchors and their options, independent of their order.
    pub fn fingerprint(&self) -> Digest {
        self.fingerprint
    }

    /// Validates a leaf-first DER chain at `now`: some path leads from a leaf
    /// with the name `issuer` to an anchor that may speak for that name.
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

    /// Validates a leaf-first DER chain at `now`, for any name of the leaf.
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
        // A cached path is used only within its validity and its anchor's
        // scope; otherwise another path through the same certificates may
        // exist. The scope is checked every time, not cached.
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

/// The key of a certificate that has not been validated.
pub fn leaf_key_of(der: &[u8]) -> Result<PublicKey, Error> {
    let info = certificate::public_key_info(der)
        .map_err(|because| Error::BadCertificate { index: 0, because })?;
    PublicKey::from_spki(&info).map_err(Error::LeafKeyUnsupported)
}

/// Whether an `x5t` (RFC 9360) names this certificate. Truncated hashes are
/// not accepted.
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
    /// The required extended key usage of an anchor is not a dotted OID.
    #[error("anchor {anchor}: {oid:?} is not a dotted object identifier")]
    AnchorEku { anchor: String, oid: String },
    /// An anchor that is not a CA.
    #[error("anchor {anchor}: the certificate is not a CA")]
    AnchorNotCa { anchor: String },
    /// An invalid scope of an anchor.
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
    /// The issuer is a did:x509 that the chain does not satisfy.
    #[error(transparent)]
    #[strum(transparent)]
    DidX509(#[from] did_x509::Error),
    /// The path lacks the extended key usage that the anchor requires.
    #[error("anchor {anchor} requires the extended key usage {required} on the leaf")]
    EkuMissing { required: String, anchor: String },
    /// No certificates at all.
    #[error("the chain is empty")]
    EmptyChain,
    /// A certificate of the path has expired.
    #[error("a certificate of the chain expired at {not_after}, before {now}")]
    Expired { now: UnixSeconds, not_after: UnixSeconds },
    /// The leaf does not carry the issuer's name.
    #[error("the leaf does not name {issuer:?}; it names {}", listed(found))]
    IdentityMismatch { issuer: String, found: Vec<String> },
    /// A certificate lacks a key usage.
    #[error("a certificate of the chain lacks the key usage {needed}")]
    KeyUsage { needed: &'static str },
    /// The leaf has a key of an unsupported kind.
    #[error("the leaf's key is not usable")]
    LeafKeyUnsupported(#[source] key::Error),
    /// A certificate of the path is not valid yet.
    #[error("a certificate of the chain is not valid before {not_before}; it is {now}")]
    NotYetValid { now: UnixSeconds, not_before: UnixSeconds },
    /// The issuer is outside the scope of the anchor.
    #[error("anchor {anchor} may not speak for {issuer:?}, only for {only}")]
    OutOfScope { anchor: String, issuer: String, only: String },
    /// The path breaks another rule of RFC 5280.
    #[error("the chain is not valid")]
    Path(#[source] webpki::Error),
    /// More CAs below a CA than it allows.
    #[error("the chain is longer than one of its CAs allows")]
    PathLength,
    /// More certificates than are read.
    #[error("{count} certificates in the chain, at most {limit} are accepted")]
    TooManyCertificates { count: usize, limit: usize },
    /// An x5t with an unsupported hash.
    #[error("hash algorithm {alg} is not supported")]
    UnknownHashAlgorithm { alg: i64 },
    /// The anchor has no scope.
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
