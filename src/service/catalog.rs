//! Finding statements again: search, stories and open items.
//!
//! In: questions. Out: the facts of what was found, as JSON that the API and
//! the command line both show. Only what the signed head covers is found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::telling::{entry_json, item_json, story_json};
use super::{ControlError, Fault, Service, ledger};
use crate::envelope::{Door, Issuer, Resolved, RulesVersion, SignedStatement, StatementId};
use crate::log::LeafIndex;
use crate::profile::capsule::OPEN;
use crate::profile::{self, Control};
use crate::store::{self, DataDir, Field, Page, Query, Store, Stored};
use crate::story::{self, Story};
use crate::trust::TrustAnchors;
use crate::wire::cbor::Value as Cbor;
use crate::wire::digest::Digest;
use crate::wire::text;

/// Statements that one story is made of, at most.
const STORY_MAX: usize = 500;
/// Candidates that are looked at for one page of open items.
const CANDIDATES_MAX: usize = 2_000;

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

impl Service {
    /// Statements that have everything asked for, newest first.
    pub fn search(&self, query: &Query) -> Result<Value, Fault> {
        let page = self.store.search(query, self.head().size)?;
        let found = page.found.iter().map(|index| Ok(listed(*index, &self.logged(*index)?)));
        let statements = found.collect::<Result<Vec<Value>, Fault>>()?;
        Ok(self.page(("statements", statements), &page))
    }

    /// One statement with everything its record says.
    pub fn show(&self, index: LeafIndex) -> Result<Value, Fault> {
        let logged = self.logged(index)?;
        let (header, payload) = (logged.1.header(), logged.1.payload().unwrap_or_default());
        let findings = profile::read_payload(header, payload).findings;
        let finding = |f: &profile::Finding| {
            json!({
                "code": f.code, "severity": f.severity.name(), "at": f.at, "detail": f.detail,
                "check": f.check, "gating": f.gating,
            })
        };
        let issuer = self.issuer_at(index, &logged)?;
        let mut object = listed(index, &logged);
        if let Some(fields) = object.as_object_mut() {
            let binding = issuer.as_ref().map(|issuer| issuer.binding.name());
            let anchor = issuer.as_ref().and_then(|issuer| issuer.anchor.as_deref());
            fields.extend(binding.map(|binding| ("binding".to_owned(), json!(binding))));
            fields.extend(anchor.map(|anchor| ("anchor".to_owned(), json!(anchor))));
            fields.insert("findings".to_owned(), findings.iter().map(finding).collect());
            fields.insert("tree_size".to_owned(), json!(self.head().size.get()));
            fields.insert("note".to_owned(), json!(NOT_PROOF));
        }
        Ok(object)
    }

    /// The story that a record id, a statement id or an action id is part of.
    pub fn story(&self, name: &str) -> Result<Option<Value>, Fault> {
        let (entries, is_cut) = self.gather(name)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let mut object = story_json(&Story::tell(entries));
        if let Some(fields) = object.as_object_mut() {
            fields.insert("id".to_owned(), json!(name));
            fields.insert("is_cut".to_owned(), json!(is_cut));
            fields.insert("tree_size".to_owned(), json!(self.head().size.get()));
            fields.insert("note".to_owned(), json!(NOT_PROOF));
        }
        Ok(Some(object))
    }

    /// Records that wait for somebody, newest first (5.4.4).
    pub fn open_items(&self, query: &Query) -> Result<Value, Fault> {
        let size = self.head().size;
        let one_of = Some((Field::Verdict, OPEN));
        let mut query = Query { one_of, ..query.clone() };
        let (limit, mut looked_at) = (query.limit, 0);
        let mut items = Vec::new();
        let page = loop {
            query.limit = (limit - items.len()).max(1);
            let page = self.store.search(&query, size)?;
            looked_at += page.found.len();
            for index in &page.found {
                let entry = self.told(*index)?;
                if self.is_open(&entry)? {
                    items.push(item_json(&entry));
                }
            }
            let ends = page.next.is_none() || page.is_cut;
            if ends || items.len() >= limit || looked_at >= CANDIDATES_MAX {
                let is_cut = page.is_cut || (page.next.is_some() && items.len() < limit);
                break Page { is_cut, ..page };
            }
            query.before = page.next;
        };
        Ok(self.page(("statements", items), &page))
    }

    fn is_open(&self, entry: &story::Entry) -> Result<bool, Fault> {
        Ok(entry.is_opening() && !self.is_superseded(entry)?)
    }

