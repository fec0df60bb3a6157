mod dag;
mod hostile;
mod producing;

use serde_json::{Value as Written, json};

use super::*;
use crate::profile::Record;
use crate::wire::text;

pub(super) const ID: &str = "0190A1B2C3D4E5F60718293A4B5C6D7E";
const CAUSE: &str = "0190A1B2C3D4E5F60718293A4B5C6D01";
const OTHER: &str = "0190A1B2C3D4E5F60718293A4B5C6D02";
const ZERO: &str = "00000000000000000000000000000000";

/// A record that breaks nothing: an intervention with the inner bytes `on`.
pub(super) fn sound() -> Written {
    json!({
        "id": ID,
        "predecessors": [CAUSE, OTHER],
        "landauer_cost": { "point": 3e-21, "lower": 2.9e-21, "upper": 3.1e-21 },
        "resources": {
            "energy": { "point": 5e-19, "lower": 4e-19, "upper": 6e-19 },
            "time": { "point": 0.002, "lower": 0.001, "upper": 0.003 },
            "space": { "point": 512.0, "lower": 512.0, "upper": 512.0 },
        },
        "cognitive_split": {
            "statistical_complexity": { "point": 2.5, "lower": 2.0, "upper": 3.0 },
            "entropy_rate": { "point": 0.5, "lower": 0.25, "upper": 0.75 },
            "info_gain": { "point": 0.125, "lower": 0.0, "upper": 0.25 },
        },
        "payload": text::base64(b"PACR\x02on"),
    })
}

/// The sound record with a value put at a pointer.
pub(super) fn with(pointer: &str, value: Written) -> Written {
    let mut record = sound();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = record.pointer_mut(parent).unwrap();
    match parent {
        Written::Object(members) => {
            members.insert(name.to_owned(), value);
        }
        Written::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        _ => unreachable!("{pointer}"),
    }
    record
}

fn without(pointer: &str) -> Written {
    let mut record = sound();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    record.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
    record
}

fn payload(bytes: &[u8]) -> Written {
    with("/payload", text::base64(bytes).into())
}

pub(super) fn read_json(record: &Written) -> (PacrRecord, Vec<Finding>) {
    PacrRecord::read(Encoding::Json, record.to_string().as_bytes())
}

/// Severity, rule, code and place of each finding.
fn listed(findings: &[Finding]) -> Vec<(&'static str, Option<u8>, &'static str, &str)> {
    findings.iter().map(|f| (f.severity.name(), f.check, f.code, f.at.as_str())).collect()
}

#[test]
fn a_sound_record() {
    let (record, findings) = read_json(&sound());
    assert_eq!(findings, []);
    assert_eq!(record.verdict(), Verdict::Valid);
    let summary = record.summary();
    assert_eq!(summary.record_id.as_deref(), Some(ID));
    assert_eq!(summary.predecessors, [CAUSE, OTHER]);
    assert_eq!(summary.intervention.as_deref(), Some("do-digital"));
    assert_eq!(summary.content, Some(Digest::of(sound().to_string().as_bytes()).to_string()));
    assert_eq!(summary.ok, Some(true));
    assert_eq!((summary.verdict, summary.effect_status, summary.claimed_at), (None, None, None));
}

