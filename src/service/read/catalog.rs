//! Finding statements again: search, stories and open items.
//!
//! In: questions. Out: the facts of what was found, as JSON that the API and
//! the command line both show. Only what the signed head covers is found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::reader::{Halt, Logged};
use super::telling::{entry_json, item_json, story_json};
use crate::envelope::{Door, Issuer, Resolved, RulesVersion, SignedStatement, StatementId};
use crate::log::LeafIndex;
use crate::profile::capsule::OPEN;
use crate::profile::{self, Control};
use crate::service::maintain::ledger;
use crate::service::{ControlError, Fault, Reader};
use crate::store::{self, DataDir, Field, Page, Query, Store};
use crate::story::{self, Story};
use crate::trust::TrustAnchors;
use crate::wire::budget::Spent;
use crate::wire::cbor::Value as Cbor;
use crate::wire::digest::Digest;
use crate::wire::text;

/// Statements that one story is made of, at most: telling it compares each
/// with each.
const STORY_MAX: usize = 500;
/// Names at which a story that was cut could go on, at most.
const UNEXPLORED_MAX: usize = 100;

/// Outcomes and reversals of one story whose issuers are authenticated again.
const TELLERS_MAX: usize = 64;

/// What every answer says about itself.
pub const NOT_PROOF: &str = "Search is this server's index, not proof of absence: \
     what is not found here may still be in the log. A receipt proves what is.";

