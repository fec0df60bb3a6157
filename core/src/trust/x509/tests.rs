//! Chains made to measure, good and bad; identities; chains of other makers.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    KeyUsagePurpose, NameConstraints, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
    PKCS_RSA_SHA256, PKCS_RSA_SHA512, date_time_ymd,
};

use super::fixture::{Ca, NOW, dns, trust, uri, verified};
use super::*;
use crate::wire::cbor::Value;

mod scopes;

const CODE_SIGNING: &str = "1.3.6.1.5.5.7.3.3";
const CUSTOM: &str = "1.3.6.1.4.1.311.76.59.1.2";

fn at(year: &str) -> UnixSeconds {
    UnixSeconds::from_rfc3339(&format!("{year}-06-01T00:00:00Z")).unwrap()
}

fn code(result: Result<VerifiedChain, Error>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "ok")
}

fn pem(der: &[u8]) -> String {
    let body = crate::wire::text::base64(der);
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}

fn custom_eku(params: &mut CertificateParams) {
    let arcs = CUSTOM.split('.').map(|arc| arc.parse().unwrap()).collect();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::Other(arcs)];
}

#[test]
fn valid_chain_yields_key_and_validity() {
    let root = Ca::root("root");
    let middle = root.issue_ca("middle", |p| p.not_after = date_time_ymd(2026, 12, 31));
    let leaf = middle.issue(|p| p.subject_alt_names = vec![dns("agent.example")]);
    let trust = trust(&root);
    // With and without the root sent along.
    for chain in [vec![leaf.clone(), middle.der()], vec![leaf.clone(), middle.der(), root.der()]] {
        let found = trust.validate(&chain, NOW).unwrap();
        assert_eq!(found.leaf_key, leaf_key_of(&leaf).unwrap());
        assert_eq!(found.anchor, "root");
        assert_eq!(found.not_before.to_string(), "2025-01-01T00:00:00Z");
        assert_eq!(found.not_after.to_string(), "2026-12-31T00:00:00Z");
        assert_eq!(found.leaf.dns_names, ["agent.example"]);
        let expected = [middle.der(), root.der()].map(|der| Fingerprints::of(&der));
        assert_eq!(*found.authorities, expected);
    }
}

#[test]
fn accepts_every_signature_algorithm() {
    for algorithm in [
        &PKCS_RSA_SHA256,
        &PKCS_RSA_SHA512,
        &PKCS_ECDSA_P256_SHA256,
        &PKCS_ECDSA_P521_SHA512,
        &PKCS_ED25519,
    ] {
        let root = Ca::root_with("root", algorithm, |_| ());
        assert_eq!(code(trust(&root).validate(&[root.issue(|_| ())], NOW)), "ok", "{algorithm:?}");
    }
}

