//! A statement with everything that shows, offline, why it is in the log.

use std::collections::BTreeSet;

use super::{Entry, Fault, Service};
use crate::envelope::SignedStatement;
use crate::log::{LeafIndex, TreeSize};
use crate::profile::{self, Control, Span, Summary};
use crate::store::{Error, Field, Query};
use crate::verify::Bundle;

/// Records of one chain that travel along.
const CHAIN_MAX: usize = 200;
/// Statements of a session among which the one before is looked for.
const SESSION_MAX: usize = 64;

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
        let found = self.in_force_at(control, index)?;
        self.transparent_at(found.ok_or(Error::StatementMissing { index })?)
    }

    /// Where the control statement stands that was in force at an index.
    pub(super) fn in_force_at(
        &self,
        control: Control,
        index: LeafIndex,
    ) -> Result<Option<LeafIndex>, Fault> {
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
                return Ok(Some(*found));
            }
        }
        Ok(None)
    }

    /// The records that the entry's chain leads back to, those it names as its
    /// predecessors and the one its session goes on from, oldest first.
    fn chain_before(&self, entry: &Entry) -> Result<Vec<Vec<u8>>, Fault> {
        let mut found = BTreeSet::new();
        let mut at = entry.index;
        while found.len() < CHAIN_MAX {
            let Some(parent) = self.summary_at(at)?.parent else { break };
            let Some(index) = self.first_before(&parent.record_id, at)? else { break };
            found.insert(index);
            at = index;
        }
        let own = self.summary_at(entry.index)?;
        for id in own.predecessors.iter().take(CHAIN_MAX) {
            found.extend(self.first_before(id, entry.index)?);
        }
        if let Some(span) = &own.session {
            // Its issuer's own; and whoever's, which is what the first
            // version of the rules looked at.
            let issuer = self.told(entry.index)?.issuer;
            found.extend(self.session_before(span, Some(issuer), entry.index)?);
            found.extend(self.session_before(span, None, entry.index)?);
        }
        found.into_iter().map(|index| self.transparent_at(index)).collect()
    }

    fn summary_at(&self, index: LeafIndex) -> Result<Summary, Fault> {
        let canonical = self.stored(index)?.canonical;
        let damaged = |_| Error::StatementDamaged { index };
        let statement = SignedStatement::parse_any_size(canonical).map_err(damaged)?;
        let payload = statement.payload().unwrap_or_default();
        Ok(profile::read_payload(statement.header(), payload).summary)
    }

    /// The first statement with a record id, if it stands before an index.
    fn first_before(&self, id: &str, index: LeafIndex) -> Result<Option<LeafIndex>, Fault> {
        let bound = TreeSize::new(index.get());
        Ok(self.store.having((Field::RecordId, id), bound, 1)?.first().copied())
    }

    /// The statement that a batch goes on from or repeats; of a batch that
    /// does neither, the last one of its session.
    fn session_before(
        &self,
        span: &Span,
        of: Option<String>,
        index: LeafIndex,
    ) -> Result<Option<LeafIndex>, Fault> {
        let mut fields = vec![(Field::Session, span.session.clone())];
        fields.extend(of.map(|issuer| (Field::Issuer, issuer)));
        let query = Query { fields, limit: SESSION_MAX, ..Query::default() };
        let found = self.store.search(&query, TreeSize::new(index.get()))?.found;
        for index in &found {
            let ends = self.summary_at(*index)?.session.map(|earlier| earlier.head);
            if ends.is_some_and(|end| end == span.previous || end == span.head) {
                return Ok(Some(*index));
            }
        }
        Ok(found.first().copied())
    }
}
