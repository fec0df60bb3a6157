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
fn empty_members_are_removed_bottom_up() {
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
fn digest_names_its_suite() {
    let digest = Suite::JcsN.digest(&read("{}")).unwrap();
    let hex = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(digest.to_string(), format!("jcs-n:{hex}"));
    assert_eq!((digest.suite(), digest.hex()), (Suite::JcsN, hex.to_owned()));
}

#[test]
fn numbers_of_pca() {
    // token, RFC 8785 (or why not), Python
    let cases = [
        ("0", "0", "0"),
        ("-0", "0", "0"),
        ("-0.0", "0", "0"),
        ("0e5", "0", "0"),
        ("1.0", "1", "1.0"),
        ("-120", "-120", "-120"),
        ("1.20e1", "12", "12.0"),
        ("0.1", "0.1", "0.1"),
        ("22382743444837.062", "22382743444837.062", "22382743444837.062"),
        ("22382743444837.0625", "jcs-inexact-number", "22382743444837.062"),
        ("-2.5E-1", "-0.25", "-0.25"),
        ("1e-4", "0.0001", "0.0001"),
        ("1e-5", "0.00001", "1e-05"),
        ("1e-6", "0.000001", "1e-06"),
        ("1e-7", "1e-7", "1e-07"),
        ("12.5e-9", "1.25e-8", "1.25e-08"),
        ("5e-324", "5e-324", "5e-324"),
        ("0.30000000000000004", "0.30000000000000004", "0.30000000000000004"),
        ("9007199254740991", "9007199254740991", "9007199254740991"),
        ("9.007199254740991e15", "9007199254740991", "9007199254740991.0"),
        ("9007199254740992", "jcs-unsafe-integer", "9007199254740992"),
        ("1e16", "jcs-unsafe-integer", "1e+16"),
        ("-1e30", "jcs-unsafe-integer", "-1e+30"),
        ("123456789012345678901234567890", "jcs-unsafe-integer", "123456789012345678901234567890"),
        ("1e999", "jcs-unsafe-integer", "jcs-inexact-number"),
        ("1e99999999999999999999", "jcs-inexact-number", "jcs-inexact-number"),
        ("1e-999", "jcs-inexact-number", "0"),
        ("0.10000000000000000001", "jcs-inexact-number", "0.1"),
    ];
    for (token, ecma, python) in cases {
        let value = Json::Number(token.to_owned());
        let told = |suite: Suite| suite.canonical(&value).unwrap_or_else(|e| e.code().to_owned());
        assert_eq!((told(Suite::PcaV1), told(Suite::PcaPython)), (ecma.into(), python.into()));
        let is_refused = |suite: Suite| !suite.refused(&value).is_empty();
        assert_eq!(is_refused(Suite::PcaV1), ecma.starts_with("jcs"), "{token}");
    }
    let deep = Suite::PcaV1.refused(&read(r#"{"a":[1,{"b/c":1e99}],"d":1e-999}"#));
    let told: Vec<&str> = deep.iter().map(Error::pointer).collect();
    assert_eq!(told, ["/a/1/b~1c", "/d"]);
}

#[test]
fn python_escaping_and_order() {
    let value = read(r#"{"\ufb33":"\u017c\n\u007f","\ud83d\ude00":"\u001f"}"#);
    let python = r#"{"\ufb33":"\u017c\n\u007f","\ud83d\ude00":"\u001f"}"#;
    assert_eq!(Suite::PcaPython.canonical(&value).unwrap(), python);
    let ours = "{\"😀\":\"\\u001f\",\"\u{fb33}\":\"ż\\n\u{7f}\"}";
    assert_eq!(Suite::PcaV1.canonical(&value).unwrap(), ours);
}

#[test]
fn label_is_part_of_the_digest() {
    let value = read(r#"{"a":null,"b":1}"#);
    let digest = Suite::PcaV1.labelled("PCv1", &value, &["a"]).unwrap();
    assert_eq!(digest.hex(), Digest::of(br#"PCv1:{"b":1}"#).to_string());
    assert_ne!(digest, Suite::PcaV1.labelled("AIRv1", &value, &["a"]).unwrap());
    assert_ne!(digest, Suite::PcaPython.labelled("PCv1", &value, &["a"]).unwrap());
    assert!(digest.to_string().starts_with("pca-v1:"));
    let kept = Suite::PcaPython.labelled("PCv1", &value, &[]).unwrap();
    assert_eq!(kept.hex(), Digest::of(br#"PCv1:{"a":null,"b":1}"#).to_string());
    assert!(kept.to_string().starts_with("pca-python:"));
}
