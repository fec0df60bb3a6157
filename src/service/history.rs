//! Facts about earlier statements that a policy decides by, read from the index.

use std::path::Path;

use super::ControlError;
use crate::envelope::{Authentic, RulesVersion, SignedStatement, StatementId};
use crate::log::{LeafIndex, TreeSize};
use crate::policy::{Earlier, Facts, History, RECORDS_MAX, SUPERSEDES_MAX, conflicts};
use crate::profile::exchange::{Conflicts, Part, Request, Resolution};
use crate::profile::session::{Head, continuity};
use crate::profile::{self, Read, Summary};
use crate::store::{Backend, Error, Field, Store, Term, Terms};
use crate::wire::budget::{Budget, BudgetExhausted};

/// The facts a policy would decide by if this statement were registered now
/// or, if it is logged already, those at its registration. No other process may
/// have the log open.
pub fn facts(path: &Path, statement: &Authentic, read: &Read) -> Result<Facts, ControlError> {
    let (store, _, _) = Store::open(Backend::open(path)?)?;
    let (issuer, id) = (&statement.issuer().name, statement.id());
    Ok(look_up_facts(&store, issuer, &read.summary, &id, statement.rules())?)
}

/// The facts about a statement from the log, or from the entries before it if
/// it is logged.
pub fn look_up_facts(
    store: &Store,
    issuer: &str,
    summary: &Summary,
    id: &StatementId,
    rules: RulesVersion,
) -> Result<Facts, Error> {
    let before = |bound| Facts::look_up(issuer, summary, &Before { store, bound }, rules);
    let facts = before(u64::MAX)?;
    // The id of a logged record is known; the other records need no second
    // lookup.
    if summary.record_id.is_some() && !facts.record_id_known {
        return Ok(facts);
    }
    store.find(id)?.map_or(Ok(facts), |index| before(index.get()))
}

/// Whether a valid `supersedes` by this operator and issuer stands over a
/// record; or what of the budget ran out.
pub(super) fn is_superseded(
    store: &Store,
    record_id: &str,
    by: (&str, &str),
    size: TreeSize,
    budget: &mut Budget,
) -> Result<Result<bool, BudgetExhausted>, Error> {
    store.is_superseded(record_id, by, size.get(), SUPERSEDES_MAX, budget)
}

/// The log before an index.
struct Before<'a> {
    store: &'a Store,
    bound: u64,
}

impl Before<'_> {
    /// Who signed the statement at an index, and what it says.
    fn read(&self, index: u64) -> Result<(String, Summary), Error> {
        let index = LeafIndex::new(index);
        let damaged = || Error::StatementDamaged { index };
        let stored = self.store.statement(index)?.ok_or_else(damaged)?;
        let statement = SignedStatement::parse_any_size(stored.canonical);
        let statement = statement.map_err(|_| damaged())?;
        let (header, payload) = (statement.header(), statement.payload().unwrap_or_default());
        let summary = profile::read_payload(header, payload).summary;
        Ok((header.claims.issuer.clone().unwrap_or_default(), summary))
    }

    /// The first statement with a term, and its part in an exchange.
    fn part(&self, term: &Term) -> Result<Option<(u64, Box<Part>)>, Error> {
        if !self.store.has_first(term)? {
            return Ok(None);
        }
        let Some(index) = self.store.with_term(term, self.bound, 1)?.first().copied() else {
            return Ok(None);
        };
        Ok(self.read(index)?.1.exchange.map(|part| (index, part)))
    }

    fn has_any(&self, term: &Term) -> Result<bool, Error> {
        let is_known = self.store.has_first(term)?;
        if !is_known || self.bound == u64::MAX {
            return Ok(is_known);
        }
        Ok(!self.store.with_term(term, self.bound, 1)?.is_empty())
    }
}

impl History for Before<'_> {
    type Error = Error;

    fn records(&self, record_id: &str) -> Result<Vec<Earlier>, Error> {
        let term = Term::new(Field::RecordId, record_id);
        if !self.store.has_first(&term)? {
            return Ok(Vec::new());
        }
        let read = |index: u64| {
            let (issuer, summary) = self.read(index)?;
            Ok(Earlier::of(&issuer, &summary))
        };
        let found = self.store.with_term(&term, self.bound, RECORDS_MAX)?;
        found.into_iter().map(read).collect()
    }

    fn knows(&self, record_id: &str) -> Result<bool, Error> {
        self.has_any(&Term::new(Field::RecordId, record_id))
    }

    fn session(&self, of: Option<&str>, session: &str) -> Result<Option<Head>, Error> {
        let term = match of {
            Some(issuer) => Term::session(issuer, session),
            None => Term::new(Field::Session, session),
        };
        if self.bound == u64::MAX && of.is_some() {
            return self.store.session_end(&term);
        }
        // The index has only the current end of an issuer's session.
        let mut end = None;
        for index in self.store.with_term(&term, self.bound, usize::MAX)? {
            let index = LeafIndex::new(index);
            let stored = self.store.statement(index)?.ok_or(Error::StatementMissing { index })?;
            let Some((_, span)) = Terms::of_canonical(&stored.canonical).1 else { continue };
            end = continuity(end.as_ref(), &span).head_after(&span).or(end);
        }
        Ok(end)
    }

    fn has_nonce(&self, issuer: &str, nonce: &str) -> Result<bool, Error> {
        self.has_any(&Term::nonce(issuer, nonce))
    }

    fn has_request(&self, issuer: &str, request: &Request) -> Result<bool, Error> {
        self.has_any(&Term::request(issuer, request))
    }

    fn execution(&self, issuer: &str, request: &str) -> Result<Option<Conflicts>, Error> {
        let Some((index, part)) = self.part(&Term::execution(issuer, request))? else {
            return Ok(None);
        };
        // It was decided by the entries before it.
        conflicts(issuer, &part, &Self { store: self.store, bound: index }).map(Some)
    }

    fn resolution(&self, issuer: &str, id: &str) -> Result<Option<Resolution>, Error> {
        let found = self.part(&Term::resolution(issuer, id))?;
        Ok(found.and_then(|(_, part)| match *part {
            Part::Resolution(granted) => Some(granted),
            Part::Request(_) | Part::Response(_) => None,
        }))
    }

    fn is_superseded(&self, record_id: &str, by: (&str, &str)) -> Result<bool, Error> {
        let budget = &mut Budget::unlimited();
        let found = self.store.is_superseded(record_id, by, self.bound, SUPERSEDES_MAX, budget)?;
        Ok(found.unwrap_or(false))
    }
}
