//! Manifests, evidence, and what the two say about a Capsule.

use super::super::tests::{changed, listed};
use super::*;

const MANIFEST: &str = r#"
manifest = "orders"
[[constraint]]
id = "com.example.margin_floor"
evidence_schema = { type = "object", required = ["margin_bp", "price"], properties = { margin_bp = { type = "integer" }, price = { type = "string" } } }
[[constraint.threshold]]
at = "/margin_bp"
op = ">="
value = 250
[[constraint.threshold]]
at = "/price"
op = "<"
value = "100.50"
"#;

const GOOD_EVIDENCE: &str = r#"{"margin_bp":250,"price":"100.49","note":null}"#;

fn capsule(result: &str, evidence: &str) -> CapsuleRecord {
    let digest = Suite::JcsN.digest(&Json::read(evidence.as_bytes()).unwrap()).unwrap();
    let digest = format!("\"{}\"", digest.hex());
    let result = format!("\"{result}\"");
    CapsuleRecord::of(changed(&[
        ("/constraints/0/result", &result),
        ("/constraints/0/evidence_digest", &digest),
    ]))
    .0
}

fn file(name: &str, text: &str) -> Evidence {
    Evidence { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
}

/// A result, the evidence it binds, the files given, how many records were
/// judged and what was found.
type Case<'a> = (&'a str, &'a str, &'a [Evidence], usize, &'a [&'a str]);

