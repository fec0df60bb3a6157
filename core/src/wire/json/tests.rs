//! Every refusal by code, byte and pointer; and a second reader's opinion.

use proptest::prelude::*;

use super::Json;
use crate::wire::limits::{JSON_BYTES_MAX, JSON_DEPTH_MAX};

fn code(text: &[u8]) -> &'static str {
    Json::read(text).map_or_else(|e| e.code(), |_| "ok")
}

#[test]
fn errors_have_code_byte_and_pointer() {
    let cases: &[(&[u8], &str, usize, &str)] = &[
        (br#"{"a":"\x"}"#, "json-bad-escape", 7, "/a"),
        (br#"{"a":"\u00g0"}"#, "json-bad-escape", 7, "/a"),
        (br#"["\ud800\u12"]"#, "json-bad-escape", 9, "/0"),
        (br#"{"a":[1,01]}"#, "json-bad-number", 9, "/a/1"),
        (b"[-]", "json-bad-number", 2, "/0"),
        (b"[1.]", "json-bad-number", 3, "/0"),
        (b"[1e+]", "json-bad-number", 4, "/0"),
        (b"[\"\xff\"]", "json-bad-utf8", 2, ""),
        (b"[\"\xed\xa0\x80\"]", "json-bad-utf8", 2, ""),
        (b"\xef\xbb\xbf{}", "json-byte-order-mark", 0, ""),
        (b"{\"a\":\"\n\"}", "json-control-character", 6, "/a"),
        (br#"{"b":{"a":1,"c":2,"\u0061":3}}"#, "json-duplicate-key", 18, "/b/a"),
        (br#"{"/":1,"~":2,"/":3}"#, "json-duplicate-key", 13, "/~1"),
        (br#"{"a":"\ud800"}"#, "json-lone-surrogate", 6, "/a"),
        (br#"["\udc00"]"#, "json-lone-surrogate", 2, "/0"),
        (br#"["\ud800\u0041"]"#, "json-lone-surrogate", 2, "/0"),
        (br#"{"\ud800":1}"#, "json-lone-surrogate", 2, ""),
        (b"{} {}", "json-trailing-bytes", 3, ""),
        (b"1 2", "json-trailing-bytes", 2, ""),
        (b"", "json-truncated", 0, ""),
        (b"[1,", "json-truncated", 3, "/1"),
        (b"{\"a\":\"x", "json-truncated", 7, "/a"),
        (b"\"\\", "json-truncated", 2, ""),
        (b"-", "json-truncated", 1, ""),
        (b"[1,]", "json-unexpected", 3, "/1"),
        (b"{\"a\" 1}", "json-unexpected", 5, "/a"),
        (b"{\"a\":1,}", "json-unexpected", 7, ""),
        (b"{a:1}", "json-unexpected", 1, ""),
        (b"[1 2]", "json-unexpected", 3, ""),
        (b"nul", "json-unexpected", 0, ""),
        (b"NaN", "json-unexpected", 0, ""),
        (b"[+1]", "json-unexpected", 1, "/0"),
        (b"'a'", "json-unexpected", 0, ""),
    ];
    for (text, code, offset, pointer) in cases {
        let error = Json::read(text).unwrap_err();
        let found = (error.code(), error.offset, error.pointer.as_str());
        assert_eq!(found, (*code, *offset, *pointer), "{}", String::from_utf8_lossy(text));
    }
    assert_eq!(code(&vec![b' '; JSON_BYTES_MAX + 1]), "json-too-large");
}

#[test]
fn depth_limit_precedes_stack_overflow() {
    let nested = |open: &str, close: &str, depth| {
        [open.repeat(depth), close.repeat(depth)].concat().into_bytes()
    };
    assert_eq!(code(&nested("[", "]", JSON_DEPTH_MAX)), "ok");
    assert_eq!(code(&nested("[", "]", JSON_DEPTH_MAX + 1)), "json-too-deep");
    assert_eq!(code(&nested("[", "]", 10_000)), "json-too-deep");
    assert_eq!(code("{\"a\":".repeat(10_000).as_bytes()), "json-too-deep");
    assert_eq!(code(&vec![b'['; 59 * 1024]), "json-too-deep");
}

#[test]
fn accessors() {
    let json =
        Json::read(br#" {"a":[true,null,{"b/c":-12}],"d~":"\ud83d\ude00\/","e":1e3} "#).unwrap();
    assert_eq!(json.pointer("/a/2/b~1c").and_then(Json::int), Some(-12));
    assert_eq!(json.pointer("/d~0").and_then(Json::text), Some("\u{1f600}/"));
    assert_eq!(json.pointer("/a/0").and_then(Json::bool), Some(true));
    assert_eq!(json.pointer(""), Some(&json));
    for absent in ["a", "/a/3", "/a/01", "/a/-", "/a/+1", "/x", "/d~0/0"] {
        assert_eq!(json.pointer(absent), None, "{absent}");
    }
    assert_eq!(json.get("e"), Some(&Json::Number("1e3".to_owned())));
    assert_eq!(json.get("e").and_then(Json::int), None);
    assert_eq!(Json::Number("-0".to_owned()).int(), None);
    assert_eq!(Json::from(5).int(), Some(5));
    assert_eq!(Json::object([("a", Json::from(true))]), Json::read(b"{\"a\":true}").unwrap());
    let kinds: Vec<&str> = ["null", "true", "1", "\"\"", "[]", "{}"]
        .map(|t| Json::read(t.as_bytes()).unwrap().kind())
        .to_vec();
    assert_eq!(kinds, ["null", "boolean", "number", "string", "array", "object"]);
}

fn same(ours: &Json, theirs: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (ours, theirs) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(a), Value::Bool(b)) => a == b,
        (Json::Number(a), Value::Number(b)) => {
            a.parse::<f64>().ok() == b.as_f64() || *a == b.to_string()
        }
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

/// serde_json takes what we take, but for what we refuse on purpose: it keeps
/// the last of two names, goes to depth 128, and knows no number above 1e308.
fn agrees(text: &[u8]) {
    let theirs = serde_json::from_slice::<serde_json::Value>(text);
    match (Json::read(text), theirs) {
        (Ok(ours), Ok(theirs)) => assert!(same(&ours, &theirs), "{text:?}"),
        (Ok(_), Err(e)) => assert!(e.to_string().contains("out of range"), "{text:?}: {e}"),
        (Err(e), Ok(_)) => assert!(
            ["json-duplicate-key", "json-too-deep"].contains(&e.code()),
            "{}: {e}",
            String::from_utf8_lossy(text)
        ),
        (Err(_), Err(_)) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn second_reader_agrees_on_fragments(
        text in r#"([\[\]{},:"0-9eE.+\- ]|\\u[dD][89cC]00|\\n|true|null|"[ab\\]?":?|é)*"#,
    ) {
        agrees(text.as_bytes());
    }

    #[test]
    fn a_second_reader_agrees_on_damaged_text(at in 0usize..200, byte: u8, cut in 0usize..200) {
        let mut text = br#"{"a":[1,-2.5e+3,{"b":null,"c":[]}],"d":"\u00e9\ud83d\ude00 x","e":true,"f":{"g":0}}"#.to_vec();
        if let Some(place) = text.get_mut(at) {
            *place = byte;
        }
        text.truncate(cut.max(20));
        agrees(&text);
    }
}
