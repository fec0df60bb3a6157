//! Verification of a bundle: each part, and that they belong together.

use std::collections::BTreeSet;

use super::Bundle;
use super::admission::Admission;
use crate::checkpoint::{Checkpoint, SignedCheckpoint};
use crate::envelope::{AuthContext, ContentType, Resolved, SignedStatement};
use crate::profile::Control;
use crate::receipt::{Proofs, Receipt, attached};
use crate::trust::TrustAnchors;
use crate::verify::report::{Check, Outcome, Report};
use crate::verify::statement::{self, Shown};
use crate::verify::{ANY_LOG, Evidence, Published, log_keys, malformed, published, record};
use crate::wire::cbor::Value;
use crate::wire::time::UnixSeconds;

/// Checks every part, that all are of one log, and repeats the admission
/// decision.
pub(in crate::verify) fn report(value: &Value<'_>, evidence: &Evidence<'_>) -> Report {
    let Some(bundle) = Bundle::read(value) else {
        let detail = "a part of the bundle is missing or malformed".to_owned();
        return malformed("bundle", "bundle-incomplete", detail);
    };
    let subject = match SignedStatement::parse_any_size(bundle.statement.clone()) {
        Ok(subject) => subject,
        Err(e) => return malformed("bundle", e.code(), format!("its statement: {e}")),
    };
    let mut report = statement::envelope_report(&subject, attached(&subject), evidence);
    report.artefact = "bundle";
    let subject = Leaf::new(subject, evidence);
    let own = subject.control();
    // The first policy and trust entries of a log are their own.
    let before = subject.index().filter(|_| own.is_none());
    let part = |name, bytes: &[u8], control| Part { name, control, before }.check(bytes, evidence);
    let policy = part("policy", &bundle.policy, Some(Control::Policy));
    let trust = part("trust", &bundle.trust, Some(Control::Trust));
    let chain: Vec<_> = bundle.chain.iter().map(|one| part("chain", one, None)).collect();
    let is_logged = |part: &&CheckedPart| part.check.outcome == Outcome::Yes;
    let logged: Vec<_> =
        chain.iter().filter(is_logged).filter_map(CheckedPart::statement).collect();
    record::add(&mut report, &subject.statement, evidence.payload, &logged);
    let earlier: Vec<_> = chain.iter().filter_map(CheckedPart::statement).collect();
    let admitted = match (own, policy.statement(), trust.statement()) {
        (Some(control), _, _) => subject.control_check(control, evidence),
        (None, Some(policy), Some(trust)) => Admission {
            subject: &subject.statement,
            bundle: &bundle,
            policy,
            trust,
            earlier: &earlier,
            log: subject.log(),
            receipt_time: subject.time(),
            own_trust: evidence.trust,
        }
        .check(&mut report.warnings),
        _ => Check::not_checked("admitted", "policy or trust cannot be read"),
    };
    let (published, note) = match SignedCheckpoint::parse(&bundle.checkpoint) {
        Ok(note) => published(&note, evidence),
        Err(e) => (Check::no("published", e.code(), e.to_string()), None),
    };
    let parts = [&policy, &trust].into_iter().chain(&chain);
    let leaves: Option<Vec<&Leaf>> =
        std::iter::once(Some(&subject)).chain(parts.map(|part| part.leaf.as_ref())).collect();
    let together = match &leaves {
        Some(leaves) => vec![one_log(leaves, note.as_ref()), covered(leaves, note.as_ref())],
        None => Vec::new(),
    };
    report.checks.extend([policy.check, trust.check]);
    report.checks.extend(chain.into_iter().map(|part| part.check));
    report.checks.push(admitted);
    report.checks.push(published);
    report.checks.extend(together);
    report.not_shown.push("that the log shows everybody the same checkpoint");
    report.not_shown.push("that no other policy or trust entry was logged between these and it");
    report.not_shown.push("that no record outside the bundle changed what the policy asked about");
    report.not_shown.push("when exactly it was registered: not after its receipt");
    report
}

