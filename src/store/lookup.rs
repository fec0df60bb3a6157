//! Questions to the index: search, and what the log says before a statement.
//!
//! Every question is asked with a budget; an answer that spent it says so.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use super::index::{Field, Group, Term, Terms};
use super::{Error, Store};
use crate::envelope::{RulesVersion, SignedStatement, StatementId};
use crate::log::{LeafIndex, TreeSize};
use crate::policy::{Earlier, Facts, History, RECORDS_MAX, SUPERSEDES_MAX, conflicts};
use crate::profile::exchange::{Conflicts, Part, Request, Resolution};
use crate::profile::session::{Head, continuity};
use crate::profile::{self, Summary};
use crate::wire::budget::{Budget, Spent};
use crate::wire::time::UnixSeconds;

/// Statements whose rows are written at once when the index is made again.
const REINDEX_BATCH: u64 = 1024;

/// What to search for: every term must be there.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Fields and their values.
    pub fields: Vec<(Field, String)>,
    /// Values of any field.
    pub words: Vec<String>,
    /// Values of one field, of which one is enough.
    pub one_of: Option<(Field, &'static [&'static str])>,
    /// Registered at or after.
    pub since: Option<UnixSeconds>,
    /// Registered at or before.
    pub until: Option<UnixSeconds>,
    /// Only statements before this index: where the last page ended.
    pub before: Option<u64>,
    /// How many to find.
    pub limit: usize,
}

/// What was found, newest first.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Page {
    /// Where the statements stand.
    pub found: Vec<LeafIndex>,
    /// The bound of the next page, if there may be one.
    pub next: Option<u64>,
    /// Whether the search ended because it had cost enough.
    pub is_cut: bool,
}

/// A field and its value, under every term that can stand for it.
struct Wanted(Vec<Term>);

impl Wanted {
    fn new(field: Field, value: &str) -> Self {
        let also = (field == Field::RecordId).then(|| Term::new(Field::BareId, value));
        Self([Term::new(field, value)].into_iter().chain(also).collect())
    }

    fn any(word: &str) -> Self {
        let fields = Field::SEARCHED.into_iter().chain([Field::BareId]);
        Self(fields.map(|field| Term::new(field, word)).collect())
    }

    fn all(query: &Query) -> Vec<Self> {
        let fields = query.fields.iter().map(|(field, value)| Self::new(*field, value));
        let words = query.words.iter().map(|word| Self::any(word));
        let choice = query.one_of.iter().map(|(field, values)| {
            Self(values.iter().map(|value| Term::new(*field, value)).collect())
        });
        fields.chain(words).chain(choice).collect()
    }
}

impl Store {
    /// Finds statements among the first `size`, newest first. A seek is an
    /// edge: 20,000 take about a tenth of a second.
    pub fn search(
        &self,
        query: &Query,
        size: TreeSize,
        budget: &mut Budget,
    ) -> Result<Page, Error> {
        let first = match query.since {
            Some(since) => self.engine.first_since(since)?.unwrap_or(u64::MAX),
            None => 0,
        };
        let after = UnixSeconds::new(query.until.map_or(0, |t| t.seconds().saturating_add(1)));
        let end = if query.until.is_some() { self.engine.first_since(after)? } else { None };
        let bounds = [Some(size.get()), query.before, end];
        let mut bound = bounds.into_iter().flatten().min().unwrap_or(0);
        let wanted = Wanted::all(query);
        let mut page = Page::default();
        while page.found.len() < query.limit {
            match self.candidate(&wanted, (first, bound), budget)? {
                Step::Found(index) => {
                    page.found.push(LeafIndex::new(index));
                    bound = index;
                }
                Step::End => return Ok(page),
                Step::Cut(at) => return Ok(Page { next: Some(at), is_cut: true, ..page }),
            }
        }
        page.next = (bound > first).then_some(bound);
        Ok(page)
    }

    /// The last statement in a range that has all terms: each term in turn
    /// moves the candidate down to its own last one, until all agree.
    fn candidate(
        &self,
        wanted: &[Wanted],
        (first, bound): (u64, u64),
        budget: &mut Budget,
    ) -> Result<Step, Error> {
        let Some(mut candidate) = bound.checked_sub(1).filter(|last| *last >= first) else {
            return Ok(Step::End);
        };
        let mut agreed = 0;
        for term in wanted.iter().cycle() {
            if agreed == wanted.len() {
                break;
            }
            if budget.edges(term.0.len()).is_err() {
                return Ok(Step::Cut(candidate + 1));
            }
            let mut last = None;
            for one in &term.0 {
                last = last.max(self.engine.last_before(one, candidate + 1)?);
            }
            match last.filter(|last| *last >= first) {
                None => return Ok(Step::End),
                Some(last) if last == candidate => agreed += 1,
                Some(last) => (candidate, agreed) = (last, 1),
            }
        }
        Ok(Step::Found(candidate))
    }

