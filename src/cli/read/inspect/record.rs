//! What the payload of a statement records, where its profile is known.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::cli::check::report::{ComparedView, FindingView};
use crate::envelope::SignedStatement;
use crate::profile::{self, Control, Read, Resumption, Role};
use crate::service::views::RecordView;
use crate::wire::printable::{Printable, printable};

/// The facts of a record and the findings of its reader.
#[derive(Serialize)]
struct RecordObject<'a> {
    artefact: &'static str,
    #[serde(flatten)]
    summary: RecordView,
    /// The members that only this profile has.
    #[serde(flatten)]
    fields: Map<String, Json>,
    findings: Vec<FindingView<'a>>,
}

/// What a restored or moved log was compared with before it resumed.
#[derive(Serialize)]
struct ResumptionObject {
    artefact: &'static str,
    reason: &'static str,
    time: String,
    size: u64,
    root: String,
    compared: Vec<ComparedView>,
}

/// The modes of a Capsule are those of the payload alone: a receipt counts only
/// once `verify` has checked it.
pub(super) fn object(statement: &SignedStatement) -> serde_json::Result<Option<Json>> {
    let Some(payload) = statement.payload() else { return Ok(None) };
    let read = profile::read_payload(statement.header(), payload);
    if read.get() == Some(&Control::Resumption) {
        let resumption = Resumption::read(payload).ok().map(|resumption| ResumptionObject {
            artefact: "resumption",
            reason: resumption.reason.name(),
            time: resumption.time.to_string(),
            size: resumption.size,
            root: resumption.root.to_string(),
            compared: resumption.compared.iter().map(ComparedView::from).collect(),
        });
        return resumption.map(serde_json::to_value).transpose();
    }
    if read.kind.role != Role::Record {
        return Ok(None);
    }
    record(&read).map(Some)
}

fn record(read: &Read) -> serde_json::Result<Json> {
    let fields = read.record.fields().into_iter().map(|(name, value)| (name.to_owned(), value));
    serde_json::to_value(RecordObject {
        artefact: read.profile(),
        summary: RecordView::from(&read.summary),
        fields: fields.collect(),
        findings: read.findings.iter().map(FindingView::from).collect(),
    })
}

/// `warning subject_mismatch at sub: ...`
pub(super) fn finding_line(finding: &Json) -> Option<Printable> {
    let text = |name| finding.get(name).and_then(Json::as_str);
    let at = text("at").filter(|at| !at.is_empty()).map(|at| printable!(" at {}", at));
    let at = at.unwrap_or_default();
    Some(printable!("{} {}{}: {}", text("severity")?, text("code")?, at, text("detail")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Header;
    use crate::toy;

    #[test]
    fn profile_fields_are_shown() {
        let read = toy::KIND.read(&Header::default(), b"hello!");
        let shown = record(&read).unwrap();
        assert_eq!(shown["artefact"], "toy");
        assert_eq!(shown["record_id"], "toy-hello!");
        assert_eq!(shown["letters"], 6);
        assert_eq!(shown["findings"][0]["code"], "toy-loud");
    }
}
