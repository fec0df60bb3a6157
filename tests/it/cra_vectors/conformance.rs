//! The data blocks of upstream's CONFORMANCE.md.

use capstan::profile::cra::trace::{Event, Form, GENESIS, History, Parting, compare};
use capstan::profile::cra::{AtlasRecord, CarpRecord};
use capstan::profile::{Finding, Severity};
use capstan::wire::json::Json;
use serde_json::Value;

use super::{bytes, event, id, published, yaml};

/// Cases about a runtime that resolves and replays, not about its records.
const RUNTIME: [&str; 6] = [
    "policy.order.deny_precedence",
    "policy.rate_limit.enforced",
    "policy.risk_tier.escalation",
    "replay.deterministic",
    "resolution.actions.capability_filter",
    "resolution.context.ordering",
];

#[test]
fn conformance_cases_pass_or_need_a_runtime() {
    let Some(folder) = published("cra") else { return };
    let text = String::from_utf8(bytes(&folder.join("conformance-inline-cases.yaml"))).unwrap();
    let cases = yaml::documents(&text);
    assert_eq!(cases.len(), 18);
    for case in &cases {
        let name = case["test_id"].as_str().unwrap();
        match name.split('.').next().unwrap() {
            _ if RUNTIME.contains(&name) => {}
            "schema" => check_schema(name, case, CarpRecord::read(&input(case)).1),
            "atlas" => check_schema(name, case, AtlasRecord::read(&input(case)).1),
            "hash" if name == "hash.compute.single_event" => check_single(case),
            "hash" => check_chain(name, case),
            "replay" => check_difference(case),
            other => panic!("{other}: a case nobody judges"),
        }
    }
}

fn input(case: &Value) -> Vec<u8> {
    case["input"].to_string().into_bytes()
}

fn check_schema(name: &str, case: &Value, findings: Vec<Finding>) {
    let errors: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.at.as_str())
        .collect();
    match case["expected"].as_str() {
        Some("VALID") => assert_eq!(errors, [""; 0], "{name}"),
        _ => assert_eq!(errors, [case["error_path"].as_str().unwrap()], "{name}"),
    }
}

/// Upstream's expected value is a placeholder.
fn check_single(case: &Value) {
    let event = event(&Json::read(&input(case)).unwrap());
    let hash = "f5b4945b0bb5f9adc249a7062a5bf1bbcf6f095edbd8fb1503bbc2d5a05d19c5";
    assert_eq!(Form::CraTraceV1.digest(&event).unwrap().to_string(), hash);
}

/// The events of these cases are incomplete; complete ones with the same links.
fn check_chain(name: &str, case: &Value) {
    let sketches = case["input"].as_array().unwrap();
    let mut lines = String::new();
    let mut before: Option<(&Value, String)> = None;
    for (i, sketch) in sketches.iter().enumerate() {
        let previous = match &before {
            None => GENESIS.to_owned(),
            Some((named, hash)) if *named == &sketch["previous_event_hash"] => hash.clone(),
            Some(_) => "f".repeat(64),
        };
        let mut event = event_after(u64::try_from(i).unwrap(), "policy.evaluated", &previous);
        event.sequence = sketch["sequence"].as_u64().unwrap();
        event.payload = Json::read(br#"{"policy_id":"p","result":"allow"}"#).unwrap();
        lines += &event.seal().unwrap();
        lines.push('\n');
        before = Some((&sketch["event_hash"], event.hash));
    }
    let history = History::read(lines.as_bytes());
    let found: Vec<_> =
        history.chains[0].breaks.iter().map(|b| (b.code.replace('-', "_"), b.line)).collect();
    match case["expected"].as_str() {
        Some("VALID") => assert_eq!(found, [], "{name}"),
        _ => {
            let line = usize::try_from(case["error_at"].as_u64().unwrap()).unwrap();
            assert_eq!(found, [(case["error"].as_str().unwrap().to_owned(), line)], "{name}");
        }
    }
}

fn event_after(number: u64, kind: &str, previous: &str) -> Event {
    Event {
        line: 0,
        at: String::new(),
        event_id: id(number),
        trace_id: id(1000),
        span_id: id(1001),
        parent_span_id: None,
        session_id: id(1002),
        sequence: 0,
        timestamp: "2024-12-28T12:00:00.000000Z".to_owned(),
        event_type: kind.to_owned(),
        payload: Json::Object(Vec::new()),
        hash: String::new(),
        previous: previous.to_owned(),
    }
}

/// Two events that differ in their duration: the report names that member and
/// the hash.
fn check_difference(case: &Value) {
    let read = |name: &str| {
        let sketch = &case[name][0];
        let mut event = event_after(0, sketch["event_type"].as_str().unwrap(), GENESIS);
        let mut payload = sketch["payload"].clone();
        payload["execution_id"] = id(7).into();
        event.payload = Json::read(payload.to_string().as_bytes()).unwrap();
        History::read(event.seal().unwrap().as_bytes())
    };
    let found = compare(&read("trace_a"), &read("trace_b"));
    let Parting::Forks { at, .. } = &found[0].parting else { panic!("{found:?}") };
    let path = case["expected_diff"]["differences"][0]["path"].as_str().unwrap();
    assert_eq!(at, &["/event_hash", path.strip_prefix("/0").unwrap()]);
}
