//! A Signed Statement, with or without receipts.

use super::report::{Check, Outcome, Report};
use super::{Error, Evidence, Included, Memo, inclusion, log_keys, log_name, unknown_log};
use crate::envelope::{self, AuthContext, Binding, Issuer, Resolved, SignedStatement};
use crate::receipt::{self, Receipt};
use crate::trust::{TrustAnchors, x509};
use crate::wire::text;
use crate::wire::time::UnixSeconds;

/// The receipts of a statement, or why they cannot be read.
pub(super) type Receipts = Result<Vec<Vec<u8>>, receipt::Error>;

/// Checks who signed, whether the statement conforms, where it was logged, and
/// its payload.
pub(super) fn report(
    statement: &SignedStatement,
    receipts: Receipts,
    evidence: &Evidence<'_>,
) -> Report {
    let mut report = envelope_report(statement, receipts, evidence);
    super::record::add(&mut report, statement, evidence.payload, &[]);
    report
}

/// The same without the payload.
pub(super) fn envelope_report(
    statement: &SignedStatement,
    receipts: Receipts,
    evidence: &Evidence<'_>,
) -> Report {
    let mut warnings = Vec::new();
    let canonical = statement.canonical();
    let is_logged = receipts.as_ref().is_ok_and(|list| !list.is_empty());
    let (mut registered_at, mut log) = (None, None);
    let logged = match receipts {
        Err(e) => vec![Check::no("logged", e.code(), e.to_string())],
        Ok(list) if list.is_empty() => {
            let detail = "no receipt is attached, so nothing shows that it was logged".to_owned();
            vec![Check::cannot_tell("logged", "receipt-missing", detail)]
        }
        Ok(list) => list
            .into_iter()
            .map(|bytes| match Receipt::parse(bytes) {
                Err(e) => Check::no("logged", e.code(), e.to_string()),
                Ok(receipt) => {
                    let (check, shown) = logged(&receipt, &canonical, evidence, &mut warnings);
                    log = log.take().or(receipt.envelope().header().claims.issuer.clone());
                    let time = shown.filter(|_| check.outcome == Outcome::Yes);
                    registered_at = registered_at.or(time.and_then(|shown| shown.time));
                    check
                }
            })
            .collect(),
    };
    let now = registered_at.unwrap_or(evidence.now);
    let signed = signed(statement, log.as_deref(), evidence, now);
    let issuer = signed.as_ref().ok().cloned();
    let mut checks = vec![match signed {
        Ok(issuer) => Check::yes("signed", describe(&issuer, evidence)),
        // A receipt may have been issued after the registration it proves.
        Err(envelope::Error::Chain(e @ x509::Error::Expired { .. })) if registered_at.is_some() => {
            let detail = format!(
                "{e}; the receipt was issued after that, and does not show whether the \
                 registration was earlier: an older receipt does"
            );
            Check::cannot_tell("signed", e.code(), detail)
        }
        Err(e) => not_signed(e),
    }];
    checks.extend(bound_issuer(statement, issuer.as_ref(), evidence, &mut warnings));
    let subject = statement.header().claims.subject.as_deref().unwrap_or_default();
    checks.extend(evidence.demand.other_subject(subject));
    checks.push(conformant(statement));
    checks.extend(logged);
    let mut not_shown = vec!["that what the payload says is true"];
    not_shown.push(if is_logged {
        "that no other statement exists about the same subject"
    } else {
        "that it was logged: the holder of the key can still sign another"
    });
    let artefact = if is_logged { "transparent statement" } else { "statement" };
    Report { warnings, not_shown, ..Report::of(artefact, checks) }
}

/// Who signed. Only the keys of a trusted log may sign under its name.
fn signed(
    statement: &SignedStatement,
    log: Option<&str>,
    evidence: &Evidence<'_>,
    now: UnixSeconds,
) -> Result<Issuer, envelope::Error> {
    let name = statement.header().claims.issuer.as_deref().unwrap_or_default();
    let by = |trust: &TrustAnchors, log: Option<&str>| {
        let resolved = Resolved::default();
        statement.issuer(
            &AuthContext { log, ..AuthContext::new(trust, &resolved, now) },
            evidence.payload,
        )
    };
    if let Some(key) = evidence.issuer_key {
        let given = evidence.trust.clone().with_issuer(name, std::slice::from_ref(key));
        return by(&given, log);
    }
    let own = evidence.trust.logs().iter().filter(|log| !name.is_empty() && log.name == name);
    let keys: Vec<_> = own.flat_map(|log| log.keys.iter().cloned()).collect();
    if keys.is_empty() {
        return by(evidence.trust, log);
    }
    let own = evidence.trust.clone().with_issuer(name, &keys);
    by(&own, Some(name)).or_else(|_| by(evidence.trust, Some(name)))
}

