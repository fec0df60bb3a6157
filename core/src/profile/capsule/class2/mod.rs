//! Class 2 verification (8.2): constraint records against the producer's
//! manifest and the private evidence they bind.
//!
//! In: a Capsule, a manifest, evidence files. Out: findings of their own;
//! Class 1 stays as it was.

mod decimal;
mod manifest;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::CapsuleRecord;
use super::payload::Payload;
use crate::profile::finding::{Finding, Severity};
use crate::wire::jcs::Suite;
use crate::wire::json::Json;

pub use manifest::{Manifest, ManifestError};

use manifest::Constraint;

/// A file of evidence.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Its name without folder and extension; a constraint id or anything.
    pub name: String,
    /// What it holds: JSON.
    pub bytes: Vec<u8>,
}

/// What Class 2 has to say.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Class2 {
    /// Constraint records whose evidence was found and judged.
    pub checked: usize,
    /// What is wrong, by constraint record.
    pub findings: Vec<Finding>,
}

/// Checks every constraint record that binds evidence.
pub fn class2(capsule: &CapsuleRecord, manifest: &Manifest, evidence: &[Evidence]) -> Class2 {
    let mut result = Class2::default();
    let evidence = Folder::read(evidence, &mut result.findings);
    let payload = Payload(capsule.payload());
    for (i, record) in payload.constraints().iter().enumerate() {
        let at = format!("/constraints/{i}");
        let text = |name| record.get(name).and_then(Json::text);
        let Some(id) = text("id") else { continue };
        let Some(constraint) = manifest.constraint(id) else {
            let detail = format!("the manifest does not know {id:?}");
            result.push(Severity::Warning, "manifest_constraint_unknown", &at, detail);
            continue;
        };
        let Some(digest) = text("evidence_digest") else {
            if !constraint.thresholds.is_empty() {
                let detail = format!("{id:?} has thresholds, but the record binds no evidence");
                result.push(Severity::Warning, "evidence_unbound", &at, detail);
            }
            continue;
        };
        match evidence.find(digest, id) {
            Found::Bound(value) => {
                result.checked += 1;
                result.judge(constraint, value, text("result"), &at);
            }
            Found::Other => {
                let detail = format!("the evidence given for {id:?} has another digest");
                result.push(Severity::Error, "evidence_digest_mismatch", &at, detail);
            }
            Found::Nothing => {
                let detail = format!("no evidence given for {id:?} has the digest {digest}");
                result.push(Severity::Warning, "evidence_missing", &at, detail);
            }
        }
    }
    result
}

impl Class2 {
    fn push(&mut self, severity: Severity, code: &'static str, at: &str, detail: String) {
        self.findings.push(Finding::new(severity, code, at, detail));
    }

    /// Schema first, then whether the thresholds were applied as stated: a
    /// pass means that all of them hold, a fail that one does not.
    fn judge(&mut self, constraint: &Constraint, value: &Json, said: Option<&str>, at: &str) {
        let error = Severity::Error;
        if let Some((pointer, why)) = constraint.schema_violation(value) {
            let detail = format!("the evidence breaks the manifest's schema at {pointer:?}: {why}");
            self.push(error, "evidence_schema_violation", at, detail);
        }
        let mut failed = None;
        for threshold in &constraint.thresholds {
            match threshold.holds(value) {
                None => {
                    let detail = format!("the evidence has no number at {:?}", threshold.at);
                    self.push(error, "threshold_uncheckable", at, detail);
                    return;
                }
                Some(true) => {}
                Some(false) => failed = failed.or(Some(threshold)),
            }
        }
        let detail = match (said, failed) {
            (Some("pass"), Some(threshold)) => format!("passed, yet {threshold} does not hold"),
            (Some("fail"), None) if !constraint.thresholds.is_empty() => {
                "failed, yet every threshold holds".to_owned()
            }
            _ => return,
        };
        self.push(error, "threshold_not_applied", at, detail);
    }
}

/// Evidence by digest and by name.
struct Folder {
    by_digest: BTreeMap<String, Json>,
    names: Vec<String>,
}

enum Found<'a> {
    Bound(&'a Json),
    Other,
    Nothing,
}

impl Folder {
    fn read(evidence: &[Evidence], findings: &mut Vec<Finding>) -> Self {
        let mut folder = Self { by_digest: BTreeMap::new(), names: Vec::new() };
        for file in evidence {
            let read = Json::read(&file.bytes).map_err(|e| e.to_string()).and_then(|value| {
                let digest = Suite::JcsN.digest(&value).map_err(|e| e.to_string())?;
                Ok((digest.hex(), value))
            });
            match read {
                Ok((digest, value)) => {
                    folder.by_digest.insert(digest, value);
                }
                Err(why) => {
                    let code = "evidence_unreadable";
                    findings.push(Finding::new(Severity::Warning, code, &file.name, why));
                }
            }
            folder.names.push(file.name.clone());
        }
        folder
    }

    fn find(&self, digest: &str, id: &str) -> Found<'_> {
        match self.by_digest.get(digest) {
            Some(value) => Found::Bound(value),
            None if self.names.iter().any(|name| name == id) => Found::Other,
            None => Found::Nothing,
        }
    }
}
