//! Certificates made to measure, for the tests of this module's neighbours.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, SanType, SignatureAlgorithm,
    date_time_ymd,
};

use super::{ChainTrust, VerifiedChain};
use crate::wire::time::UnixSeconds;

/// 2026-06-01T00:00:00Z, inside every window below.
pub(crate) const NOW: UnixSeconds = UnixSeconds::new(1_780_272_000);

/// A CA that can certify.
pub(crate) struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    /// A self-signed CA, valid 2020 to 2040.
    pub(crate) fn root(name: &str) -> Self {
        Self::root_with(name, &PKCS_ECDSA_P384_SHA384, |_| ())
    }

    /// The same, of any algorithm and with changes.
    pub(crate) fn root_with(
        name: &str,
        algorithm: &'static SignatureAlgorithm,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let key = KeyPair::generate_for(algorithm).unwrap();
        Self(CertifiedIssuer::self_signed(ca_params(name, change), key).unwrap())
    }

    /// A CA below this one.
    pub(crate) fn issue_ca(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        Self(CertifiedIssuer::signed_by(ca_params(name, change), key, &self.0).unwrap())
    }

    /// A leaf below this CA, valid 2025 to 2027.
    pub(crate) fn issue(&self, change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        self.issue_for(&KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(), change)
    }

    /// The same for a key the caller holds.
    pub(crate) fn issue_for(
        &self,
        key: &KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Vec<u8> {
        let mut params = params("leaf", 2025, 2027);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        change(&mut params);
        params.signed_by(key, &self.0).unwrap().der().to_vec()
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        self.0.der().to_vec()
    }
}

/// Trust in one root.
pub(crate) fn trust(root: &Ca) -> ChainTrust {
    let mut trust = ChainTrust::empty();
    trust.add("root", &root.pem(), None, None).unwrap();
    trust
}

/// A verified chain of three whose leaf was changed like this; the CAs' DER,
/// intermediate first.
pub(crate) fn verified(
    change: impl FnOnce(&mut CertificateParams),
) -> (VerifiedChain, [Vec<u8>; 2]) {
    let root = Ca::root("root");
    let middle = root.issue_ca("middle", |_| ());
    let chain = [middle.issue(change), middle.der()];
    let verified = trust(&root).validate(&chain, NOW).unwrap();
    (verified, [middle.der(), root.der()])
}

pub(crate) fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

pub(crate) fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

fn ca_params(name: &str, change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = params(name, 2020, 2040);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    change(&mut params);
    params
}

fn params(name: &str, from: i32, to: i32) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    params
}
