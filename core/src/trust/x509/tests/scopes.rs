//! Scopes of anchors: a table for each kind of name, several anchors over one
//! leaf, and the cache.

use super::super::fixture::{Ca, NOW, dns, uri};
use super::*;

fn scope(spiffe: &[&str], hosts: &[&str], uris: &[&str], did_x509: bool) -> Scope {
    let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
    Scope { spiffe: owned(spiffe), dns: owned(hosts), uri: owned(uris), did_x509 }
}

fn spiffe(domains: &[&str]) -> Scope {
    scope(domains, &[], &[], false)
}

/// What one anchor with this scope says to a leaf with this name.
fn asked(root: &Ca, leaf: &[u8], issuer: &str, scope: Scope) -> &'static str {
    let mut trust = ChainTrust::empty();
    trust.add("root", &root.pem(), None, Some(scope)).unwrap();
    let found = trust.speaking_for(&[leaf.to_vec()], issuer, Unscoped::Nobody, NOW);
    found.map_or_else(|error| error.code(), |_| "ok")
}

#[test]
fn scopes_of_every_kind_of_name() {
    const OUT: &str = "x509-out-of-scope";
    let agent = "spiffe://prod.example/agent";
    let host = "https://a.agents.example/x";
    let urn = "urn:example:agent:7";
    let page = "https://agents.example/7";
    let none: &[&str] = &[];
    let cases: &[(rcgen::SanType, &str, Scope, &str)] = &[
        // SPIFFE: the trust domain, whole.
        (uri(agent), agent, spiffe(&["prod.example"]), "ok"),
        (uri(agent), agent, spiffe(&["other.example", "prod.example"]), "ok"),
        (uri(agent), agent, spiffe(&["example"]), OUT),
        (uri(agent), agent, spiffe(&["prod.example.org"]), OUT),
        (uri(agent), agent, spiffe(none), OUT),
        (uri(agent), agent, scope(none, &["*"], &["https://*"], true), OUT),
        // Hosts.
        (dns("a.agents.example"), host, scope(none, &["a.agents.example"], none, false), "ok"),
        (dns("A.agents.example"), host, scope(none, &["a.AGENTS.example"], none, false), "ok"),
        (dns("a.agents.example"), host, scope(none, &["*.agents.example"], none, false), "ok"),
        (dns("a.agents.example"), host, scope(none, &["*.example"], none, false), "ok"),
        (dns("a.agents.example"), host, scope(none, &["*"], none, false), "ok"),
        (dns("a.agents.example"), host, scope(none, &["agents.example"], none, false), OUT),
        (dns("a.agents.example"), host, scope(none, &["*.a.agents.example"], none, false), OUT),
        (dns("a.agents.example"), host, scope(none, &["*.gents.example"], none, false), OUT),
        (
            dns("a.agents.example"),
            "a.agents.example",
            scope(none, &["*.example"], none, false),
            "ok",
        ),
        (dns("a.agents.example"), host, scope(none, none, &["https://*.example/*"], true), OUT),
        // URIs: `*` runs on, but not out of an authority.
        (uri(urn), urn, scope(none, none, &["urn:example:*"], false), "ok"),
        (uri(urn), urn, scope(none, none, &["urn:*:7"], false), "ok"),
        (uri(urn), urn, scope(none, none, &[urn], false), "ok"),
        (uri(urn), urn, scope(none, none, &["urn:other:*"], false), OUT),
        (uri(urn), urn, scope(&["example"], &["*"], none, true), OUT),
        (uri(page), page, scope(none, none, &["https://agents.example/*"], false), "ok"),
        (uri(page), page, scope(none, none, &["https://*/*"], false), "ok"),
        (uri(page), page, scope(none, none, &["https://*"], false), OUT),
        (uri(page), page, scope(none, none, &["https://agents.example"], false), OUT),
        (uri(page), page, scope(none, none, &["http://agents.example/*"], false), OUT),
        (
            uri("https://evil.example/x.bank.example/7"),
            "https://evil.example/x.bank.example/7",
            scope(none, none, &["https://*.bank.example/*"], false),
            OUT,
        ),
        (
            uri("https://evil.test\\x.bank.example/7"),
            "https://evil.test\\x.bank.example/7",
            scope(none, none, &["https://*.bank.example/*"], false),
            OUT,
        ),
        (
            uri("https://me@x.bank.example/7"),
            "https://me@x.bank.example/7",
            scope(none, none, &["https://*.bank.example/*"], false),
            OUT,
        ),
        (uri("did:web:a.example"), "did:web:a.example", scope(none, &["*"], none, true), OUT),
        (uri("agent-7"), "agent-7", scope(none, none, &["agent-7"], false), "ok"),
    ];
    let root = Ca::root("root");
    for (name, issuer, scope, expected) in cases {
        let leaf = root.issue(|p| p.subject_alt_names = vec![name.clone()]);
        assert_eq!(asked(&root, &leaf, issuer, scope.clone()), *expected, "{issuer}: {scope}");
    }
    // A did:x509 names the CA by its fingerprint, and must be allowed.
    let leaf = root.issue(|p| p.subject_alt_names = vec![dns("a.example")]);
    let print = crate::wire::text::base64url(&Fingerprints::of(&root.der()).sha256);
    let did = format!("did:x509:0:sha256:{print}::san:dns:a.example");
    assert_eq!(asked(&root, &leaf, &did, scope(none, none, none, true)), "ok");
    assert_eq!(asked(&root, &leaf, &did, scope(none, &["*"], &["did:*"], false)), OUT);
    let foreign = crate::wire::text::base64url(&[7; 32]);
    let foreign = format!("did:x509:0:sha256:{foreign}::san:dns:a.example");
    let everything = scope(none, &["*"], none, true);
    assert_eq!(asked(&root, &leaf, &foreign, everything), "did-x509-fingerprint");
}

