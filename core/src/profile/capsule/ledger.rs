//! Check 6 over a whole ledger, in ledger order (5.4.4).

use std::collections::{BTreeMap, BTreeSet};

use super::{CapsuleRecord, Class1, Known};
use crate::profile::finding::{Finding, Severity};
use crate::wire::json::Json;

/// Judges every Capsule of a ledger with the others as its store. A later
/// `supersedes` over the same parent is a finding; so is, beyond the
/// reference, a parent that does not come earlier and one id under two
/// chains. Only the reference's own findings change `ok`.
pub fn class1_ledger(ledger: &[CapsuleRecord]) -> Vec<Class1> {
    let carried = |record: &CapsuleRecord| {
        record.payload().get("capsule_id").and_then(Json::text).map(str::to_owned)
    };
    let ids: BTreeSet<String> = ledger.iter().filter_map(carried).collect();
    let known = Known { parents: Some(&|id| ids.contains(id)), ..Known::NOTHING };
    let mut told = Told::default();
    let mut results = Vec::with_capacity(ledger.len());
    for record in ledger {
        let mut result = record.class1_knowing(&known);
        result.findings.extend(told.chain(record));
        told.earlier.extend(carried(record));
        results.push(result);
    }
    results
}

/// What the ledger has told so far.
#[derive(Default)]
struct Told<'a> {
    earlier: BTreeSet<String>,
    superseded: BTreeSet<&'a str>,
    chains: BTreeMap<String, Option<&'a Json>>,
}

impl<'a> Told<'a> {
    fn chain(&mut self, record: &'a CapsuleRecord) -> Vec<Finding> {
        let mut findings = Vec::new();
        let at = "/chain/parent_capsule_id";
        let chain = record.payload().get("chain");
        if let Some(id) = record.capsule_id() {
            let first = *self.chains.entry(id).or_insert(chain);
            if first != chain {
                let detail = "an earlier Capsule has the same id and another chain";
                let code = "capsule_id_equivocation";
                findings.push(Finding::new(Severity::Error, code, "/chain", detail));
            }
        }
        let Some(parent) = record.text("chain", "parent_capsule_id") else { return findings };
        if record.text("chain", "relation") == Some("supersedes") && !self.superseded.insert(parent)
        {
            let detail = format!("{parent} was superseded earlier; that one counts");
            let told = (at, detail);
            findings.push(Finding::of_check(6, Severity::Info, "concurrent_supersedes", told));
        }
        if !self.earlier.contains(parent) {
            let detail = "the parent does not come earlier in the ledger";
            let code = "chain_parent_not_earlier";
            findings.push(Finding::new(Severity::Error, code, at, detail));
        }
        findings
    }
}
