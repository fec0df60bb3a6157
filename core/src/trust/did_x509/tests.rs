//! Every policy, held and broken; and DIDs that are none.

use rcgen::{CustomExtension, DnType, ExtendedKeyUsagePurpose, SanType};

use super::*;
use crate::trust::x509::fixture::{Ca, NOW, dns, trust, uri, verified};
use crate::trust::x509::{Identity, Unscoped, VerifiedChain};
use crate::wire::digest::Digest;

const FULCIO: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1, 1];

/// A chain whose leaf has one of everything.
fn chain() -> (VerifiedChain, [Vec<u8>; 2]) {
    verified(|p| {
        for (kind, value) in [
            (DnType::CountryName, "DE"),
            (DnType::StateOrProvinceName, "Hamburg"),
            (DnType::OrganizationName, "Agents & Söhne"),
            (DnType::OrganizationalUnitName, "Yard"),
            (DnType::CustomDnType(vec![2, 5, 4, 5]), "7"),
        ] {
            p.distinguished_name.push(kind, value);
        }
        p.subject_alt_names = vec![
            dns("agent.example"),
            uri("https://agent.example/a:b"),
            SanType::Rfc822Name("agent@agent.example".try_into().unwrap()),
        ];
        p.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::CodeSigning,
            ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 4, 1, 311, 76, 59, 1, 2]),
        ];
        let issuer = b"https://accounts.example/oauth".to_vec();
        p.custom_extensions = vec![CustomExtension::from_oid_content(FULCIO, issuer)];
    })
}

fn sha256(der: &[u8]) -> String {
    text::base64url(Digest::of(der).as_bytes())
}

#[test]
fn policies() {
    let (chain, [_, root]) = chain();
    for (policies, expected) in [
        ("subject:CN:leaf", "ok"),
        ("subject:C:DE:ST:Hamburg:O:Agents%20%26%20S%C3%B6hne:OU:Yard", "ok"),
        ("subject:2.5.4.5:7", "ok"),
        ("subject:CN:Leaf", "did-x509-policy"),
        ("subject:CN:leaf:L:Hamburg", "did-x509-policy"),
        ("subject:2.5.4.5:8", "did-x509-policy"),
        ("san:dns:agent.example", "ok"),
        ("san:dns:www.agent.example", "did-x509-policy"),
        ("san:email:agent%40agent.example", "ok"),
        ("san:email:agent.example", "did-x509-policy"),
        ("san:uri:https%3A%2F%2Fagent.example%2Fa%3ab", "ok"),
        ("san:uri:agent.example", "did-x509-policy"),
        ("eku:1.3.6.1.5.5.7.3.3", "ok"),
        ("eku:1.3.6.1.4.1.311.76.59.1.2", "ok"),
        ("eku:1.3.6.1.5.5.7.3.1", "did-x509-policy"),
        ("fulcio-issuer:accounts.example%2Foauth", "ok"),
        ("fulcio-issuer:accounts.example", "did-x509-policy"),
        ("fulcio-issuer:https%3A%2F%2Faccounts.example%2Foauth", "did-x509-policy"),
        ("subject:CN:leaf::san:dns:agent.example::eku:1.3.6.1.5.5.7.3.3", "ok"),
        ("subject:CN:leaf::eku:1.3.6.1.5.5.7.3.1", "did-x509-policy"),
    ] {
        let did = format!("did:x509:0:sha256:{}::{policies}", sha256(&root));
        let found = chain.check_issuer(&did, Unscoped::Anything);
        let code = found.as_ref().map_or_else(|e| e.code(), |_| "ok");
        assert_eq!(code, expected, "{policies}: {found:?}");
    }
    let did = format!("did:x509:0:sha256:{}::eku:1.3.6.1.5.5.7.3.1", sha256(&root));
    let error = chain.check_issuer(&did, Unscoped::Anything).unwrap_err().to_string();
    assert_eq!(error, "the leaf does not meet the did:x509 policy eku 1.3.6.1.5.5.7.3.1");
}

#[test]
fn fingerprint_names_any_ca_but_not_the_leaf() {
    let root = Ca::root("root");
    let middle = root.issue_ca("middle", |_| ());
    let leaf = middle.issue(|_| ());
    let stranger = Ca::root("stranger");
    // The stranger travels along, but certified nothing here.
    let sent = [leaf.clone(), middle.der(), stranger.der()];
    let chain = trust(&root).validate(&sent, NOW).unwrap();
    for der in [middle.der(), root.der()] {
        use sha2::{Digest as _, Sha384, Sha512};
        for (name, hash) in [
            ("sha256", sha256(&der)),
            ("sha384", text::base64url(&Sha384::digest(&der))),
            ("sha512", text::base64url(&Sha512::digest(&der))),
        ] {
            let did = format!("did:x509:0:{name}:{hash}::subject:CN:leaf");
            assert_eq!(
                chain.check_issuer(&did, Unscoped::Anything),
                Ok(Identity::DidX509),
                "{name}"
            );
        }
    }
    for der in [leaf, stranger.der()] {
        let did = format!("did:x509:0:sha256:{}::subject:CN:leaf", sha256(&der));
        assert_eq!(
            chain.check_issuer(&did, Unscoped::Anything).unwrap_err().code(),
            "did-x509-fingerprint"
        );
    }
}

#[test]
fn invalid_dids() {
    let hash = text::base64url(&[7; 32]);
    let good = format!("did:x509:0:sha256:{hash}::subject:CN:a");
    assert!(DidX509::parse(&good).is_ok());
    for bad in [
        format!("did:x509:1:sha256:{hash}::subject:CN:a"),
        format!("did:x509:0:sha1:{hash}::subject:CN:a"),
        format!("did:x509:0:sha384:{hash}::subject:CN:a"),
        format!("did:x509:0:sha256:{hash}=::subject:CN:a"),
        format!("did:x509:0:sha256:{hash}"),
        format!("did:x509:0:sha256:{hash}::"),
        format!("did:x509:0:sha256:{hash}::subject"),
        format!("did:x509:0:sha256:{hash}::subject:CN"),
        format!("did:x509:0:sha256:{hash}::subject:CN:"),
        format!("did:x509:0:sha256:{hash}::subject:CN:a:CN:b"),
        format!("did:x509:0:sha256:{hash}::subject:CN:a:2.5.4.3:b"),
        format!("did:x509:0:sha256:{hash}::subject:XX:a"),
        format!("did:x509:0:sha256:{hash}::subject:CN:a%2"),
        format!("did:x509:0:sha256:{hash}::subject:CN:a%zz"),
        format!("did:x509:0:sha256:{hash}::subject:CN:%ff"),
        format!("did:x509:0:sha256:{hash}::subject:CN:a b"),
        format!("did:x509:0:sha256:{hash}::san:ip:127.0.0.1"),
        format!("did:x509:0:sha256:{hash}::san:dns"),
        format!("did:x509:0:sha256:{hash}::san:uri:https://a"),
        format!("did:x509:0:sha256:{hash}::eku:codeSigning"),
        format!("did:x509:0:sha256:{hash}::eku:1.02"),
        format!("{good}#key"),
        "did:x509:0:sha256".to_owned(),
    ] {
        let error = DidX509::parse(&bad).expect_err(&bad);
        assert_eq!(error.code(), "did-x509-syntax", "{bad}");
    }
    let unknown = format!("{good}::moon:full");
    assert_eq!(DidX509::parse(&unknown).unwrap_err().code(), "did-x509-unknown-policy");
}