#[test]
fn duplicate_name_needs_one_scope() {
    let root = Ca::root("root");
    let page = "https://a.example/7";
    let leaf = root.issue(|p| p.subject_alt_names = vec![uri(page), dns("a.example")]);
    assert_eq!(asked(&root, &leaf, page, scope(&[], &["a.example"], &[], false)), "ok");
    assert_eq!(asked(&root, &leaf, page, scope(&[], &[], &[page], false)), "ok");
    assert_eq!(
        asked(&root, &leaf, page, scope(&[], &["b.example"], &[], true)),
        "x509-out-of-scope"
    );
}

#[test]
fn partner_ca_cannot_name_own_trust_domain() {
    let (own, partner) = (Ca::root("own"), Ca::root("partner"));
    let agent = "spiffe://prod.example/agent";
    let name = |p: &mut CertificateParams| p.subject_alt_names = vec![uri(agent)];
    let mut trust = ChainTrust::empty();
    trust.add("own", &own.pem(), None, Some(spiffe(&["prod.example"]))).unwrap();
    trust.add("partner", &partner.pem(), None, Some(spiffe(&["partner.example"]))).unwrap();
    let (honest, forged) = ([own.issue(name)], [partner.issue(name)]);
    // In this order, and again: the cache must not change an answer.
    for _ in 0..2 {
        let (chain, identity) = trust.speaking_for(&honest, agent, Unscoped::Nobody, NOW).unwrap();
        assert_eq!((chain.anchor.as_str(), identity), ("own", Identity::Spiffe("prod.example")));
        let error = trust.speaking_for(&forged, agent, Unscoped::Nobody, NOW).unwrap_err();
        assert_eq!(
            error.to_string(),
            "anchor partner may not speak for \"spiffe://prod.example/agent\", only for spiffe \
             partner.example; if it should, add spiffe = [\"prod.example\"] to it in the trust file"
        );
    }
}

