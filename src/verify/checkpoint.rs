//! A C2SP checkpoint: a signed note over size and root.

use super::report::{Check, Report};
use super::{ANY_LOG, Evidence, unknown_log};
use crate::checkpoint::{SignedCheckpoint, VerifierKey};

/// Asks whether a log we believe signed this checkpoint.
pub(super) fn report(note: &SignedCheckpoint, evidence: &Evidence<'_>) -> Report {
    let origin = note.origin();
    let keys: Vec<VerifierKey> = evidence
        .trust
        .logs()
        .iter()
        .filter_map(|log| log.checkpoint.as_deref().map(|vkey| (log, vkey)))
        .filter_map(|(log, vkey)| VerifierKey::parse(vkey).ok().map(|key| (log, key)))
        .filter(|(log, key)| log.name == ANY_LOG || key.name() == origin)
        .map(|(_, key)| key)
        .collect();
    let verified = keys.iter().find_map(|key| note.verify(key).ok());
    let check = match verified {
        Some(checkpoint) => Check::yes(
            "published",
            format!("{origin}, {} leaves, root {}", checkpoint.size, checkpoint.root),
        ),
        None if keys.is_empty() => unknown_log("published", origin),
        None => Check::no(
            "published",
            "note-signature",
            format!("no trusted key of {origin} verifies the note"),
        ),
    };
    Report {
        artefact: "checkpoint",
        checks: vec![check],
        warnings: Vec::new(),
        not_shown: vec!["that the log shows everybody the same checkpoint"],
        capsule: None,
        record: None,
    }
}
