//! What the payload of a statement records, where its profile is known.

use serde_json::{Map, Value as Json, json};

use crate::cli::check::report::finding;
use crate::envelope::SignedStatement;
use crate::profile::{self, Compared, Control, Record, Resumption};
use crate::service::views::RecordView;
use crate::wire::printable::{Printable, printable};

/// The facts of a record, and what was noticed while reading it. The modes
/// of a Capsule are those of the payload alone: a receipt counts only once
/// `verify` has checked it.
pub(super) fn object(statement: &SignedStatement) -> Option<Json> {
    let read = profile::read_payload(statement.header(), statement.payload()?);
    if read.record == Record::Control(Control::Resumption) {
        return Resumption::read(statement.payload()?).ok().map(|said| resumption(&said));
    }
    if matches!(read.record, Record::Control(_) | Record::Hash(_) | Record::Opaque) {
        return None;
    }
    let mut fields = Map::new();
    fields.insert("artefact".to_owned(), read.record.profile().into());
    if let Ok(Json::Object(summary)) = serde_json::to_value(RecordView::from(&read.summary)) {
        fields.extend(summary);
    }
    if let Record::Capsule(capsule) = &read.record {
        fields.extend(capsule.class1().derived.map(|derived| {
            let modes = json!({
                "attestation_mode": derived.attestation.name(),
                "effect_mode": derived.effect.name(),
                "ledger_mode": derived.ledger.name(),
            });
            ("derived".to_owned(), modes)
        }));
    }
    if let Record::Outcome(outcome) = &read.record {
        fields.extend(outcome.subject().map(|sub| ("about".to_owned(), sub.into())));
    }
    if let Record::Pacr(record) = &read.record {
        fields.insert("intervention".to_owned(), record.intervention().into());
        fields.extend(record.sim_real_corr().map(|n| ("sim_real_corr".to_owned(), n.into())));
        fields.insert("verdict_by_draft".to_owned(), record.verdict().name().into());
    }
    let findings: Vec<Json> = read.findings.iter().map(finding).collect();
    fields.insert("findings".to_owned(), findings.into());
    Some(fields.into())
}

/// By what a restored or moved log was shown to be the newest.
fn resumption(said: &Resumption) -> Json {
    let head = |one: &Compared| {
        json!({ "source": one.source.name(), "size": one.size, "root": one.root.to_string(),
            "address": one.address })
    };
    json!({
        "artefact": "resumption", "reason": said.reason.name(), "time": said.time.to_string(),
        "size": said.size, "root": said.root.to_string(),
        "compared": said.compared.iter().map(head).collect::<Vec<_>>(),
    })
}

/// `warning subject_mismatch at sub: ...`
pub(super) fn finding_line(finding: &Json) -> Option<Printable> {
    let text = |name| finding.get(name).and_then(Json::as_str);
    let at = text("at").filter(|at| !at.is_empty()).map(|at| printable!(" at {}", at));
    let at = at.unwrap_or_default();
    Some(printable!("{} {}{}: {}", text("severity")?, text("code")?, at, text("detail")?))
}
