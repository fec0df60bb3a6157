//! Reading the index: single terms, search, and making it again.
//!
//! Searches have a budget; a result that was cut because the budget ran out
//! says so.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::index::{self, Field, Group, Term, Terms, statements_in};
use super::{Direction, Error, KeyRange, KeyValue, Reindex, Space, Store, read_index};
use crate::log::{LeafIndex, TreeSize};
use crate::profile::Summary;
use crate::profile::exchange::Part;
use crate::profile::session::{Head, continuity};
use crate::wire::budget::{Budget, BudgetExhausted};
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
            Some(since) => self.first_since(since)?.unwrap_or(u64::MAX),
            None => 0,
        };
        let after = UnixSeconds::new(query.until.map_or(0, |t| t.seconds().saturating_add(1)));
        let end = if query.until.is_some() { self.first_since(after)? } else { None };
        let bounds = [Some(size.get()), query.before, end];
        let mut bound = bounds.into_iter().flatten().min().unwrap_or(0);
        let wanted = Wanted::all(query);
        let mut page = Page::default();
        while page.found.len() < query.limit {
            match self.candidate(&wanted, (first, bound), budget)? {
                Candidate::Found(index) => {
                    page.found.push(LeafIndex::new(index));
                    bound = index;
                }
                Candidate::End => return Ok(page),
                Candidate::Cut(at) => return Ok(Page { next: Some(at), is_cut: true, ..page }),
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
    ) -> Result<Candidate, Error> {
        let Some(mut candidate) = bound.checked_sub(1).filter(|last| *last >= first) else {
            return Ok(Candidate::End);
        };
        let mut agreed = 0;
        for term in wanted.iter().cycle() {
            if agreed == wanted.len() {
                break;
            }
            if budget.edges(term.0.len()).is_err() {
                return Ok(Candidate::Cut(candidate + 1));
            }
            let mut last = None;
            for one in &term.0 {
                last = last.max(self.last_before(one, candidate + 1)?);
            }
            match last.filter(|last| *last >= first) {
                None => return Ok(Candidate::End),
                Some(last) if last == candidate => agreed += 1,
                Some(last) => (candidate, agreed) = (last, 1),
            }
        }
        Ok(Candidate::Found(candidate))
    }

    /// The statements with a value before `bound`, oldest first, at most
    /// `limit`; or what of the budget it would take too much of.
    pub fn having(
        &self,
        field: Field,
        value: &str,
        bound: TreeSize,
        limit: usize,
        budget: &mut Budget,
    ) -> Result<Result<Vec<LeafIndex>, BudgetExhausted>, Error> {
        let mut all = Vec::new();
        for term in &Wanted::new(field, value).0 {
            if let Err(spent) = budget.edges(1) {
                return Ok(Err(spent));
            }
            all.extend(self.with_term(term, bound.get(), limit)?);
        }
        all.sort_unstable();
        Ok(Ok(all.into_iter().take(limit).map(LeafIndex::new).collect()))
    }

    /// The first statement with a term before `bound`.
    pub fn first(&self, term: &Term, bound: TreeSize) -> Result<Option<LeafIndex>, Error> {
        let found = self.with_term(term, bound.get(), 1)?;
        Ok(found.first().copied().map(LeafIndex::new))
    }

    /// Whether one of the first `limit` valid `supersedes` of a record before
    /// `bound` is by this operator and issuer; or what of the budget ran out.
    pub fn is_superseded(
        &self,
        record_id: &str,
        (operator, issuer): (&str, &str),
        bound: u64,
        limit: usize,
        budget: &mut Budget,
    ) -> Result<Result<bool, BudgetExhausted>, Error> {
        let operator = Term::new(Field::Operator, operator);
        let issuer = Term::new(Field::Issuer, issuer);
        let term = Term::new(Field::Supersedes, record_id);
        if let Err(spent) = budget.edges(1) {
            return Ok(Err(spent));
        }
        if !self.has_first(&term)? {
            return Ok(Ok(false));
        }
        for index in self.with_term(&term, bound, limit)? {
            if let Err(spent) = budget.edges(2) {
                return Ok(Err(spent));
            }
            if self.has_term(&operator, index)? && self.has_term(&issuer, index)? {
                return Ok(Ok(true));
            }
        }
        Ok(Ok(false))
    }

    /// Makes the index again from the statements.
    pub fn reindex(&self, size: TreeSize, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        self.drop_index()?;
        let mut time = None;
        let mut first = 0;
        while first < size.get() {
            let end = size.get().min(first + REINDEX_BATCH);
            let (mut terms, mut rows, mut ends) = (Vec::new(), Vec::new(), HashMap::new());
            for index in (first..end).map(LeafIndex::new) {
                let stored = self.statement(index)?.ok_or(Error::StatementMissing { index })?;
                terms.push(self.terms_again(&stored.canonical, &mut ends)?);
                if time.replace(stored.time) != Some(stored.time) {
                    rows.push((Term::time(stored.time).at(index.get()), Vec::new()));
                }
            }
            let group = Group::new(first, terms.iter(), |term| self.has_first(term))?;
            rows.extend(group.into_rows());
            self.add_to_index(rows)?;
            first = end;
            progress(end);
        }
        self.finish_index()
    }

    /// The terms of a logged statement. `ends` are those of sessions that
    /// statements of the same group have moved.
    fn terms_again(
        &self,
        canonical: &[u8],
        ends: &mut HashMap<Term, Head>,
    ) -> Result<Terms, Error> {
        let (terms, session) = Terms::of_canonical(canonical);
        let Some((session, span)) = session else { return Ok(terms) };
        let end = match ends.get(&session) {
            Some(end) => Some(end.clone()),
            None => self.session_end(&session)?,
        };
        let Some(end) = continuity(end.as_ref(), &span).head_after(&span) else {
            return Ok(terms);
        };
        let terms = terms.ending(session.clone(), &end);
        ends.insert(session, end);
        Ok(terms)
    }

    /// Empties the index. The next start makes it again.
    pub fn drop_index(&self) -> Result<(), Error> {
        self.firsts.clear();
        self.backend.engine.reindex(Reindex::Clear)
    }

    pub(super) fn add_to_index(&self, rows: Vec<KeyValue>) -> Result<(), Error> {
        self.backend.engine.reindex(Reindex::Add(rows))
    }

    /// Marks the index as complete. From here every commit keeps it so.
    pub(super) fn finish_index(&self) -> Result<(), Error> {
        let marker = (index::MARKER.to_vec(), vec![index::VERSION]);
        self.backend.engine.reindex(Reindex::Finish(marker))
    }
}

