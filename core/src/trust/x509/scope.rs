//! What an anchor may speak for.
//!
//! A CA can put any name on a certificate. Which of them we believe it is
//! written beside the anchor: SPIFFE trust domains, hosts, URIs, did:x509. A
//! name that is none of these is refused, however good the path.

use std::fmt;

use super::identity::Identity;
use crate::wire::text::matches_pattern;

/// The names an anchor may speak for.
#[derive(Clone, Debug, Default, Eq, PartialEq, serde::Serialize)]
pub struct Scope {
    /// SPIFFE trust domains, whole and in lower case.
    pub spiffe: Vec<String>,
    /// Hosts: `agents.example`, `*.agents.example` for every name below it,
    /// however deep, but not itself, or `*` for every host.
    pub dns: Vec<String>,
    /// Patterns for URIs. In the authority of a URI `*` ends with it.
    pub uri: Vec<String>,
    /// Whether it may speak for a did:x509, which names a CA of the path by
    /// fingerprint and so brings its own bounds.
    pub did_x509: bool,
}

/// What an anchor speaks for whose trust file does not say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unscoped {
    /// Every name, as it was before anchors had scopes. Only for entries of
    /// logs that were written then.
    Anything,
    /// No name.
    Nobody,
}

impl Scope {
    /// Whether a name that the leaf carries is one of these.
    pub(super) fn allows(&self, identity: &Identity<'_>) -> bool {
        match identity {
            Identity::DidX509 => self.did_x509,
            Identity::Dns(host) => self.dns.iter().any(|pattern| host_fits(pattern, host)),
            Identity::Spiffe(domain) => self.spiffe.iter().any(|one| one == domain),
            Identity::Uri(uri) => self.uri.iter().any(|pattern| uri_fits(pattern, uri)),
        }
    }

    /// The first entry that could never match, or would match what nobody
    /// meant; and why.
    pub fn mistake(&self) -> Option<(String, &'static str)> {
        let domains = self.spiffe.iter().map(|domain| (domain, domain_mistake(domain)));
        let hosts = self.dns.iter().map(|host| (host, host_mistake(host)));
        let uris = self.uri.iter().map(|uri| (uri, uri_mistake(uri)));
        let mut all = domains.chain(hosts).chain(uris);
        all.find_map(|(text, problem)| Some((text.clone(), problem?)))
    }

    /// Whether it names nobody at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes the names of another along, each once.
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

    /// The lines of a trust file that say it.
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

/// `*` stands for one label or more, and only in front.
fn host_fits(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        None => pattern.eq_ignore_ascii_case(host),
        Some(end) => {
            let cut = host.len().checked_sub(end.len()).filter(|labels| *labels > 0);
            let tail = cut.and_then(|at| host.get(at..));
            tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
        }
    }
}

/// Scheme, authority and the rest are compared one by one, so that `*` in an
/// authority cannot run on into a path that only looks like one.
fn uri_fits(pattern: &str, uri: &str) -> bool {
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
        Some("a trust domain is lower-case letters, digits, dots, dashes and underscores; no *")
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