    /// The statements with a value before `bound`, oldest first, at most
    /// `limit`; or what of the budget it would take too much of.
    pub fn having(
        &self,
        (field, value): (Field, &str),
        bound: TreeSize,
        limit: usize,
        budget: &mut Budget,
    ) -> Result<Result<Vec<LeafIndex>, Spent>, Error> {
        let mut all = Vec::new();
        for term in &Wanted::new(field, value).0 {
            if let Err(spent) = budget.edges(1) {
                return Ok(Err(spent));
            }
            all.extend(self.engine.with_term(term, bound.get(), limit)?);
        }
        all.sort_unstable();
        Ok(Ok(all.into_iter().take(limit).map(LeafIndex::new).collect()))
    }

    /// The first statement with a term before `bound`.
    pub fn first(&self, term: &Term, bound: TreeSize) -> Result<Option<LeafIndex>, Error> {
        let found = self.engine.with_term(term, bound.get(), 1)?;
        Ok(found.first().copied().map(LeafIndex::new))
    }

    /// Whether a valid `supersedes` by this operator and issuer stands over a
    /// record; or what of the budget it would take too much of.
    pub fn is_superseded(
        &self,
        record_id: &str,
        by: (&str, &str),
        size: TreeSize,
        budget: &mut Budget,
    ) -> Result<Result<bool, Spent>, Error> {
        Before { store: self, bound: size.get() }.superseded_within(record_id, by, budget)
    }

    /// What the log says about a statement that is not in it yet, or that
    /// stands in it: then what the log before it says.
    pub fn facts(
        &self,
        issuer: &str,
        summary: &Summary,
        id: &StatementId,
        rules: RulesVersion,
    ) -> Result<Facts, Error> {
        let before = |bound| Facts::look_up(issuer, summary, &Before { store: self, bound }, rules);
        let facts = before(u64::MAX)?;
        // A record that is logged is known by its own id: most need no second
        // look.
        if summary.record_id.is_some() && !facts.record_id_known {
            return Ok(facts);
        }
        self.find(id)?.map_or(Ok(facts), |place| before(place.get()))
    }

    /// Throws the index away and makes it again from the statements.
    pub fn reindex(&self, size: TreeSize, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        self.engine.clear_index()?;
        let mut time = None;
        let mut first = 0;
        while first < size.get() {
            let end = size.get().min(first + REINDEX_BATCH);
            let (mut terms, mut times, mut ends) = (Vec::new(), Vec::new(), HashMap::new());
            for index in (first..end).map(LeafIndex::new) {
                let stored = self.statement(index)?.ok_or(Error::StatementMissing { index })?;
                terms.push(self.reread(&stored.canonical, &mut ends)?);
                if time.replace(stored.time) != Some(stored.time) {
                    times.push((index, stored.time));
                }
            }
            let group = Group::new(first, terms.iter(), |term| self.engine.knows(term))?;
            self.engine.fill_index(group, times.into_iter())?;
            first = end;
            progress(end);
        }
        self.engine.mark_index()
    }

    /// What a logged statement is found by. `ends` are those of sessions that
    /// statements of the same group have moved.
    fn reread(&self, canonical: &[u8], ends: &mut HashMap<Term, Head>) -> Result<Terms, Error> {
        let (terms, session) = Terms::of_canonical(canonical);
        let Some((session, span)) = session else { return Ok(terms) };
        let end = match ends.get(&session) {
            Some(end) => Some(end.clone()),
            None => self.engine.session_end(&session)?,
        };
        let Some(end) = continuity(end.as_ref(), &span).head_after(&span) else {
            return Ok(terms);
        };
        let terms = terms.ending(session.clone(), &end);
        ends.insert(session, end);
        Ok(terms)
    }

    /// Throws the index away. The next start makes it again.
    pub fn drop_index(&self) -> Result<(), Error> {
        self.engine.clear_index()
    }
}

