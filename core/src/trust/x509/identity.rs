//! Whether a verified chain may speak for the issuer of a statement.
//!
//! In: `VerifiedChain`, `iss`. Out: the kind of name that matched, or an error
//! that lists the names of the leaf or the scope of its anchor.

use super::{Error, Scope, Unscoped, VerifiedChain};
use crate::trust::did_x509::DidX509;

/// Names listed in a mismatch.
const NAMES_LISTED_MAX: usize = 8;

/// The name of the leaf that matches the issuer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Identity<'a> {
    /// Every policy of a did:x509.
    DidX509,
    /// A DNS name of the leaf: a bare host, or the host of an https URL.
    Dns(&'a str),
    /// The trust domain of the one URI of a SPIFFE document.
    Spiffe(&'a str),
    /// A URI of the leaf.
    Uri(&'a str),
}

impl Identity<'_> {
    /// The narrowest scope that allows this name; for a SPIFFE id, its trust
    /// domain.
    pub fn scope(&self) -> Scope {
        let mut scope = Scope::default();
        match self {
            Self::DidX509 => scope.did_x509 = true,
            Self::Dns(host) => scope.dns.push(host.to_ascii_lowercase()),
            Self::Spiffe(domain) => scope.spiffe.push((*domain).to_owned()),
            Self::Uri(uri) => scope.uri.push((*uri).to_owned()),
        }
        scope
    }
}

impl VerifiedChain {
    /// Checks that the leaf has the name `issuer` and that the anchor may
    /// speak for it. Returns the name that was allowed.
    pub fn check_issuer<'a>(
        &self,
        issuer: &'a str,
        unscoped: Unscoped,
    ) -> Result<Identity<'a>, Error> {
        let (first, second) = self.identities(issuer)?;
        let Some(scope) = &self.scope else {
            return match unscoped {
                Unscoped::Anything => Ok(first),
                Unscoped::Nobody => Err(Error::Unscoped { anchor: self.anchor.clone() }),
            };
        };
        let mut names = [Some(first), second].into_iter().flatten();
        names.find(|identity| scope.allows(identity)).ok_or_else(|| Error::OutOfScope {
            anchor: self.anchor.clone(),
            issuer: issuer.to_owned(),
            only: format!(
                "{scope}; if it should, add {} to it in the trust file",
                first.scope().to_toml().concat()
            ),
        })
    }

    /// The names of the leaf that match `issuer`. An https URL can match twice,
    /// as a URI and by its host; the narrower comes first.
    fn identities<'a>(
        &self,
        issuer: &'a str,
    ) -> Result<(Identity<'a>, Option<Identity<'a>>), Error> {
        if issuer.starts_with("did:x509:") {
            DidX509::parse(issuer)?.check(&self.leaf, &self.authorities)?;
            return Ok((Identity::DidX509, None));
        }
        if let Some(domain) = trust_domain(issuer) {
            // X.509-SVID, 2: a SPIFFE leaf has exactly one URI.
            return match self.leaf.uris.as_slice() {
                [only] if only == issuer => Ok((Identity::Spiffe(domain), None)),
                _ => Err(self.mismatch(issuer)),
            };
        }
        let certified =
            |host: &&str| self.leaf.dns_names.iter().any(|n| n.eq_ignore_ascii_case(host));
        let host = host_of(issuer).filter(certified).map(Identity::Dns);
        let uri = self.leaf.uris.iter().any(|uri| uri == issuer).then_some(Identity::Uri(issuer));
        match (uri, host) {
            (Some(uri), host) => Ok((uri, host)),
            (None, Some(host)) => Ok((host, None)),
            (None, None) => Err(self.mismatch(issuer)),
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

/// The trust domain of a SPIFFE id.
fn trust_domain(issuer: &str) -> Option<&str> {
    let (scheme, rest) = issuer.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("spiffe") {
        return None;
    }
    rest.split('/').next()
}

/// The host of an https URL, or a bare DNS name. `None` for anything that URL
/// parsers may read differently: user info, backslashes, wildcards.
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
