//! Issuer names that need proof beyond the statement, and text claims that look
//! like registered ones.

use super::{Error, Header};

/// Why a self-certified key may not use a name, and what to do; `None` for
/// names that have no proof.
pub(super) fn needs_proof(name: &str, log: Option<&str>) -> Option<&'static str> {
    let name = name.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    if name.is_empty() {
        return Some("the name is empty; put the issuer's name into iss (CWT claim 1)");
    }
    if has_scheme(name, "did") {
        return Some(
            "a DID is proven by its own method: pin its key in the trust file; or sign did:x509 \
             names with x5chain (33), did:web names where the log resolves them, did:key and \
             did:jwk names with the key they spell out",
        );
    }
    if has_scheme(name, "spiffe") {
        return Some(
            "a SPIFFE ID is proven by its certificate: put x5chain (33) into the protected \
             header, or pin the key in the trust file",
        );
    }
    if log.is_some_and(|log| same_place(name, log)) {
        return Some("this is the name of the log itself; sign under another");
    }
    None
}

fn has_scheme(name: &str, scheme: &str) -> bool {
    name.split_once(':').is_some_and(|(before, _)| before.eq_ignore_ascii_case(scheme))
}

/// Whether two names look the same to people: schemes, case and a trailing
/// slash do not count.
fn same_place(one: &str, other: &str) -> bool {
    let bare = |name: &str| {
        let rest = name.split_once("://").map_or(name, |(_, rest)| rest);
        rest.trim_end_matches(['/', '.']).to_lowercase()
    };
    bare(one) == bare(other)
}

/// Names of registered CWT claims with their numbers, from RFC 8392, 8747,
/// 9200, 9246, 9711 and other registrations. A name that is missing here is an
/// ordinary text claim, never read as a number. Adding names needs a new
/// version of the rules.
const REGISTERED: &[(&str, i64)] = &[
    ("globalplatform_component", -261),
    ("hcert", -260),
    ("EUPHNonce", -259),
    ("EATMAROEPrefix", -258),
    ("EAT-FDO", -257),
    ("iss", 1),
    ("sub", 2),
    ("aud", 3),
    ("exp", 4),
    ("nbf", 5),
    ("iat", 6),
    ("cti", 7),
    // As JSON Web Tokens call it.
    ("jti", 7),
    ("cnf", 8),
    ("scope", 9),
    ("nonce", 10),
    ("eat_nonce", 10),
    ("ace_profile", 38),
    ("cnonce", 39),
    ("exi", 40),
    ("ueid", 256),
    ("sueids", 257),
    ("oemid", 258),
    ("hwmodel", 259),
    ("hwversion", 260),
    ("uptime", 261),
    ("oemboot", 262),
    ("dbgstat", 263),
    ("location", 264),
    ("eat_profile", 265),
    ("submods", 266),
    ("bootcount", 267),
    ("bootseed", 268),
    ("dloas", 269),
    ("swname", 270),
    ("swversion", 271),
    ("manifests", 272),
    ("measurements", 273),
    ("measres", 274),
    ("intuse", 275),
    ("geohash", 282),
    ("cdniv", 311),
    ("cdnicrit", 312),
    ("cdniip", 313),
    ("cdniuc", 314),
    ("cdniets", 315),
    ("cdnistt", 316),
    ("cdnistd", 317),
    ("psa-client-id", 2394),
    ("psa-security-lifecycle", 2395),
    ("psa-implementation-id", 2396),
    ("psa-certification-reference", 2398),
    ("psa-software-components", 2399),
    ("psa-verification-service-indicator", 2400),
    ("status_list", 65533),
    ("ttl", 65534),
    ("status", 65535),
];

/// Refuses claims labelled by text that are called like a registered one, or
/// spell a number: a reader by name would confuse the two.
pub(super) fn refuse_look_alikes(header: &Header) -> Result<(), Error> {
    for (name, _) in &header.claims.named {
        let registered = REGISTERED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let number = registered.map(|(_, number)| *number).or_else(|| name.parse().ok());
        if let Some(number) = number {
            return Err(Error::ClaimNameReserved { name: name.clone(), number });
        }
    }
    Ok(())
}
