//! A normalised payload, asked for what the profile names.

use crate::wire::json::Json;

/// A payload of which null, `[]` and `{}` members were removed.
#[derive(Clone, Copy)]
pub(super) struct Payload<'a>(pub(super) &'a Json);

impl<'a> Payload<'a> {
    /// A member of the top level.
    pub(super) fn get(&self, name: &str) -> Option<&'a Json> {
        self.0.get(name)
    }

    /// A block of the top level, if it is an object.
    pub(super) fn block(&self, name: &str) -> Option<&'a Json> {
        self.get(name).filter(|block| block.members().is_some())
    }

    /// A member of a block.
    pub(super) fn member(&self, block: &str, name: &str) -> Option<&'a Json> {
        self.block(block)?.get(name)
    }

    /// A member of a block that is text.
    pub(super) fn text(&self, block: &str, name: &str) -> Option<&'a str> {
        self.member(block, name)?.text()
    }

    /// A member of a block that is a well-formed digest.
    pub(super) fn digest(&self, block: &str, name: &str) -> Option<&'a str> {
        self.text(block, name).filter(|text| is_digest(text))
    }

    /// The decision id, wherever a producer put it.
    pub(super) fn decision_id(&self) -> Option<&'a str> {
        let own = self.get("decision_id").and_then(Json::text);
        self.text("effect", "decision_id").or(own)
    }

    /// The constraint records, if they are an array.
    pub(super) fn constraints(&self) -> &'a [Json] {
        self.get("constraints").and_then(Json::array).unwrap_or_default()
    }
}

/// 64 lowercase hex digits, nothing before or after.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a payload conceals members in the way of selective disclosure:
/// `_sd`, `_sd_alg`, or `{"...": digest}` for a constraint.
pub(super) fn conceals(value: &Json) -> bool {
    match value {
        Json::Object(members) => members.iter().any(|(name, value)| {
            name == "_sd" || name == "_sd_alg" || name == "..." || conceals(value)
        }),
        Json::Array(items) => items.iter().any(conceals),
        _ => false,
    }
}
