//! The names that an anchor may speak for.
//!
//! A CA can put any name on a certificate. The trust file says for each anchor
//! which names are accepted: SPIFFE trust domains, hosts, URIs, did:x509. Any
//! other name is refused, even with a valid path.

use std::fmt;

use super::identity::Identity;
use crate::wire::text::matches_pattern;

/// The names an anchor may speak for.
#[derive(Clone, Debug, Default, Eq, PartialEq, serde::Serialize)]
pub struct Scope {
    /// SPIFFE trust domains, in full and in lower case.
    pub spiffe: Vec<String>,
    /// Hosts: `agents.example`, `*.agents.example` for every subdomain at any
    /// depth, or `*` for every host.
    pub dns: Vec<String>,
    /// Patterns for URIs. A `*` in the authority matches only within it.
    pub uri: Vec<String>,
    /// Whether it may speak for a did:x509, which is limited by the CA
    /// fingerprint it contains.
    pub did_x509: bool,
}

/// What an anchor without a scope may speak for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unscoped {
    /// Every name. Only for log entries from before anchors had scopes.
    Anything,
    /// No name.
    Nobody,
}

impl Scope {
    /// Whether a name of the leaf is in scope.
    pub(super) fn allows(&self, identity: &Identity<'_>) -> bool {
        match identity {
            Identity::DidX509 => self.did_x509,
            Identity::Dns(host) => self.dns.iter().any(|pattern| host_matches(pattern, host)),
            Identity::Spiffe(domain) => self.spiffe.iter().any(|one| one == domain),
            Identity::Uri(uri) => self.uri.iter().any(|pattern| uri_matches(pattern, uri)),
        }
    }

    /// The first entry that could never match, or would match too much; and
    /// why.
    pub fn mistake(&self) -> Option<(String, &'static str)> {
        let domains = self.spiffe.iter().map(|domain| (domain, domain_mistake(domain)));
        let hosts = self.dns.iter().map(|host| (host, host_mistake(host)));
        let uris = self.uri.iter().map(|uri| (uri, uri_mistake(uri)));
        let mut all = domains.chain(hosts).chain(uris);
        all.find_map(|(text, problem)| Some((text.clone(), problem?)))
    }

    /// Whether it allows no name.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the names of another scope, without duplicates.
    pub fn extend(&mut self, other: Self) {
        let Self { spiffe, dns, uri, did_x509 } = other;
        let lists = [(&mut self.spiffe, spiffe), (&mut self.dns, dns), (&mut self.uri, uri)];
        for (own, new) in lists {
            own.extend(new);
            own.sort_unstable();
            own.dedup();
        }
        self.did_x509 |= did_x509;
    }

    /// Whether one of its entries is a pattern.
    pub fn has_patterns(&self) -> bool {
        self.dns.iter().chain(&self.uri).any(|entry| entry.contains('*'))
    }

    /// Its lines in a trust file.
    pub fn to_toml(&self) -> Vec<String> {
        let lists = [("spiffe", &self.spiffe), ("dns", &self.dns), ("uri", &self.uri)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let lists = lists.map(|(key, list)| {
            let values = list.iter().map(|one| toml::Value::from(one.as_str()).to_string());
            format!("{key} = [{}]", values.collect::<Vec<_>>().join(", "))
        });
        lists.chain(self.did_x509.then(|| "did_x509 = true".to_owned())).collect()
    }
}

/// `spiffe prod.example, dns *.example.com`, or `nobody`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [("spiffe", &self.spiffe), ("dns", &self.dns), ("uri", &self.uri)];
        let named = lists.into_iter().flat_map(|(key, list)| list.iter().map(move |n| (key, n)));
        let mut words: Vec<String> = named.map(|(key, name)| format!("{key} {name}")).collect();
        words.extend(self.did_x509.then(|| "did:x509".to_owned()));
        f.write_str(&if words.is_empty() { "nobody".to_owned() } else { words.join(", ") })
    }
}

/// A leading `*` matches one or more labels.
fn host_matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        None => pattern.eq_ignore_ascii_case(host),
        Some(end) => {
            let cut = host.len().checked_sub(end.len()).filter(|labels| *labels > 0);
            let tail = cut.and_then(|at| host.get(at..));
            tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
        }
    }
}

/// Compares scheme, authority and the rest separately, so that a `*` in the
/// authority cannot match into the path.
fn uri_matches(pattern: &str, uri: &str) -> bool {
    match (authority_of(pattern), authority_of(uri)) {
        (None, None) => matches_pattern(pattern, uri),
        (Some(wanted), Some(found)) => {
            let is_plain = !wanted.1.contains('*') || !found.1.contains('@');
            let parts = [(wanted.1, found.1), (wanted.2, found.2)];
            wanted.0 == found.0 && is_plain && parts.iter().all(|(w, f)| matches_pattern(w, f))
        }
        _ => false,
    }
}

/// Scheme, authority and everything after it.
fn authority_of(uri: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = uri.split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end)?;
    Some((scheme, authority, rest))
}

fn domain_mistake(domain: &str) -> Option<&'static str> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b);
    if domain.contains("://") {
        Some("a trust domain is written without spiffe:// and without a path")
    } else if domain.is_empty() || !domain.bytes().all(plain) {
        Some("a trust domain has lower-case letters, digits, dots, dashes and underscores; no *")
    } else {
        None
    }
}

fn host_mistake(pattern: &str) -> Option<&'static str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let labels = match pattern {
        "*" => return None,
        pattern => pattern.strip_prefix("*.").unwrap_or(pattern),
    };
    let is_name = labels.split('.').all(|label| !label.is_empty() && label.bytes().all(plain));
    (!is_name).then_some("a host is a DNS name, or *. and a DNS name, or *")
}

fn uri_mistake(pattern: &str) -> Option<&'static str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    match pattern.split_once(':') {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("spiffe") => {
            Some("SPIFFE ids are named by their trust domain: spiffe = [\"prod.example\"]")
        }
        Some(_) if pattern.starts_with("did:x509:") => {
            Some("a did:x509 is allowed by did_x509 = true")
        }
        Some((scheme, rest))
            if !scheme.is_empty() && scheme.bytes().all(plain) && !rest.is_empty() =>
        {
            None
        }
        None if !pattern.is_empty() && !pattern.contains('*') => None,
        _ => Some("a URI begins with its scheme, without a *: https://*.example/*, urn:example:*"),
    }
}