#[test]
fn scope_selects_between_anchors() {
    let root = Ca::root("root");
    let names = vec![dns("a.example"), dns("b.example")];
    let chain = [root.issue(|p| p.subject_alt_names = names)];
    let hosts = |host: &str| Some(scope(&[], &[host], &[], false));
    let mut trust = ChainTrust::empty();
    trust.add("first", &root.pem(), None, hosts("a.example")).unwrap();
    trust.add("second", &root.pem(), None, hosts("b.example")).unwrap();
    for _ in 0..2 {
        for (issuer, anchor) in [("https://a.example", "first"), ("https://b.example", "second")] {
            let found = trust.speaking_for(&chain, issuer, Unscoped::Nobody, NOW);
            assert_eq!(found.unwrap().0.anchor, anchor, "{issuer}");
        }
    }
}

#[test]
fn cached_path_checks_scope_again() {
    let root = Ca::root("root");
    let names = vec![dns("a.example"), dns("b.example")];
    let chain = [root.issue(|p| p.subject_alt_names = names)];
    let only_a = scope(&[], &["a.example"], &[], false);
    let mut narrow = ChainTrust::empty();
    let mut wide = narrow.clone(); // the same cache
    let mut unscoped = narrow.clone();
    narrow.add("root", &root.pem(), None, Some(only_a)).unwrap();
    wide.add("root", &root.pem(), None, Some(scope(&[], &["*"], &[], false))).unwrap();
    unscoped.add("root", &root.pem(), None, None).unwrap();
    assert_ne!(narrow.fingerprint(), wide.fingerprint());
    assert_ne!(narrow.fingerprint(), unscoped.fingerprint());
    let ask = |trust: &ChainTrust, issuer: &str, unscoped| {
        let found = trust.speaking_for(&chain, issuer, unscoped, NOW);
        found.map_or_else(|error| error.code(), |_| "ok")
    };
    use Unscoped::{Anything, Nobody};
    for _ in 0..2 {
        assert_eq!(ask(&wide, "https://b.example", Nobody), "ok");
        assert_eq!(ask(&narrow, "https://a.example", Nobody), "ok");
        assert_eq!(ask(&narrow, "https://b.example", Nobody), "x509-out-of-scope");
        assert_eq!(ask(&narrow, "https://b.example", Anything), "x509-out-of-scope");
        assert_eq!(ask(&unscoped, "https://b.example", Anything), "ok");
        assert_eq!(ask(&unscoped, "https://b.example", Nobody), "x509-anchor-unscoped");
    }
    assert!(Arc::ptr_eq(&narrow.cache, &wide.cache) && narrow.cache.len() == 3);
}

#[test]
fn invalid_scopes() {
    let root = Ca::root("root");
    for (scope, word) in [
        (spiffe(&["spiffe://prod.example"]), "without spiffe://"),
        (spiffe(&["Prod.example"]), "lower-case"),
        (spiffe(&["*.example"]), "no *"),
        (spiffe(&[""]), "lower-case"),
        (scope(&[], &["https://a.example"], &[], false), "DNS name"),
        (scope(&[], &["a.*.example"], &[], false), "DNS name"),
        (scope(&[], &["*a.example"], &[], false), "DNS name"),
        (scope(&[], &["a..example"], &[], false), "DNS name"),
        (scope(&[], &["a.example:443"], &[], false), "DNS name"),
        (scope(&[], &[""], &[], false), "DNS name"),
        (scope(&[], &[], &["*"], false), "scheme"),
        (scope(&[], &[], &["*://a.example"], false), "scheme"),
        (scope(&[], &[], &[""], false), "scheme"),
        (scope(&[], &[], &["https:"], false), "scheme"),
        (scope(&[], &[], &["spiffe://prod.example/*"], false), "trust domain"),
        (scope(&[], &[], &["SPIFFE:*"], false), "trust domain"),
        (scope(&[], &[], &["did:x509:*"], false), "did_x509"),
    ] {
        let mut trust = ChainTrust::empty();
        let error = trust.add("root", &root.pem(), None, Some(scope.clone())).unwrap_err();
        assert_eq!(error.code(), "x509-anchor-scope", "{scope}");
        assert!(error.to_string().contains(word), "{error} lacks {word}");
        assert!(trust.is_empty());
    }
}
