//! A statement over nothing but a capsule id: the raw 32 bytes, whatever the
//! format of the Capsule. Later drafts separate identity from signing, and
//! today's producers do too.

use crate::profile::Summary;
use crate::profile::finding::{Finding, Severity};
use crate::wire::digest::Digest;

/// The id that was signed; none when the payload is not 32 bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CapsuleIdRecord {
    /// The capsule id.
    pub id: Option<Digest>,
}

impl CapsuleIdRecord {
    pub(in crate::profile) fn read(bytes: &[u8]) -> (Self, Vec<Finding>) {
        let id = Digest::from_slice(bytes);
        let wrong = id.is_none().then(|| {
            let detail = format!("{} bytes, where a capsule id has 32", bytes.len());
            Finding::of_check(1, Severity::Error, "capsule_id_malformed", ("", detail))
        });
        (Self { id }, wrong.into_iter().collect())
    }

    /// What policy, index and readers need to know.
    pub fn summary(&self) -> Summary {
        Summary {
            record_id: self.id.map(|id| id.to_string()),
            ok: Some(self.id.is_some()),
            ..Summary::default()
        }
    }
}
