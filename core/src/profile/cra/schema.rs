//! The JSON Schemas of CARP and Atlas, written from the text of CRA 1.0.
//!
//! In: a document. Out: every violation at its JSON pointer. Objects are open
//! unless the text closes them: unknown members are allowed.

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::grammar::{Stamp, is_semver, is_semver_range, uuid_version};
use super::notes::Notes;
use crate::wire::json::{Json, pointer_token};

/// Compiles one of our schemas. A test checks that all compile.
pub(super) fn compile(text: &str) -> Option<Validator> {
    let schema: Value = serde_json::from_str(text).ok()?;
    let mut options = jsonschema::options().should_validate_formats(true);
    options = options.with_format("lowercase-uuid", |text: &str| uuid_version(text).is_some());
    options = options.with_format("semver", is_semver);
    options = options.with_format("semver-range", is_semver_range);
    options = options.with_format("time-with-zone", |text: &str| Stamp::parse(text).is_some());
    options.build(&schema).ok()
}

/// Notes every violation under one code.
pub(super) fn check(
    validator: Option<&Validator>,
    value: &Value,
    code: &'static str,
    notes: &mut Notes,
) {
    let Some(validator) = validator else {
        notes.error(code, "", "its schema does not compile");
        return;
    };
    for error in validator.iter_errors(value) {
        let mut at = error.instance_path().to_string();
        let detail = match error.kind() {
            ValidationErrorKind::Required { property } => {
                at += &pointer_token(property.as_str().unwrap_or_default());
                "missing".to_owned()
            }
            ValidationErrorKind::Format { format } => format!("not a {format}"),
            ValidationErrorKind::Pattern { pattern } => format!("does not match {pattern}"),
            _ => shortened(error.masked().to_string()),
        };
        notes.error(code, at, detail);
    }
}

/// Messages may list all allowed values.
fn shortened(text: String) -> String {
    if text.chars().count() <= 200 { text } else { text.chars().take(200).chain(['…']).collect() }
}

/// The same value for the schema validator. A number beyond its types becomes
/// null, which is wrong wherever the schema wants a number.
pub(super) fn to_serde(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(token) => serde_json::from_str(token).unwrap_or(Value::Null),
        Json::Text(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(to_serde).collect()),
        Json::Object(members) => {
            Value::Object(members.iter().map(|(name, v)| (name.clone(), to_serde(v))).collect())
        }
    }
}
