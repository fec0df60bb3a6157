//! Atlas/1.0 (section 5): the manifest of a package of context, policies and
//! actions.
//!
//! In: a manifest. Out: the manifest, and findings about its schema, then about
//! its references.

mod references;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use jsonschema::Validator;

use super::notes::{NOTES_CODES, Notes};
use super::schema;
use crate::profile::Summary;
use crate::profile::finding::Finding;
use crate::profile::kind::{Codes, Record, RecordKind, Role, boxed};
use crate::wire::digest::Digest;
use crate::wire::json::{self, Json};

/// The content type of a manifest.
pub const CONTENT_TYPE: &str = "application/vnd.cra.atlas+json";

/// Atlas manifests.
pub static KIND: RecordKind = RecordKind {
    name: "atlas",
    role: Role::Record,
    content_types: &[CONTENT_TYPE],
    read: |_, payload| boxed(AtlasRecord::read(payload)),
    codes: &[Codes::new(CODES), Codes::new(NOTES_CODES), Codes::new(json::CODES)],
    later_codes: &[],
    page: "docs/profiles/cra.md",
};

const CODES: &[&str] = &[
    "atlas-action-unknown",
    "atlas-dependency-self",
    "atlas-glob-empty",
    "atlas-id-repeated",
    "atlas-nothing-allowed",
    "atlas-pack-unknown",
    "atlas-path-outside",
    "atlas-policy-actions-opaque",
    "atlas-schema-violation",
];

static MANIFEST: LazyLock<Option<Validator>> =
    LazyLock::new(|| schema::compile(include_str!("manifest.schema.json")));

/// An Atlas manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct AtlasRecord {
    manifest: Json,
    content: Digest,
    ok: bool,
}

impl AtlasRecord {
    /// Reads and judges a manifest.
    pub fn read(payload: &[u8]) -> (Self, Vec<Finding>) {
        let mut notes = Notes::default();
        let manifest = match Json::read(payload) {
            Ok(manifest) => {
                let value = schema::to_serde(&manifest);
                schema::check(MANIFEST.as_ref(), &value, "atlas-schema-violation", &mut notes);
                references::check(&manifest, &mut notes);
                manifest
            }
            Err(e) => {
                notes.error(e.code(), e.pointer.clone(), format!("not JSON: {e}"));
                Json::Null
            }
        };
        let record = Self { manifest, content: Digest::of(payload), ok: !notes.is_broken() };
        (record, notes.into_findings())
    }

    /// The manifest; null if it could not be read.
    pub fn manifest(&self) -> &Json {
        &self.manifest
    }

    /// `atlas_id@version`. One version has one content (5.6).
    pub fn name(&self) -> Option<String> {
        let text = |name| self.manifest.get(name).and_then(Json::text);
        Some(format!("{}@{}", text("atlas_id")?, text("version")?))
    }
}

impl Record for AtlasRecord {
    fn summary(&self) -> Summary {
        let record_id = self.name().filter(|_| self.ok);
        Summary {
            content: record_id.as_ref().map(|_| self.content.to_string()),
            ok: Some(self.ok),
            record_id,
            ..Summary::default()
        }
    }
}
