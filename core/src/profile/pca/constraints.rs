//! Constraints: the document that a certificate names by version and digest.

use super::digest::Label;
use super::moment::Window;
use super::shape::Shape;
use crate::profile::finding::Finding;
use crate::wire::jcs::{Suite, SuiteDigest};
use crate::wire::json::Json;

/// A constraints document as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraints {
    document: Json,
    window: Option<Window>,
    findings: Vec<Finding>,
}

impl Constraints {
    /// Reads and judges bytes; never fails, and notices everything.
    pub fn read(bytes: &[u8]) -> Self {
        let mut shape = Shape::default();
        let required = ["version_id", "effective_time", "payload", "digest"];
        let document = shape.json(bytes).filter(|json| shape.object(json, "", &required, &[]));
        let mut window = None;
        if let Some(document) = &document {
            shape.filled(document, "", "version_id");
            shape.digest(document, "", "digest");
            shape.an_object(document, "", "payload", false);
            window = shape.window(document);
            shape.numbers(document);
        }
        Self { document: document.unwrap_or(Json::Null), window, findings: shape.findings }
    }

    /// What was noticed about it.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(super) fn window(&self) -> Option<Window> {
        self.window
    }

    pub(super) fn version_id(&self) -> Option<&str> {
        self.document.get("version_id")?.text()
    }

    /// The digest it states, if its payload has it, and under which suite;
    /// else what is wrong.
    pub(super) fn digest(&self) -> Result<SuiteDigest, String> {
        let stated = self.document.get("digest").and_then(Json::text);
        let payload = self.document.get("payload");
        let (Some(stated), Some(payload)) = (stated, payload) else {
            return Err("the constraints have no payload or no digest".to_owned());
        };
        let computed = [Suite::PcaV1, Suite::PcaPython]
            .into_iter()
            .filter_map(|suite| Label::Constraints.digest(suite, payload).ok());
        let found = computed.into_iter().find(|digest| digest.hex() == stated);
        found.ok_or_else(|| "the payload of the constraints does not have their digest".to_owned())
    }
}
