//! A statement with everything that shows, offline, why it is in the log.

use std::collections::BTreeSet;

use super::{Entry, Fault, Service};
use crate::log::{LeafIndex, TreeSize};
use crate::profile::Control;
use crate::store::{Error, Field, Query};
use crate::verify::Bundle;

/// Records of one chain that travel along.
const CHAIN_MAX: usize = 200;

impl Service {
    /// The bundle of an entry.
    pub fn bundle(&self, entry: &Entry) -> Result<Vec<u8>, Fault> {
        let stored = self.stored(entry.index)?;
        let in_force = |control| self.control_before(control, entry.index);
        let bundle = Bundle {
            statement: self.transparent_statement(entry)?,
            policy: in_force(Control::Policy)?,
            trust: in_force(Control::Trust)?,
            chain: self.chain_before(entry)?,
            checkpoint: self.checkpoint()?,
            collateral: stored.collateral,
            time: stored.time,
        };
        Ok(bundle.encode())
    }

    fn transparent_at(&self, index: LeafIndex) -> Result<Vec<u8>, Fault> {
        let entry = self.entry_at(index)?.ok_or(Error::StatementMissing { index })?;
        self.transparent_statement(&entry)
    }

    /// The control statement of a kind that was in force at an index.
    fn control_before(&self, control: Control, index: LeafIndex) -> Result<Vec<u8>, Fault> {
        let fields = vec![
            (Field::Issuer, self.identity.issuer.clone()),
            (Field::Subject, control.subject().to_owned()),
            (Field::Profile, "control".to_owned()),
        ];
        let query = Query { fields, limit: 1, ..Query::default() };
        // A control statement is judged by the rules before it; the first
        // ones of a log come with themselves.
        let bounds = [index.get(), self.head().size.get()];
        for size in bounds.map(TreeSize::new) {
            let page = self.store.search(&query, size)?;
            if let Some(found) = page.found.first() {
                return self.transparent_at(*found);
            }
        }
        Err(Error::StatementMissing { index }.into())
    }

    /// The records that the entry builds on, oldest first: its chain of
    /// parents, its direct predecessors, what is logged of its session.
    fn chain_before(&self, entry: &Entry) -> Result<Vec<Vec<u8>>, Fault> {
        let before = TreeSize::new(entry.index.get());
        let summary = self.told(entry.index)?.summary;
        let mut chain = BTreeSet::new();
        for id in summary.predecessors.iter().take(CHAIN_MAX) {
            chain.extend(self.store.having((Field::RecordId, id), before, 1)?);
        }
        if let Some(span) = &summary.session {
            chain.extend(self.store.having((Field::Session, &span.session), before, CHAIN_MAX)?);
        }
        let mut next = summary.parent.map(|parent| (parent.record_id, before));
        for _ in 0..CHAIN_MAX {
            let Some((id, before)) = next else { break };
            let Some(found) = self.store.having((Field::RecordId, &id), before, 1)?.pop() else {
                break;
            };
            chain.insert(found);
            let parent = self.told(found)?.summary.parent;
            next = parent.map(|parent| (parent.record_id, TreeSize::new(found.get())));
        }
        chain.into_iter().map(|index| self.transparent_at(index)).collect()
    }
}
