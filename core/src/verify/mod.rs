//! The only verifier: command line, service self-check and tests call it.
//!
//! In: the bytes of a statement, receipt, Transparent Statement, checkpoint,
//! consistency receipt or bundle, and the trust. Out: a `Report`. It uses no
//! network, no files and no clock.

mod bundle;
mod capsule;
mod demand;
mod receipt;
mod record;
mod report;
mod statement;
mod succession;
#[cfg(test)]
mod tests;

use crate::checkpoint::{Checkpoint, SignedCheckpoint, VerifierKey};
use crate::key::{KeyId, PublicKey};
use crate::receipt::{Proofs, Receipt, attached};
use crate::trust::{TrustAnchors, TrustedLog};
use crate::wire::cbor::Value;
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

pub use bundle::Bundle;
pub use capsule::CapsuleReport;
pub use demand::{Demand, Requirement};
pub use receipt::{EntryRule, Error, Extended, Included, Memo, consistency, inclusion};
pub use record::RecordReport;
pub use report::{Check, Outcome, Report};
pub use succession::successors;

/// The log name of a key given on the command line: it matches any log.
pub const ANY_LOG: &str = "*";

/// The input of a verification besides the file.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The trust of the verifier.
    pub trust: &'a TrustAnchors,
    /// The time to check certificates at, if no receipt has an earlier one.
    pub now: UnixSeconds,
    /// The statement of a bare receipt.
    pub statement: Option<&'a [u8]>,
    /// The payload of a detached statement.
    pub payload: Option<&'a [u8]>,
    /// The root of the older tree, for consistency.
    pub older: Option<Digest>,
    /// A key trusted for any issuer that the statement names.
    pub issuer_key: Option<&'a PublicKey>,
    /// The requirements for a yes.
    pub demand: &'a Demand,
}

impl<'a> Evidence<'a> {
    /// Only trust and time, with the default requirements.
    pub fn new(trust: &'a TrustAnchors, now: UnixSeconds) -> Self {
        const DEFAULT: &Demand = &Demand::DEFAULT;
        Self {
            trust,
            now,
            statement: None,
            payload: None,
            older: None,
            issuer_key: None,
            demand: DEFAULT,
        }
    }
}

/// Checks what `bytes` prove, and whether that meets the demand.
pub fn verify(bytes: &[u8], evidence: &Evidence<'_>) -> Report {
    evidence.demand.apply(report(bytes, evidence))
}

fn report(bytes: &[u8], evidence: &Evidence<'_>) -> Report {
    if let Some(text) = std::str::from_utf8(bytes).ok().filter(|t| t.contains("\n\n\u{2014} ")) {
        return match SignedCheckpoint::parse(text) {
            Ok(note) => checkpoint_report(&note, evidence),
            Err(e) => malformed("checkpoint", e.code(), e.to_string()),
        };
    }
    if let Ok(value) = Value::read(bytes)
        && Bundle::is_bundle(&value)
    {
        return bundle::report(&value, evidence);
    }
    let envelope = match crate::envelope::SignedStatement::parse_any_size(bytes.to_vec()) {
        Ok(envelope) => envelope,
        Err(e) => return malformed("statement", e.code(), e.to_string()),
    };
    if envelope.header().vds.is_none() {
        return statement::report(&envelope, attached(&envelope), evidence);
    }
    match Receipt::parse(bytes.to_vec()) {
        Ok(receipt) => receipt_report(&receipt, evidence),
        Err(e) => malformed("receipt", e.code(), e.to_string()),
    }
}

fn receipt_report(receipt: &Receipt, evidence: &Evidence<'_>) -> Report {
    let shows_growth =
        matches!(receipt.proofs(), Proofs::Consistency(_) | Proofs::CcfConsistency(_));
    if shows_growth {
        growth_report(receipt, evidence)
    } else {
        bare_receipt_report(receipt, evidence)
    }
}