/// The terms under which a statement could change another's facts.
pub fn fact_terms<'a>(issuer: &'a str, summary: &'a Summary) -> impl Iterator<Item = Term> + 'a {
    let before = summary.predecessors.iter().map(|id| Term::new(Field::RecordId, id));
    let session = summary.session.iter().map(|span| Term::session(issuer, &span.session));
    let nonce = summary.nonce.iter().map(|nonce| Term::nonce(issuer, nonce));
    let own = summary.record_id.iter().map(|id| Term::new(Field::RecordId, id));
    let parent = summary.parent.iter().flat_map(|parent| {
        [Field::RecordId, Field::Supersedes].map(|field| Term::new(field, &parent.record_id))
    });
    let exchange = summary.exchange.iter().flat_map(|part| exchange_terms(issuer, part));
    own.chain(parent).chain(before).chain(session).chain(nonce).chain(exchange)
}

fn exchange_terms(issuer: &str, part: &Part) -> Vec<Term> {
    match part {
        Part::Request(asked) => {
            let resolution = asked.execution.iter().flat_map(|wanted| {
                let id = &wanted.resolution;
                [Term::resolution(issuer, id), Term::new(Field::RecordId, id)]
            });
            resolution.chain([Term::request(issuer, asked)]).collect()
        }
        Part::Resolution(_) => Vec::new(),
        Part::Response(done) => vec![Term::execution(issuer, &done.request)],
    }
}

enum Step {
    Found(u64),
    End,
    Cut(u64),
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
        let engine = &self.store.engine;
        if !engine.knows(term)? {
            return Ok(None);
        }
        let Some(index) = engine.with_term(term, self.bound, 1)?.first().copied() else {
            return Ok(None);
        };
        Ok(self.read(index)?.1.exchange.map(|part| (index, part)))
    }

    fn has_any(&self, term: &Term) -> Result<bool, Error> {
        let engine = &self.store.engine;
        if !engine.knows(term)? || self.bound == u64::MAX {
            return engine.knows(term);
        }
        Ok(!engine.with_term(term, self.bound, 1)?.is_empty())
    }
}

impl History for Before<'_> {
    type Error = Error;

    fn records(&self, record_id: &str) -> Result<Vec<Earlier>, Error> {
        let term = Term::new(Field::RecordId, record_id);
        let engine = &self.store.engine;
        if !engine.knows(&term)? {
            return Ok(Vec::new());
        }
        let read = |index: u64| {
            let (issuer, summary) = self.read(index)?;
            Ok(Earlier::of(&issuer, &summary))
        };
        let found = engine.with_term(&term, self.bound, RECORDS_MAX)?;
        found.into_iter().map(read).collect()
    }

    fn knows(&self, record_id: &str) -> Result<bool, Error> {
        let term = Term::new(Field::RecordId, record_id);
        self.has_any(&term)
    }

    fn session(&self, of: Option<&str>, session: &str) -> Result<Option<Head>, Error> {
        let term = match of {
            Some(issuer) => Term::session(issuer, session),
            None => Term::new(Field::Session, session),
        };
        if self.bound == u64::MAX && of.is_some() {
            return self.store.engine.session_end(&term);
        }
        // Of the past, and of sessions that are nobody's own, only the
        // statements themselves tell.
        let mut end = None;
        for index in self.store.engine.with_term(&term, self.bound, usize::MAX)? {
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

    fn has_request(&self, issuer: &str, asked: &Request) -> Result<bool, Error> {
        self.has_any(&Term::request(issuer, asked))
    }

    fn execution(&self, issuer: &str, request: &str) -> Result<Option<Conflicts>, Error> {
        let Some((index, part)) = self.part(&Term::execution(issuer, request))? else {
            return Ok(None);
        };
        // It was judged by the log before itself.
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
        let found = self.superseded_within(record_id, by, &mut Budget::unlimited())?;
        Ok(found.unwrap_or(false))
    }
}

impl Before<'_> {
    fn superseded_within(
        &self,
        record_id: &str,
        (operator, issuer): (&str, &str),
        budget: &mut Budget,
    ) -> Result<Result<bool, Spent>, Error> {
        let engine = &self.store.engine;
        let operator = Term::new(Field::Operator, operator);
        let issuer = Term::new(Field::Issuer, issuer);
        let term = Term::new(Field::Supersedes, record_id);
        if let Err(spent) = budget.edges(1) {
            return Ok(Err(spent));
        }
        if !engine.knows(&term)? {
            return Ok(Ok(false));
        }
        for index in engine.with_term(&term, self.bound, SUPERSEDES_MAX)? {
            if let Err(spent) = budget.edges(2) {
                return Ok(Err(spent));
            }
            if engine.has_term(&operator, index)? && engine.has_term(&issuer, index)? {
                return Ok(Ok(true));
            }
        }
        Ok(Ok(false))
    }
}