type Listed = (&'static str, Option<u8>, &'static str, &'static str);

fn error(rule: Option<u8>, code: &'static str, at: &'static str) -> Listed {
    ("error", rule, code, at)
}

fn exact(value: f64) -> Written {
    json!({ "point": value, "lower": value, "upper": value })
}

/// Each record gives its finding and no other, and is judged by it.
fn each_alone(cases: impl IntoIterator<Item = (Written, Listed)>) {
    for (record, expected) in cases {
        let (record, findings) = read_json(&record);
        assert_eq!(listed(&findings), [expected]);
        let is_error = expected.0 == "error";
        assert_eq!(record.summary().ok, Some(!is_error), "{expected:?}");
        assert!(findings.iter().all(|f| f.gating == is_error), "{expected:?}");
        let flags = expected.0 == "warning" && expected.1.is_some();
        let verdict = if is_error { Verdict::Refused } else { Verdict::Valid };
        assert_eq!(record.verdict(), if flags { Verdict::Flagged } else { verdict });
    }
}

#[test]
fn every_rule_by_itself() {
    let score = |score: f64| payload(&[b"PACR\x05".as_slice(), &score.to_be_bytes()].concat());
    let info_gain = "/cognitive_split/info_gain";
    let apart = json!({ "point": 5, "lower": 6, "upper": 7 });
    each_alone([
        (without("/payload"), error(Some(1), "pacr-field-missing", "/payload")),
        (without("/resources/time"), error(Some(1), "pacr-field-missing", "/resources/time")),
        (with("/id", Written::Null), error(Some(1), "pacr-field-null", "/id")),
        (with(info_gain, Written::Null), error(Some(1), "pacr-field-null", info_gain)),
        (
            with("/predecessors/1", ID.into()),
            error(Some(2), "pacr-self-reference", "/predecessors/1"),
        ),
        (
            with("/resources/space", apart),
            error(Some(3), "pacr-estimate-out-of-order", "/resources/space"),
        ),
        (with(info_gain, exact(-0.5)), error(Some(4), "pacr-point-negative", info_gain)),
        (
            with("/resources/energy", exact(1e-22)),
            ("warning", Some(6), "pacr-energy-below-landauer", "/resources/energy"),
        ),
        (
            with("/resources/time", exact(1e-17)),
            ("warning", Some(7), "pacr-time-below-quantum-limit", "/resources/time"),
        ),
        (payload(b"PACR"), error(Some(8), "pacr-tag-truncated", "/payload")),
        (payload(b"PACR\x05\x3f\xf0"), error(Some(8), "pacr-tag-truncated", "/payload")),
        (payload(b"PACR\x06"), error(Some(8), "pacr-kind-unknown", "/payload")),
        (payload(b"PACR\xff"), error(Some(8), "pacr-kind-reserved", "/payload")),
        (score(1.5), error(Some(9), "pacr-correlation-out-of-range", "/payload")),
        (score(f64::NAN), error(Some(9), "pacr-correlation-out-of-range", "/payload")),
        (score(f64::INFINITY), error(Some(9), "pacr-correlation-out-of-range", "/payload")),
    ]);
}

#[test]
fn every_form_by_itself() {
    let (cost, causes) = ("/landauer_cost", "/predecessors");
    let malformed = |at| error(None, "pacr-estimate-malformed", at);
    each_alone([
        (with("/id", ID.to_lowercase().into()), error(None, "pacr-id-malformed", "/id")),
        (with("/id", json!(7)), error(None, "pacr-id-malformed", "/id")),
        (with("/id", "01HZQK3P8EMXR9V7T5N2W4J6C0".into()), error(None, "pacr-id-malformed", "/id")),
        (with("/id", ZERO.into()), error(None, "pacr-id-zero", "/id")),
        (with("/predecessors/0", "x".into()), error(None, "pacr-id-malformed", "/predecessors/0")),
        (
            with("/predecessors/0", ZERO.into()),
            error(None, "pacr-sentinel-mixed", "/predecessors/0"),
        ),
        (with(causes, json!({})), error(None, "pacr-field-malformed", causes)),
        (with("/resources", json!([])), error(None, "pacr-field-malformed", "/resources")),
        (with(cost, json!([1, 1, 1])), malformed(cost)),
        (with("/landauer_cost/lower", "0".into()), malformed("/landauer_cost/lower")),
        (without("/landauer_cost/upper"), malformed("/landauer_cost/upper")),
        (with("/payload", "UEFDUgI".into()), error(None, "pacr-payload-malformed", "/payload")),
        (with("/payload", json!([80])), error(None, "pacr-payload-malformed", "/payload")),
        (payload(&vec![0; PAYLOAD_BYTES_MAX + 1]), error(None, "pacr-limit-payload", "/payload")),
        (
            with(causes, json!([ZERO])),
            ("warning", None, "pacr-sentinel-predecessor", "/predecessors/0"),
        ),
        (
            with("/predecessors/1", CAUSE.into()),
            ("warning", None, "pacr-predecessor-duplicate", "/predecessors/1"),
        ),
        (with("/landauer_cost/lower", json!(-1e-21)), ("info", None, "pacr-lower-negative", cost)),
        (with("/cause~d", json!(1)), ("info", None, "pacr-member-unknown", "/cause~0d")),
    ]);
}

#[test]
fn all_violations_are_reported() {
    let mut record = with("/predecessors/0", ID.into());
    record["landauer_cost"] = json!({ "point": -1.0, "lower": 2.0, "upper": 3.0 });
    record["resources"]["time"] = json!({ "point": 0.0, "lower": 0.0, "upper": 0.0 });
    record["resources"]["energy"]["point"] = json!(-2.0);
    record["cognitive_split"]["entropy_rate"] = Written::Null;
    record["payload"] = text::base64(b"PACR\x09").into();
    let (_, findings) = read_json(&record);
    let rules: Vec<_> = findings.iter().filter_map(|f| f.check).collect();
    // Energy is out of order, negative, and below the floor; time is not.
    assert_eq!(rules, [1, 2, 3, 4, 3, 4, 5, 6, 8]);
    assert_eq!(findings[6].code, "pacr-time-not-positive");
    let not_a_map = read_json(&json!([1]));
    assert_eq!(listed(&not_a_map.1), [("error", None, "pacr-not-a-map", "")]);
    let nothing = read_json(&json!({}));
    assert_eq!(nothing.1.len(), 6);
    assert!(nothing.1.iter().all(|f| f.code == "pacr-field-missing"));
}

#[test]
fn numbers_that_no_double_holds() {
    let record = sound().to_string();
    for (token, code) in [("1e999", "pacr-not-finite"), ("-1e999", "pacr-not-finite")] {
        let record = record.replace("512.0", token);
        let (read, findings) = PacrRecord::read(Encoding::Json, record.as_bytes());
        assert_eq!(findings.len(), 3, "{token}");
        assert!(findings.iter().all(|f| f.code == code && f.at.starts_with("/resources/space/")));
        assert_eq!(read.tuple(), None);
    }
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (read, _) = read_json(&sound());
        let mut tuple = read.tuple().unwrap().clone();
        tuple.cognitive_split.entropy_rate.upper = odd;
        let (read, findings) = PacrRecord::read(Encoding::Cbor, &tuple.to_cbor());
        let at = "/cognitive_split/entropy_rate/2";
        assert_eq!(listed(&findings), [("error", None, "pacr-not-finite", at)]);
        assert_eq!(read.verdict(), Verdict::Refused);
    }
}