/// Makes the index of a log that nobody else has open again. `progress`
/// hears the number of statements done and the number there are.
pub fn reindex(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<u64, ControlError> {
    let (store, head) = Store::open_as_found(DataDir::open(path)?)?;
    let size = head.size();
    store.reindex(size, &mut |done| progress(done, size.get()))?;
    Ok(size.get())
}

impl Reader<'_> {
    /// Statements that have everything asked for, newest first.
    pub fn search(&mut self, query: &Query) -> Result<Value, Fault> {
        let mut page = self.page(query)?;
        let mut statements = Vec::with_capacity(page.found.len());
        for index in &page.found {
            match self.logged(*index) {
                Ok(logged) => statements.push(listed(&logged)),
                Err(Halt::Spent(_)) => {
                    // The next page begins with the one that was too much.
                    page.next = Some(index.get() + 1);
                    break;
                }
                Err(Halt::Fault(fault)) => return Err(fault),
            }
        }
        Ok(self.told_page(statements, &page))
    }

    /// One statement with everything its record says.
    pub fn show(&mut self, index: LeafIndex) -> Result<Value, Fault> {
        let logged = self.one(index)?;
        let statement = &logged.statement;
        let (header, payload) = (statement.header(), statement.payload().unwrap_or_default());
        let findings = profile::read_payload(header, payload).findings;
        let finding = |f: &profile::Finding| {
            json!({
                "code": f.code, "severity": f.severity.name(), "at": f.at, "detail": f.detail,
                "check": f.check, "gating": f.gating,
            })
        };
        let issuer = self.issuer_at(&logged)?;
        let mut object = listed(&logged);
        if let Some(fields) = object.as_object_mut() {
            let binding = issuer.as_ref().map(|issuer| issuer.binding.name());
            let anchor = issuer.as_ref().and_then(|issuer| issuer.anchor.as_deref());
            fields.extend(binding.map(|binding| ("binding".to_owned(), json!(binding))));
            fields.extend(anchor.map(|anchor| ("anchor".to_owned(), json!(anchor))));
            fields.insert("findings".to_owned(), findings.iter().map(finding).collect());
            fields.insert("tree_size".to_owned(), json!(self.size().get()));
            fields.insert("note".to_owned(), json!(NOT_PROOF));
        }
        Ok(object)
    }

    /// The story that a record id, a statement id or an action id is part of.
    pub fn story(&mut self, name: &str) -> Result<Option<Value>, Fault> {
        let Gathered { mut entries, unexplored } = self.gather(name)?;
        if entries.is_empty() {
            return Ok(None);
        }
        self.name_tellers(&mut entries);
        let mut object = story_json(&Story::new(entries));
        if let Some(fields) = object.as_object_mut() {
            fields.insert("id".to_owned(), json!(name));
            fields.insert("is_cut".to_owned(), json!(self.is_cut()));
            fields.insert("limit".to_owned(), json!(self.spent().map(Spent::code)));
            fields.insert("unexplored".to_owned(), json!(unexplored));
            fields.insert("tree_size".to_owned(), json!(self.size().get()));
            fields.insert("note".to_owned(), json!(NOT_PROOF));
        }
        Ok(Some(object))
    }

    /// Finds out how those were known who tell what became of something.
    fn name_tellers(&self, entries: &mut [story::Entry]) {
        let mut again = self.renewed();
        for entry in entries.iter_mut().filter(|entry| entry.is_report()).take(TELLERS_MAX) {
            let logged = again.logged(LeafIndex::new(entry.index)).ok();
            let issuer = logged.and_then(|logged| again.issuer_at(&logged).ok().flatten());
            entry.binding = issuer.map(|issuer| issuer.binding);
        }
    }

    /// Records that wait for somebody, newest first (5.4.4).
    pub fn open_items(&mut self, query: &Query) -> Result<Value, Fault> {
        let one_of = Some((Field::Verdict, OPEN));
        let mut query = Query { one_of, ..query.clone() };
        let limit = query.limit;
        let mut items = Vec::new();
        let page = loop {
            query.limit = (limit - items.len()).max(1);
            let page = self.page(&query)?;
            let mut spent_at = None;
            for index in &page.found {
                match self.open_item(*index) {
                    Ok(item) => items.extend(item),
                    Err(Halt::Spent(_)) => {
                        spent_at = Some(index.get() + 1);
                        break;
                    }
                    Err(Halt::Fault(fault)) => return Err(fault),
                }
            }
            if let Some(next) = spent_at {
                break Page { next: Some(next), ..page };
            }
            if page.next.is_none() || page.is_cut || items.len() >= limit {
                break page;
            }
            query.before = page.next;
        };
        Ok(self.told_page(items, &page))
    }

    fn open_item(&mut self, index: LeafIndex) -> Result<Option<Value>, Halt> {
        let entry = self.told(index)?;
        let is_open = entry.summary.is_open && !self.is_superseded(&entry)?;
        Ok(is_open.then(|| item_json(&entry)))
    }

    /// Whether an authorised record took the place of this one.
    pub(in crate::service) fn is_superseded(&mut self, entry: &story::Entry) -> Result<bool, Halt> {
        let Some(id) = &entry.summary.record_id else { return Ok(false) };
        let by = (entry.summary.operator.as_deref().unwrap_or_default(), entry.authority());
        self.has_superseding(id, by)
    }

    fn told_page(&self, statements: Vec<Value>, page: &Page) -> Value {
        json!({
            "statements": statements,
            "cursor": page.next.map(|bound| bound.to_string()),
            "is_cut": self.is_cut(),
            "limit": self.spent().map(Spent::code),
            "tree_size": self.size().get(),
            "note": NOT_PROOF,
        })
    }

    /// Everything connected with a name: parents, children, outcomes.
    fn gather(&mut self, name: &str) -> Result<Gathered, Fault> {
        let mut found: BTreeMap<u64, story::Entry> = BTreeMap::new();
        let mut asked: BTreeSet<Question> = BTreeSet::new();
        let names = [Field::RecordId, Field::ActionId, Field::Session];
        let mut questions: Vec<Question> = names.map(|field| (field, name.to_owned(), None)).into();
        let gathered = self.named(name, &mut questions, &mut found);
        let gathered = gathered.and_then(|()| {
            while let Some(question) = questions.pop() {
                if asked.insert(question.clone())
                    && let Err(halt) = self.answer(&question, &mut questions, &mut found)
                {
                    questions.push(question);
                    return Err(halt);
                }
            }
            Ok(())
        });
        match gathered {
            Ok(()) | Err(Halt::Spent(_)) => {}
            Err(Halt::Fault(fault)) => return Err(fault),
        }
        let left = questions.into_iter().rev().map(|(_, value, _)| value);
        let unexplored = left.take(UNEXPLORED_MAX).collect();
        Ok(Gathered { entries: found.into_values().collect(), unexplored })
    }

    /// The statement with this name itself.
    fn named(
        &mut self,
        name: &str,
        questions: &mut Vec<Question>,
        found: &mut BTreeMap<u64, story::Entry>,
    ) -> Result<(), Halt> {
        if let Some(digest) = Digest::from_hex(name)
            && let Some(index) = self.place(&StatementId::from_digest(digest))?
        {
            let entry = self.told(index)?;
            self.take(entry, questions, found)?;
        }
        Ok(())
    }

    /// Every statement that answers a question.
    fn answer(
        &mut self,
        (field, value, operator): &Question,
        questions: &mut Vec<Question>,
        found: &mut BTreeMap<u64, story::Entry>,
    ) -> Result<(), Halt> {
        let room = STORY_MAX.saturating_sub(found.len());
        for index in self.having((*field, value), room + 1)? {
            if found.contains_key(&index.get()) {
                continue;
            }
            if found.len() >= STORY_MAX {
                self.cut();
                return Err(Halt::Spent(Spent::Nodes));
            }
            let entry = self.told(index)?;
            let stated = entry.summary.operator.as_ref();
            if operator.as_ref().zip(stated).is_some_and(|(one, other)| one != other) {
                continue;
            }
            self.take(entry, questions, found)?;
        }
        Ok(())
    }

    /// Takes a statement into the story, if what it leads to can be paid for:
    /// a story tells of every link of its statements. The first is told in any
    /// case.
    fn take(
        &mut self,
        entry: story::Entry,
        questions: &mut Vec<Question>,
        found: &mut BTreeMap<u64, story::Entry>,
    ) -> Result<(), Halt> {
        let connected = connected(&entry);
        let paid = self.pay_edges(connected.len());
        questions.extend(connected);
        if paid.is_ok() || found.is_empty() {
            found.insert(entry.index, entry);
        }
        Ok(paid?)
    }

    /// Who signed an entry and how they were known, by the rules and the trust
    /// in force at its turn; none where that cannot be made out.
    fn issuer_at(&mut self, logged: &Logged) -> Result<Option<Issuer>, Fault> {
        let own = self.issuer().to_owned();
        let statement = &logged.statement;
        let (rules, trust) = if statement.header().claims.issuer.as_deref() == Some(own.as_str()) {
            (RulesVersion::CURRENT, TrustAnchors::default().with_issuer(&own, &self.keys()))
        } else {
            let mut of = |control| -> Result<Option<SignedStatement>, Fault> {
                let found = self.in_force_at(control, logged.index)?;
                found.map(|at| Ok(self.one(at)?.statement)).transpose()
            };
            let (Some(policy), Some(trust)) = (of(Control::Policy)?, of(Control::Trust)?) else {
                return Ok(None);
            };
            let text = String::from_utf8_lossy(trust.payload().unwrap_or_default());
            let rules = RulesVersion::of_policy(policy.header());
            match (rules, TrustAnchors::parse_any(&text)) {
                (Ok(rules), Ok(trust)) => (rules, trust),
                _ => return Ok(None),
            }
        };
        let resolved = Resolved::default();
        let (log, now) = (Some(own.as_str()), logged.stored.time);
        let door = Door { rules, log, trust: &trust, resolved: &resolved, now };
        let authentic = ledger::authenticate(statement, &logged.stored, &door);
        Ok(authentic.ok().map(|authentic| authentic.issuer().clone()))
    }

    /// The facts of the statement at an index.
    pub(in crate::service) fn told(&mut self, index: LeafIndex) -> Result<story::Entry, Halt> {
        Ok(facts_of(&self.logged(index)?))
    }

    /// The only statement an answer is about: any budget reaches for one.
    fn one(&mut self, index: LeafIndex) -> Result<Logged, Fault> {
        match self.logged(index) {
            Ok(logged) => Ok(logged),
            Err(Halt::Fault(fault)) => Err(fault),
            Err(Halt::Spent(_)) => Err(store::Error::StatementMissing { index }.into()),
        }
    }
}