#[test]
fn evidence_that_fits_and_evidence_that_does_not() {
    let id = "com.example.margin_floor";
    let cases: &[Case<'_>] = &[
        ("pass", GOOD_EVIDENCE, &[file("any", GOOD_EVIDENCE)], 1, &[]),
        ("pass", GOOD_EVIDENCE, &[file("any", r#"{"price":"100.49","margin_bp":250}"#)], 1, &[]),
        ("n/a", GOOD_EVIDENCE, &[file("any", GOOD_EVIDENCE)], 1, &[]),
        ("pass", GOOD_EVIDENCE, &[], 0, &["evidence_missing"]),
        ("pass", GOOD_EVIDENCE, &[file("any", "{}")], 0, &["evidence_missing"]),
        ("pass", GOOD_EVIDENCE, &[file(id, "{}")], 0, &["evidence_digest_mismatch"]),
        (
            "pass",
            GOOD_EVIDENCE,
            &[file(id, "{")],
            0,
            &["evidence_unreadable", "evidence_digest_mismatch"],
        ),
        (
            "pass",
            GOOD_EVIDENCE,
            &[file(id, "[1.5]")],
            0,
            &["evidence_unreadable", "evidence_digest_mismatch"],
        ),
        ("fail", GOOD_EVIDENCE, &[file(id, GOOD_EVIDENCE)], 1, &["threshold_not_applied"]),
        (
            "pass",
            r#"{"margin_bp":249,"price":"9"}"#,
            &[file(id, r#"{"margin_bp":249,"price":"9"}"#)],
            1,
            &["threshold_not_applied"],
        ),
        (
            "fail",
            r#"{"margin_bp":250,"price":"100.5"}"#,
            &[file(id, r#"{"margin_bp":250,"price":"100.5"}"#)],
            1,
            &[],
        ),
        (
            "pass",
            r#"{"margin_bp":"300","price":"9"}"#,
            &[file(id, r#"{"margin_bp":"300","price":"9"}"#)],
            1,
            &["evidence_schema_violation"],
        ),
        (
            "pass",
            r#"{"margin_bp":300}"#,
            &[file(id, r#"{"margin_bp":300}"#)],
            1,
            &["evidence_schema_violation", "threshold_uncheckable"],
        ),
    ];
    let manifest = Manifest::parse(MANIFEST).unwrap();
    assert_eq!(manifest.name(), "orders");
    for (result, bound, evidence, checked, codes) in cases {
        let found = class2(&capsule(result, bound), &manifest, evidence);
        let found_codes: Vec<&str> =
            listed(&found.findings).iter().map(|(_, code, ..)| *code).collect();
        assert_eq!((found.checked, found_codes.as_slice()), (*checked, *codes), "{result} {bound}");
    }
}

#[test]
fn records_the_manifest_cannot_judge() {
    let codes = |changes: &[(&str, &str)]| {
        let record = CapsuleRecord::of(changed(changes)).0;
        let found = class2(&record, &Manifest::parse(MANIFEST).unwrap(), &[]);
        found.findings.iter().map(|f| f.code).collect::<Vec<_>>()
    };
    assert_eq!(
        codes(&[("/constraints/0/id", "\"com.example.x\"")]),
        ["manifest_constraint_unknown"]
    );
    assert_eq!(codes(&[("/constraints/0/evidence_digest", "null")]), ["evidence_unbound"]);
    assert_eq!(codes(&[("/constraints", "null")]), [""; 0]);
    assert_eq!(codes(&[("/constraints/0", "5")]), [""; 0]);
}

#[test]
fn manifests() {
    let json = r#"{"manifest":"m","constraint":[{"id":"a","evidence_schema":{"type":"object"},
        "threshold":[{"at":"/x","op":"!=","value":"-1.50"}]}]}"#;
    assert!(Manifest::parse(json).is_ok());
    let cases = [
        (r#"{"manifest":"m","manifest":"n"}"#, "manifest-json"),
        (r#"{"manifest":"m","constraints":[]}"#, "manifest-shape"),
        ("manifest = 1", "manifest-shape"),
        (
            "manifest = \"m\"\n[[constraint]]\nid = \"a\"\n[[constraint]]\nid = \"a\"",
            "manifest-constraint-repeated",
        ),
        (
            r#"{"manifest":"m","constraint":[{"id":"a","evidence_schema":{"type":"no"}}]}"#,
            "manifest-schema",
        ),
        (
            r#"{"manifest":"m","constraint":[{"id":"a","evidence_schema":{"$ref":"https://schema.example/x"}}]}"#,
            "manifest-schema",
        ),
        (
            r#"{"manifest":"m","constraint":[{"id":"a","threshold":[{"at":"/x","op":">","value":1e3}]}]}"#,
            "manifest-threshold",
        ),
        (
            r#"{"manifest":"m","constraint":[{"id":"a","threshold":[{"at":"/x","op":"~","value":1}]}]}"#,
            "manifest-shape",
        ),
    ];
    for (text, code) in cases {
        assert_eq!(Manifest::parse(text).unwrap_err().code(), code, "{text}");
    }
    let exact = r#"{"manifest":"m","constraint":[{"id":"a","threshold":[{"at":"/x","op":">","value":0.10000000000000000001}]}]}"#;
    let manifest = Manifest::parse(exact).unwrap();
    let threshold = &manifest.constraint("a").unwrap().thresholds[0];
    assert_eq!(threshold.to_string(), "/x > 0.10000000000000000001", "no digit is lost");
}

#[test]
fn decimals_compare_exactly() {
    use super::decimal::Decimal;
    let rising = [
        "-10",
        "-9.5",
        "-9.49",
        "-0.001",
        "0",
        "0.1",
        "0.10000000000000000001",
        "9",
        "10",
        "10.01",
    ];
    let parsed: Vec<Decimal> = rising.iter().map(|t| Decimal::parse(t).unwrap()).collect();
    assert!(parsed.windows(2).all(|pair| pair[0] < pair[1]));
    for (a, b) in [("1", "1.0"), ("-0", "0"), ("007", "7"), ("0.50", "0.5")] {
        assert_eq!(Decimal::parse(a), Decimal::parse(b));
    }
    for no in ["", "-", ".5", "5.", "1e3", "+1", " 1", "1.2.3", "x"] {
        assert_eq!(Decimal::parse(no), None, "{no}");
    }
}
