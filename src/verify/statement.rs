//! A Signed Statement, with or without receipts.

use super::report::{Check, Report};
use super::{Error, Evidence, Memo, inclusion, log_keys, unknown_log};
use crate::envelope::{self, Binding, Door, Issuer, Resolved, SignedStatement};
use crate::receipt::{Receipt, attached};
use crate::trust::{TrustAnchors, x509};
use crate::wire::text;
use crate::wire::time::UnixSeconds;

/// Asks who signed, whether the form is right, where it was logged, and what
/// the payload shows.
pub(super) fn report(statement: &SignedStatement, evidence: &Evidence<'_>) -> Report {
    let mut report = envelope_report(statement, evidence);
    super::capsule::add(&mut report, statement, evidence.payload, &[]);
    super::record::add(&mut report, statement, evidence.payload);
    report
}

/// The same without the payload.
pub(super) fn envelope_report(statement: &SignedStatement, evidence: &Evidence<'_>) -> Report {
    let mut warnings = Vec::new();
    let receipts = attached(statement);
    let canonical = statement.canonical();
    let mut registered_at = None;
    let logged: Vec<Check> = match &receipts {
        Err(e) => vec![Check::no("logged", e.code(), e.to_string())],
        Ok(list) if list.is_empty() => vec![Check::not_checked("logged", "no receipt is attached")],
        Ok(list) => list
            .iter()
            .map(|bytes| match Receipt::parse(bytes.clone()) {
                Err(e) => Check::no("logged", e.code(), e.to_string()),
                Ok(receipt) => {
                    let (check, time) = logged(&receipt, &canonical, evidence.trust, &mut warnings);
                    registered_at = registered_at.or(time);
                    check
                }
            })
            .collect(),
    };
    let is_logged = receipts.as_ref().is_ok_and(|list| !list.is_empty());
    let now = registered_at.unwrap_or(evidence.now);
    let mut checks = vec![signed(statement, evidence, now, &mut warnings), conformant(statement)];
    checks.extend(logged);
    let mut not_shown = vec!["that what the payload says is true"];
    not_shown.push(if is_logged {
        "that no other statement exists about the same subject"
    } else {
        "that it was logged: whoever holds the key can still make another"
    });
    let artefact = if is_logged { "transparent statement" } else { "statement" };
    Report { artefact, checks, warnings, not_shown, capsule: None, record: None }
}

fn signed(
    statement: &SignedStatement,
    evidence: &Evidence<'_>,
    now: UnixSeconds,
    warnings: &mut Vec<String>,
) -> Check {
    let resolved = Resolved::default();
    let log = attached(statement).ok().and_then(|receipts| {
        let first = Receipt::parse(receipts.into_iter().next()?).ok()?;
        first.envelope().header().claims.issuer.clone()
    });
    let door = Door { log: log.as_deref(), ..Door::new(evidence.trust, &resolved, now) };
    let found = statement.issuer(&door, evidence.payload);
    match found {
        Ok(issuer) => {
            if issuer.binding == Binding::SelfCertified {
                let name = &issuer.name;
                warnings.push(format!(
                    "nothing ties the key to the name {name:?} but the statement itself"
                ));
            }
            Check::yes("signed", describe(&issuer))
        }
        // A log keeps unprotected certificates beside the statement, not in it.
        Err(
            e @ (envelope::Error::ChainMissing
            | envelope::Error::IssuerUnknown { .. }
            | envelope::Error::NameNeedsProof { .. }
            | envelope::Error::PayloadMissing),
        ) => Check::cannot_tell("signed", e.code(), e.to_string()),
        Err(envelope::Error::Chain(e)) if nobody_says(&e) => {
            Check::cannot_tell("signed", e.code(), e.to_string())
        }
        Err(e) => Check::no("signed", e.code(), e.to_string()),
    }
}

/// Whether a chain is refused for what the trust file does not say, and not
/// for anything that is wrong with it. An anchor that speaks for a name the
/// file does not give it is wrong.
fn nobody_says(error: &x509::Error) -> bool {
    matches!(error, x509::Error::Untrusted | x509::Error::Unscoped { .. })
}

fn describe(issuer: &Issuer) -> String {
    let how = match issuer.binding {
        Binding::DidKey => "spelt out in its name",
        Binding::DidWeb => "from its did:web document",
        Binding::Pinned => "pinned in the trust file",
        Binding::SelfCertified => "brought by the statement (self-certified)",
        Binding::X5Chain => "certified to a trusted anchor",
    };
    let anchor = issuer.anchor.as_ref().map_or(String::new(), |name| format!(", {name:?}"));
    let key = text::short(&issuer.key.id().to_string());
    format!("{}, key {key}, {how}{anchor}", issuer.name)
}

fn conformant(statement: &SignedStatement) -> Check {
    match statement.header().conformance() {
        Ok(_) => Check::yes("conformant", "to RFC 9943".to_owned()),
        Err(e) => Check::no("conformant", e.code(), format!("not to RFC 9943: {e}")),
    }
}

/// Checks one receipt against the statement's canonical bytes; with a yes
/// comes the time the log put on it.
pub(super) fn logged(
    receipt: &Receipt,
    canonical: &[u8],
    trust: &TrustAnchors,
    warnings: &mut Vec<String>,
) -> (Check, Option<UnixSeconds>) {
    let (log, keys) = log_keys(receipt, trust);
    if log.ends_with(".invalid") {
        warnings.push(format!("{log} is a development log; its receipts prove nothing"));
    }
    let time = receipt.envelope().header().claims.issued_at;
    match inclusion(receipt, canonical, &keys, &mut Memo::default()) {
        Ok(included) => {
            let place = included.place.map_or(String::new(), |(index, size)| {
                format!(" #{index}, tree of {}", text::grouped(size))
            });
            let when = time.map_or(String::new(), |t| format!(", {t}"));
            let detail = format!("{log}{place}{when} ({})", included.rule.name());
            (Check::yes("logged", detail), time)
        }
        Err(Error::LogUnknown) => (unknown_log("logged", &log), None),
        Err(e) => (Check::no("logged", e.code(), e.to_string()), None),
    }
}
