//! Which media type a client prefers.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};

const JSON: [&str; 2] = ["application/problem+json", "application/json"];
const CBOR: [&str; 5] = [
    "application/concise-problem-details+cbor",
    "application/cbor",
    "application/cose",
    "application/scitt-receipt+cose",
    "application/scitt-statement+cose",
];

/// Whether problems should be JSON. A type that Accept names decides; CBOR
/// wins a tie. If Accept names neither, a client that sends COSE or CBOR gets
/// CBOR, a client without Accept gets CBOR as SCRAPI requires, and a client
/// that accepts anything, as curl and browsers do, gets JSON.
pub(in crate::http) fn prefers_json(headers: &HeaderMap) -> bool {
    let (json, cbor) = (quality(headers, &JSON), quality(headers, &CBOR));
    if json > 0 || cbor > 0 {
        return json > cbor;
    }
    headers.contains_key(ACCEPT) && !sends_cbor(headers)
}

fn sends_cbor(headers: &HeaderMap) -> bool {
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let sent = sent.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let names = ["application/cose", "application/cbor", "application/cbor-seq"];
    names.contains(&sent.as_str()) || sent.ends_with("+cose") || sent.ends_with("+cbor")
}

/// The media type of a receipt: plain COSE unless the SCITT one is preferred.
pub(in crate::http) fn receipt_type(headers: &HeaderMap) -> &'static str {
    cose_or(headers, "application/scitt-receipt+cose")
}

/// The same for Transparent Statements.
pub(in crate::http) fn statement_type(headers: &HeaderMap) -> &'static str {
    cose_or(headers, "application/scitt-statement+cose")
}

fn cose_or(headers: &HeaderMap, scitt: &'static str) -> &'static str {
    let plain = "application/cose";
    if quality(headers, &[scitt]) > quality(headers, &[plain]) { scitt } else { plain }
}

/// The highest quality in thousandths that Accept gives any of `types` by name.
/// Wildcards express no preference between two of our types.
fn quality(headers: &HeaderMap, types: &[&str]) -> u32 {
    let values = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok());
    let ranges = values.flat_map(|v| v.split(','));
    let of = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next()?.to_ascii_lowercase();
        let q = parts.find_map(|p| p.strip_prefix("q=")).map_or(Some(1000), thousandths);
        types.contains(&name.as_str()).then_some(q?)
    };
    ranges.filter_map(of).max().unwrap_or(0)
}

fn thousandths(q: &str) -> Option<u32> {
    let (whole, fraction) = q.split_once('.').unwrap_or((q, ""));
    let digits = format!("{whole}{fraction:0<3}");
    digits.get(..whole.len() + 3)?.parse().ok()
}
