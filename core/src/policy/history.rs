//! Facts about the log before a statement, and how they are looked up: in the
//! store's index, or in memory by a reader who walks the log.

use std::collections::{HashMap, HashSet};

use crate::envelope::RulesVersion;
use crate::profile::Summary;
use crate::profile::exchange::{Conflict, Conflicts, Part, Request, Resolution, Response};
use crate::profile::session::{Continuity, Head, continuity};

/// Earlier statements under one record id that are looked at, oldest first.
pub const RECORDS_MAX: usize = 64;
/// Earlier `supersedes` over one record that are looked at, oldest first.
pub const SUPERSEDES_MAX: usize = 1024;

/// An earlier record, as far as the facts need it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Earlier {
    /// The tenant who answers for it.
    pub operator: Option<String>,
    /// The issuer who may supersede it: the agent it names, or else its signer.
    pub authority: String,
    /// The record it refers to.
    pub parent: Option<String>,
    /// Digest of what its id names, where an id is only a name.
    pub content: Option<String>,
}

impl Earlier {
    /// What is kept of a record.
    pub fn of(issuer: &str, summary: &Summary) -> Self {
        Self {
            operator: summary.operator.clone(),
            authority: summary.developer.clone().unwrap_or_else(|| issuer.to_owned()),
            parent: summary.parent.as_ref().map(|parent| parent.record_id.clone()),
            content: summary.content.clone(),
        }
    }
}

/// The log before a statement.
pub trait History {
    /// Why a lookup fails.
    type Error;

    /// The first `RECORDS_MAX` records with this id, oldest first.
    fn records(&self, record_id: &str) -> Result<Vec<Earlier>, Self::Error>;

    /// Whether there is a record with this id.
    fn knows(&self, record_id: &str) -> Result<bool, Self::Error>;

    /// The head of a session: of one issuer, or of any issuer, as version 1 of
    /// the rules looked it up.
    fn session(&self, of: Option<&str>, session: &str) -> Result<Option<Head>, Self::Error>;

    /// Whether this issuer has used a nonce.
    fn has_nonce(&self, issuer: &str, nonce: &str) -> Result<bool, Self::Error>;

    /// Whether this issuer has a request of this id in a session.
    fn has_request(&self, issuer: &str, asked: &Request) -> Result<bool, Self::Error>;

    /// The conflicts of this issuer's first execute request with an id.
    fn execution(&self, issuer: &str, request: &str) -> Result<Option<Conflicts>, Self::Error>;

    /// The first resolution of this issuer with an id.
    fn resolution(&self, issuer: &str, id: &str) -> Result<Option<Resolution>, Self::Error>;

    /// Whether one of the first `SUPERSEDES_MAX` valid `supersedes` over this
    /// record has this operator and this issuer.
    fn is_superseded(&self, record_id: &str, by: (&str, &str)) -> Result<bool, Self::Error>;
}

/// What the log before a statement says about it. Looked up when the statement
/// is decided, so that anyone who has that log can look the same up again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Facts {
    /// Whether the record it refers to is logged; none if it names none.
    pub parent_known: Option<bool>,
    /// Whether that record has the same operator; none if it is not logged.
    pub parent_same_operator: Option<bool>,
    /// Whether another record supersedes that record; none if it is not logged.
    pub parent_superseded: Option<bool>,
    /// Whether another statement with the same record id is logged.
    pub record_id_known: bool,
    /// Whether such a statement stands in another chain.
    pub record_id_other_chain: bool,
    /// Whether the id, being only a name, names something else there.
    pub record_id_other_content: bool,
    /// Whether every predecessor is logged; none if it names none.
    pub predecessors_known: Option<bool>,
    /// How its events follow those its issuer has logged of their session;
    /// none without a session.
    pub session: Option<Continuity>,
    /// Whether what may be used once was used; none if it has no such thing.
    pub nonce_used: Option<bool>,
    /// Its conflicts in the exchange it is part of.
    pub conflicts: Conflicts,
}

impl Facts {
    /// Looks everything up. A record that refers to nothing costs nothing.
    /// Sessions are kept by issuer since the second version of the rules; before
    /// that any issuer could continue one.
    pub fn look_up<H: History>(
        issuer: &str,
        summary: &Summary,
        history: &H,
        rules: RulesVersion,
    ) -> Result<Self, H::Error> {
        let mut facts = Self::default();
        if let Some(id) = &summary.record_id {
            let same = history.records(id)?;
            let own = summary.parent.as_ref().map(|parent| &parent.record_id);
            facts.record_id_known = !same.is_empty();
            facts.record_id_other_chain = same.iter().any(|one| one.parent.as_ref() != own);
            facts.record_id_other_content = same.iter().any(|one| one.content != summary.content);
        }
        if !summary.predecessors.is_empty() {
            let mut all = true;
            for id in &summary.predecessors {
                all = all && history.knows(id)?;
            }
            facts.predecessors_known = Some(all);
        }
        if let Some(span) = &summary.session {
            let of = (rules >= RulesVersion::V2).then_some(issuer);
            facts.session = Some(continuity(history.session(of, &span.session)?.as_ref(), span));
        }
        if let Some(nonce) = &summary.nonce {
            facts.nonce_used = Some(history.has_nonce(issuer, nonce)?);
        }
        if let Some(part) = &summary.exchange {
            facts.conflicts = conflicts(issuer, part, history)?;
        }
        let Some(parent) = &summary.parent else { return Ok(facts) };
        let parents = history.records(&parent.record_id)?;
        facts.parent_known = Some(!parents.is_empty());
        let Some(first) = parents.first() else { return Ok(facts) };
        let same = |one: &Earlier| one.operator.is_some() && one.operator == summary.operator;
        facts.parent_same_operator = Some(parents.iter().any(same));
        let by = (first.operator.as_deref().unwrap_or_default(), first.authority.as_str());
        facts.parent_superseded = Some(history.is_superseded(&parent.record_id, by)?);
        Ok(facts)
    }
}