    /// Whether an authorised record took the place of this one.
    pub(super) fn is_superseded(&self, entry: &story::Entry) -> Result<bool, Fault> {
        let Some(id) = &entry.summary.record_id else { return Ok(false) };
        let by = (entry.summary.operator.as_deref().unwrap_or_default(), entry.authority());
        Ok(self.store.is_superseded(id, by, self.head().size)?)
    }

    fn page(&self, (what, found): (&str, Vec<Value>), page: &Page) -> Value {
        json!({
            what: found,
            "cursor": page.next.map(|bound| bound.to_string()),
            "is_cut": page.is_cut,
            "tree_size": self.head().size.get(),
            "note": NOT_PROOF,
        })
    }

    /// Everything connected with a name: parents, children, outcomes.
    fn gather(&self, name: &str) -> Result<(Vec<story::Entry>, bool), Fault> {
        let mut found: BTreeMap<u64, story::Entry> = BTreeMap::new();
        let mut asked: BTreeSet<Question> = BTreeSet::new();
        let names = [Field::RecordId, Field::ActionId, Field::Session];
        let mut questions: Vec<Question> = names.map(|field| (field, name.to_owned(), None)).into();
        if let Some(digest) = Digest::from_hex(name)
            && let Some(index) = self.store.find(&StatementId::from_digest(digest))?
            && self.head().size.contains(index)
        {
            let entry = self.told(index)?;
            questions.extend(connected(&entry));
            found.insert(index.get(), entry);
        }
        while let Some((field, value, operator)) = questions.pop() {
            if !asked.insert((field, value.clone(), operator.clone())) {
                continue;
            }
            let room = STORY_MAX.saturating_sub(found.len());
            let indices = self.store.having((field, &value), self.head().size, room + 1)?;
            for index in indices {
                if found.contains_key(&index.get()) {
                    continue;
                }
                if found.len() >= STORY_MAX {
                    return Ok((found.into_values().collect(), true));
                }
                let entry = self.told(index)?;
                let stated = entry.summary.operator.as_ref();
                if operator.as_ref().zip(stated).is_some_and(|(one, other)| one != other) {
                    continue;
                }
                questions.extend(connected(&entry));
                found.insert(index.get(), entry);
            }
        }
        Ok((found.into_values().collect(), false))
    }

    /// Who signed an entry and how they were known, by the rules and the trust
    /// in force at its turn; none where that cannot be made out.
    pub(super) fn issuer_at(
        &self,
        index: LeafIndex,
        (stored, statement): &(Stored, SignedStatement),
    ) -> Result<Option<Issuer>, Fault> {
        let own = self.identity.issuer.as_str();
        let (rules, trust) = if statement.header().claims.issuer.as_deref() == Some(own) {
            let keys = self.shared.keys.load();
            (RulesVersion::CURRENT, TrustAnchors::default().with_issuer(own, &keys))
        } else {
            let of = |control| -> Result<Option<SignedStatement>, Fault> {
                let found = self.in_force_at(control, index)?;
                found.map(|at| Ok(self.logged(at)?.1)).transpose()
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
        let (log, now) = (Some(own), stored.time);
        let door = Door { rules, log, trust: &trust, resolved: &resolved, now };
        let authentic = ledger::authenticate(statement, stored, &door);
        Ok(authentic.ok().map(|authentic| authentic.issuer().clone()))
    }

    /// The facts of the statement at an index.
    pub(super) fn told(&self, index: LeafIndex) -> Result<story::Entry, Fault> {
        Ok(facts_of(index, &self.logged(index)?))
    }

    fn logged(&self, index: LeafIndex) -> Result<(Stored, SignedStatement), Fault> {
        let stored = self.stored(index)?;
        let statement = SignedStatement::parse_any_size(stored.canonical.clone());
        let statement = statement.map_err(|_| store::Error::StatementDamaged { index })?;
        Ok((stored, statement))
    }
}

fn facts_of(index: LeafIndex, (stored, statement): &(Stored, SignedStatement)) -> story::Entry {
    let (header, payload) = (statement.header(), statement.payload().unwrap_or_default());
    let read = profile::read_payload(header, payload);
    story::Entry {
        index: index.get(),
        id: StatementId::of_canonical(&stored.canonical),
        issuer: header.claims.issuer.clone().unwrap_or_default(),
        subject: header.claims.subject.clone().unwrap_or_default(),
        time: stored.time,
        profile: read.record.profile(),
        summary: read.summary,
    }
}

/// The facts, and what an auditor needs besides the statement to authenticate
/// it again: only when there is something.
fn listed(index: LeafIndex, logged: &(Stored, SignedStatement)) -> Value {
    let mut object = entry_json(&facts_of(index, logged));
    let collateral = &logged.0.collateral;
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
