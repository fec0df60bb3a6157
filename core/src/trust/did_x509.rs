//! did:x509 version 0: an issuer named by a CA and properties of the leaf.
//!
//! `did:x509:0:<hash>:<CA fingerprint>::<policy>:<value>[::<policy>:<value>]`
//!
//! In: the DID, the leaf and the CAs of a verified path. Out: nothing, or the
//! part of the DID that the path does not satisfy.

#[cfg(test)]
mod tests;

use std::fmt;

use crate::trust::x509::{Certificate, Fingerprints};
use crate::wire::text;

/// Subject attributes that have a label.
const LABELS: &[(&str, &str)] = &[
    ("C", "2.5.4.6"),
    ("CN", "2.5.4.3"),
    ("L", "2.5.4.7"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("ST", "2.5.4.8"),
    ("STREET", "2.5.4.9"),
];

/// A parsed did:x509.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DidX509 {
    fingerprint: Vec<u8>,
    policies: Vec<Policy>,
}

/// One condition on the leaf.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Policy {
    /// The leaf names this purpose (dotted OID).
    Eku(String),
    /// Fulcio vouches for this OpenID issuer (without `https://`).
    FulcioIssuer(String),
    /// The leaf has this alternative name.
    San(SanKind, String),
    /// The subject has these attributes (dotted OID and value).
    Subject(Vec<(String, String)>),
}

/// A kind of subject alternative name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SanKind {
    /// A DNS name.
    Dns,
    /// A mail address.
    Email,
    /// A URI.
    Uri,
}

impl DidX509 {
    /// Reads a DID.
    pub fn parse(did: &str) -> Result<Self, Error> {
        let rest = did.strip_prefix("did:x509:0:").ok_or(syntax("it is not of version 0"))?;
        let mut parts = rest.split("::");
        let (hash, fingerprint) = parts
            .next()
            .and_then(|head| head.split_once(':'))
            .ok_or(syntax("the CA fingerprint is missing"))?;
        let len = match hash {
            "sha256" => 32,
            "sha384" => 48,
            "sha512" => 64,
            _ => return Err(syntax("the hash is none of sha256, sha384, sha512")),
        };
        let fingerprint = text::from_base64url(fingerprint)
            .filter(|bytes| bytes.len() == len)
            .ok_or(syntax("the CA fingerprint is not base64url of the hash's length"))?;
        let policies: Vec<Policy> = parts.map(Policy::parse).collect::<Result<_, _>>()?;
        if policies.is_empty() {
            return Err(syntax("it has no policy"));
        }
        Ok(Self { fingerprint, policies })
    }

    /// Checks the DID against the leaf and the CAs of a verified path.
    pub fn check(&self, leaf: &Certificate, authorities: &[Fingerprints]) -> Result<(), Error> {
        let named = |f: &Fingerprints| {
            [f.sha256.as_slice(), &f.sha384, &f.sha512].contains(&self.fingerprint.as_slice())
        };
        if !authorities.iter().any(named) {
            return Err(Error::Fingerprint);
        }
        match self.policies.iter().find(|policy| !policy.holds(leaf)) {
            None => Ok(()),
            Some(policy) => Err(Error::Policy { policy: policy.to_string() }),
        }
    }
}

impl Policy {
    fn parse(part: &str) -> Result<Self, Error> {
        let (name, value) = part.split_once(':').ok_or(syntax("a policy has no value"))?;
        match name {
            "eku" if is_dotted_oid(value) => Ok(Self::Eku(value.to_owned())),
            "eku" => Err(syntax("the eku policy needs a dotted object identifier")),
            "fulcio-issuer" => Ok(Self::FulcioIssuer(decode(value)?)),
            "san" => {
                let (kind, value) = value
                    .split_once(':')
                    .ok_or(syntax("the san policy needs a kind and a name"))?;
                let kind = match kind {
                    "dns" => SanKind::Dns,
                    "email" => SanKind::Email,
                    "uri" => SanKind::Uri,
                    _ => return Err(syntax("the san kind is none of dns, email, uri")),
                };
                Ok(Self::San(kind, decode(value)?))
            }
            "subject" => parse_subject(value).map(Self::Subject),
            _ => Err(Error::UnknownPolicy { name: name.to_owned() }),
        }
    }

