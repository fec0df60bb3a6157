//! The content of one certificate: validity, names, usages.
//!
//! In: DER. Out: an owned `Certificate`, so that verified chains can be cached.
//! Nothing here is trusted yet.

use rustls_pki_types::CertificateDer;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{ExtendedKeyUsage, GeneralName};
use x509_parser::prelude::FromDer;

use crate::wire::time::UnixSeconds;

/// Allows every usage (RFC 5280, 4.2.1.12).
pub(super) const ANY_EXTENDED_KEY_USAGE: &str = "2.5.29.37.0";

/// Where Fulcio writes the OpenID issuer, as bare text.
const FULCIO_ISSUER: &str = "1.3.6.1.4.1.57264.1.1";

/// The fields of a certificate that path and identity checks need.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Certificate {
    /// First second of validity.
    pub not_before: UnixSeconds,
    /// Last second of validity.
    pub not_after: UnixSeconds,
    /// Attributes of the subject: dotted OID and value.
    pub subject: Vec<(String, String)>,
    /// Subject alternative names that are URIs.
    pub uris: Vec<String>,
    /// Subject alternative names that are DNS names.
    pub dns_names: Vec<String>,
    /// Subject alternative names that are mail addresses.
    pub emails: Vec<String>,
    /// Extended key usages as dotted OIDs; `None` without the extension.
    pub extended_key_usages: Option<Vec<String>>,
    /// The OpenID issuer that Fulcio vouches for.
    pub fulcio_issuer: Option<String>,
    pub(super) key_usage: Option<KeyUsage>,
    pub(super) is_ca: bool,
    pub(super) path_len: Option<u32>,
}

/// The two key usage bits that matter here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct KeyUsage {
    pub(super) digital_signature: bool,
    pub(super) key_cert_sign: bool,
}

/// The digests a did:x509 may name a certificate by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fingerprints {
    /// SHA-256 of the DER.
    pub sha256: [u8; 32],
    /// SHA-384 of the DER.
    pub sha384: [u8; 48],
    /// SHA-512 of the DER.
    pub sha512: [u8; 64],
}

impl Fingerprints {
    pub(super) fn of(der: &[u8]) -> Self {
        Self {
            sha256: Sha256::digest(der).into(),
            sha384: Sha384::digest(der).into(),
            sha512: Sha512::digest(der).into(),
        }
    }
}

impl Certificate {
    pub(super) fn read(der: &[u8]) -> Result<Self, webpki::Error> {
        Self::from_parsed(&parse(der)?).ok_or(webpki::Error::MalformedExtensions)
    }

    /// `None` when an extension cannot be read: it must not count as absent.
    fn from_parsed(certificate: &X509Certificate<'_>) -> Option<Self> {
        let seconds = |t: i64| UnixSeconds::new(u64::try_from(t).unwrap_or(0));
        let names = match certificate.subject_alternative_name().ok()? {
            Some(extension) => extension.value.general_names.as_slice(),
            None => &[],
        };
        let select = |pick: fn(&GeneralName<'_>) -> Option<String>| {
            names.iter().filter_map(pick).collect::<Vec<_>>()
        };
        let constraints = certificate.basic_constraints().ok()?.map(|e| e.value);
        Some(Self {
            not_before: seconds(certificate.validity().not_before.timestamp()),
            not_after: seconds(certificate.validity().not_after.timestamp()),
            subject: certificate
                .subject()
                .iter_attributes()
                .filter_map(|a| {
                    Some((dotted(a.attr_type().as_bytes()), a.as_str().ok()?.to_owned()))
                })
                .collect(),
            uris: select(|n| if let GeneralName::URI(t) = n { Some((*t).into()) } else { None }),
            dns_names: select(|n| {
                if let GeneralName::DNSName(t) = n { Some((*t).into()) } else { None }
            }),
            emails: select(|n| {
                if let GeneralName::RFC822Name(t) = n { Some((*t).into()) } else { None }
            }),
            extended_key_usages: certificate.extended_key_usage().ok()?.map(|e| purposes(e.value)),
            fulcio_issuer: fulcio_issuer(certificate),
            key_usage: certificate.key_usage().ok()?.map(|e| KeyUsage {
                digital_signature: e.value.digital_signature(),
                key_cert_sign: e.value.key_cert_sign(),
            }),
            is_ca: constraints.is_some_and(|c| c.ca),
            path_len: constraints.and_then(|c| c.path_len_constraint),
        })
    }

    /// Whether the usage is allowed: there is no extension, or it allows it.
    pub(super) fn allows_purpose(&self, purpose: &str) -> bool {
        self.extended_key_usages
            .as_ref()
            .is_none_or(|list| list.iter().any(|p| p == purpose || p == ANY_EXTENDED_KEY_USAGE))
    }

    /// Whether the extension lists exactly this usage.
    pub(super) fn names_purpose(&self, purpose: &str) -> bool {
        self.extended_key_usages.as_ref().is_some_and(|list| list.iter().any(|p| p == purpose))
    }
}

/// The SubjectPublicKeyInfo of a certificate.
pub(super) fn public_key_info(der: &[u8]) -> Result<Vec<u8>, webpki::Error> {
    Ok(parse(der)?.public_key().raw.to_vec())
}

/// Whether webpki can read the certificate as well.
pub(super) fn check_readable(der: &[u8]) -> Result<(), webpki::Error> {
    webpki::EndEntityCert::try_from(&CertificateDer::from(der)).map(|_| ())
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, webpki::Error> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        _ => Err(webpki::Error::BadDer),
    }
}

fn purposes(usage: &ExtendedKeyUsage<'_>) -> Vec<String> {
    [
        (usage.any, ANY_EXTENDED_KEY_USAGE),
        (usage.server_auth, "1.3.6.1.5.5.7.3.1"),
        (usage.client_auth, "1.3.6.1.5.5.7.3.2"),
        (usage.code_signing, "1.3.6.1.5.5.7.3.3"),
        (usage.email_protection, "1.3.6.1.5.5.7.3.4"),
        (usage.time_stamping, "1.3.6.1.5.5.7.3.8"),
        (usage.ocsp_signing, "1.3.6.1.5.5.7.3.9"),
    ]
    .into_iter()
    .filter(|(present, _)| *present)
    .map(|(_, oid)| oid.to_owned())
    .chain(usage.other.iter().map(|oid| dotted(oid.as_bytes())))
    .collect()
}

fn fulcio_issuer(certificate: &X509Certificate<'_>) -> Option<String> {
    let mut found =
        certificate.extensions().iter().filter(|e| dotted(e.oid.as_bytes()) == FULCIO_ISSUER);
    match (found.next(), found.next()) {
        (Some(one), None) => std::str::from_utf8(one.value).ok().map(str::to_owned),
        _ => None,
    }
}

/// An object identifier in dotted form (X.690, 8.19). The parser's own
/// formatting is wrong for first arcs above 2.47, which take two bytes. An
/// invalid identifier gives text that equals none.
pub(super) fn dotted(der: &[u8]) -> String {
    let mut arcs: Vec<u128> = Vec::new();
    let mut arc: u128 = 0;
    for byte in der {
        let Some(shifted) = arc.checked_mul(128) else { return "?".to_owned() };
        arc = shifted + u128::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            arcs.push(std::mem::take(&mut arc));
        }
    }
    let Some((first, rest)) = arcs.split_first() else { return "?".to_owned() };
    let top = (first / 40).min(2);
    let start = format!("{top}.{}", first - top * 40);
    rest.iter().fold(start, |text, arc| format!("{text}.{arc}"))
}