/// The conflicts of one part of an exchange. Only what the same issuer has
/// logged counts: nobody can deny another's request or use up its id.
pub fn conflicts<H: History>(
    issuer: &str,
    part: &Part,
    history: &H,
) -> Result<Conflicts, H::Error> {
    let mut found = Conflicts::default();
    match part {
        Part::Request(asked) => {
            if history.has_request(issuer, asked)? {
                found.add(Conflict::DuplicateRequest);
            }
            let Some(wanted) = &asked.execution else { return Ok(found) };
            match history.resolution(issuer, &wanted.resolution)? {
                Some(granted) => found.add_all(granted.conflicts(&wanted.action, asked.at)),
                None if history.knows(&wanted.resolution)? => found.add(Conflict::OtherIssuer),
                None => found.add(Conflict::NoResolution),
            }
        }
        Part::Resolution(_) => {}
        Part::Response(Response { request, is_success }) => {
            match history.execution(issuer, request)? {
                None => found.add(Conflict::NoRequest),
                Some(against) if *is_success => found.add_all(against),
                Some(_) => {}
            }
        }
    }
    Ok(found)
}

/// A history in memory, for readers who walk a log from its first entry.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    records: HashMap<String, Vec<Earlier>>,
    /// By issuer and session, and by session alone.
    sessions: HashMap<(Option<String>, String), Head>,
    nonces: HashSet<(String, String)>,
    /// Issuer, session and id of every request.
    requests: HashSet<(String, String, String)>,
    /// By issuer and id, the first of each.
    executions: HashMap<(String, String), Conflicts>,
    resolutions: HashMap<(String, String), Resolution>,
    /// Operator and issuer of every valid `supersedes`, by what it replaces.
    superseded: HashMap<String, Vec<(Option<String>, String)>>,
}

impl Memory {
    /// Adds the next statement of the log.
    pub fn add(&mut self, issuer: &str, summary: &Summary) {
        if let Some(id) = &summary.record_id
            && !summary.is_id_only
        {
            let records = self.records.entry(id.clone()).or_default();
            if records.len() < RECORDS_MAX {
                records.push(Earlier::of(issuer, summary));
            }
        }
        if let Some(span) = &summary.session {
            for of in [None, Some(issuer.to_owned())] {
                let key = (of, span.session.clone());
                if let Some(head) = continuity(self.sessions.get(&key), span).head_after(span) {
                    self.sessions.insert(key, head);
                }
            }
        }
        if let Some(nonce) = &summary.nonce {
            self.nonces.insert((issuer.to_owned(), nonce.clone()));
        }
        if let Some(part) = &summary.exchange {
            self.add_exchange(issuer, part);
        }
        if let Some(parent) = summary.superseded() {
            let by = self.superseded.entry(parent.to_owned()).or_default();
            if by.len() < SUPERSEDES_MAX {
                by.push((summary.operator.clone(), issuer.to_owned()));
            }
        }
    }
}

impl Memory {
    fn add_exchange(&mut self, issuer: &str, part: &Part) {
        let own = |id: &str| (issuer.to_owned(), id.to_owned());
        match part {
            Part::Request(asked) => {
                let Ok(found) = conflicts(issuer, part, self);
                if asked.execution.is_some() {
                    self.executions.entry(own(&asked.request)).or_insert(found);
                }
                let Request { session, request, .. } = asked;
                self.requests.insert((issuer.to_owned(), session.clone(), request.clone()));
            }
            Part::Resolution(granted) => {
                let place = self.resolutions.entry(own(&granted.resolution));
                place.or_insert_with(|| granted.clone());
            }
            Part::Response(_) => {}
        }
    }
}

impl History for Memory {
    type Error = std::convert::Infallible;

    fn has_request(&self, issuer: &str, asked: &Request) -> Result<bool, Self::Error> {
        let Request { session, request, .. } = asked;
        Ok(self.requests.contains(&(issuer.to_owned(), session.clone(), request.clone())))
    }

    fn execution(&self, issuer: &str, request: &str) -> Result<Option<Conflicts>, Self::Error> {
        Ok(self.executions.get(&(issuer.to_owned(), request.to_owned())).copied())
    }

    fn resolution(&self, issuer: &str, id: &str) -> Result<Option<Resolution>, Self::Error> {
        Ok(self.resolutions.get(&(issuer.to_owned(), id.to_owned())).cloned())
    }

    fn records(&self, record_id: &str) -> Result<Vec<Earlier>, Self::Error> {
        Ok(self.records.get(record_id).cloned().unwrap_or_default())
    }

    fn knows(&self, record_id: &str) -> Result<bool, Self::Error> {
        Ok(self.records.contains_key(record_id))
    }

    fn session(&self, of: Option<&str>, session: &str) -> Result<Option<Head>, Self::Error> {
        let key = (of.map(str::to_owned), session.to_owned());
        Ok(self.sessions.get(&key).cloned())
    }

    fn has_nonce(&self, issuer: &str, nonce: &str) -> Result<bool, Self::Error> {
        Ok(self.nonces.contains(&(issuer.to_owned(), nonce.to_owned())))
    }

    fn is_superseded(
        &self,
        record_id: &str,
        (operator, issuer): (&str, &str),
    ) -> Result<bool, Self::Error> {
        let by = |(o, i): &(Option<String>, String)| o.as_deref() == Some(operator) && i == issuer;
        Ok(self.superseded.get(record_id).is_some_and(|all| all.iter().any(by)))
    }
}
