//! Names of vocabularies that nobody registers (8.1, 9.1): constraint ids,
//! check types and methods, framework tags, kinds of assurance sources.
//!
//! Who introduces a name puts a namespace before it, a URI or reverse DNS; the
//! draft seeds no bare name in any of these. A bare name is worth a note and
//! never more.

use super::{info, warning};
use crate::profile::capsule::payload::Payload;
use crate::profile::finding::Finding;
use crate::wire::json::Json;

pub(super) fn observe(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    for (i, constraint) in payload.constraints().iter().enumerate() {
        labels(constraint, &format!("/constraints/{i}"), findings);
    }
    framework_tags(payload, findings);
    sources(payload, findings);
}

/// A bare id has a code of its own, older than these.
fn labels(constraint: &Json, at: &str, findings: &mut Vec<Finding>) {
    for name in ["id", "check_type", "method"] {
        let Some(label) = constraint.get(name).and_then(Json::text) else { continue };
        let at = format!("{at}/{name}");
        match Name::of(label) {
            Name::Malformed => {
                let detail = "neither lowercase snake_case nor such a name in a namespace (8.1)";
                findings.push(warning("constraint_label_malformed", at, detail));
            }
            Name::Bare if name != "id" => {
                findings.push(info("constraint_label_bare", at, BARE));
            }
            Name::Bare | Name::Namespaced => {}
        }
    }
}

fn framework_tags(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    let at = "/compliance/framework_tags";
    let Some(tags) = payload.member("compliance", "framework_tags") else { return };
    let texts: Option<Vec<&str>> =
        tags.array().and_then(|tags| tags.iter().map(Json::text).collect());
    let Some(texts) = texts else {
        return findings.push(warning("framework_tags_malformed", at, "not a list of strings"));
    };
    for (i, _) in texts.iter().enumerate().filter(|(_, tag)| Name::of(tag) != Name::Namespaced) {
        findings.push(info("framework_tag_bare", format!("{at}/{i}"), BARE));
    }
}

fn sources(payload: &Payload<'_>, findings: &mut Vec<Finding>) {
    let at = "/assurance/sources";
    let Some(sources) = payload.member("assurance", "sources") else { return };
    let Some(sources) = sources.array() else {
        return findings.push(warning("sources_malformed", at, "not a list"));
    };
    for (i, source) in sources.iter().enumerate() {
        let at = format!("{at}/{i}");
        match source.get("kind").and_then(Json::text).map(Name::of) {
            None => {
                let detail = "not an object with a kind (9.1)";
                findings.push(warning("sources_malformed", at, detail));
            }
            Some(Name::Namespaced) => {}
            Some(Name::Bare | Name::Malformed) => {
                findings.push(info("source_kind_unknown", format!("{at}/kind"), BARE));
            }
        }
    }
}

const BARE: &str = "a name without a namespace; no such name is seeded (9.1)";

/// What a producer-local name looks like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Name {
    /// `margin_floor`
    Bare,
    /// `com.example.margin_floor`, `https://example.com/margin_floor`
    Namespaced,
    /// Neither.
    Malformed,
}

impl Name {
    fn of(text: &str) -> Self {
        if is_snake_case(text) {
            return Self::Bare;
        }
        let is_namespaced = match text.split_once(':') {
            Some((scheme, rest)) => is_scheme(scheme) && is_path(rest),
            None => is_reverse_dns(text),
        };
        if is_namespaced { Self::Namespaced } else { Self::Malformed }
    }
}

/// `a`, `margin_floor_2`
fn is_snake_case(text: &str) -> bool {
    let tail = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(tail)
}

/// RFC 3986, 3.1, in lower case.
fn is_scheme(text: &str) -> bool {
    let tail = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(tail)
}

/// Any run of the characters that a URI is made of.
fn is_path(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b))
}

/// At least two labels; the last ones may be joined by slashes.
fn is_reverse_dns(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
        !label.is_empty() && label.bytes().all(inner)
    };
    text.contains('.') && text.split(['.', '/']).all(label)
}

#[cfg(test)]
mod tests {
    use super::Name::{self, Bare, Malformed, Namespaced};

    #[test]
    fn names_by_their_form() {
        let cases = [
            ("margin_floor", Bare),
            ("iso27001", Bare),
            ("com.example.margin_floor", Namespaced),
            ("example.com/margin-floor", Namespaced),
            ("urn:example:margin", Namespaced),
            ("https://example.com/a?b#c", Namespaced),
            ("", Malformed),
            ("Margin", Malformed),
            ("margin floor", Malformed),
            ("margin-floor", Malformed),
            ("com..example", Malformed),
            (".example", Malformed),
            ("com.Example", Malformed),
            ("urn:", Malformed),
            ("https://example.com/a b", Malformed),
            ("2fa", Malformed),
        ];
        for (text, expected) in cases {
            assert_eq!(Name::of(text), expected, "{text:?}");
        }
    }
}
