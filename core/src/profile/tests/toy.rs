//! A kind of record that only tests know. This file and one line of the table
//! are all it takes.

use serde_json::Value;

use crate::envelope::RulesVersion;
use crate::profile::{
    Codes, Finding, PayloadForm, Record, RecordKind, Role, Severity, Size, Summary,
};

pub(crate) const CONTENT_TYPE: &str = "application/vnd.example.toy";

pub(crate) static KIND: RecordKind = RecordKind {
    name: "toy",
    role: Role::Record,
    content_types: &[CONTENT_TYPE],
    read: |_, payload| {
        let text = String::from_utf8_lossy(payload).into_owned();
        let mut findings = Vec::new();
        if text.is_empty() {
            findings.push(Finding::new(Severity::Error, "toy-empty", "", "nothing is said"));
        }
        if text.contains('!') {
            findings.push(Finding::new(Severity::Warning, "toy-loud", "", "it shouts"));
        }
        (Box::new(Toy { text }), findings)
    },
    codes: &[Codes::new(&["toy-empty"]), Codes { since: RulesVersion::V2, list: &["toy-loud"] }],
    later_codes: &[],
    page: "",
};

#[derive(Debug)]
pub(crate) struct Toy {
    pub(crate) text: String,
}

impl Record for Toy {
    fn summary(&self) -> Summary {
        Summary {
            record_id: Some(format!("toy-{}", self.text)),
            operator: Some("acme".to_owned()),
            payload_form: Some(PayloadForm::Clear),
            ok: Some(!self.text.is_empty()),
            ..Summary::default()
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("letters", self.text.chars().count().into())]
    }

    fn sizes(&self) -> Vec<Size> {
        vec![Size { what: "letters", setting: "toy.letters", count: self.text.chars().count() }]
    }
}
