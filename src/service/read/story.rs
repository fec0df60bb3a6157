//! Stories: everything connected with a record, an action or a session.

use std::collections::{BTreeMap, BTreeSet};

use super::reader::ReadError;
use super::views::{StoryExtent, StoryView};
use crate::envelope::StatementId;
use crate::log::LeafIndex;
use crate::profile;
use crate::service::{Fault, Reader};
use crate::store::{self, Field};
use crate::story::{self, Story};
use crate::wire::budget::BudgetExhausted;
use crate::wire::digest::Digest;

/// Statements of one story, at most: each is compared with each.
const STORY_MAX: usize = 500;
/// Names in `unexplored`, at most.
const UNEXPLORED_MAX: usize = 100;
/// Outcomes and reversals of one story whose issuers are authenticated again.
const REPORTERS_MAX: usize = 64;

impl Reader<'_> {
    /// The story that a record id, a statement id, an action id or a session
    /// is part of; none if nothing has this name.
    pub fn story(&mut self, name: &str) -> Result<Option<StoryView>, Fault> {
        let mut search = StorySearch::new(name);
        match search.run(self, name) {
            Ok(()) | Err(ReadError::BudgetExhausted(_)) => {}
            Err(ReadError::Fault(fault)) => return Err(fault),
        }
        if search.found.is_empty() {
            return Ok(None);
        }
        let mut entries: Vec<_> = search.found.into_values().collect();
        self.authenticate_reporters(&mut entries);
        let left = search.links.into_iter().rev().map(|link| link.value);
        let extent = StoryExtent {
            id: name.to_owned(),
            is_cut: self.is_cut(),
            limit: self.exhausted().map(BudgetExhausted::code),
            unexplored: left.take(UNEXPLORED_MAX).collect(),
            tree_size: self.size(),
        };
        Ok(Some(StoryView::new(&Story::new(entries), extent)))
    }

    /// Establishes how the issuers of outcomes and reversals were
    /// authenticated.
    fn authenticate_reporters(&self, entries: &mut [story::Entry]) {
        let mut reader = self.with_full_budget();
        for entry in entries.iter_mut().filter(|entry| entry.is_report()).take(REPORTERS_MAX) {
            let logged = reader.logged(LeafIndex::new(entry.index)).ok();
            let issuer = logged.and_then(|logged| reader.issuer_at(&logged).ok().flatten());
            entry.binding = issuer.map(|issuer| issuer.binding);
        }
    }
}

/// Statements found so far, and what is left to look up.
struct StorySearch {
    found: BTreeMap<u64, story::Entry>,
    /// Looked up from the last to the first.
    links: Vec<Link>,
    followed: BTreeSet<Link>,
}

/// What leads from one statement of a story to others.
#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
struct Link {
    field: Field,
    value: String,
    /// Only statements of this operator are meant: the value is unique only
    /// among their own.
    operator: Option<String>,
}

impl StorySearch {
    fn new(name: &str) -> Self {
        let fields = [Field::RecordId, Field::ActionId, Field::Session];
        let links = fields.map(|field| Link { field, value: name.to_owned(), operator: None });
        Self { found: BTreeMap::new(), links: links.into(), followed: BTreeSet::new() }
    }

    /// Follows every link. On an error, the link it came from is still listed.
    fn run(&mut self, reader: &mut Reader<'_>, name: &str) -> Result<(), ReadError> {
        if let Some(digest) = Digest::from_hex(name)
            && let Some(index) = reader.index_of(&StatementId::from_digest(digest))?
        {
            let entry = reader.entry(index)?;
            self.add(reader, entry)?;
        }
        while let Some(link) = self.links.pop() {
            if self.followed.insert(link.clone())
                && let Err(error) = self.follow(reader, &link)
            {
                self.links.push(link);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Adds every statement that a link leads to.
    fn follow(&mut self, reader: &mut Reader<'_>, link: &Link) -> Result<(), ReadError> {
        let room = STORY_MAX.saturating_sub(self.found.len());
        for index in reader.indices_with(link.field, &link.value, room + 1)? {
            if self.found.contains_key(&index.get()) {
                continue;
            }
            if self.found.len() >= STORY_MAX {
                reader.mark_cut();
                return Err(ReadError::BudgetExhausted(BudgetExhausted::Nodes));
            }
            let entry = reader.entry(index)?;
            let stated = entry.summary.operator.as_ref();
            if link.operator.as_ref().zip(stated).is_some_and(|(wanted, stated)| wanted != stated) {
                continue;
            }
            self.add(reader, entry)?;
        }
        Ok(())
    }

    /// Adds a statement if the budget covers all its links, because a story
    /// lists every link of its statements. The first is added in any case.
    fn add(&mut self, reader: &mut Reader<'_>, entry: story::Entry) -> Result<(), ReadError> {
        let links = links(&entry);
        let charged = reader.charge_edges(links.len());
        self.links.extend(links);
        if charged.is_ok() || self.found.is_empty() {
            self.found.insert(entry.index, entry);
        }
        Ok(charged?)
    }
}

fn links(entry: &story::Entry) -> Vec<Link> {
    let mut links = Vec::new();
    let mut add = |field, value: &str| {
        links.push(Link { field, value: value.to_owned(), operator: None });
    };
    let summary = &entry.summary;
    if let Some(id) = &summary.record_id {
        add(Field::RecordId, id);
        add(Field::ParentId, id);
    }
    if let Some(parent) = &summary.parent {
        add(Field::RecordId, &parent.record_id);
    }
    if entry.subject.starts_with(profile::capsule::SUBJECT_PREFIX) {
        add(Field::Subject, &entry.subject);
    }
    if let Some(request) = summary.exchange.as_ref().and_then(|part| part.answers()) {
        add(Field::RecordId, request);
    }
    for id in &summary.predecessors {
        add(Field::RecordId, id);
    }
    if let Some(span) = &summary.session {
        add(Field::IssuerSession, &store::own(&entry.issuer, &span.session));
    }
    // A reference leads to what it names, under whatever kind of name, and
    // what is named leads back to those who refer to it.
    let names = summary.record_id.iter().chain(summary.session.iter().map(|span| &span.session));
    for name in names {
        add(Field::ExternalRef, name);
    }
    if let Some(reference) = &summary.external_ref {
        add(Field::RecordId, reference);
        add(Field::Session, reference);
    }
    let mut add_own = |field, value: &Option<String>| {
        let operator = summary.operator.clone();
        links.extend(value.clone().map(|value| Link { field, value, operator }));
    };
    add_own(Field::DecisionId, &summary.decision_id);
    add_own(Field::ExternalRef, &summary.external_ref);
    links
}