    fn holds(&self, leaf: &Certificate) -> bool {
        match self {
            Self::Eku(oid) => leaf.extended_key_usages.as_ref().is_some_and(|l| l.contains(oid)),
            Self::FulcioIssuer(value) => {
                let found = leaf.fulcio_issuer.as_deref();
                found.and_then(|url| url.strip_prefix("https://")) == Some(value)
            }
            Self::San(SanKind::Dns, name) => leaf.dns_names.contains(name),
            Self::San(SanKind::Email, name) => leaf.emails.contains(name),
            Self::San(SanKind::Uri, name) => leaf.uris.contains(name),
            Self::Subject(wanted) => wanted.iter().all(|pair| leaf.subject.contains(pair)),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eku(oid) => write!(f, "eku {oid}"),
            Self::FulcioIssuer(issuer) => write!(f, "fulcio-issuer {issuer:?}"),
            Self::San(SanKind::Dns, name) => write!(f, "san dns {name:?}"),
            Self::San(SanKind::Email, name) => write!(f, "san email {name:?}"),
            Self::San(SanKind::Uri, name) => write!(f, "san uri {name:?}"),
            Self::Subject(pairs) => {
                f.write_str("subject")?;
                pairs.iter().try_for_each(|(oid, value)| write!(f, " {}={value:?}", label(oid)))
            }
        }
    }
}

fn parse_subject(value: &str) -> Result<Vec<(String, String)>, Error> {
    let items: Vec<&str> = value.split(':').collect();
    let (pairs, rest) = items.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(syntax("the subject policy needs pairs of attribute and value"));
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for [key, value] in pairs {
        let oid = match LABELS.iter().find(|(label, _)| label == key) {
            Some((_, oid)) => *oid,
            None if is_dotted_oid(key) => key,
            None => return Err(syntax("a subject attribute is neither a label nor an OID")),
        };
        if found.iter().any(|(seen, _)| seen == oid) {
            return Err(syntax("a subject attribute is named twice"));
        }
        found.push((oid.to_owned(), decode(value)?));
    }
    Ok(found)
}

fn label(oid: &str) -> &str {
    LABELS.iter().find(|(_, known)| *known == oid).map_or(oid, |(label, _)| label)
}

/// Percent-decodes a value; DID Core allows few characters unencoded.
fn decode(value: &str) -> Result<String, Error> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'%' => {
                let byte = tail
                    .split_at_checked(2)
                    .and_then(|(pair, tail)| {
                        rest = tail;
                        text::from_hex(std::str::from_utf8(pair).ok()?)
                    })
                    .ok_or(syntax("a percent sign is not followed by two hex digits"))?;
                out.extend(byte);
            }
            b'.' | b'-' | b'_' => out.push(*first),
            b if b.is_ascii_alphanumeric() => out.push(*b),
            _ => return Err(syntax("a value has characters that must be percent-encoded")),
        }
    }
    match String::from_utf8(out) {
        Ok(text) if !text.is_empty() => Ok(text),
        Ok(_) => Err(syntax("a value is empty")),
        Err(_) => Err(syntax("a value is not UTF-8")),
    }
}

/// Whether text is an object identifier in dotted form.
pub(crate) fn is_dotted_oid(text: &str) -> bool {
    let arc = |arc: &str| {
        let zero_led = arc.len() > 1 && arc.starts_with('0');
        !arc.is_empty() && !zero_led && arc.bytes().all(|b| b.is_ascii_digit())
    };
    text.contains('.') && text.split('.').all(arc)
}

fn syntax(problem: &'static str) -> Error {
    Error::Syntax { problem }
}

/// Why a did:x509 is invalid or does not match a chain.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "did-x509-")]
pub enum Error {
    /// The CA is not on the path.
    #[error("no CA of the chain has the fingerprint of the did:x509")]
    Fingerprint,
    /// The leaf does not meet a policy.
    #[error("the leaf does not meet the did:x509 policy {policy}")]
    Policy { policy: String },
    /// The DID is not well-formed.
    #[error("the did:x509 is not well-formed: {problem}")]
    Syntax { problem: &'static str },
    /// An unknown policy, which cannot be checked.
    #[error("the did:x509 policy {name:?} is not known")]
    UnknownPolicy { name: String },
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