/// Single terms.
impl Store {
    /// Whether the index is of this version and complete.
    pub(super) fn index_is_current(&self) -> Result<bool, Error> {
        let marker = self.get(Space::Index, &index::MARKER)?;
        Ok(marker.is_some_and(|version| *version == [index::VERSION]))
    }

    /// Whether an earlier program made the index: the next start makes it
    /// again, and until then it is neither used nor damaged.
    pub(super) fn index_is_of_earlier(&self) -> Result<bool, Error> {
        let marker = self.get(Space::Index, &index::MARKER)?;
        Ok(marker.is_some_and(|version| matches!(*version, [one] if index::EARLIER.contains(&one))))
    }

    /// Whether the index has a row under exactly this key.
    pub(super) fn has_index_row(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.get(Space::Index, key)?.is_some())
    }

    /// Whether any statement has the term; only for terms whose first
    /// statement has a row of its own.
    pub fn has_first(&self, term: &Term) -> Result<bool, Error> {
        Ok(self.first_with(term)?.is_some())
    }

    fn first_with(&self, term: &Term) -> Result<Option<u64>, Error> {
        if !term.has_first_row() {
            return Ok(None);
        }
        if let Some(first) = self.firsts.get(term) {
            return Ok(Some(first));
        }
        let Some(bytes) = self.get(Space::Index, &term.alone())? else { return Ok(None) };
        let first = read_index(&bytes).map(LeafIndex::get);
        if let Some(first) = first {
            self.firsts.insert(term.clone(), first);
        }
        Ok(first)
    }

    /// Where a session ends.
    pub fn session_end(&self, session: &Term) -> Result<Option<Head>, Error> {
        let Some(end) = self.get(Space::Index, &session.alone())? else { return Ok(None) };
        let read = || {
            let (last, hash) = end.split_first_chunk::<8>()?;
            let hash = std::str::from_utf8(hash).ok()?.to_owned();
            Some(Head { last: u64::from_be_bytes(*last), hash })
        };
        Ok(read())
    }

    /// The last statement before `bound` that has the term.
    pub(super) fn last_before(&self, term: &Term, bound: u64) -> Result<Option<u64>, Error> {
        let range = KeyRange { from: term.at(0), to: Some(term.at(bound)) };
        let last = self.scan(Space::Index, range, Direction::Backward, |key, offsets| {
            let first = term.index_in(key);
            let last =
                first.and_then(|first| statements_in(first, offsets).rfind(|index| *index < bound));
            Ok(last.map_or(ControlFlow::Continue(()), ControlFlow::Break))
        })?;
        if last.is_some() {
            return Ok(last);
        }
        Ok(self.first_with(term)?.filter(|first| *first < bound))
    }

    /// The first `limit` statements before `bound` that have the term.
    pub fn with_term(&self, term: &Term, bound: u64, limit: usize) -> Result<Vec<u64>, Error> {
        let first = self.first_with(term)?.filter(|first| *first < bound);
        let mut found: Vec<u64> = first.into_iter().collect();
        if found.len() >= limit {
            return Ok(found);
        }
        let range = KeyRange { from: term.at(0), to: Some(term.at(bound)) };
        self.scan(Space::Index, range, Direction::Forward, |key, offsets| {
            if let Some(first) = term.index_in(key) {
                found.extend(statements_in(first, offsets).filter(|index| *index < bound));
            }
            let is_enough = found.len() >= limit;
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        found.truncate(limit);
        Ok(found)
    }

    /// Whether the statement at `index` has the term.
    pub(super) fn has_term(&self, term: &Term, index: u64) -> Result<bool, Error> {
        Ok(self.last_before(term, index.saturating_add(1))? == Some(index))
    }

    /// The first statement registered at or after a time.
    fn first_since(&self, time: UnixSeconds) -> Result<Option<u64>, Error> {
        let mut to = Term::time(UnixSeconds::new(u64::MAX)).at(u64::MAX);
        to.push(0);
        let range = KeyRange { from: Term::time(time).at(0), to: Some(to) };
        self.scan(Space::Index, range, Direction::Forward, |key, _| {
            let (_, index) = key.split_last_chunk::<8>().ok_or(Error::HeadUnreadable)?;
            Ok(ControlFlow::Break(u64::from_be_bytes(*index)))
        })
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

/// How looking for the next statement of a page ended.
enum Candidate {
    Found(u64),
    End,
    /// The budget ran out; everything from here on was looked at.
    Cut(u64),
}
