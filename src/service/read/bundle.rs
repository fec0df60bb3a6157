//! Bundles: a statement with everything that shows offline why it is logged.

use std::collections::BTreeSet;

use super::reader::ReadError;
use crate::log::{LeafIndex, TreeSize};
use crate::profile::exchange::Part;
use crate::profile::{self, Control, Span, Summary};
use crate::service::{Entry, Fault, Reader};
use crate::store::{Error, Field, Query, Term};
use crate::verify::Bundle;

/// Records of one chain in a bundle, at most.
const CHAIN_MAX: usize = 200;
/// Statements of a session searched for the previous one, at most.
const SESSION_MAX: usize = 64;

impl Reader<'_> {
    /// The bundle of an entry. Its receipts and its checkpoint are of one head.
    /// A chain over the budget lacks its oldest records, and is marked as cut.
    pub fn bundle(&mut self, entry: &Entry) -> Result<Vec<u8>, Fault> {
        // The required parts have their own budget.
        let mut own = self.with_full_budget();
        let stored = own.required(entry.index, |own| Ok(own.logged(entry.index)?.stored))?;
        let statement = own.required(entry.index, |own| own.transparent(entry.index))?;
        let policy = own.control_before(Control::Policy, entry.index)?;
        let trust = own.control_before(Control::Trust, entry.index)?;
        let bundle = Bundle {
            statement,
            policy,
            trust,
            chain: self.chain_before(entry)?,
            checkpoint: self.checkpoint()?,
            collateral: stored.collateral,
            time: stored.time,
        };
        Ok(bundle.encode())
    }

    /// The control statement of a kind that was in force at an index.
    fn control_before(&mut self, control: Control, index: LeafIndex) -> Result<Vec<u8>, Fault> {
        let found = self.in_force_at(control, index)?;
        let found = found.ok_or(Error::StatementMissing { index })?;
        self.required(found, |own| own.transparent(found))
    }

    /// The index of the control statement in force at an index.
    pub(in crate::service) fn in_force_at(
        &mut self,
        control: Control,
        index: LeafIndex,
    ) -> Result<Option<LeafIndex>, Fault> {
        let fields = vec![
            (Field::Issuer, self.issuer().to_owned()),
            (Field::Subject, control.subject().to_owned()),
            (Field::Profile, "control".to_owned()),
        ];
        let query = Query { fields, limit: 1, ..Query::default() };
        // A control statement is decided by the rules before it; the first ones
        // of a log have only themselves.
        for size in [TreeSize::new(index.get()), self.size()] {
            let page = self.page_before(&query, size)?;
            if let Some(found) = page.found.first() {
                return Ok(Some(*found));
            }
        }
        Ok(None)
    }

    /// The ancestors in the entry's chain, its predecessors, the statement its
    /// session continues, and the part of its exchange that it is checked
    /// against, oldest first.
    fn chain_before(&mut self, entry: &Entry) -> Result<Vec<Vec<u8>>, Fault> {
        let mut found = BTreeSet::new();
        match self.follow_chain(entry, &mut found) {
            Ok(()) | Err(ReadError::BudgetExhausted(_)) => {}
            Err(ReadError::Fault(fault)) => return Err(fault),
        }
        // The nearest first, as far as the budget goes.
        let mut chain = Vec::new();
        for index in found.into_iter().rev() {
            match self.transparent(index) {
                Ok(bytes) => chain.push(bytes),
                Err(ReadError::BudgetExhausted(_)) => break,
                Err(ReadError::Fault(fault)) => return Err(fault),
            }
        }
        chain.reverse();
        Ok(chain)
    }

    fn follow_chain(
        &mut self,
        entry: &Entry,
        found: &mut BTreeSet<LeafIndex>,
    ) -> Result<(), ReadError> {
        let own = self.summary_at(entry.index)?;
        let (mut at, mut parent) = (entry.index, own.parent.clone());
        while let Some(before) = parent {
            let Some(index) = self.first_with(Field::RecordId, &before.record_id, at)? else {
                break;
            };
            if found.len() >= CHAIN_MAX {
                self.mark_cut();
                break;
            }
            found.insert(index);
            (at, parent) = (index, self.summary_at(index)?.parent);
        }
        if own.predecessors.len() > CHAIN_MAX {
            self.mark_cut();
        }
        for id in own.predecessors.iter().take(CHAIN_MAX) {
            found.extend(self.first_with(Field::RecordId, id, entry.index)?);
        }
        if let Some(span) = &own.session {
            // Of its issuer, and of any issuer, as version 1 of the rules did.
            let issuer = self.entry(entry.index)?.issuer;
            found.extend(self.session_before(span, Some(issuer), entry.index)?);
            found.extend(self.session_before(span, None, entry.index)?);
        }
        if own.exchange.is_some() {
            self.exchange_before(entry.index, found)?;
        }
        Ok(())
    }

    /// What a CARP document is checked against: an execute request against its
    /// resolution and a request of the same id, a response against its request
    /// and whatever that was checked against.
    fn exchange_before(
        &mut self,
        index: LeafIndex,
        found: &mut BTreeSet<LeafIndex>,
    ) -> Result<(), ReadError> {
        let (issuer, Summary { exchange: Some(part), .. }) = self.read_at(index)? else {
            return Ok(());
        };
        let before = TreeSize::new(index.get());
        match *part {
            Part::Request(asked) => {
                found.extend(self.first(&Term::request(&issuer, &asked), before)?);
                let Some(wanted) = asked.execution else { return Ok(()) };
                let own = self.first(&Term::resolution(&issuer, &wanted.resolution), before)?;
                let any = Term::new(Field::RecordId, &wanted.resolution);
                found.extend(if own.is_some() { own } else { self.first(&any, before)? });
            }
            Part::Resolution(_) => {}
            Part::Response(done) => {
                let request = self.first(&Term::execution(&issuer, &done.request), before)?;
                if let Some(request) = request {
                    found.insert(request);
                    self.exchange_before(request, found)?;
                }
            }
        }
        Ok(())
    }

    fn summary_at(&mut self, index: LeafIndex) -> Result<Summary, ReadError> {
        Ok(self.read_at(index)?.1)
    }

    /// Who signed the statement at an index, and what it says.
    fn read_at(&mut self, index: LeafIndex) -> Result<(String, Summary), ReadError> {
        let logged = self.logged(index)?;
        let (header, payload) = (logged.statement.header(), logged.statement.payload());
        let summary = profile::read_payload(header, payload.unwrap_or_default()).summary;
        Ok((header.claims.issuer.clone().unwrap_or_default(), summary))
    }

    /// The statement that a batch continues or repeats; if there is none, the
    /// last one of its session.
    fn session_before(
        &mut self,
        span: &Span,
        of: Option<String>,
        index: LeafIndex,
    ) -> Result<Option<LeafIndex>, ReadError> {
        let mut fields = vec![(Field::Session, span.session.clone())];
        fields.extend(of.map(|issuer| (Field::Issuer, issuer)));
        let query = Query { fields, limit: SESSION_MAX, ..Query::default() };
        let found = self.page_before(&query, TreeSize::new(index.get()))?.found;
        for index in &found {
            let ends = self.summary_at(*index)?.session.map(|earlier| earlier.head);
            if ends.is_some_and(|end| end == span.previous || end == span.head) {
                return Ok(Some(*index));
            }
        }
        Ok(found.first().copied())
    }
}
