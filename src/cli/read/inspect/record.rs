//! What the payload of a statement records, where its profile is known.

use serde_json::{Map, Value as Json, json};

use crate::cli::check::report::finding;
use crate::envelope::SignedStatement;
use crate::profile::{self, Compared, Control, Read, Resumption, Role};
use crate::service::views::RecordView;
use crate::wire::printable::{Printable, printable};

/// The facts of a record and the findings of its reader. The modes of a Capsule
/// are those of the payload alone: a receipt counts only once `verify` has
/// checked it.
pub(super) fn object(statement: &SignedStatement) -> Option<Json> {
    let read = profile::read_payload(statement.header(), statement.payload()?);
    if read.get() == Some(&Control::Resumption) {
        return Resumption::read(statement.payload()?).ok().map(|said| resumption(&said));
    }
    fields(&read)
}

fn fields(read: &Read) -> Option<Json> {
    if read.kind.role != Role::Record {
        return None;
    }
    let mut fields = Map::new();
    fields.insert("artefact".to_owned(), read.profile().into());
    if let Ok(Json::Object(summary)) = serde_json::to_value(RecordView::from(&read.summary)) {
        fields.extend(summary);
    }
    fields.extend(read.record.fields().into_iter().map(|(name, value)| (name.to_owned(), value)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Header;
    use crate::toy;

    #[test]
    fn fields_of_any_kind_are_shown() {
        let read = toy::KIND.read(&Header::default(), b"hello!");
        let shown = fields(&read).unwrap();
        assert_eq!(shown["artefact"], "toy");
        assert_eq!(shown["record_id"], "toy-hello!");
        assert_eq!(shown["letters"], 6);
        assert_eq!(shown["findings"][0]["code"], "toy-loud");
    }
}
