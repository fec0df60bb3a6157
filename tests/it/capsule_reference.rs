//! Class 1 compared with the reference implementation of draft -01. Capsules and
//! the reference's results come from `tests/interop/capsule_reference.py`, in the
//! file named by `CAPSULE_REFERENCE`; without it the test is skipped.

use std::collections::BTreeMap;

use capstan::profile::capsule::{CapsuleRecord, Class1, Format};
use serde_json::Value;

/// Why our result may differ from the reference's. The list is that of
/// docs/profiles/capsule.md.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Difference {
    /// Not strict JSON.
    Text,
    /// Selective disclosure.
    Concealed,
    /// A negative zero, which the reference reads as 0.
    NegativeZero,
    /// The reference failed with an exception.
    ReferenceStopped,
    /// Another format_version: only that is reported.
    OtherFormat,
    /// Null, [] or {}: treated as absent.
    NotNormal,
    /// None: everything must agree.
    None,
}

fn difference(text: &str, record: &CapsuleRecord, stricter: &[&str], given: &Value) -> Difference {
    let codes = |prefix: &str| record.class1().findings.iter().any(|f| f.code.starts_with(prefix));
    let zero = record.class1().findings.iter().any(|f| f.detail.starts_with("-0 at "));
    if codes("json-") || codes("not_an_object") {
        Difference::Text
    } else if matches!(record.format(), Format::Unsupported(_)) {
        Difference::OtherFormat
    } else if record.is_concealed() {
        Difference::Concealed
    } else if zero {
        assert!(text.contains("-0"));
        Difference::NegativeZero
    } else if stricter.contains(&"non_normalised_payload") {
        Difference::NotNormal
    } else if given["stopped"] == true {
        Difference::ReferenceStopped
    } else {
        Difference::None
    }
}

/// `ok`, id, modes and the checks that failed.
fn verdict(class1: &Class1) -> Value {
    let derived = class1.derived.unwrap();
    let errors: Vec<(u8, &str)> =
        class1.findings.iter().filter(|f| f.gating).map(|f| (f.check.unwrap(), f.code)).collect();
    serde_json::json!({
        "ok": class1.ok,
        "capsule_id": class1.capsule_id.map(|id| id.hex()),
        "attestation_mode": derived.attestation.name(),
        "effect_mode": derived.effect.name(),
        "ledger_mode": derived.ledger.name(),
        "errors": errors,
    })
}

fn compare(text: &str, given: &Value) -> Difference {
    let (record, stricter) = CapsuleRecord::read(text.as_bytes());
    let stricter: Vec<&str> = stricter.iter().map(|f| f.code).collect();
    let class1 = record.class1();
    let difference = difference(text, &record, &stricter, given);
    let mut theirs = given["verdict"].clone();
    // The reference recomputes an id only to compare it; we always do.
    let same_id = |theirs: &Value| {
        theirs["capsule_id"].is_null() || theirs["capsule_id"] == verdict(class1)["capsule_id"]
    };
    match difference {
        Difference::Text | Difference::NegativeZero => assert_eq!(class1.ok, Some(false), "{text}"),
        Difference::Concealed => assert_eq!(class1.ok, None, "{text}"),
        Difference::ReferenceStopped => assert_eq!(theirs["ok"], class1.ok.unwrap(), "{text}"),
        Difference::OtherFormat => {
            assert_eq!((class1.ok, theirs["ok"].as_bool()), (Some(false), Some(false)), "{text}");
            assert!(same_id(&theirs) || text.contains(":-0,"), "{text}");
        }
        Difference::NotNormal | Difference::None => {
            // The reference also checked the normal form, which is what we
            // always check.
            if difference == Difference::NotNormal {
                assert!(same_id(&theirs), "{text}");
                theirs = given["normal_verdict"].clone();
                if given["normal_stopped"] == true {
                    assert_eq!(theirs["ok"], class1.ok.unwrap(), "{text}");
                    return Difference::ReferenceStopped;
                }
            }
            assert!(same_id(&theirs), "{text}");
            theirs["capsule_id"] = verdict(class1)["capsule_id"].clone();
            assert_eq!(verdict(class1), theirs, "{text}");
        }
    }
    difference
}

#[test]
fn reference_implementation_agrees() {
    let Some(path) = std::env::var_os("CAPSULE_REFERENCE") else {
        eprintln!("no verdicts of the reference; set CAPSULE_REFERENCE");
        return;
    };
    let mut seen: BTreeMap<Difference, usize> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let given: Value = serde_json::from_str(line).unwrap();
        *seen.entry(compare(given["text"].as_str().unwrap(), &given)).or_default() += 1;
    }
    println!("{seen:?}");
    assert!(seen.values().sum::<usize>() >= 4000, "{seen:?}");
    assert!(seen[&Difference::None] >= 1500, "{seen:?}");
    assert_eq!(seen.len(), 7, "every difference is seen: {seen:?}");
}
