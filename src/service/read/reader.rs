//! Reads with a budget.
//!
//! Everything that searches a log or follows links in it is a method of
//! `Reader`, and a reader has a budget. Its fields are private to this file, so
//! other code reaches the store only through the methods here, which charge the
//! budget: a walk without a budget does not compile.

use std::sync::Arc;

use crate::envelope::{SignedStatement, StatementId};
use crate::key::PublicKey;
use crate::log::{LeafIndex, TreeSize};
use crate::service::{EntryStatus, Fault, Service, Snapshot, history};
use crate::store::{Error, Field, Page, Query, Stored, Term};
use crate::wire::budget::{Budget, BudgetExhausted};

/// A reader of the log as its last signed head covers it.
pub struct Reader<'a> {
    service: &'a Service,
    /// The head that the whole answer is of.
    snapshot: Arc<Snapshot>,
    budget: Budget,
    is_cut: bool,
}

/// Why a read ended early.
#[derive(Debug)]
pub(in crate::service) enum ReadError {
    /// The budget is spent. What was found so far is still an answer.
    BudgetExhausted(BudgetExhausted),
    /// There is no answer.
    Fault(Fault),
}

impl From<BudgetExhausted> for ReadError {
    fn from(spent: BudgetExhausted) -> Self {
        Self::BudgetExhausted(spent)
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::Fault(error.into())
    }
}

/// A statement as it is stored, and parsed.
pub(in crate::service) struct LoggedStatement {
    pub(in crate::service) index: LeafIndex,
    pub(in crate::service) stored: Stored,
    pub(in crate::service) statement: SignedStatement,
}

impl Service {
    /// A reader for one answer, which may cost as much as the budget allows.
    pub fn reader(&self, budget: Budget) -> Reader<'_> {
        Reader { service: self, snapshot: self.snapshot(), budget, is_cut: false }
    }
}

