//! The strict reader agrees with a second one wherever both take a text, it
//! refuses more only for what it refuses on purpose, every refusal names a
//! byte of the text, and canonical text reads back as the same value.
#![no_main]

use capstan::wire::jcs::canonical;
use capstan::wire::json::Json;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The second reader keeps the last of two names and nests deeper.
const ON_PURPOSE: [&str; 2] = ["json-duplicate-key", "json-too-deep"];

fuzz_target!(|bytes: &[u8]| {
    let theirs = serde_json::from_slice::<Value>(bytes);
    let ours = Json::read(bytes);
    match (&ours, theirs) {
        (Ok(ours), Ok(theirs)) => assert!(same(ours, &theirs), "two readings of one text"),
        // Numbers beyond a double stay text here.
        (Ok(_), Err(e)) => assert!(e.to_string().contains("out of range"), "{e}"),
        (Err(e), Ok(_)) => assert!(ON_PURPOSE.contains(&e.code()), "{e}"),
        (Err(_), Err(_)) => {}
    }
    match ours {
        Err(e) => assert!(e.offset <= bytes.len(), "{e}"),
        Ok(json) => {
            let Ok(text) = canonical(&json) else { return };
            let again = Json::read(text.as_bytes()).expect("canonical text is JSON");
            assert_eq!(sorted(again), sorted(json));
        }
    }
});

fn same(ours: &Json, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(a), Value::Bool(b)) => a == b,
        (Json::Number(a), Value::Number(b)) => a.parse::<f64>().ok() == b.as_f64(),
        (Json::Text(a), Value::String(b)) => a == b,
        (Json::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Json::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(n, v)| b.get(n).is_some_and(|w| same(v, w)))
        }
        _ => false,
    }
}

/// The same value with members in one order.
fn sorted(json: Json) -> Json {
    match json {
        Json::Array(items) => Json::Array(items.into_iter().map(sorted).collect()),
        Json::Object(members) => {
            let mut members: Vec<_> = members.into_iter().map(|(n, v)| (n, sorted(v))).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Json::Object(members)
        }
        other => other,
    }
}
