//! RFC 8785's own samples, the limits of numbers, and what is as good as
//! absent. Known answers of others are checked from outside.

use super::*;

fn read(text: &str) -> Json {
    Json::read(text.as_bytes()).unwrap()
}

#[test]
fn canonical_text() {
    let cases = [
        (r#"{"b":1,"a":[true,null,"x"]}"#, r#"{"a":[true,null,"x"],"b":1}"#),
        // RFC 8785, 3.2.3, with a value that shows the place.
        (
            r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}",
        ),
        // RFC 8785, 3.2.2.2.
        (
            r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#,
            "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"",
        ),
        (r#""\b\f\n\r\t\u0000\u001f\u007f""#, "\"\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}\""),
        ("[0,-1,9007199254740991,-9007199254740991]", "[0,-1,9007199254740991,-9007199254740991]"),
        ("{}", "{}"),
    ];
    for (text, expected) in cases {
        assert_eq!(canonical(&read(text)).unwrap(), expected);
        assert_eq!(canonical(&read(expected)).unwrap(), expected, "twice is once");
    }
}

#[test]
fn numbers_without_a_canonical_form() {
    let cases = [
        (r#"{"a":[1,1.0]}"#, "jcs-not-integer", "/a/1"),
        (r#"{"a/b":{"c":1e3}}"#, "jcs-not-integer", "/a~1b/c"),
        ("1E3", "jcs-not-integer", ""),
        ("[-0]", "jcs-not-integer", "/0"),
        ("[9007199254740992]", "jcs-unsafe-integer", "/0"),
        ("[-9007199254740992]", "jcs-unsafe-integer", "/0"),
        ("[-9223372036854775808]", "jcs-unsafe-integer", "/0"),
        ("[123456789012345678901234567890]", "jcs-unsafe-integer", "/0"),
    ];
    for (text, code, pointer) in cases {
        let error = canonical(&read(text)).unwrap_err();
        assert_eq!((error.code(), error.pointer()), (code, pointer), "{text}");
    }
    assert_eq!(unsafe_numbers(&read(r#"{"a":1.5,"b":[2,1e99,-0]}"#)).len(), 3);
}

#[test]
fn absent_members_go_from_the_inside_out() {
    let cases = [
        (r#"{"a":null,"b":[],"c":{},"d":""}"#, r#"{"d":""}"#),
        (r#"{"a":{"b":{"c":null}}}"#, "{}"),
        (r#"{"a":[null,{"x":null},[]]}"#, r#"{"a":[null,{},[]]}"#),
        (r#"{"a":false,"b":0}"#, r#"{"a":false,"b":0}"#),
    ];
    for (text, expected) in cases {
        assert_eq!(normalise(read(text)), read(expected), "{text}");
        let digest = Suite::JcsN.digest(&read(text)).unwrap();
        assert_eq!(digest, Suite::JcsN.digest(&read(expected)).unwrap());
    }
    let without = Suite::JcsN.digest_without(&read(r#"{"a":1.5,"b":{"a":2}}"#), &["a"]).unwrap();
    let only = Suite::JcsN.digest(&read(r#"{"b":{"a":2}}"#)).unwrap();
    assert_eq!(without, only, "top level only");
}

#[test]
fn a_digest_says_its_suite() {
    let digest = Suite::JcsN.digest(&read("{}")).unwrap();
    let hex = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(digest.to_string(), format!("jcs-n:{hex}"));
    assert_eq!((digest.suite(), digest.hex()), (Suite::JcsN, hex.to_owned()));
}