#[test]
fn invalid_chains() {
    let root = Ca::root("root");
    let middle = root.issue_ca("middle", |_| ());
    let leaf = middle.issue(|_| ());
    let trust = trust(&root);
    let other = Ca::root("root"); // the same name, another key
    let no_deeper = Ca::root_with("no deeper", &PKCS_ECDSA_P256_SHA256, |p| {
        p.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    });
    let below = no_deeper.issue_ca("below", |_| ());
    let narrow = root.issue_ca("narrow", |p| p.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)));
    let too_deep = narrow.issue_ca("too deep", |_| ());
    let silent = root.issue_ca("silent", |p| p.key_usages = vec![KeyUsagePurpose::CrlSign]);
    let named = root.issue_ca("named", |p| {
        let permitted_subtrees = vec![GeneralSubtree::DnsName("example.org".into())];
        p.name_constraints =
            Some(NameConstraints { permitted_subtrees, excluded_subtrees: vec![] });
    });
    let old = Ca::root_with("old", &PKCS_ECDSA_P256_SHA256, |p| {
        p.not_after = date_time_ymd(2026, 1, 1);
    });
    let encipher = middle.issue(|p| p.key_usages = vec![KeyUsagePurpose::KeyEncipherment]);
    let outside = named.issue(|p| p.subject_alt_names = vec![dns("example.com")]);
    let mut broken = middle.der();
    broken.truncate(100);

    let mut trust_all = trust.clone();
    trust_all.add("no deeper", &no_deeper.pem(), None, None).unwrap();
    trust_all.add("old", &old.pem(), None, None).unwrap();
    let good = vec![leaf.clone(), middle.der()];
    let cases: Vec<(&str, Vec<Vec<u8>>, UnixSeconds, &str)> = vec![
        ("good", good.clone(), NOW, "ok"),
        ("expired", good.clone(), at("2028"), "x509-expired"),
        ("not yet valid", good.clone(), at("2024"), "x509-not-yet-valid"),
        ("expired anchor", vec![old.issue(|_| ())], NOW, "x509-expired"),
        ("untrusted root", vec![other.issue(|_| ()), other.der()], NOW, "x509-untrusted"),
        ("unknown root", vec![Ca::root("x").issue(|_| ())], NOW, "x509-untrusted"),
        ("missing intermediate", vec![leaf.clone()], NOW, "x509-untrusted"),
        ("CA as leaf", vec![middle.der()], NOW, "x509-ca-as-leaf"),
        ("anchor as leaf", vec![root.der()], NOW, "x509-ca-as-leaf"),
        ("empty", vec![], NOW, "x509-empty-chain"),
        ("too many", vec![leaf.clone(); 9], NOW, "x509-too-many-certificates"),
        ("broken", vec![leaf.clone(), broken], NOW, "x509-bad-certificate"),
        ("no leaf", vec![b"leaf".to_vec()], NOW, "x509-bad-certificate"),
        ("key usage", vec![encipher, middle.der()], NOW, "x509-key-usage"),
        ("silent CA", vec![silent.issue(|_| ()), silent.der()], NOW, "x509-key-usage"),
        ("name constraints", vec![outside, named.der()], NOW, "x509-path"),
        (
            "path length of an intermediate",
            vec![too_deep.issue(|_| ()), too_deep.der(), narrow.der()],
            NOW,
            "x509-path-length",
        ),
        (
            "path length of the anchor",
            vec![below.issue(|_| ()), below.der()],
            NOW,
            "x509-path-length",
        ),
    ];
    for (name, chain, now, expected) in cases {
        assert_eq!(code(trust_all.validate(&chain, now)), expected, "{name}");
    }
    assert_eq!(code(ChainTrust::empty().validate(&good, NOW)), "x509-untrusted");
    let error = trust.validate(&good, at("2028")).unwrap_err();
    let not_after = UnixSeconds::from_rfc3339("2027-01-01T00:00:00Z").unwrap();
    assert_eq!(error, Error::Expired { now: at("2028"), not_after });
    let error = trust.validate(&[leaf, b"no".to_vec()], NOW).unwrap_err();
    assert!(matches!(error, Error::BadCertificate { index: 1, .. }), "{error:?}");
}

