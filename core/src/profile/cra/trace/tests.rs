mod bytes;
mod linking;

use super::*;
use crate::profile::finding::Severity;
use crate::wire::json::Json;

pub(crate) const SESSION: &str = "01939c6e-0000-7000-8000-000000000002";

/// A sound event of some session.
pub(crate) fn event(session: &str, sequence: u64, previous: &str) -> Event {
    let id = |kind: u64| format!("01939c6e-0000-7000-8000-{kind:04x}{sequence:08x}");
    Event {
        line: 0,
        at: String::new(),
        event_id: id(1),
        trace_id: id(2),
        span_id: id(3),
        parent_span_id: None,
        session_id: session.to_owned(),
        sequence,
        timestamp: format!("2024-12-28T12:00:{:02}.000000Z", sequence % 60),
        event_type: "policy.evaluated".to_owned(),
        payload: json(r#"{"policy_id":"p","result":"allow"}"#),
        hash: String::new(),
        previous: previous.to_owned(),
    }
}

/// Sound lines of a session, and the hash of the last.
pub(crate) fn lines(session: &str, first: u64, count: u64, previous: &str) -> (String, String) {
    let (mut text, mut head) = (String::new(), previous.to_owned());
    for sequence in first..first + count {
        let mut event = event(session, sequence, &head);
        text += &event.seal().unwrap();
        text.push('\n');
        head = event.hash;
    }
    (text, head)
}

fn json(text: &str) -> Json {
    Json::read(text.as_bytes()).unwrap()
}

fn codes(findings: &[Finding]) -> Vec<(&'static str, &str)> {
    findings.iter().map(|finding| (finding.code, finding.at.as_str())).collect()
}

/// The findings of a single event, without these.
fn listed(line: &str) -> Vec<(&'static str, String)> {
    let (_, findings) = TraceRecord::read(line.as_bytes());
    findings.into_iter().map(|finding| (finding.code, finding.at)).collect()
}

fn sealed() -> String {
    event(SESSION, 0, GENESIS).seal().unwrap()
}

#[test]
fn a_sound_event_has_no_findings_and_a_span() {
    let (record, findings) = TraceRecord::read(sealed().as_bytes());
    assert_eq!(findings, []);
    let summary = record.summary();
    assert_eq!((summary.ok, summary.claimed_at.unwrap().seconds()), (Some(true), 1_735_387_200));
    let span = summary.session.unwrap();
    assert_eq!((span.session.as_str(), span.first, span.last), (SESSION, 0, 0));
    assert_eq!((span.previous.as_str(), &span.head), (GENESIS, &record.events()[0].hash));
}

#[test]
fn members_are_refused_by_their_grammar_before_anything_is_hashed() {
    let malformed = [
        ("/trace_version", r#""trace_version":"1.0""#, r#""trace_version":"1.1""#),
        ("/event_id", r#""event_id":"0"#, r#""event_id":"G"#),
        ("/event_id", r#""event_id":"01939c6e-"#, r#""event_id":"01939C6E-"#),
        ("/span_id", r#""span_id":"01939c6e-0000"#, r#""span_id":"01939c6e00000"#),
        ("/parent_span_id", r#""parent_span_id":null"#, r#""parent_span_id":"""#),
        ("/parent_span_id", r#""parent_span_id":null"#, r#""parent_span_id":7"#),
        ("/session_id", r#""session_id":"01939c6e"#, r#""session_id":"1939c6e"#),
        ("/sequence", r#""sequence":0"#, r#""sequence":"0""#),
        ("/sequence", r#""sequence":0"#, r#""sequence":-0"#),
        ("/sequence", r#""sequence":0"#, r#""sequence":0.0"#),
        ("/sequence", r#""sequence":0"#, r#""sequence":18446744073709551616"#),
        ("/timestamp", "2024-12-28T", "024-12-28T"),
        ("/timestamp", "2024-12-28T", "2024-12-28 "),
        ("/timestamp", "2024-12-28T", "2024-13-28T"),
        ("/timestamp", "00.000000Z", "00.000000"),
        ("/timestamp", "00.000000Z", "00.Z"),
        ("/timestamp", "00.000000Z", "00.0000000001Z"),
        ("/timestamp", "00.000000Z", "00.000000+0100"),
        ("/event_type", "policy.evaluated", "policy"),
        ("/event_type", "policy.evaluated", "Policy.evaluated"),
        ("/event_type", "policy.evaluated", "policy..evaluated"),
        ("/event_type", "policy.evaluated", "po_licy.evaluated"),
        ("/payload", r#"{"policy_id":"p","result":"allow"}"#, "[]"),
        ("/previous_event_hash", r#""previous_event_hash":"0"#, r#""previous_event_hash":"A"#),
        ("/event_hash", r#""event_hash":""#, r#""event_hash":"0"#),
    ];
    for (at, good, bad) in malformed {
        assert!(sealed().contains(good), "{good}");
        let line = sealed().replace(good, bad);
        assert_eq!(listed(&line), [("trace-member-malformed", at.to_owned())], "{bad}");
    }
    let missing = sealed().replace(r#""span_id":"#, r#""span":"#);
    let expected = [
        ("trace-member-unknown", "/span".to_owned()),
        ("trace-member-missing", "/span_id".to_owned()),
    ];
    assert_eq!(listed(&missing), expected);
    assert_eq!(listed("7"), [("trace-not-object", String::new())]);
    assert_eq!(listed("{")[0].0, "json-truncated");
}

#[test]
fn what_is_unusual_is_told_and_still_hashed() {
    type Change = fn(&mut Event);
    let cases: [(&str, &str, Change); 8] = [
        ("trace-uuid-not-v7", "/event_id", |e| e.event_id = e.event_id.replace("-7", "-4")),
        ("trace-uuid-not-v7", "/parent_span_id", |e| {
            e.parent_span_id = Some("11111111-1111-1111-1111-111111111111".to_owned());
        }),
        ("trace-time-not-exact", "/timestamp", |e| {
            e.timestamp = "2024-12-28T12:00:00+01:00".into();
        }),
        ("trace-event-type-unknown", "/event_type", |e| e.event_type = "context.stale".to_owned()),
        ("trace-payload-incomplete", "/payload/result", |e| {
            e.payload = json(r#"{"policy_id":"p","result":null}"#);
        }),
        ("trace-number-not-plain", "/payload/n/0", |e| {
            e.payload = json(r#"{"policy_id":"p","result":"allow","n":[1.5]}"#);
        }),
        ("trace-number-respelt", "/payload/n", |e| {
            e.payload = json(r#"{"policy_id":"p","result":"allow","n":1.50}"#);
        }),
        ("trace-number-respelt", "/payload/n", |e| {
            e.payload = json(r#"{"policy_id":"p","result":"allow","n":1e5}"#);
        }),
    ];
    for (code, at, change) in cases {
        let mut event = event(SESSION, 0, GENESIS);
        change(&mut event);
        let produced = event.seal();
        let (record, findings) = TraceRecord::read(written(&event).as_bytes());
        assert_eq!(codes(&findings), [(code, at)]);
        // An unknown kind may be produced; the rest is for imports alone.
        assert_eq!(produced.is_ok(), code == "trace-event-type-unknown", "{code}");
        assert!(record.span().is_some(), "{code}: the chain is sound");
        let is_error = findings[0].severity == Severity::Error;
        assert_eq!(record.summary().ok, Some(!is_error), "{code}");
    }
    let mut event = event(SESSION, 0, GENESIS);
    event.payload = json(r#"{"policy_id":"p","result":"allow","n":1e999}"#);
    let listed = codes_of(&event.seal().unwrap_err());
    assert!(listed.contains(&"json-truncated"), "nothing to hash, nothing written: {listed:?}");
    let line = sealed().replace(r#""allow""#, "1e999");
    assert_eq!(self::listed(&line), [("trace-number-beyond-double", "/payload/result".to_owned())]);
}

fn codes_of(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.code).collect()
}

/// An event as a foreign producer writes it.
fn written(event: &Event) -> String {
    let parent = event.parent_span_id.as_ref().map_or("null".to_owned(), |p| format!("{p:?}"));
    format!(
        r#"{{"trace_version":"1.0","event_id":"{}","trace_id":"{}","span_id":"{}","parent_span_id":{parent},"session_id":"{}","sequence":{},"timestamp":"{}","event_type":"{}","payload":{},"event_hash":"{}","previous_event_hash":"{}"}}"#,
        event.event_id,
        event.trace_id,
        event.span_id,
        event.session_id,
        event.sequence,
        event.timestamp,
        event.event_type,
        raw(&event.payload),
        event.hash,
        event.previous
    )
}

/// JSON with number tokens as they were.
fn raw(value: &Json) -> String {
    match value {
        Json::Number(token) => token.clone(),
        Json::Text(text) => format!("{text:?}"),
        Json::Null => "null".to_owned(),
        Json::Array(items) => {
            format!("[{}]", items.iter().map(raw).collect::<Vec<_>>().join(","))
        }
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name:?}:{}", raw(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Json::Bool(value) => value.to_string(),
    }
}

#[test]
fn numbers_and_text_are_hashed_as_python_and_as_cra_core_write_them() {
    let cases = [
        ("1", "1", "1"),
        ("-0", "0", "-0.0"),
        ("-0.0", "-0.0", "-0.0"),
        ("1.0", "1.0", "1.0"),
        ("1e5", "100000.0", "100000.0"),
        ("1e15", "1000000000000000.0", "1000000000000000.0"),
        ("1e16", "1e+16", "1e+16"),
        ("1E+21", "1e+21", "1e+21"),
        ("1.5e300", "1.5e+300", "1.5e+300"),
        ("0.0001", "0.0001", "0.0001"),
        ("0.00001", "1e-05", "0.00001"),
        ("1e-7", "1e-07", "1e-7"),
        ("5e-324", "5e-324", "5e-324"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890",
            "1.2345678901234568e+29",
        ),
        (
            r#""é😀\u007f\u001f\"\\""#,
            r#""\u00e9\ud83d\ude00\u007f\u001f\"\\""#,
            "\"é😀\u{7f}\\u001f\\\"\\\\\"",
        ),
        ("[true,false,null,[]]", "[true,false,null,[]]", "[true,false,null,[]]"),
        (r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#, r#"{"a":2,"b":1}"#),
    ];
    for (token, python, core) in cases {
        let value = json(token);
        assert_eq!(Form::CraTraceV1.payload(&value).as_deref(), Some(python), "{token}");
        assert_eq!(Form::CraCore.payload(&value).as_deref(), Some(core), "{token}");
    }
    let injected = json(r#"{"a\":1,\"b":2}"#);
    assert_eq!(Form::CraCore.payload(&injected), None, "cra-core does not escape names");
    assert_eq!(Form::CraTraceV1.payload(&injected).unwrap(), r#"{"a\":1,\"b":2}"#);
    assert_eq!((Form::CraCore.name(), Form::CraTraceV1.name()), ("cra-core", "cra-trace-v1"));
}

#[test]
fn every_kind_of_event_demands_its_members() {
    let kinds: Vec<&str> = event::TYPES.iter().map(|(kind, _)| *kind).collect();
    assert!(kinds.is_sorted());
    for (kind, members) in event::TYPES {
        let mut bare = event(SESSION, 0, GENESIS);
        (bare.event_type, bare.payload) = (kind.to_owned(), Json::Object(Vec::new()));
        let findings = bare.seal().unwrap_err();
        let at: Vec<String> = findings.iter().map(|finding| finding.at.clone()).collect();
        let wanted: Vec<String> = members.iter().map(|name| format!("/payload/{name}")).collect();
        assert_eq!(at, wanted, "{kind}");
        assert!(codes_of(&findings).iter().all(|code| *code == "trace-payload-incomplete"));
    }
}