impl Reader<'_> {
    /// The size of the tree that is read.
    pub fn size(&self) -> TreeSize {
        self.snapshot.signed.head().size
    }

    /// Whether the answer leaves something out because of its cost.
    pub fn is_cut(&self) -> bool {
        self.is_cut || self.budget.exhausted().is_some()
    }

    /// What ran out, if anything did.
    pub fn exhausted(&self) -> Option<BudgetExhausted> {
        self.budget.exhausted()
    }

    /// Records that the answer leaves something out.
    pub(in crate::service) fn mark_cut(&mut self) {
        self.is_cut = true;
    }

    /// A reader of the same head with the full budget again, for the second
    /// part of an answer.
    pub(in crate::service) fn with_full_budget(&self) -> Self {
        let (snapshot, is_cut) = (self.snapshot.clone(), self.is_cut);
        Self { service: self.service, snapshot, budget: self.budget.renewed(), is_cut }
    }

    /// The log's own name.
    pub(in crate::service) fn issuer(&self) -> &str {
        &self.service.identity.issuer
    }

    /// Its public keys.
    pub(in crate::service) fn keys(&self) -> Arc<Vec<PublicKey>> {
        self.service.keys()
    }

    /// A checkpoint of the head that is read.
    pub(in crate::service) fn checkpoint(&self) -> Result<String, Fault> {
        self.service.checkpoint_of(self.snapshot.signed.head())
    }

    /// The budget, for a walk in another module that charges it itself.
    pub(in crate::service) fn budget_mut(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Charges for links that are followed.
    pub(in crate::service) fn charge_edges(&mut self, count: usize) -> Result<(), BudgetExhausted> {
        self.budget.edges(count)
    }

    /// Charges for bytes of an answer.
    pub(in crate::service) fn charge_bytes(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        self.budget.write(bytes)
    }

    /// A page of statements, newest first.
    pub(in crate::service) fn page(&mut self, query: &Query) -> Result<Page, Fault> {
        Ok(self.service.store.search(query, self.size(), &mut self.budget)?)
    }

    /// The same among the first `size`.
    pub(in crate::service) fn page_before(
        &mut self,
        query: &Query,
        size: TreeSize,
    ) -> Result<Page, Fault> {
        Ok(self.service.store.search(query, size, &mut self.budget)?)
    }

    /// The first statements with a value in a field, at most `limit`.
    pub(in crate::service) fn indices_with(
        &mut self,
        field: Field,
        value: &str,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, ReadError> {
        let (size, budget) = (self.size(), &mut self.budget);
        Ok(self.service.store.having(field, value, size, limit, budget)??)
    }

    /// The first statement with a value in a field before an index.
    pub(in crate::service) fn first_with(
        &mut self,
        field: Field,
        value: &str,
        before: LeafIndex,
    ) -> Result<Option<LeafIndex>, ReadError> {
        let (size, budget) = (TreeSize::new(before.get()), &mut self.budget);
        Ok(self.service.store.having(field, value, size, 1, budget)??.first().copied())
    }

    /// The first statement with a term among the first `size`.
    pub(in crate::service) fn first(
        &mut self,
        term: &Term,
        size: TreeSize,
    ) -> Result<Option<LeafIndex>, ReadError> {
        self.budget.edges(1)?;
        Ok(self.service.store.first(term, size)?)
    }

    /// Whether a valid `supersedes` by this operator and issuer names a
    /// record.
    pub(in crate::service) fn has_superseding(
        &mut self,
        record_id: &str,
        operator: &str,
        issuer: &str,
    ) -> Result<bool, ReadError> {
        let (by, size) = ((operator, issuer), self.size());
        let store = &self.service.store;
        Ok(history::is_superseded(store, record_id, by, size, &mut self.budget)??)
    }

    /// The index of the statement with this id, if it is logged.
    pub(in crate::service) fn index_of(
        &mut self,
        id: &StatementId,
    ) -> Result<Option<LeafIndex>, ReadError> {
        self.budget.edges(1)?;
        match self.service.find(id)? {
            EntryStatus::Logged(entry) if self.size().contains(entry.index) => {
                Ok(Some(entry.index))
            }
            _ => Ok(None),
        }
    }

    /// Statements whose ids begin with these hex digits, at most `limit`.
    pub(in crate::service) fn ids_with_prefix(
        &mut self,
        hex: &str,
        limit: usize,
    ) -> Result<Vec<(StatementId, LeafIndex)>, ReadError> {
        self.budget.edges(limit)?;
        Ok(self.service.store.ids_from(hex, limit)?)
    }

    /// The statement at an index.
    pub(in crate::service) fn logged(
        &mut self,
        index: LeafIndex,
    ) -> Result<LoggedStatement, ReadError> {
        self.budget.node()?;
        let stored = self.service.store.statement(index)?;
        let stored = stored.ok_or(Error::StatementMissing { index })?;
        self.budget.read(stored.canonical.len() + stored.collateral.len());
        let statement = SignedStatement::parse_any_size(stored.canonical.clone());
        let statement = statement.map_err(|_| Error::StatementDamaged { index })?;
        Ok(LoggedStatement { index, stored, statement })
    }

    /// The statement at an index with its receipt, of the head that is read.
    pub(in crate::service) fn transparent(
        &mut self,
        index: LeafIndex,
    ) -> Result<Vec<u8>, ReadError> {
        self.budget.node()?;
        let entry = self.service.entry_at(index)?.ok_or(Error::StatementMissing { index })?;
        let bytes = self.service.transparent_under(&self.snapshot, &entry)?;
        self.budget.read(bytes.len());
        Ok(bytes)
    }

    /// Reads what the answer cannot do without. Any budget covers one
    /// statement, so a budget that does not is a missing statement.
    pub(in crate::service) fn required<T>(
        &mut self,
        index: LeafIndex,
        read: impl FnOnce(&mut Self) -> Result<T, ReadError>,
    ) -> Result<T, Fault> {
        read(self).map_err(|error| match error {
            ReadError::Fault(fault) => fault,
            ReadError::BudgetExhausted(_) => Error::StatementMissing { index }.into(),
        })
    }
}
