//! Whether a verified chain speaks for the issuer a statement names.
//!
//! In: `VerifiedChain`, `iss`. Out: which kind of name bound the two, or an
//! error that lists the names the leaf does carry.

use super::{Error, VerifiedChain};
use crate::trust::did_x509::DidX509;

/// Names listed in a mismatch; the rest would not help anyone.
const NAMES_LISTED_MAX: usize = 8;

/// What bound the leaf to the issuer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Identity {
    /// Every policy of a did:x509.
    DidX509,
    /// A subject alternative name: the URI itself, or the host.
    San,
    /// The one URI of a SPIFFE document.
    Spiffe,
}

impl VerifiedChain {
    /// Checks that the leaf carries the name `issuer`.
    pub fn check_identity(&self, issuer: &str) -> Result<Identity, Error> {
        if issuer.starts_with("did:x509:") {
            DidX509::parse(issuer)?.check(&self.leaf, &self.authorities)?;
            return Ok(Identity::DidX509);
        }
        if has_scheme(issuer, "spiffe") {
            // X.509-SVID, 2: exactly one URI, or it is no SPIFFE identity.
            return match self.leaf.uris.as_slice() {
                [only] if only == issuer => Ok(Identity::Spiffe),
                _ => Err(self.mismatch(issuer)),
            };
        }
        let is_host = |host: &str| self.leaf.dns_names.iter().any(|n| n.eq_ignore_ascii_case(host));
        if self.leaf.uris.iter().any(|uri| uri == issuer) || host_of(issuer).is_some_and(is_host) {
            Ok(Identity::San)
        } else {
            Err(self.mismatch(issuer))
        }
    }

    fn mismatch(&self, issuer: &str) -> Error {
        let leaf = &self.leaf;
        let kinds = [("uri", &leaf.uris), ("dns", &leaf.dns_names), ("email", &leaf.emails)];
        let found = kinds
            .into_iter()
            .flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind}:{name}")))
            .take(NAMES_LISTED_MAX)
            .collect();
        Error::IdentityMismatch { issuer: issuer.to_owned(), found }
    }
}

fn has_scheme(uri: &str, scheme: &str) -> bool {
    uri.split_once("://").is_some_and(|(before, _)| before.eq_ignore_ascii_case(scheme))
}

/// The host of an https URL, or a bare DNS name. Anything a URL parser might
/// read differently (user info, backslashes, wildcards) has no host here.
fn host_of(issuer: &str) -> Option<&str> {
    let authority = match issuer.strip_prefix("https://") {
        Some(rest) => rest.split(['/', '?', '#']).next()?,
        None => issuer,
    };
    let host = match authority.split_once(':') {
        Some((host, port)) if issuer.starts_with("https://") && is_port(port) => host,
        Some(_) => return None,
        None => authority,
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    (!host.is_empty() && host.bytes().all(plain)).then_some(host)
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
