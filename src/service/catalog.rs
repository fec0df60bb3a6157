//! Finding statements again: search, stories and open items.
//!
//! In: questions. Out: the facts of what was found, as JSON that the API and
//! the command line both show. Only what the signed head covers is found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{ControlError, Fault, Service};
use crate::envelope::{SignedStatement, StatementId};
use crate::log::LeafIndex;
use crate::profile::capsule::OPEN;
use crate::profile::{self, Summary};
use crate::store::{self, DataDir, Field, Page, Query, Store, Stored};
use crate::story::{self, State, Story};
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
        let mut object = listed(index, &logged);
        if let Some(fields) = object.as_object_mut() {
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
        Ok(self.page(("items", items), &page))
    }

    fn is_open(&self, entry: &story::Entry) -> Result<bool, Fault> {
        if !entry.is_opening() {
            return Ok(false);
        }
        let Some(id) = &entry.summary.record_id else { return Ok(true) };
        let by = (entry.summary.operator.as_deref().unwrap_or_default(), entry.authority());
        Ok(!self.store.is_superseded(id, by, self.head().size)?)
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
        let mut asked: BTreeSet<(Field, String)> = BTreeSet::new();
        let mut questions = vec![(Field::RecordId, name.to_owned())];
        questions.push((Field::ActionId, name.to_owned()));
        if let Some(digest) = Digest::from_hex(name)
            && let Some(index) = self.store.find(&StatementId::from_digest(digest))?
            && self.head().size.contains(index)
        {
            let entry = self.told(index)?;
            questions.extend(connected(&entry));
            found.insert(index.get(), entry);
        }
        while let Some((field, value)) = questions.pop() {
            if !asked.insert((field, value.clone())) {
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
                questions.extend(connected(&entry));
                found.insert(index.get(), entry);
            }
        }
        Ok((found.into_values().collect(), false))
    }

    /// The facts of the statement at an index.
    fn told(&self, index: LeafIndex) -> Result<story::Entry, Fault> {
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
    let record = profile::read_payload(header, payload).record;
    story::Entry {
        index: index.get(),
        id: StatementId::of_canonical(&stored.canonical),
        issuer: header.claims.issuer.clone().unwrap_or_default(),
        subject: header.claims.subject.clone().unwrap_or_default(),
        time: stored.time,
        profile: record.profile(),
        summary: record.summary(),
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

/// What leads from one statement of a story to the others.
fn connected(entry: &story::Entry) -> Vec<(Field, String)> {
    let mut questions = Vec::new();
    if let Some(id) = &entry.summary.record_id {
        questions.push((Field::RecordId, id.clone()));
        questions.push((Field::ParentId, id.clone()));
    }
    if let Some(parent) = &entry.summary.parent {
        questions.push((Field::RecordId, parent.record_id.clone()));
    }
    if entry.subject.starts_with(profile::capsule::SUBJECT_PREFIX) {
        questions.push((Field::Subject, entry.subject.clone()));
    }
    questions
}

fn entry_json(entry: &story::Entry) -> Value {
    let id = entry.id.to_string();
    json!({
        "index": entry.index,
        "id": id,
        "issuer": entry.issuer,
        "subject": entry.subject,
        "registered_at": entry.time.to_string(),
        "profile": entry.profile,
        "record": summary_json(&entry.summary),
        "receipt": format!("/entries/{id}"),
        "statement": format!("/entries/{id}/statement"),
    })
}

fn item_json(entry: &story::Entry) -> Value {
    let mut object = entry_json(entry);
    if let Some(fields) = object.as_object_mut() {
        let expires = entry.expires_at().map(|at| at.to_string());
        fields.insert("expires_at_by_its_own_clock".to_owned(), json!(expires));
    }
    object
}

/// Only what the record says: an absent member is not a null.
fn summary_json(summary: &Summary) -> Value {
    let texts = [
        ("record_id", &summary.record_id),
        ("action_id", &summary.action_id),
        ("decision_id", &summary.decision_id),
        ("operator", &summary.operator),
        ("developer", &summary.developer),
        ("action_type", &summary.action_type),
        ("verdict", &summary.verdict),
        ("decision", &summary.decision),
        ("approver", &summary.approver),
        ("effect_type", &summary.effect_type),
        ("effect_status", &summary.effect_status),
        ("effect_mode", &summary.effect_mode),
        ("effect_attestation", &summary.effect_attestation),
        ("irreversibility", &summary.irreversibility),
        ("external_ref", &summary.external_ref),
    ];
    let mut fields = Map::new();
    for (name, text) in texts {
        fields.extend(text.as_ref().map(|text| (name.to_owned(), json!(text))));
    }
    let human = summary.human_disposed.map(|human| ("human_disposed".to_owned(), json!(human)));
    let at = summary.claimed_at.map(|at| ("claimed_at".to_owned(), json!(at.to_string())));
    let ok = summary.ok.map(|ok| ("ok".to_owned(), json!(ok)));
    let parent = summary.parent.as_ref().map(|parent| {
        let parent = json!({ "record_id": parent.record_id, "relation": parent.relation });
        ("parent".to_owned(), parent)
    });
    fields.extend([human, at, ok, parent].into_iter().flatten());
    if summary.is_concealed {
        fields.insert("is_concealed".to_owned(), json!(true));
    }
    Value::Object(fields)
}

fn story_json(story: &Story) -> Value {
    let record = |(entry, state): &(story::Entry, State)| {
        let mut object = item_json(entry);
        if let Some(fields) = object.as_object_mut() {
            fields.insert("state".to_owned(), json!(state.name()));
            if let State::Closed { by } = state {
                fields.insert("closed_by".to_owned(), json!(by));
            }
        }
        object
    };
    let outcome = |(entry, correlation): &(story::Entry, story::Correlation)| {
        let mut object = entry_json(entry);
        if let Some(fields) = object.as_object_mut() {
            fields.insert("correlation".to_owned(), json!(correlation.name()));
            fields.insert("about".to_owned(), json!(correlation.records()));
        }
        object
    };
    let odd = |odd: &story::Oddity| {
        let severity = odd.severity.name();
        json!({ "index": odd.index, "code": odd.code, "severity": severity, "detail": odd.detail })
    };
    json!({
        "state": if story.is_open() { "open" } else { "closed" },
        "chain": story.records.iter().map(record).collect::<Vec<_>>(),
        "forks": story.forks.iter().map(|(parent, children)| {
            json!({ "index": parent, "children": children })
        }).collect::<Vec<_>>(),
        "outcomes": story.outcomes.iter().map(outcome).collect::<Vec<_>>(),
        "findings": story.oddities.iter().map(odd).collect::<Vec<_>>(),
    })
}