/// A statement of the bundle with its receipt.
struct Leaf {
    statement: SignedStatement,
    receipt: Option<Receipt>,
    /// What its receipt proves, if a trusted key verified it.
    shown: Option<Shown>,
}

impl Leaf {
    fn new(statement: SignedStatement, evidence: &Evidence<'_>) -> Self {
        let first = attached(&statement).ok().and_then(|list| list.into_iter().next());
        let receipt = first.and_then(|bytes| Receipt::parse(bytes).ok());
        let shown = receipt.as_ref().and_then(|receipt| {
            statement::logged(receipt, &statement.canonical(), evidence, &mut Vec::new()).1
        });
        Self { statement, receipt, shown }
    }

    /// Its kind, if it is a control statement of its log.
    fn control(&self) -> Option<Control> {
        let header = self.statement.header();
        let Some(ContentType::Media(kind)) = &header.content_type else { return None };
        let is_own = self.log().is_some() && header.claims.issuer.as_deref() == self.log();
        Control::from_content_type(kind).filter(|_| is_own)
    }

    /// Control statements are admitted by the log's key, not by a policy.
    fn control_check(&self, control: Control, evidence: &Evidence<'_>) -> Check {
        let Some(receipt) = &self.receipt else {
            return Check::not_checked("admitted", "it has no receipt");
        };
        match is_control(&self.statement, control, receipt, evidence) {
            Ok(()) => Check::yes("admitted", "a control statement, signed by the log".to_owned()),
            Err((code, detail)) => Check::no("admitted", code, detail),
        }
    }

    /// The log its receipt names.
    fn log(&self) -> Option<&str> {
        self.receipt.as_ref()?.envelope().header().claims.issuer.as_deref()
    }

    /// The time of its receipt.
    fn time(&self) -> Option<UnixSeconds> {
        self.receipt.as_ref()?.envelope().header().claims.issued_at
    }

    /// Its leaf index in the receipt. The log's signature covers it only if the
    /// tree size is that of the checkpoint.
    fn index(&self) -> Option<u64> {
        match self.receipt.as_ref()?.proofs() {
            Proofs::Inclusion(proofs) => proofs.first().map(|proof| proof.index),
            _ => None,
        }
    }
}

/// The result of checking a `Part`; without a leaf it is not used.
struct CheckedPart {
    check: Check,
    leaf: Option<Leaf>,
}

impl CheckedPart {
    fn statement(&self) -> Option<&SignedStatement> {
        self.leaf.as_ref().map(|leaf| &leaf.statement)
    }
}

/// What another statement of the bundle must be.
struct Part {
    name: &'static str,
    control: Option<Control>,
    /// The index of the subject, which must be larger.
    before: Option<u64>,
}

impl Part {
    fn check(self, bytes: &[u8], evidence: &Evidence<'_>) -> CheckedPart {
        let name = self.name;
        let no =
            |code, detail: String| CheckedPart { check: Check::no(name, code, detail), leaf: None };
        let statement = match SignedStatement::parse_any_size(bytes.to_vec()) {
            Ok(statement) => statement,
            Err(e) => return no(e.code(), e.to_string()),
        };
        let leaf = Leaf::new(statement, evidence);
        let Some(receipt) = &leaf.receipt else {
            return no("receipt-missing", "it has no receipt".to_owned());
        };
        if let Some(control) = self.control
            && let Err((code, detail)) = is_control(&leaf.statement, control, receipt, evidence)
        {
            return no(code, detail);
        }
        if leaf.index().zip(self.before).is_some_and(|(index, subject)| index >= subject) {
            return no("bundle-order", "it was logged after the statement".to_owned());
        }
        let canonical = leaf.statement.canonical();
        let logged = statement::logged(receipt, &canonical, evidence, &mut Vec::new()).0;
        CheckedPart { check: Check { name, ..logged }, leaf: Some(leaf) }
    }
}

