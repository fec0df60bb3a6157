//! Bytes nobody means well with: findings with a JSON pointer, never a panic.

use super::*;

fn judged(bytes: &[u8]) -> (String, String) {
    let (record, _) = CapsuleRecord::read(bytes);
    assert_eq!(record.class1().ok, Some(false));
    let first = &record.class1().findings[0];
    (first.code.to_owned(), first.at.clone())
}

#[test]
fn bad_texts() {
    let text = jcs::canonical(&changed(&[])).unwrap();
    let with = |extra: &str| text.replacen('{', &format!("{{{extra},"), 1).into_bytes();
    let deep = |depth| [r#"{"x":"#.repeat(depth), "1".to_owned(), "}".repeat(depth)].concat();
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (with(r#""operator":"other""#), "json-duplicate-key", "/operator"),
        (with(r#""x":{"y":1,"\u0079":2}"#), "json-duplicate-key", "/x/y"),
        (with(r#""x":[1,1e3]"#), "float_in_digest_field", "/x/1"),
        (with(r#""x":-0"#), "float_in_digest_field", "/x"),
        (with(r#""x":"\ud800""#), "json-lone-surrogate", "/x"),
        (deep(10_000).into_bytes(), "json-too-deep", ""),
        (vec![b'['; 59 * 1024], "json-too-deep", ""),
        (text.as_bytes()[..100].to_vec(), "json-truncated", ""),
        (b"\xff\xfe".to_vec(), "json-bad-utf8", ""),
        (b"[]".to_vec(), "not_an_object", ""),
        (b"null".to_vec(), "not_an_object", ""),
    ];
    for (bytes, code, at) in cases {
        let (found, place) = judged(&bytes);
        assert_eq!(found, code);
        if code == "json-too-deep" || code == "json-truncated" {
            continue;
        }
        assert_eq!(place, at, "{code}");
    }
    let (_, place) = judged(deep(70).as_bytes());
    assert_eq!(place, "/x".repeat(64));
}

fn pointers(value: &Json, prefix: &str, out: &mut Vec<String>) {
    let mut step = |name: &str, value: &Json| {
        let pointer = format!("{prefix}/{name}");
        out.push(pointer.clone());
        pointers(value, &pointer, out);
    };
    match value {
        Json::Object(members) => members.iter().for_each(|(name, v)| step(name, v)),
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(i, v)| step(&i.to_string(), v));
        }
        _ => {}
    }
}

#[test]
fn every_member_of_every_type() {
    let chain = r#"{"relation":"supersedes","parent_capsule_id":"4444444444444444444444444444444444444444444444444444444444444444"}"#;
    let expiry = r#"{"ttl_seconds":60,"on_expiry":"expired"}"#;
    let rich = changed(&[("/chain", chain), ("/disposition/expiry_policy", expiry)]);
    let mut places = Vec::new();
    pointers(&rich, "", &mut places);
    assert!(places.len() > 40);
    let values = [
        "null",
        "true",
        "false",
        "0",
        "-1",
        "-0",
        "1.5",
        "1e3",
        "99999999999999999999",
        "\"\"",
        "\"x\"",
        "[]",
        "{}",
        "[1]",
        "[[{}]]",
        r#"{"a":1}"#,
        r#"{"_sd":["x"]}"#,
        r#"{"...":1}"#,
    ];
    for place in &places {
        for value in values {
            let mut capsule = rich.clone();
            set(&mut capsule, place, json(value));
            for capsule in [capsule.clone(), sealed(capsule)] {
                let (record, stricter) = CapsuleRecord::of(capsule.clone());
                let class1 = record.class1();
                let gates = class1.findings.iter().any(|f| f.gating);
                assert_eq!(class1.ok.map(|ok| !ok), class1.ok.map(|_| gates));
                let all = class1.findings.iter().chain(&stricter);
                all.for_each(|f| assert!(f.at.is_empty() || f.at.starts_with('/'), "{f:?}"));
                record.summary();
                class1_ledger(&[record.clone(), record]);
            }
        }
    }
}
