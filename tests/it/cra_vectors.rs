//! Published CRA vectors. They are not part of this repository; without them
//! these tests are skipped.

mod conformance;
mod schemas;
mod yaml;

use std::path::Path;

use capstan::profile::Finding;
use capstan::profile::Record;
use capstan::profile::cra::trace::{Event, Form, GENESIS, History};
use capstan::profile::cra::{AtlasRecord, CarpRecord, TraceRecord};
use capstan::wire::json::Json;

use crate::published::published;

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn json(path: &Path) -> Json {
    Json::read(&bytes(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn text<'a>(value: &'a Json, name: &str) -> &'a str {
    value.get(name).and_then(Json::text).unwrap_or_else(|| panic!("no {name}"))
}

/// An event of a vector without its hash.
fn event(value: &Json) -> Event {
    let own = |name| text(value, name).to_owned();
    let sequence = value.get("sequence").and_then(Json::int).unwrap();
    Event {
        line: 0,
        at: String::new(),
        event_id: own("event_id"),
        trace_id: own("trace_id"),
        span_id: own("span_id"),
        parent_span_id: value.get("parent_span_id").and_then(Json::text).map(str::to_owned),
        session_id: own("session_id"),
        sequence: sequence.try_into().unwrap(),
        timestamp: own("timestamp"),
        event_type: own("event_type"),
        payload: value.get("payload").unwrap().clone(),
        hash: String::new(),
        previous: own("previous_event_hash"),
    }
}

fn id(number: u64) -> String {
    format!("01939c6e-0000-7000-8000-{number:012x}")
}

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn derived_hashes_match_in_both_forms() {
    let Some(folder) = published("cra") else { return };
    let derived = json(&folder.join("derived-hash-vectors.json"));
    let mut hashes = 0;
    for case in derived.get("cases").and_then(Json::array).unwrap() {
        let Some(value) = case.get("event") else { continue };
        let (name, event) = (text(case, "name"), event(value));
        let hash = |form: Form| form.digest(&event).unwrap().to_string();
        assert_eq!(hash(Form::CraTraceV1), text(case, "appendix_b_hash"), "{name}");
        hashes += 1;
        if let Some(core) = case.get("cra_core_rust_event_hash").and_then(Json::text) {
            assert_eq!(hash(Form::CraCore), core, "{name}");
            hashes += 1;
        }
        if let Some(canonical) = case.get("canonical_appendix_b").and_then(Json::text) {
            assert_eq!(Form::CraTraceV1.payload(&event.payload).as_deref(), Some(canonical));
        }
    }
    assert_eq!(hashes, 11);
}

#[test]
fn hash_collisions_are_rejected() {
    let Some(folder) = published("cra") else { return };
    let derived = json(&folder.join("derived-hash-vectors.json"));
    let cases = derived.get("cases").and_then(Json::array).unwrap();
    let base = event(cases[0].get("event").unwrap());
    let mut shifts = 0;
    for case in cases {
        if let Some(injected) = case.get("payload_a") {
            let plain = case.get("payload_b").unwrap();
            let of = |payload: &Json, form: Form| {
                form.digest(&Event { payload: payload.clone(), ..base.clone() })
            };
            let norm = Form::CraTraceV1;
            assert_ne!(of(injected, norm), of(plain, norm));
            assert_eq!(of(injected, Form::CraCore), None, "names that cra-core would not escape");
        }
        let Some(shifted) = case.get("event_b") else { continue };
        let mut members = cases[0].get("event").unwrap().members().unwrap().to_vec();
        members.push(("event_hash".to_owned(), GENESIS.into()));
        for (name, value) in shifted.members().unwrap() {
            members.iter_mut().find(|(n, _)| n == name).unwrap().1 = value.clone();
        }
        let line = Form::CraTraceV1.payload(&Json::Object(members)).unwrap();
        let (record, findings) = TraceRecord::read(line.as_bytes());
        assert!(codes(&findings).contains(&"trace-member-malformed"), "{}", text(case, "name"));
        assert!(record.events().is_empty(), "what breaks the grammar is not hashed");
        shifts += 1;
    }
    assert_eq!(shifts, 2);
}

#[test]
fn valid_chain_has_no_removable_event() {
    let Some(folder) = published("cra") else { return };
    let chain = bytes(&folder.join("derived-valid-chain.trace.jsonl"));
    let (record, findings) = TraceRecord::read_batch(&chain);
    assert_eq!(findings, []);
    let span = record.summary().session.unwrap();
    assert_eq!((span.first, span.last, span.previous.as_str()), (0, 2, GENESIS));
    assert_eq!(span.head, "82d7fc537f7d63bee06183b1c3773f01b5bfcd81cbff721311515e8afa2cc8a9");
    let chain = String::from_utf8(chain).unwrap();
    let without: String =
        chain.lines().enumerate().filter(|(i, _)| *i != 1).map(|(_, l)| format!("{l}\n")).collect();
    let (record, findings) = TraceRecord::read_batch(without.as_bytes());
    assert_eq!((codes(&findings), record.span()), (vec!["chain-broken", "sequence-gap"], None));
}

/// `$dynamic` is a placeholder for values of a run.
#[test]
fn golden_case_is_valid_when_filled_in() {
    let Some(folder) = published("cra") else { return };
    let folder = folder.join("golden/simple-resolve");
    let (_, findings) = AtlasRecord::read(&bytes(&folder.join("atlas.json")));
    assert_eq!(findings, []);
    let (_, findings) = CarpRecord::read(&bytes(&folder.join("request.json")));
    assert_eq!(codes(&findings), ["carp-uuid-not-v7"]);

    let template = String::from_utf8(bytes(&folder.join("expected-resolution.json"))).unwrap();
    let (_, findings) = CarpRecord::read(template.as_bytes());
    assert_eq!(codes(&findings), ["carp-schema-violation"; 4], "a template");
    let filled = template
        .replace(r#""timestamp": "$dynamic""#, r#""timestamp": "2024-12-28T12:00:00.000000Z""#)
        .replace("$dynamic", &id(1));
    let (record, findings) = CarpRecord::read(filled.as_bytes());
    assert_eq!((findings, record.summary().decision), (vec![], None));

    let template = String::from_utf8(bytes(&folder.join("expected-trace.jsonl"))).unwrap();
    let (mut lines, mut head) = (String::new(), GENESIS.to_owned());
    for line in template.lines() {
        let filled = line
            .replace(r#""timestamp":"$dynamic""#, r#""timestamp":"2024-12-28T12:00:00.000000Z""#)
            .replace("$dynamic", &id(2));
        let mut event = event(&Json::read(filled.as_bytes()).unwrap());
        (event.previous, event.event_id) = (head, id(100 + event.sequence));
        lines += &event.seal().unwrap();
        lines.push('\n');
        head = event.hash;
    }
    let history = History::read(lines.as_bytes());
    assert_eq!((history.events.len(), history.findings, history.chains.len()), (8, vec![], 1));
}

/// Upstream's manifests violate upstream's own schema.
#[test]
fn published_manifests_violate_the_text() {
    let Some(folder) = published("cra") else { return };
    let rows = [
        ("cra-bootstrap", &["/policies/0/type", "/actions/1/action_id"]),
        ("cra-development", &["/actions/11/action_id", "/policies/1/actions/0"]),
    ];
    for (name, pointers) in rows {
        let path = folder.join(format!("atlases/{name}.json"));
        let (record, findings) = AtlasRecord::read(&bytes(&path));
        assert_eq!(record.summary().ok, Some(false), "{name}");
        for at in pointers {
            assert!(findings.iter().any(|f| f.at == *at), "{name}: {findings:#?}");
        }
    }
}
