//! Reading what a log holds, at a price.
//!
//! Everything that looks through a log or follows links in it is a method of
//! `Reader`, and a reader has a budget. Its fields are private to this file:
//! code elsewhere cannot reach the store but through the methods here, which
//! charge for what they do, so a walk without a budget does not compile.

use std::sync::Arc;

use crate::envelope::{SignedStatement, StatementId};
use crate::key::PublicKey;
use crate::log::{LeafIndex, TreeSize};
use crate::service::{Fault, Service, Snapshot, Whereabouts, history};
use crate::store::{Error, Field, Page, Query, Stored, Term};
use crate::wire::budget::{Budget, Spent};

/// A reader of the log as its last signed head covers it.
pub struct Reader<'a> {
    service: &'a Service,
    /// The head that everything in the answer is of.
    snapshot: Arc<Snapshot>,
    budget: Budget,
    is_cut: bool,
}

/// Why a walk ended before its end.
#[derive(Debug)]
pub(in crate::service) enum Halt {
    /// The budget is spent: what was found so far is the answer.
    Spent(Spent),
    /// There is no answer.
    Fault(Fault),
}

impl From<Spent> for Halt {
    fn from(spent: Spent) -> Self {
        Self::Spent(spent)
    }
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Fault(error.into())
    }
}

/// A statement as it is stored, and parsed.
pub(in crate::service) struct Logged {
    pub(in crate::service) index: LeafIndex,
    pub(in crate::service) stored: Stored,
    pub(in crate::service) statement: SignedStatement,
}

impl Service {
    /// The log, for one answer that may cost so much.
    pub fn reader(&self, budget: Budget) -> Reader<'_> {
        Reader { service: self, snapshot: self.snapshot(), budget, is_cut: false }
    }
}

impl Reader<'_> {
    /// The size of the tree that is read.
    pub fn size(&self) -> TreeSize {
        self.snapshot.signed.head().size
    }

    /// Whether the answer would have been longer, had it been allowed to cost
    /// more.
    pub fn is_cut(&self) -> bool {
        self.is_cut || self.budget.spent().is_some()
    }

    /// What ran out, if anything did.
    pub fn spent(&self) -> Option<Spent> {
        self.budget.spent()
    }

    /// Says that the answer leaves something out.
    pub(in crate::service) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// The same reader with its whole budget again, for the second part of an
    /// answer.
    pub(in crate::service) fn renewed(&self) -> Self {
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

    /// What is left, for a walk that pays by itself.
    pub(in crate::service) fn left(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Pays for links that are followed.
    pub(in crate::service) fn pay_edges(&mut self, count: usize) -> Result<(), Spent> {
        self.budget.edges(count)
    }

    /// Pays for bytes of an answer.
    pub(in crate::service) fn pay_bytes(&mut self, bytes: usize) -> Result<(), Spent> {
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

    /// The first statements with a value, at most so many.
    pub(in crate::service) fn having(
        &mut self,
        field: (Field, &str),
        limit: usize,
    ) -> Result<Vec<LeafIndex>, Halt> {
        self.having_before(field, self.size(), limit)
    }

    /// The same among the first `size`.
    pub(in crate::service) fn having_before(
        &mut self,
        field: (Field, &str),
        size: TreeSize,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, Halt> {
        Ok(self.service.store.having(field, size, limit, &mut self.budget)??)
    }

    /// The first statement with a term among the first `size`.
    pub(in crate::service) fn first(
        &mut self,
        term: &Term,
        size: TreeSize,
    ) -> Result<Option<LeafIndex>, Halt> {
        self.budget.edges(1)?;
        Ok(self.service.store.first(term, size)?)
    }

    /// Whether a valid `supersedes` by this operator and issuer stands over a
    /// record.
    pub(in crate::service) fn has_superseding(
        &mut self,
        record_id: &str,
        by: (&str, &str),
    ) -> Result<bool, Halt> {
        Ok(history::is_superseded(
            &self.service.store,
            record_id,
            by,
            self.size(),
            &mut self.budget,
        )??)
    }

    /// Where the statement with this name stands, if it is logged.
    pub(in crate::service) fn place(
        &mut self,
        id: &StatementId,
    ) -> Result<Option<LeafIndex>, Halt> {
        self.budget.edges(1)?;
        match self.service.find(id)? {
            Whereabouts::Logged(entry) if self.size().contains(entry.index) => {
                Ok(Some(entry.index))
            }
            _ => Ok(None),
        }
    }

    /// Statements whose ids begin with these hex digits, at most so many.
    pub(in crate::service) fn ids_from(
        &mut self,
        hex: &str,
        limit: usize,
    ) -> Result<Vec<(StatementId, LeafIndex)>, Halt> {
        self.budget.edges(limit)?;
        Ok(self.service.store.ids_from(hex, limit)?)
    }

    /// The statement at an index.
    pub(in crate::service) fn logged(&mut self, index: LeafIndex) -> Result<Logged, Halt> {
        self.budget.node()?;
        let stored = self.service.store.statement(index)?;
        let stored = stored.ok_or(Error::StatementMissing { index })?;
        self.budget.read(stored.canonical.len() + stored.collateral.len());
        let statement = SignedStatement::parse_any_size(stored.canonical.clone());
        let statement = statement.map_err(|_| Error::StatementDamaged { index })?;
        Ok(Logged { index, stored, statement })
    }

    /// The statement at an index with its receipt, of the head that is read.
    pub(in crate::service) fn transparent(&mut self, index: LeafIndex) -> Result<Vec<u8>, Halt> {
        self.budget.node()?;
        let entry = self.service.entry_at(index)?.ok_or(Error::StatementMissing { index })?;
        let bytes = self.service.transparent_under(&self.snapshot, &entry)?;
        self.budget.read(bytes.len());
        Ok(bytes)
    }
}
