//! A C2SP checkpoint: a signed note over size and root.

use super::report::{Check, Report};
use super::{ANY_LOG, Evidence, unknown_log};
use crate::checkpoint::{Checkpoint, SignedCheckpoint, VerifierKey};
use crate::trust::TrustedLog;

/// Asks whether a log we believe signed this checkpoint.
pub(super) fn report(note: &SignedCheckpoint, evidence: &Evidence<'_>) -> Report {
    let not_shown = vec!["that the log shows everybody the same checkpoint"];
    Report { not_shown, ..Report::of("checkpoint", vec![published(note, evidence).0]) }
}

/// A checkpoint whose signature verified, and under which name its key is
/// trusted.
pub(super) struct Published {
    pub(super) log: String,
    pub(super) checkpoint: Checkpoint,
}

/// The same with what it shows, if a trusted key verified it.
pub(super) fn published(
    note: &SignedCheckpoint,
    evidence: &Evidence<'_>,
) -> (Check, Option<Published>) {
    let origin = note.origin();
    let keys: Vec<(&TrustedLog, VerifierKey)> = evidence
        .trust
        .logs()
        .iter()
        .filter_map(|log| log.checkpoint.as_deref().map(|vkey| (log, vkey)))
        .filter_map(|(log, vkey)| VerifierKey::parse(vkey).ok().map(|key| (log, key)))
        .filter(|(log, key)| log.name == ANY_LOG || key.name() == origin)
        .collect();
    let verified = keys.iter().find_map(|(log, key)| Some((log, note.verify(key).ok()?)));
    let Some((log, checkpoint)) = verified else {
        let check = if keys.is_empty() {
            unknown_log("published", origin)
        } else {
            let detail = format!("no trusted key of {origin} verifies the note");
            Check::no("published", "note-signature", detail)
        };
        return (check, None);
    };
    let detail = format!("{origin}, {} leaves, root {}", checkpoint.size, checkpoint.root);
    let check = evidence.demand.of_log(Check::yes("published", detail), &[origin, &log.name]);
    (check, Some(Published { log: log.name.clone(), checkpoint }))
}