/// Checks that it is a control statement of this kind, by the log.
fn is_control(
    statement: &SignedStatement,
    control: Control,
    receipt: &Receipt,
    evidence: &Evidence<'_>,
) -> Result<(), (&'static str, String)> {
    let (log, keys) = log_keys(receipt, evidence.trust);
    let own = statement.header().claims.issuer.as_deref() == Some(log.as_str());
    let kind = ContentType::Media(control.content_type().to_owned());
    if !own || statement.header().content_type.as_ref() != Some(&kind) {
        return Err(("bundle-other-control", format!("not the {} of {log}", control.subject())));
    }
    if keys.is_empty() {
        return Ok(());
    }
    let own = TrustAnchors::default().with_issuer(&log, &keys);
    let resolved = Resolved::default();
    let context =
        AuthContext { log: Some(&log), ..AuthContext::new(&own, &resolved, evidence.now) };
    statement.issuer(&context, None).map(drop).map_err(|e| (e.code(), e.to_string()))
}

/// Whether receipts and checkpoint are of the same log.
fn one_log(leaves: &[&Leaf], published: Option<&Published>) -> Check {
    let mut names: BTreeSet<&str> =
        leaves.iter().map(|leaf| leaf.log().unwrap_or("a log that does not name itself")).collect();
    names.extend(published.map(|note| note.log.as_str()).filter(|name| *name != ANY_LOG));
    let names: Vec<&str> = names.into_iter().collect();
    match names.as_slice() {
        [name] if published.is_some() && leaves.iter().all(|leaf| leaf.shown.is_some()) => {
            Check::yes("one-log", format!("receipts and checkpoint are of {name}"))
        }
        [_] => Check::not_checked("one-log", "not every receipt and the checkpoint are trusted"),
        names => {
            let detail = format!("its parts are of several logs: {}", names.join(", "));
            Check::no("one-log", "bundle-other-log", detail)
        }
    }
}

/// Whether the checkpoint is for the tree of all receipts, so that every
/// statement is a leaf of it.
fn covered(leaves: &[&Leaf], published: Option<&Published>) -> Check {
    let Some(Published { checkpoint, .. }) = published else {
        return Check::not_checked("covered", "the checkpoint is not trusted");
    };
    let size = checkpoint.size.get();
    let Some(beyond) = leaves.iter().map(|leaf| leaf.index()).find(|i| i.is_none_or(|i| i >= size))
    else {
        return same_tree(leaves, checkpoint);
    };
    let which = beyond.map_or("nowhere".to_owned(), |index| format!("#{index}"));
    let detail = format!("the checkpoint has {size} leaves, and a statement is {which}");
    Check::no("covered", "bundle-not-covered", detail)
}

fn same_tree(leaves: &[&Leaf], checkpoint: &Checkpoint) -> Check {
    let size = checkpoint.size.get();
    let mut is_shown = true;
    for shown in leaves.iter().map(|leaf| leaf.shown.as_ref()) {
        let of = shown.and_then(|shown| Some((shown.included.root, shown.included.place?.1)));
        match of {
            Some((root, of)) if (root == checkpoint.root) != (of == size) => {
                let detail = "a receipt and the checkpoint are of two trees of one size".to_owned();
                return Check::no("covered", "bundle-other-tree", detail);
            }
            Some((root, _)) if root == checkpoint.root => {}
            _ => is_shown = false,
        }
    }
    if is_shown {
        return Check::yes(
            "covered",
            format!("all receipts are of the checkpoint's {size} leaves"),
        );
    }
    let detail = "receipts and checkpoint are of different sizes, and nothing shows that they are \
                  of one tree; fetch the bundle again"
        .to_owned();
    Check::cannot_tell("covered", "bundle-tree-not-shown", detail)
}
