//! The URL of a did:web document.
//!
//! `did:web:example.org%3A8443:agents:7` is at
//! `https://example.org:8443/agents/7/did.json`, and without a path at
//! `/.well-known/did.json`.

use std::net::IpAddr;

use super::Error;

/// A DNS name has at most 253 characters; the rest is for the path.
const DID_BYTES_MAX: usize = 1024;

/// The URL of the document. IP addresses are accepted only with
/// `allow_private`: the method forbids them, and they would bypass DNS.
pub(super) fn url(did: &str, allow_private: bool) -> Result<reqwest::Url, Error> {
    let not = |problem| Error::NotDidWeb { problem };
    let rest = did.strip_prefix("did:web:").ok_or(not("another method"))?;
    if did.len() > DID_BYTES_MAX {
        return Err(not("too long"));
    }
    let mut parts = rest.split(':');
    let authority = parts.next().unwrap_or_default();
    let (host, port) = match authority.split_once("%3A").or_else(|| authority.split_once("%3a")) {
        Some((host, port)) => (host, Some(port.parse::<u16>().map_err(|_| not("a bad port"))?)),
        None => (authority, None),
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    if host.is_empty() || !host.bytes().all(plain) {
        return Err(not("a bad host name"));
    }
    let path: Vec<&str> = parts.collect();
    if !path.iter().all(|segment| is_segment(segment)) {
        return Err(not("a bad path"));
    }
    let loopback = host == "localhost" || host.parse().is_ok_and(|a: IpAddr| a.is_loopback());
    let scheme = if allow_private && loopback { "http" } else { "https" };
    let port = port.map(|p| format!(":{p}")).unwrap_or_default();
    let path = if path.is_empty() { ".well-known".to_owned() } else { path.join("/") };
    let url = reqwest::Url::parse(&format!("{scheme}://{host}{port}/{path}/did.json"))
        .map_err(|_| not("a bad host name"))?;
    // URL parsers read `127.1` and `0x7f000001` as addresses.
    if url.domain().is_none() && !allow_private {
        return Err(not("an address in place of a name"));
    }
    Ok(url)
}

/// DID Core's characters, and nothing a URL parser takes for `..` or `/`.
fn is_segment(segment: &str) -> bool {
    let lower = segment.to_ascii_lowercase();
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'%');
    !segment.is_empty()
        && segment.bytes().all(allowed)
        && !matches!(segment, "." | "..")
        && !["%2e", "%2f", "%5c", "%00"].iter().any(|bad| lower.contains(bad))
}
