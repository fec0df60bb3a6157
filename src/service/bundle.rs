//! A statement with everything that shows, offline, why it is in the log.

use super::{Entry, Fault, Service};
use crate::envelope::SignedStatement;
use crate::log::{LeafIndex, TreeSize};
use crate::profile::{self, Control};
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

    /// The records that the entry's chain leads back to, oldest first.
    fn chain_before(&self, entry: &Entry) -> Result<Vec<Vec<u8>>, Fault> {
        let mut chain = Vec::new();
        let mut at = entry.index;
        while chain.len() < CHAIN_MAX {
            let canonical = self.stored(at)?.canonical;
            let damaged = |_| Error::StatementDamaged { index: at };
            let statement = SignedStatement::parse_any_size(canonical).map_err(damaged)?;
            let payload = statement.payload().unwrap_or_default();
            let summary = profile::read_payload(statement.header(), payload).summary;
            let Some(parent) = summary.parent else { break };
            let before = TreeSize::new(at.get());
            let value = (Field::RecordId, parent.record_id.as_str());
            let Some(found) = self.store.having(value, before, 1)?.first().copied() else { break };
            chain.push(self.transparent_at(found)?);
            at = found;
        }
        chain.reverse();
        Ok(chain)
    }
}