/// A receipt without its statement proves nothing; with it, both are checked
/// like a Transparent Statement.
fn bare_receipt_report(receipt: &Receipt, evidence: &Evidence<'_>) -> Report {
    let Some(bytes) = evidence.statement else {
        let detail = "a receipt is checked against its statement; give it with --statement";
        let check = Check::cannot_tell("logged", "statement-needed", detail.to_owned());
        return Report::of("receipt", vec![check]);
    };
    match crate::envelope::SignedStatement::parse_any_size(bytes.to_vec()) {
        Err(e) => {
            let detail = format!("the statement given: {e}");
            Report::of("receipt", vec![Check::no("readable", e.code(), detail)])
        }
        Ok(statement) => {
            let receipts = Ok(vec![receipt.envelope().bytes().to_vec()]);
            let report = statement::report(&statement, receipts, evidence);
            Report { artefact: "receipt", ..report }
        }
    }
}

fn growth_report(receipt: &Receipt, evidence: &Evidence<'_>) -> Report {
    let (log, keys) = log_keys(receipt, evidence.trust);
    let check = match evidence.older {
        None => Check::cannot_tell(
            "extends",
            "older-needed",
            "growth is checked from an older root you hold; give it with --older".to_owned(),
        ),
        Some(older) => match consistency(receipt, &older, &keys, &mut Memo::default()) {
            Ok(extended) => {
                let sizes =
                    extended.sizes.map_or(String::new(), |(m, n)| format!(", {m} to {n} leaves"));
                let detail = format!("{log}{sizes}, newer root {}", extended.root);
                let name = log_name(receipt, extended.key, evidence.trust);
                evidence.demand.of_log(Check::yes("extends", detail), &[&log, &name])
            }
            Err(Error::LogUnknown) => unknown_log("extends", &log),
            Err(e) => Check::no("extends", e.code(), e.to_string()),
        },
    };
    let not_shown = vec!["which statements were added in between"];
    Report { not_shown, ..Report::of("consistency receipt", vec![check]) }
}

/// Whether a trusted log signed this C2SP checkpoint.
fn checkpoint_report(note: &SignedCheckpoint, evidence: &Evidence<'_>) -> Report {
    let not_shown = vec!["that the log shows everybody the same checkpoint"];
    Report { not_shown, ..Report::of("checkpoint", vec![published(note, evidence).0]) }
}

/// A verified checkpoint, and the name its key is trusted under.
struct Published {
    log: String,
    checkpoint: Checkpoint,
}

/// The check, and the checkpoint if a trusted key verified it.
fn published(note: &SignedCheckpoint, evidence: &Evidence<'_>) -> (Check, Option<Published>) {
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

/// The log that a receipt names, and the keys trusted for it.
fn log_keys(receipt: &Receipt, trust: &TrustAnchors) -> (String, Vec<PublicKey>) {
    let issuer = receipt.envelope().header().claims.issuer.as_deref();
    let matches = |name: &str| name == ANY_LOG || issuer.is_none_or(|iss| iss == name);
    let logs = trust.logs().iter().filter(|log| matches(&log.name));
    let keys = logs.flat_map(|log| log.keys.iter().cloned()).collect();
    (issuer.unwrap_or("a log that does not name itself").to_owned(), keys)
}

/// The name of the log whose key verified a receipt: from the receipt, or else
/// the name the key is trusted under.
fn log_name(receipt: &Receipt, key: KeyId, trust: &TrustAnchors) -> String {
    let issuer = receipt.envelope().header().claims.issuer.clone();
    let holds = |log: &&TrustedLog| log.keys.iter().any(|k| k.id() == key);
    let trusted = || trust.logs().iter().find(holds).map(|log| log.name.clone());
    issuer.or_else(trusted).unwrap_or_default()
}

fn unknown_log(check: &'static str, log: &str) -> Check {
    let detail = format!("no key of {log} is trusted; add it with `capstan trust add`");
    Check::cannot_tell(check, "log-unknown", detail)
}

fn malformed(artefact: &'static str, code: &'static str, detail: String) -> Report {
    Report::of(artefact, vec![Check::no("readable", code, detail)])
}