/// What a story is made of, and where there may be more.
struct Gathered {
    entries: Vec<story::Entry>,
    unexplored: BTreeSet<String>,
}

fn facts_of(logged: &Logged) -> story::Entry {
    let (header, payload) =
        (logged.statement.header(), logged.statement.payload().unwrap_or_default());
    let read = profile::read_payload(header, payload);
    story::Entry {
        index: logged.index.get(),
        id: StatementId::of_canonical(&logged.stored.canonical),
        issuer: header.claims.issuer.clone().unwrap_or_default(),
        subject: header.claims.subject.clone().unwrap_or_default(),
        time: logged.stored.time,
        profile: read.profile(),
        is_bound: !read.findings.iter().any(|f| profile::capsule::BINDING.contains(&f.code)),
        binding: None,
        summary: read.summary,
    }
}

/// The facts, and what an auditor needs besides the statement to authenticate
/// it again: only when there is something.
fn listed(logged: &Logged) -> Value {
    let mut object = entry_json(&facts_of(logged));
    let collateral = &logged.stored.collateral;
    let holds_something = Cbor::read(collateral).is_ok_and(|map| map != Cbor::Map(Vec::new()));
    if let (Some(fields), true) = (object.as_object_mut(), holds_something) {
        fields.insert("collateral".to_owned(), json!(text::base64(collateral)));
    }
    object
}

