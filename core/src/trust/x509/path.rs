//! Path building: webpki finds the path and checks its signatures, constraints
//! and times; the remaining checks run on each candidate path.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter, VerifiedPath};

use super::{Anchor, Certificate, ChainTrust, Error, Fingerprints, VerifiedChain};
use super::{certificate, leaf_key_of};
use crate::key::PublicKey;
use crate::wire::time::UnixSeconds;

impl ChainTrust {
    pub(super) fn build_path(
        &self,
        leaf: &[u8],
        others: &[Vec<u8>],
        now: UnixSeconds,
        accepts: &dyn Fn(&VerifiedChain) -> Result<(), Error>,
    ) -> Result<VerifiedChain, Error> {
        let at = |index| move |because| Error::BadCertificate { index, because };
        let mut intermediates = Vec::new();
        for (index, der) in (1..).zip(others) {
            // webpki would try an included root as an intermediate.
            if !self.anchors.iter().any(|a| a.der == *der) {
                certificate::check_readable(der).map_err(at(index))?;
                intermediates.push(CertificateDer::from(der.as_slice()));
            }
        }
        let leaf = CertificateDer::from(leaf);
        let end_entity = EndEntityCert::try_from(&leaf).map_err(at(0))?;
        let facts = Arc::new(Certificate::read(&leaf).map_err(at(0))?);
        let key = leaf_key_of(&leaf)?;
        let checked = RefCell::new(None);
        let check = |path: &VerifiedPath<'_>| {
            let result = self.check_path(path, &facts, &key, now);
            let result = result.and_then(|found| accepts(&found).map(|()| found));
            // Any error makes webpki try the next path; ours is in `checked`.
            let verdict = result.as_ref().map(|_| ()).map_err(|_| webpki::Error::UnknownIssuer);
            checked.replace(Some(result));
            verdict
        };
        let built = end_entity.verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            &self.roots,
            &intermediates,
            UnixTime::since_unix_epoch(Duration::from_secs(now.seconds())),
            AnyPurpose,
            None,
            Some(&check),
        );
        match (checked.take(), built) {
            (Some(result), _) => result,
            (None, Err(error)) => Err(Error::from_webpki(error, now)),
            (None, Ok(_)) => Err(Error::Untrusted),
        }
    }

    /// The checks that webpki does not make, on a path with valid signatures.
    fn check_path(
        &self,
        path: &VerifiedPath<'_>,
        leaf: &Arc<Certificate>,
        leaf_key: &PublicKey,
        now: UnixSeconds,
    ) -> Result<VerifiedChain, Error> {
        let place = self.roots.iter().position(|root| std::ptr::eq(root, path.anchor()));
        let anchor = place.and_then(|at| self.anchors.get(at)).ok_or(Error::Untrusted)?;
        let ders: Vec<_> = path.intermediate_certificates().map(|c| c.der()).collect();
        if anchor.certificate.path_len.is_some_and(|max| count(ders.len()) > max) {
            return Err(Error::PathLength);
        }
        let intermediates: Vec<Certificate> = ders
            .iter()
            .map(|der| Certificate::read(der).map_err(Error::Path))
            .collect::<Result<_, _>>()?;
        check_usages(leaf, &intermediates, anchor)?;
        let whole = || intermediates.iter().chain([&anchor.certificate, leaf]);
        let not_before = whole().map(|c| c.not_before).max().unwrap_or_default();
        let not_after = whole().map(|c| c.not_after).min().unwrap_or_default();
        if now < not_before {
            return Err(Error::NotYetValid { now, not_before });
        }
        if now > not_after {
            return Err(Error::Expired { now, not_after });
        }
        let others = ders.iter().map(|der| der.as_ref()).chain([anchor.der.as_slice()]);
        Ok(VerifiedChain {
            leaf_key: leaf_key.clone(),
            anchor: anchor.name.clone(),
            not_before,
            not_after,
            leaf: Arc::clone(leaf),
            authorities: others.map(Fingerprints::of).collect(),
            scope: anchor.scope.clone(),
        })
    }
}

/// Lets webpki accept every extended key usage: it would refuse intermediates
/// without the extension. `check_usages` checks the leaf instead.
struct AnyPurpose;

impl ExtendedKeyUsageValidator for AnyPurpose {
    fn validate(&self, _: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        Ok(())
    }
}

fn check_usages(
    leaf: &Certificate,
    intermediates: &[Certificate],
    anchor: &Anchor,
) -> Result<(), Error> {
    if leaf.key_usage.is_some_and(|usage| !usage.digital_signature) {
        return Err(Error::KeyUsage { needed: "digitalSignature" });
    }
    if intermediates.iter().any(|c| c.key_usage.is_some_and(|usage| !usage.key_cert_sign)) {
        return Err(Error::KeyUsage { needed: "keyCertSign" });
    }
    let Some(required) = &anchor.required_eku else { return Ok(()) };
    let allowed = intermediates.iter().chain([&anchor.certificate]);
    if leaf.names_purpose(required) && allowed.clone().all(|c| c.allows_purpose(required)) {
        Ok(())
    } else {
        Err(Error::EkuMissing { required: required.clone(), anchor: anchor.name.clone() })
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Error {
    fn from_webpki(error: webpki::Error, now: UnixSeconds) -> Self {
        let seconds = |t: UnixTime| UnixSeconds::new(t.as_secs());
        match error {
            webpki::Error::CaUsedAsEndEntity => Self::CaAsLeaf,
            webpki::Error::CertExpired { not_after, .. } => {
                Self::Expired { now, not_after: seconds(not_after) }
            }
            webpki::Error::CertNotValidYet { not_before, .. } => {
                Self::NotYetValid { now, not_before: seconds(not_before) }
            }
            webpki::Error::PathLenConstraintViolated => Self::PathLength,
            webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey => {
                Self::Untrusted
            }
            other => Self::Path(other),
        }
    }
}
