//! A constraint manifest: TOML, or the same as JSON.
//!
//! ```toml
//! manifest = "orders"
//! [[constraint]]
//! id = "com.example.margin_floor"
//! evidence_schema = { type = "object", required = ["margin_bp"] }
//! [[constraint.threshold]]
//! at = "/margin_bp"
//! op = ">="
//! value = 250
//! ```

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use super::decimal::Decimal;
use crate::wire::json::{self, Json};
use crate::wire::text::toml_mistake;

/// A manifest that parses is one that can be applied.
#[derive(Debug)]
pub struct Manifest {
    name: String,
    constraints: Vec<Constraint>,
}

#[derive(Debug)]
pub(super) struct Constraint {
    id: String,
    schema: Option<jsonschema::Validator>,
    pub(super) thresholds: Vec<Threshold>,
}

#[derive(Debug)]
pub(super) struct Threshold {
    /// A JSON pointer into the evidence.
    pub(super) at: String,
    op: Op,
    value: Decimal,
    spelled: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Op {
    #[serde(rename = "==")]
    Equal,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = ">=")]
    GreaterOrEqual,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    LessOrEqual,
    #[serde(rename = "!=")]
    NotEqual,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    manifest: String,
    #[serde(default)]
    constraint: Vec<ConstraintEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstraintEntry {
    id: String,
    evidence_schema: Option<Value>,
    #[serde(default)]
    threshold: Vec<ThresholdEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThresholdEntry {
    at: String,
    op: Op,
    value: Value,
}

impl Manifest {
    /// Reads TOML, or JSON when the text starts with `{`.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let (file, document): (File, Json) = if text.trim_start().starts_with('{') {
            let document = Json::read(text.as_bytes()).map_err(ManifestError::Json)?;
            let file = serde_json::from_str(text);
            (file.map_err(|e| ManifestError::Shape { why: e.to_string() })?, document)
        } else {
            let file = toml::from_str(text);
            let file = file.map_err(|e| ManifestError::Shape { why: toml_mistake(&e, text) })?;
            (file, Json::Null)
        };
        let mut constraints: Vec<Constraint> = Vec::with_capacity(file.constraint.len());
        for (place, entry) in file.constraint.into_iter().enumerate() {
            if constraints.iter().any(|c| c.id == entry.id) {
                return Err(ManifestError::Repeated { id: entry.id });
            }
            let written = document.pointer(&format!("/constraint/{place}/threshold"));
            constraints.push(constraint(entry, written.and_then(Json::array))?);
        }
        Ok(Self { name: file.manifest, constraints })
    }

    /// What the manifest calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn constraint(&self, id: &str) -> Option<&Constraint> {
        self.constraints.iter().find(|c| c.id == id)
    }
}

/// `written` are the thresholds as our JSON reader has them: it keeps every digit
/// of a number, where serde makes a double.
fn constraint(
    entry: ConstraintEntry,
    written: Option<&[Json]>,
) -> Result<Constraint, ManifestError> {
    let id = entry.id;
    let schema = entry.evidence_schema.map(|schema| {
        jsonschema::validator_for(&schema)
            .map_err(|e| ManifestError::Schema { id: id.clone(), why: e.to_string() })
    });
    let thresholds = entry.threshold.into_iter().enumerate().map(|(place, entry)| {
        let token = written.and_then(|all| all.get(place)?.get("value"));
        let spelled = match (token, &entry.value) {
            (Some(Json::Number(token)), _) => token.clone(),
            (_, Value::String(text)) => text.clone(),
            (_, other) => other.to_string(),
        };
        let value = Decimal::parse(&spelled)
            .ok_or_else(|| ManifestError::Threshold { id: id.clone(), value: spelled.clone() })?;
        Ok(Threshold { at: entry.at, op: entry.op, value, spelled })
    });
    let thresholds = thresholds.collect::<Result<_, _>>()?;
    Ok(Constraint { schema: schema.transpose()?, thresholds, id })
}

impl Constraint {
    /// Where the evidence first breaks the schema, and why.
    pub(super) fn schema_violation(&self, evidence: &Json) -> Option<(String, String)> {
        let evidence = to_serde(evidence);
        let error = self.schema.as_ref()?.iter_errors(&evidence).next()?;
        Some((error.instance_path().to_string(), error.to_string()))
    }
}

impl Threshold {
    /// Whether the evidence is on the right side; none when there is no
    /// number at the pointer.
    pub(super) fn holds(&self, evidence: &Json) -> Option<bool> {
        let found = Decimal::of(evidence.pointer(&self.at)?)?;
        Some(match self.op {
            Op::Equal => found == self.value,
            Op::Greater => found > self.value,
            Op::GreaterOrEqual => found >= self.value,
            Op::Less => found < self.value,
            Op::LessOrEqual => found <= self.value,
            Op::NotEqual => found != self.value,
        })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.op {
            Op::Equal => "==",
            Op::Greater => ">",
            Op::GreaterOrEqual => ">=",
            Op::Less => "<",
            Op::LessOrEqual => "<=",
            Op::NotEqual => "!=",
        };
        write!(f, "{} {op} {}", self.at, self.spelled)
    }
}

/// Evidence has a digest, so its numbers are safe integers.
fn to_serde(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(_) => value.int().map_or(Value::Null, Value::from),
        Json::Text(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(to_serde).collect()),
        Json::Object(members) => {
            Value::Object(members.iter().map(|(name, v)| (name.clone(), to_serde(v))).collect())
        }
    }
}

/// Why a manifest cannot be applied.
#[derive(Debug, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "manifest-")]
pub enum ManifestError {
    #[error("not strict JSON")]
    Json(#[source] json::Error),
    #[error("constraint {id:?} is defined twice")]
    #[strum(serialize = "constraint-repeated")]
    Repeated { id: String },
    /// An evidence schema is not a valid JSON Schema.
    #[error("the evidence schema of {id:?}: {why}")]
    Schema { id: String, why: String },
    /// It does not have the members of a manifest.
    #[error("{why}")]
    Shape { why: String },
    /// A threshold is neither an integer nor a decimal in a string.
    #[error("threshold {value} of {id:?} is not an exact decimal")]
    Threshold { id: String, value: String },
}

impl ManifestError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
