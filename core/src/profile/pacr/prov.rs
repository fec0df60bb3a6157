//! Records as W3C PROV-JSON.
//!
//! The identity becomes an activity, the predecessors `wasInformedBy`, the
//! payload the `prov:value` of an entity that the activity generated (in PROV
//! only entities have one). All of a counterfactual has the type
//! `pacr:Counterfactual` and `pacr:counterfactual: true`: it never happened.

use serde_json::{Map, Value, json};

use super::tag::{Error, Kind, Tag};
use super::tuple::CausalId;
use super::tuple::{Estimate, SixTuple};
use crate::wire::text;

const DRAFT: &str =
    "https://datatracker.ietf.org/doc/html/draft-aevum-causal-intervention-record-00#";

/// The PROV document of one record, or of the records of a subgraph. Records
/// outside it are referred to but not described.
pub fn prov(records: &[&SixTuple]) -> Value {
    let mut document = Map::new();
    let prefix = json!({
        "pacr": DRAFT,
        "record": format!("{DRAFT}record-"),
        "payload": format!("{DRAFT}payload-"),
        "xsd": "http://www.w3.org/2001/XMLSchema#",
    });
    document.insert("prefix".to_owned(), prefix);
    for record in records {
        let name = activity_name(record.id);
        put(&mut document, "activity", name.clone(), activity(record));
        for cause in &record.predecessors {
            let relation = format!("_:{}-informed-by-{cause}", record.id);
            let mut edge =
                json!({ "prov:informed": name, "prov:informant": activity_name(*cause) });
            mark(&mut edge, record);
            put(&mut document, "wasInformedBy", relation, edge);
        }
        if !record.payload.is_empty() {
            let entity_name = format!("payload:{}", record.id);
            let value = literal("xsd:base64Binary", text::base64(&record.payload));
            let mut entity = json!({ "prov:value": value });
            mark(&mut entity, record);
            put(&mut document, "entity", entity_name.clone(), entity);
            let mut edge = json!({ "prov:entity": entity_name, "prov:activity": name });
            mark(&mut edge, record);
            let relation = format!("_:{}-payload", record.id);
            put(&mut document, "wasGeneratedBy", relation, edge);
        }
    }
    Value::Object(document)
}

/// Upper bound of the bytes that a record takes in the document: its activity
/// with seven Estimates, its payload, and one relation for each predecessor.
pub fn prov_bytes(record: &SixTuple) -> usize {
    const RECORD: usize = 3_000;
    const CAUSE: usize = 500;
    RECORD + 2 * record.payload.len() + CAUSE * record.predecessors.len()
}

/// Marks that the document leaves out ancestors of a record: why, and the
/// cursor of the next page, if there is one. These are attributes of the
/// record's activity, so the document is still PROV-JSON.
pub fn mark_cut(document: &mut Value, id: &str, limit: &str, cursor: Option<usize>) {
    let Some(sections) = document.as_object_mut() else { return };
    if let Some(prefix) = sections.get_mut("prefix").and_then(Value::as_object_mut) {
        prefix.insert("capstan".to_owned(), "urn:capstan:prov:".into());
    }
    let activities = sections.entry("activity").or_insert_with(|| json!({}));
    let Some(activities) = activities.as_object_mut() else { return };
    let mut mark = Map::from_iter([("capstan:cut".to_owned(), limit.into())]);
    mark.extend(cursor.map(|cursor| ("capstan:cursor".to_owned(), cursor.to_string().into())));
    let name = format!("record:{id}");
    match activities.get_mut(&name) {
        Some(Value::Object(attributes)) => attributes.extend(mark),
        // Several contents under one name: add the mark to the list.
        Some(Value::Array(all)) => all.push(Value::Object(mark)),
        _ => drop(activities.insert(name, Value::Object(mark))),
    }
}

fn activity_name(id: CausalId) -> String {
    format!("record:{id}")
}

fn activity(record: &SixTuple) -> Value {
    let (resources, split) = (&record.resources, &record.cognitive_split);
    let estimates = [
        ("landauer_cost_joules", record.landauer_cost),
        ("energy_joules", resources.energy),
        ("time_seconds", resources.time),
        ("space_bytes", resources.space),
        ("statistical_complexity_bits", split.statistical_complexity),
        ("entropy_rate_bits_per_symbol", split.entropy_rate),
        ("info_gain_bits", split.info_gain),
    ];
    let mut activity = json!({});
    if let Some(attributes) = activity.as_object_mut() {
        for (name, estimate) in estimates {
            attributes.extend(measured(name, estimate));
        }
    }
    mark(&mut activity, record);
    activity
}

fn measured(name: &str, estimate: Estimate) -> [(String, Value); 3] {
    let ends = [("", estimate.point), ("_lower", estimate.lower), ("_upper", estimate.upper)];
    ends.map(|(end, value)| {
        (format!("pacr:{name}{end}"), literal("xsd:double", format!("{value:?}")))
    })
}

/// States the kind of event. A tag that cannot be read does not count as an
/// observation, and a counterfactual cut short remains one.
fn mark(what: &mut Value, record: &SixTuple) {
    let Some(attributes) = what.as_object_mut() else { return };
    let (kind, score) = match Tag::read(&record.payload) {
        Ok(tag) => (Some(tag.kind), tag.sim_real_corr),
        Err(Error::CorrelationTruncated { .. }) => (Some(Kind::Counterfactual), None),
        Err(_) => (None, None),
    };
    let kind_name = kind.map_or("UnknownIntervention", Kind::registered_name);
    let kind_type = literal("prov:QUALIFIED_NAME", format!("pacr:{kind_name}"));
    attributes.insert("prov:type".to_owned(), kind_type);
    if kind == Some(Kind::Counterfactual) {
        attributes.insert("pacr:counterfactual".to_owned(), true.into());
        let label = "counterfactual: simulated, it never happened";
        attributes.insert("prov:label".to_owned(), label.into());
    }
    if let Some(score) = score.filter(|score| score.is_finite()) {
        let score = literal("xsd:double", format!("{score:?}"));
        attributes.insert("pacr:sim_real_corr".to_owned(), score);
    }
}

/// A typed literal of PROV-JSON.
fn literal(of_type: &str, value: String) -> Value {
    json!({ "$": value, "type": of_type })
}

/// Different contents under one name become a list, as PROV-JSON defines it;
/// equal contents are written once.
fn put(document: &mut Map<String, Value>, section: &str, name: String, value: Value) {
    let section = document.entry(section).or_insert_with(|| json!({}));
    let Some(named) = section.as_object_mut() else { return };
    match named.get_mut(&name) {
        None => {
            named.insert(name, value);
        }
        Some(Value::Array(all)) if !all.contains(&value) => all.push(value),
        Some(Value::Array(_)) => {}
        Some(first) if *first != value => *first = json!([first.clone(), value]),
        Some(_) => {}
    }
}