/// A field, its value, and the operator whose statements are meant where the
/// value is only his own.
type Question = (Field, String, Option<String>);

/// What leads from one statement of a story to the others.
fn connected(entry: &story::Entry) -> Vec<Question> {
    let mut questions = Vec::new();
    if let Some(id) = &entry.summary.record_id {
        questions.push((Field::RecordId, id.clone(), None));
        questions.push((Field::ParentId, id.clone(), None));
    }
    if let Some(parent) = &entry.summary.parent {
        questions.push((Field::RecordId, parent.record_id.clone(), None));
    }
    if entry.subject.starts_with(profile::capsule::SUBJECT_PREFIX) {
        questions.push((Field::Subject, entry.subject.clone(), None));
    }
    if let Some(request) = entry.summary.exchange.as_ref().and_then(|part| part.answers()) {
        questions.push((Field::RecordId, request.to_owned(), None));
    }
    for id in &entry.summary.predecessors {
        questions.push((Field::RecordId, id.clone(), None));
    }
    if let Some(span) = &entry.summary.session {
        let own = store::own(&entry.issuer, &span.session);
        questions.push((Field::IssuerSession, own, None));
    }
    // A reference leads to what it names, under whatever kind of name, and
    // what is named leads back to those who refer to it.
    let summary = &entry.summary;
    let names = summary.record_id.iter().chain(summary.session.iter().map(|span| &span.session));
    questions.extend(names.map(|name| (Field::ExternalRef, name.clone(), None)));
    if let Some(reference) = &summary.external_ref {
        questions.push((Field::RecordId, reference.clone(), None));
        questions.push((Field::Session, reference.clone(), None));
    }
    if let Some(decision) = &summary.decision_id {
        questions.push((Field::DecisionId, decision.clone(), summary.operator.clone()));
    }
    if let Some(reference) = &entry.summary.external_ref {
        questions.push((Field::ExternalRef, reference.clone(), entry.summary.operator.clone()));
    }
    questions
}