fn not_signed(error: envelope::Error) -> Check {
    match error {
        // A log stores unprotected certificates apart from the statement.
        e @ (envelope::Error::ChainMissing
        | envelope::Error::IssuerUnknown { .. }
        | envelope::Error::NameNeedsProof { .. }
        | envelope::Error::PayloadMissing) => Check::cannot_tell("signed", e.code(), e.to_string()),
        envelope::Error::Chain(e) if is_trust_missing(&e) => {
            Check::cannot_tell("signed", e.code(), e.to_string())
        }
        e => Check::no("signed", e.code(), e.to_string()),
    }
}

/// Whether something other than the statement binds the key to the name, and
/// the name is an expected one.
fn bound_issuer(
    statement: &SignedStatement,
    issuer: Option<&Issuer>,
    evidence: &Evidence<'_>,
    warnings: &mut Vec<String>,
) -> Option<Check> {
    let claimed = statement.header().claims.issuer.as_deref().unwrap_or_default();
    if let Some(other) = evidence.demand.other_issuer(claimed) {
        return Some(other);
    }
    let Issuer { name, binding, key, anchor } = issuer?;
    let by = match binding {
        Binding::Pinned if evidence.issuer_key == Some(key) => "the key given by hand".to_owned(),
        Binding::Pinned => "the trust file".to_owned(),
        Binding::DidWeb => "its did:web document".to_owned(),
        Binding::X5Chain => format!("the anchor {:?}", anchor.as_deref().unwrap_or_default()),
        Binding::DidKey if evidence.demand.names(name) => "the name you asked for".to_owned(),
        Binding::DidKey => {
            let detail = format!(
                "the name {name:?} contains its own key, and you have not named it; \
                 `capstan trust issuer` or --issuer with exactly this name does"
            );
            return Some(Check::cannot_tell("issuer", "issuer-not-named", detail));
        }
        Binding::SelfCertified => {
            let detail =
                format!("nothing ties the key to the name {name:?} but the statement itself");
            if evidence.demand.allow_self_certified {
                warnings.push(detail);
                return Some(Check::yes("issuer", format!("{name}, self-certified, as allowed")));
            }
            let detail = format!("{detail}; `capstan trust issuer` does, if you know whose it is");
            return Some(Check::cannot_tell("issuer", "self-certified", detail));
        }
    };
    Some(Check::yes("issuer", format!("{name}, tied to the key by {by}")))
}

/// Whether a chain is refused only because the trust file has no anchor or no
/// scope for it. A name outside the scope of an anchor is an error.
fn is_trust_missing(error: &x509::Error) -> bool {
    matches!(error, x509::Error::Untrusted | x509::Error::Unscoped { .. })
}

fn describe(issuer: &Issuer, evidence: &Evidence<'_>) -> String {
    let how = match issuer.binding {
        Binding::DidKey => "contained in its name",
        Binding::DidWeb => "from its did:web document",
        Binding::Pinned if evidence.issuer_key == Some(&issuer.key) => "given by hand",
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

/// What a receipt proves, after it verified under a trusted key.
pub(super) struct Shown {
    /// The place of the statement in the log.
    pub(super) included: Included,
    /// The time in the receipt.
    pub(super) time: Option<UnixSeconds>,
}

/// Checks one receipt against the statement's canonical bytes.
pub(super) fn logged(
    receipt: &Receipt,
    canonical: &[u8],
    evidence: &Evidence<'_>,
    warnings: &mut Vec<String>,
) -> (Check, Option<Shown>) {
    let (log, keys) = log_keys(receipt, evidence.trust);
    match inclusion(receipt, canonical, &keys, &mut Memo::default()) {
        Ok(included) => {
            let time = receipt.envelope().header().claims.issued_at;
            let place = included.place.map_or(String::new(), |(index, size)| {
                format!(" #{index}, tree of {}", text::grouped(size))
            });
            let when = time.map_or(String::new(), |t| format!(", {t}"));
            let detail = format!("{log}{place}{when} ({})", included.rule.name());
            let name = log_name(receipt, included.key, evidence.trust);
            let check = evidence.demand.of_log(Check::yes("logged", detail), &[&log, &name]);
            if super::demand::is_development(&name) {
                warnings.push(format!("{name} is a development log; its receipts prove nothing"));
            }
            (check, Some(Shown { included, time }))
        }
        Err(Error::LogUnknown) => (unknown_log("logged", &log), None),
        Err(e) => {
            let mut detail = e.to_string();
            let kid = receipt.envelope().header().kid.as_deref().unwrap_or_default();
            if keys.iter().all(|key| key.id().as_bytes() != kid) {
                detail += &format!(
                    "; it names another key than those trusted for {log}: if the log has \
                     changed its key, `capstan trust add URL` or `capstan trust follow FILE` \
                     follows the succession"
                );
            }
            (Check::no("logged", e.code(), detail), None)
        }
    }
}
