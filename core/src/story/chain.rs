//! Which record follows which, and which closes which.

use std::collections::{BTreeMap, BTreeSet};

use super::{Anomaly, Entry, State};
use crate::profile::Severity;

/// Records that several others follow, and those others.
type Forks = Vec<(u64, Vec<u64>)>;

/// States of all records, forks, and inconsistencies.
pub(super) fn follow(records: &[Entry]) -> (Vec<State>, Forks, Vec<Anomaly>) {
    let mut chains = Chains::new(records);
    for record in records {
        chains.add(record);
    }
    let states = records.iter().map(|record| chains.state(record)).collect();
    (states, chains.forks(), chains.anomalies)
}

struct Chains<'a> {
    /// The first record under each id.
    by_id: BTreeMap<&'a str, &'a Entry>,
    children: BTreeMap<&'a str, Vec<&'a Entry>>,
    /// The first valid `supersedes` over a record.
    closed: BTreeMap<&'a str, u64>,
    anomalies: Vec<Anomaly>,
}

impl<'a> Chains<'a> {
    fn new(records: &'a [Entry]) -> Self {
        let mut by_id = BTreeMap::new();
        for record in records {
            if let Some(id) = record.record_id() {
                by_id.entry(id.as_str()).or_insert(record);
            }
        }
        Self { by_id, children: BTreeMap::new(), closed: BTreeMap::new(), anomalies: Vec::new() }
    }

    fn add(&mut self, record: &'a Entry) {
        self.same_id(record);
        self.predecessors(record);
        let Some(parent) = &record.summary.parent else { return };
        let parent_id = parent.record_id.as_str();
        if record.record_id().is_some_and(|id| id == parent_id) {
            return self.odd(record, "chain_self_parent", "it names itself as its parent");
        }
        let Some(found) = self.by_id.get(parent_id).copied() else {
            let detail = format!("its parent {parent_id} is not among the records");
            return self.odd(record, "chain_parent_missing", &detail);
        };
        if found.index >= record.index {
            self.odd(record, "chain_parent_not_earlier", "its parent was logged after it");
            if self.is_cycle(record) {
                self.odd(record, "chain_cycle", "following parents leads back to it");
            }
            return;
        }
        self.children.entry(parent_id).or_default().push(record);
        self.close(record, found, parent_id);
    }

    fn close(&mut self, record: &Entry, parent: &Entry, parent_id: &'a str) {
        match record.supersedes(parent) {
            Ok(false) => {}
            Err(why) => {
                let detail = format!("it closes nothing: {why}");
                self.note(record, "supersedes_not_authorised", Severity::Warning, detail);
            }
            Ok(true) => match self.closed.get(parent_id) {
                None => {
                    self.closed.insert(parent_id, record.index);
                }
                Some(by) => {
                    let detail = format!("#{by} superseded {parent_id} earlier; that one counts");
                    self.note(record, "concurrent_supersedes", Severity::Info, detail);
                }
            },
        }
    }

    /// Causes come before effects, in the log as in the world.
    fn predecessors(&mut self, record: &'a Entry) {
        for id in &record.summary.predecessors {
            match self.by_id.get(id.as_str()).copied() {
                None => {
                    let detail = format!("its predecessor {id} is not among the records");
                    self.odd(record, "predecessor_missing", &detail);
                }
                Some(found) if found.index >= record.index => {
                    let detail = format!("its predecessor {id} was logged after it");
                    self.odd(record, "predecessor_not_earlier", &detail);
                }
                Some(_) => self.children.entry(id.as_str()).or_default().push(record),
            }
        }
    }

    /// Two records with one id must agree.
    fn same_id(&mut self, record: &Entry) {
        let Some(first) = record.record_id().and_then(|id| self.by_id.get(id.as_str()).copied())
        else {
            return;
        };
        if first.index != record.index && first.summary.parent != record.summary.parent {
            let detail = format!("#{} has the same record id and another chain", first.index);
            self.odd(record, "capsule_id_equivocation", &detail);
        }
        if first.index != record.index && first.summary.content != record.summary.content {
            let detail = format!("#{} has the same name and says something else", first.index);
            self.odd(record, "record_id_equivocation", &detail);
        }
    }

    fn is_cycle(&self, record: &Entry) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = record.summary.parent.as_ref().map(|parent| parent.record_id.as_str());
        while let Some(id) = next {
            if record.record_id().is_some_and(|own| own == id) {
                return true;
            }
            if !seen.insert(id) {
                return false;
            }
            let parent = self.by_id.get(id).and_then(|entry| entry.summary.parent.as_ref());
            next = parent.map(|parent| parent.record_id.as_str());
        }
        false
    }

    fn state(&self, record: &Entry) -> State {
        if record.summary.is_concealed {
            return State::Concealed;
        }
        if !record.summary.is_open {
            return State::Final;
        }
        let closed = record.record_id().and_then(|id| self.closed.get(id.as_str()));
        closed.map_or(State::Open, |by| State::Closed { by: *by })
    }

    fn forks(&self) -> Forks {
        let several = self.children.iter().filter(|(_, children)| children.len() > 1);
        let fork = |(id, children): (&&str, &Vec<&Entry>)| {
            let parent = self.by_id.get(*id)?;
            Some((parent.index, children.iter().map(|child| child.index).collect()))
        };
        let mut forks: Forks = several.filter_map(fork).collect();
        forks.sort();
        forks
    }

    fn odd(&mut self, record: &Entry, code: &'static str, detail: &str) {
        self.note(record, code, Severity::Error, detail.to_owned());
    }

    fn note(&mut self, record: &Entry, code: &'static str, severity: Severity, detail: String) {
        self.anomalies.push(Anomaly { index: record.index, code, severity, detail });
    }
}
