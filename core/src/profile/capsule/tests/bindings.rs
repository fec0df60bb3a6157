//! Header claims against payloads; outcomes and bare ids.

use super::*;
use crate::envelope::Header;
use crate::envelope::{Claims, ContentType};
use crate::profile::{Read, read_payload};

fn header(content_type: &str) -> Header {
    let named = [
        ("capsule_statement_type", "agent_action"),
        ("capsule_action_type", "decide"),
        ("capsule_decision_id", "order-7"),
    ];
    Header {
        content_type: Some(ContentType::Media(content_type.to_owned())),
        claims: Claims {
            issuer: Some("agent@v1".to_owned()),
            subject: Some("urn:agent-action-capsule:acme:order-7".to_owned()),
            named: named.map(|(n, v)| (n.to_owned(), Some(v.to_owned()))).to_vec(),
            ..Claims::default()
        },
        ..Header::default()
    }
}

fn claim(header: &mut Header, name: &str, value: Option<&str>) {
    header.claims.named.retain(|(n, _)| n != name);
    header.claims.named.push((name.to_owned(), value.map(str::to_owned)));
}

fn codes(read: &Read) -> Vec<&str> {
    read.findings.iter().map(|f| f.code).collect()
}

fn read_good(header: &Header) -> Read {
    let text = jcs::canonical(&changed(&[])).unwrap();
    read_payload(header, text.as_bytes())
}

#[test]
fn every_binding_code() {
    let good = header(CONTENT_TYPE);
    let read = read_good(&good);
    assert_eq!(read.findings, []);
    assert_eq!(read.profile(), "capsule");
    assert_eq!(read.record.summary().decision_id.as_deref(), Some("order-7"));
    let mut produced = Vec::new();
    let mut expect = |change: &dyn Fn(&mut Header), expected: &[&'static str]| {
        let mut header = good.clone();
        change(&mut header);
        let read = read_good(&header);
        assert_eq!(codes(&read), expected);
        assert_eq!(read.record.summary().ok, Some(true), "the Capsule's own ok stays");
        produced.extend(expected.iter().copied());
    };
    expect(&|h| h.claims.issuer = Some("mallory".to_owned()), &["issuer_not_developer"]);
    expect(
        &|h| h.claims.subject = Some("urn:agent-action-capsule:acme:8".to_owned()),
        &["subject_mismatch"],
    );
    expect(&|h| claim(h, "capsule_action_type", Some("fyi")), &["action_type_mismatch"]);
    expect(&|h| claim(h, "capsule_action_type", None), &["claim_not_text"]);
    expect(&|h| claim(h, "capsule_decision_id", Some("d-1")), &["decision_id_not_action_id"]);
    expect(&|h| claim(h, "capsule_statement_type", Some("outcome")), &["statement_type_mismatch"]);
    expect(&|h| claim(h, "capsule_statement_type", None), &["statement_type_missing"]);
    expect(&|h| claim(h, "capsule_new", Some("x")), &["unknown_capsule_claim"]);
    expect(&|h| claim(h, "other", Some("x")), &[]);
    let mut with_decision = good.clone();
    claim(&mut with_decision, "capsule_decision_id", Some("d-1"));
    let text = jcs::canonical(&changed(&[("/effect/decision_id", "\"d-2\"")])).unwrap();
    assert_eq!(codes(&read_payload(&with_decision, text.as_bytes())), ["decision_id_mismatch"]);
    produced.push("decision_id_mismatch");
    assert!(BINDING.iter().all(|code| produced.contains(code)));
}

#[test]
fn subjects_are_rebuilt_not_split() {
    assert_eq!(subject("acme:eu", "7"), subject("acme", "eu:7"));
    let mut header = header(CONTENT_TYPE);
    header.claims.subject = Some("urn:agent-action-capsule:acme:eu:7".to_owned());
    claim(&mut header, "capsule_decision_id", Some("7"));
    let capsule = changed(&[("/operator", "\"acme:eu\""), ("/action_id", "\"7\"")]);
    let read = read_payload(&header, jcs::canonical(&capsule).unwrap().as_bytes());
    assert_eq!(read.findings, []);
}

#[test]
fn outcomes() {
    let mut header = header(OUTCOME_CONTENT_TYPE);
    claim(&mut header, "capsule_statement_type", Some("outcome"));
    let read = read_payload(&header, br#"{"kind":"reversal","external_ref":"erp:7"}"#);
    assert_eq!(read.findings, []);
    assert_eq!(read.profile(), "capsule-outcome");
    let summary = read.record.summary();
    assert_eq!((summary.decision_id.as_deref(), summary.ok), (Some("order-7"), Some(true)));
    assert_eq!(summary.external_ref.as_deref(), Some("erp:7"));
    let record = read.get::<OutcomeRecord>().unwrap();
    assert_eq!(record.subject(), header.claims.subject.as_deref());
    assert!(record.payload().get("kind").is_some());

    header.claims.named.retain(|(n, _)| n != "capsule_decision_id");
    let found = |header: &Header, payload: &[u8]| {
        codes(&read_payload(header, payload)).iter().map(|c| (*c).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(&header, b"{}"), ["outcome_reference_missing"]);
    assert_eq!(found(&header, br#"{"action_id":"7"}"#), [""; 0]);
    assert_eq!(found(&header, b"[]"), ["outcome_not_object"]);
    assert_eq!(found(&header, b"{"), ["json-truncated"]);
    header.claims.subject = Some("erp:7".to_owned());
    assert_eq!(found(&header, br#"{"action_id":"7"}"#), ["subject_not_action"]);
}

#[test]
fn bare_ids() {
    let header = header(ID_CONTENT_TYPE);
    let read = read_payload(&header, &[7; 32]);
    assert_eq!(read.findings, []);
    assert_eq!(read.profile(), "capsule-id");
    assert_eq!(read.record.summary().record_id, Some("07".repeat(32)));
    let read = read_payload(&header, &[7; 64]);
    assert_eq!(codes(&read), ["capsule_id_malformed"]);
    assert_eq!(read.record.summary().ok, Some(false));
}