#[test]
fn leaf_must_name_required_eku() {
    let root = Ca::root("root");
    let plain = root.issue_ca("plain", |_| ());
    let other = root.issue_ca("other", |p| {
        p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let mut trust = ChainTrust::empty();
    trust.add("root", &root.pem(), Some(CUSTOM), None).unwrap();
    let any = |p: &mut CertificateParams| {
        p.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any];
    };
    for (name, chain, expected) in [
        ("present", [plain.issue(custom_eku), plain.der()], "ok"),
        ("absent", [plain.issue(|_| ()), plain.der()], "x509-eku-missing"),
        ("any is not enough", [plain.issue(any), plain.der()], "x509-eku-missing"),
        ("narrower CA", [other.issue(custom_eku), other.der()], "x509-eku-missing"),
    ] {
        assert_eq!(code(trust.validate(&chain, NOW)), expected, "{name}");
    }
    // The same root under a second name, without the demand: that path holds.
    trust.add("lenient", &root.pem(), None, None).unwrap();
    let chain = [plain.issue(|_| ()), plain.der()];
    assert_eq!(trust.validate(&chain, NOW).unwrap().anchor, "lenient");
}

#[test]
fn anchors_are_checked_when_added() {
    let root = Ca::root("root");
    let leaf = pem(&root.issue(|_| ()));
    let mute = Ca::root_with("mute", &PKCS_ECDSA_P256_SHA256, |p| {
        p.key_usages = vec![KeyUsagePurpose::CrlSign];
    });
    let mut trust = ChainTrust::empty();
    let empty = trust.fingerprint();
    for (pem, eku, expected) in [
        ("", None, "x509-anchor-unreadable"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            None,
            "x509-anchor-unreadable",
        ),
        (leaf.as_str(), None, "x509-anchor-not-ca"),
        (&mute.pem(), None, "x509-anchor-not-ca"),
        (&(root.pem() + &leaf), None, "x509-anchor-not-ca"),
        (&root.pem(), Some("codeSigning"), "x509-anchor-eku"),
    ] {
        assert_eq!(trust.add("a", pem, eku, None).unwrap_err().code(), expected);
    }
    assert!(trust.is_empty());
    assert_eq!(trust.fingerprint(), empty);
    let mut other = trust.clone();
    let second = Ca::root("second");
    trust.add("a", &root.pem(), None, None).unwrap();
    trust.add("b", &second.pem(), Some(CODE_SIGNING), None).unwrap();
    other.add("b", &second.pem(), Some(CODE_SIGNING), None).unwrap();
    assert_ne!(trust.fingerprint(), other.fingerprint());
    other.add("a", &root.pem(), None, None).unwrap();
    assert_eq!(trust.fingerprint(), other.fingerprint());
}

#[test]
fn cached_chain_expires_and_depends_on_anchors() {
    let root = Ca::root("root");
    let chain = [root.issue(|_| ())];
    let mut trust = trust(&root);
    let first = trust.validate(&chain, NOW).unwrap();
    for now in [NOW, at("2025")] {
        let again = trust.validate(&chain, now).unwrap();
        assert!(Arc::ptr_eq(&first.leaf, &again.leaf), "validated anew");
    }
    assert_eq!(code(trust.validate(&chain, at("2028"))), "x509-expired");
    assert_eq!(code(trust.validate(&chain, at("2024"))), "x509-not-yet-valid");
    assert_eq!(code(trust.validate(&chain, NOW)), "ok");
    // Another set of anchors shares the cache, not the verdicts.
    trust.add("other", &Ca::root("other").pem(), None, None).unwrap();
    let anew = trust.validate(&chain, NOW).unwrap();
    assert!(!Arc::ptr_eq(&first.leaf, &anew.leaf));
    assert_eq!(trust.cache.len(), 2);
}

#[test]
fn identities() {
    let spiffe = "spiffe://example.org/agent";
    let cases: Vec<(Vec<rcgen::SanType>, &str, Result<Identity<'_>, &str>)> = vec![
        (vec![uri(spiffe)], spiffe, Ok(Identity::Spiffe("example.org"))),
        (vec![uri(spiffe), dns("example.org")], spiffe, Ok(Identity::Spiffe("example.org"))),
        (vec![uri(spiffe)], "spiffe://example.org/other", Err("uri:spiffe://example.org/agent")),
        (vec![uri(spiffe), uri("urn:x")], spiffe, Err("uri:spiffe://example.org/agent, uri:urn:x")),
        (vec![dns("example.org")], "spiffe://example.org", Err("dns:example.org")),
        (vec![], "https://example.org", Err("nobody")),
        (
            vec![uri("https://example.org/a")],
            "https://example.org/a",
            Ok(Identity::Uri("https://example.org/a")),
        ),
        (
            vec![uri("https://example.org/a")],
            "https://example.org/b",
            Err("uri:https://example.org/a"),
        ),
        (vec![uri("urn:agent:7")], "urn:agent:7", Ok(Identity::Uri("urn:agent:7"))),
        (vec![dns("example.org")], "https://example.org", Ok(Identity::Dns("example.org"))),
        (
            vec![dns("example.org")],
            "https://Example.ORG:8443/agents?x#y",
            Ok(Identity::Dns("Example.ORG")),
        ),
        (vec![dns("example.org")], "example.org", Ok(Identity::Dns("example.org"))),
        (vec![dns("example.org")], "http://example.org", Err("dns:example.org")),
        (vec![dns("example.org")], "https://sub.example.org", Err("dns:example.org")),
        (vec![dns("*.example.org")], "https://sub.example.org", Err("dns:*.example.org")),
        (vec![dns("*.example.org")], "https://*.example.org", Err("dns:*.example.org")),
        (vec![dns("example.org")], "https://example.org@evil.example", Err("dns:example.org")),
        (vec![dns("example.org")], "https://evil.example\\@example.org", Err("dns:example.org")),
        (vec![dns("example.org")], "https://example.org:x@evil.example", Err("dns:example.org")),
    ];
    for (names, issuer, expected) in cases {
        let (chain, _) = verified(|p| p.subject_alt_names = names);
        match (chain.check_issuer(issuer, Unscoped::Anything), expected) {
            (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{issuer}"),
            (Err(error), Err(listed)) => {
                assert_eq!(error.code(), "x509-identity-mismatch");
                assert!(error.to_string().ends_with(&format!("it names {listed}")), "{error}");
            }
            (found, wanted) => panic!("{issuer}: {found:?}, not {wanted:?}"),
        }
    }
}

#[test]
fn x5t_is_the_full_leaf_hash() {
    let leaf = Ca::root("root").issue(|_| ());
    let prints = Fingerprints::of(&leaf);
    assert_eq!(x5t_matches(&leaf, -16, &prints.sha256), Ok(true));
    assert_eq!(x5t_matches(&leaf, -43, &prints.sha384), Ok(true));
    assert_eq!(x5t_matches(&leaf, -44, &prints.sha512), Ok(true));
    assert_eq!(x5t_matches(&leaf, -16, &prints.sha256[..31]), Ok(false));
    assert_eq!(x5t_matches(&leaf, -16, &prints.sha384), Ok(false));
    assert_eq!(x5t_matches(b"other", -16, &prints.sha256), Ok(false));
    let error = x5t_matches(&leaf, -15, &prints.sha256[..8]).unwrap_err();
    assert_eq!(error.code(), "x509-unknown-hash-algorithm");
}

#[test]
fn unusable_leaf_key() {
    // An Ed448 certificate: the OID of Ed25519 with its last arc changed.
    let root = Ca::root_with("root", &PKCS_ED25519, |_| ());
    let ed25519 = [6, 3, 0x2b, 0x65, 0x70];
    let mut der = root.der();
    let places: Vec<usize> = (0..der.len() - 5).filter(|i| der[*i..i + 5] == ed25519).collect();
    assert_eq!(places.len(), 3);
    places.iter().for_each(|i| der[i + 4] = 0x71);
    assert_eq!(leaf_key_of(&der).unwrap_err().code(), "x509-leaf-key-unsupported");
    assert_eq!(leaf_key_of(b"no").unwrap_err().code(), "x509-bad-certificate");
}

fn vectors() -> Option<PathBuf> {
    let path = std::env::var_os("CAPSTAN_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors"),
        PathBuf::from,
    );
    let path = path.join("scitt/scitt-ccf-ledger");
    path.is_dir().then_some(path)
}

#[test]
#[allow(clippy::disallowed_macros, reason = "the test runner keeps what a test prints")]
fn third_party_chains() {
    let Some(vectors) = vectors() else {
        println!("note: the SCITT vectors are not here; nothing was checked");
        return;
    };
    for (file, certificates, time, is_did_x509) in [
        ("payloads/cosesign1tool-scitt-a3be7e5.cose", 2, "2025-11-24", true),
        ("payloads/css-attested-cosesign1-20250925.cose", 2, "2025-07-28", false),
        ("payloads/cts-hashv-cwtclaims-b64url.cose", 3, "2024-08-20", true),
        ("payloads/manifest.spdx.json.sha384.digest.cose", 3, "2025-03-03", true),
        ("transparent_statements/uvm_0.2.10.cose", 3, "2025-12-22", true),
    ] {
        let bytes = std::fs::read(vectors.join(file)).unwrap();
        let Ok(Value::Tag(18, message)) = Value::read(&bytes) else { panic!("{file}: no tag 18") };
        let protected = message.array().and_then(|a| a[0].bytes()).unwrap();
        let protected = Value::read(protected).unwrap();
        let chain = protected.get(33).and_then(Value::array).unwrap();
        let chain: Vec<Vec<u8>> = chain.iter().map(|c| c.bytes().unwrap().to_vec()).collect();
        let issuer = protected.get(15).and_then(|c| c.get(1)).and_then(Value::text).unwrap();
        assert_eq!(chain.len(), certificates, "{file}");
        let mut trust = ChainTrust::empty();
        let anchor = pem(chain.last().unwrap());
        trust.add("last", &anchor, None, None).unwrap();
        let now = UnixSeconds::from_rfc3339(&format!("{time}T12:00:00Z")).unwrap();
        let found = trust.validate(&chain, now).unwrap();
        assert_eq!(found.leaf_key, leaf_key_of(&chain[0]).unwrap());
        let identity = found.check_issuer(issuer, Unscoped::Anything);
        if is_did_x509 {
            assert_eq!(identity, Ok(Identity::DidX509), "{file}");
        } else {
            assert_eq!(identity.unwrap_err().code(), "x509-identity-mismatch", "{file}");
        }
        if let Some([alg, hash]) = protected.get(34).and_then(Value::array) {
            let (alg, hash) = (alg.int().unwrap(), hash.bytes().unwrap());
            assert_eq!(x5t_matches(&chain[0], alg, hash), Ok(true), "{file}");
        }
        assert_eq!(code(trust.validate(&chain, at("2050"))), "x509-expired", "{file}");
    }
}

#[test]
fn object_identifiers_in_dotted_form() {
    let cases: [(&[u8], &str); 7] = [
        (&[0x2b, 6, 1, 5, 5, 7, 3, 3], CODE_SIGNING),
        (&[0x55, 29, 37, 0], "2.5.29.37.0"),
        (&[0x88, 0x37], "2.999"),
        (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d], "1.2.840.113549"),
        (&[0x09], "0.9"),
        (&[], "?"),
        (&[0xff; 20], "?"),
    ];
    for (der, expected) in cases {
        assert_eq!(certificate::dotted(der), expected);
    }
}