#[test]
fn a_tag_is_never_an_observation_by_mistake() {
    let score = |score: f64| [b"PACR\x05".as_slice(), &score.to_be_bytes(), b"sim"].concat();
    let cases: [(Vec<u8>, &str, Option<f64>); 12] = [
        (b"".to_vec(), "observe", None),
        (b"legacy".to_vec(), "observe", None),
        (b"PAC".to_vec(), "observe", None),
        (b"PACR\x00".to_vec(), "observe", None),
        (b"PACR\x01".to_vec(), "do-physical", None),
        (b"PACR\x03x".to_vec(), "do-chemical", None),
        (b"PACR\x04x".to_vec(), "do-genetic", None),
        (score(0.87), "counterfactual", Some(0.87)),
        (score(-0.0), "counterfactual", Some(0.0)),
        (b"PACR\x05\x00".to_vec(), "counterfactual", None),
        (b"PACR".to_vec(), "unknown", None),
        (b"PACR\x77".to_vec(), "unknown", None),
    ];
    for (bytes, kind, score) in cases {
        let (record, _) = read_json(&payload(&bytes));
        assert_eq!((record.intervention(), record.sim_real_corr()), (kind, score), "{bytes:?}");
        assert_eq!(record.summary().intervention.as_deref(), Some(kind));
        if let Ok(tag) = Tag::read(&bytes) {
            let again = tag.write();
            assert!(again == bytes || !bytes.starts_with(b"PACR"));
            assert_eq!(Tag::read(&again).unwrap(), tag);
        }
    }
    let (record, _) = read_json(&without("/payload"));
    assert_eq!(record.intervention(), "unknown");
    for kind in Kind::ALL {
        assert_eq!(Kind::from_byte(kind.byte()), Some(*kind));
        assert_eq!(kind.name().parse(), Ok(*kind));
    }
}

#[test]
fn what_a_set_leaves_out() {
    let causes = |ids: Written| read_json(&with("/predecessors", ids)).0.summary().predecessors;
    assert_eq!(causes(json!([OTHER, CAUSE, OTHER])), [CAUSE, OTHER], "order means nothing");
    assert_eq!(causes(json!([ZERO])), [""; 0]);
    assert_eq!(causes(json!([ID, CAUSE])), [CAUSE], "no record is its own cause");
    let (zero, _) = read_json(&with("/id", ZERO.into()));
    assert_eq!(zero.summary().record_id, None, "the sentinel names nothing");
}

#[test]
fn absent_info_gain_is_zero() {
    let (record, findings) = read_json(&without("/cognitive_split/info_gain"));
    assert_eq!(findings, []);
    assert_eq!(record.tuple().unwrap().cognitive_split.info_gain, Estimate::ZERO);
}

#[test]
fn zero_energy_bounds_no_time() {
    let mut record = with("/resources/energy", json!({ "point": 0, "lower": 0, "upper": 0 }));
    record["landauer_cost"] = json!({ "point": 0, "lower": 0, "upper": 0 });
    assert_eq!(read_json(&record).1, []);
}
