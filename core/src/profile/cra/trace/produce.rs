//! Events of our own making: stricter than what is taken from others.

use super::event::Event;
use super::hash::Form;
use super::history::{History, Shape};
use crate::profile::finding::{Finding, Severity};
use crate::wire::json::Json;

impl Event {
    /// Computes its hash and writes it as a line, without the line's end.
    /// What a reader would warn about is not written: ids of version 7, six
    /// digits of a second and `Z`, whole numbers only.
    pub fn seal(&mut self) -> Result<String, Vec<Finding>> {
        let form = Form::CraTraceV1;
        if let Some(digest) = form.digest(self) {
            self.hash = digest.to_string();
        }
        let text = |text: &str| Json::from(text);
        let object = Json::object([
            ("trace_version", text("1.0")),
            ("event_id", text(&self.event_id)),
            ("trace_id", text(&self.trace_id)),
            ("span_id", text(&self.span_id)),
            ("parent_span_id", self.parent_span_id.as_deref().map_or(Json::Null, text)),
            ("session_id", text(&self.session_id)),
            ("sequence", Json::Number(self.sequence.to_string())),
            ("timestamp", text(&self.timestamp)),
            ("event_type", text(&self.event_type)),
            ("payload", self.payload.clone()),
            ("event_hash", text(&self.hash)),
            ("previous_event_hash", text(&self.previous)),
        ]);
        let line = form.payload(&object).unwrap_or_default();
        let (_, notes) = History::collect(line.as_bytes(), Shape::Event, None);
        let mut findings = notes.into_findings();
        findings.retain(|f| f.severity > Severity::Info || f.code == "trace-uuid-not-v7");
        if findings.is_empty() { Ok(line) } else { Err(findings) }
    }
}
