//! Every refusal, every short input, and the opinion of a second reader.

use proptest::prelude::*;

use super::cbor::{Reader, Value};
use super::digest::Digest;
use super::limits::{CBOR_DEPTH_MAX, CBOR_ITEMS_MAX};
use super::text::{base64url, did_you_mean, from_base64url, from_hex, grouped, hex, short};
use super::time::UnixSeconds;

fn code(bytes: &[u8]) -> &'static str {
    Value::read(bytes).map_or_else(|e| e.code(), |_| "ok")
}

#[test]
fn errors_by_code() {
    let cases = [
        ("a201010102", "cbor-duplicate-key"),
        ("a3006161616100616102", "cbor-duplicate-key"),
        ("a2a10102f5a10102f4", "cbor-duplicate-key"),
        ("a2f93c0000fb3ff000000000000000", "cbor-duplicate-key"),
        ("a281f93c000081fa3f80000000", "cbor-duplicate-key"),
        ("9f01ff", "cbor-indefinite-length"),
        ("bf0101ff", "cbor-indefinite-length"),
        ("5f4100ff", "cbor-indefinite-length"),
        ("7f6100ff", "cbor-indefinite-length"),
        ("819fff", "cbor-indefinite-length"),
        ("1817", "cbor-long-head"),
        ("1900ff", "cbor-long-head"),
        ("1a0000ffff", "cbor-long-head"),
        ("1b00000000ffffffff", "cbor-long-head"),
        ("3800", "cbor-long-head"),
        ("580100", "cbor-long-head"),
        ("78017a", "cbor-long-head"),
        ("980100", "cbor-long-head"),
        ("b8010000", "cbor-long-head"),
        ("d81200", "cbor-long-head"),
        ("ff", "cbor-not-well-formed"),
        ("1c", "cbor-not-well-formed"),
        ("fc", "cbor-not-well-formed"),
        ("f800", "cbor-not-well-formed"),
        ("f81f", "cbor-not-well-formed"),
        ("61ff", "cbor-not-well-formed"),
        ("62c328", "cbor-not-well-formed"),
        ("0000", "cbor-trailing-bytes"),
        ("", "cbor-unexpected-end"),
        ("18", "cbor-unexpected-end"),
        ("4100ff", "cbor-trailing-bytes"),
        ("4200", "cbor-unexpected-end"),
        ("8201", "cbor-unexpected-end"),
        ("c0", "cbor-unexpected-end"),
        ("9bffffffffffffffff00", "cbor-unexpected-end"),
        ("bbffffffffffffffff00", "cbor-unexpected-end"),
        ("5bffffffffffffffff00", "cbor-unexpected-end"),
    ];
    for (input, expected) in cases {
        assert_eq!(code(&from_hex(input).unwrap()), expected, "{input}");
    }
    let nested = |depth| [vec![0x81; depth], vec![0]].concat();
    assert_eq!(code(&nested(CBOR_DEPTH_MAX)), "ok");
    assert_eq!(code(&nested(CBOR_DEPTH_MAX + 1)), "cbor-too-deep");
    let wide = |items: u16| [&[0x99], &items.to_be_bytes()[..], &vec![0; items.into()]].concat();
    let limit = u16::try_from(CBOR_ITEMS_MAX).unwrap();
    assert_eq!(code(&wide(limit - 1)), "ok");
    assert_eq!(code(&wide(limit)), "cbor-too-many-items");
}

#[test]
fn reader_checks_the_kind() {
    assert_eq!(Reader::new(&[0x00]).tag().unwrap_err().code(), "cbor-unexpected-type");
    assert_eq!(Reader::new(&[0x40]).array().unwrap_err().code(), "cbor-unexpected-type");
    assert_eq!(Reader::new(&[0x80]).bytes().unwrap_err().code(), "cbor-unexpected-type");
    assert_eq!(Reader::new(&[0x5f]).bytes().unwrap_err().code(), "cbor-indefinite-length");
    assert_eq!(Reader::new(&[0x9f]).array().unwrap_err().code(), "cbor-indefinite-length");
    assert_eq!(Reader::new(&[0xd8, 18]).tag().unwrap_err().code(), "cbor-long-head");
}

/// Whatever is accepted has one spelling, so writing it again gives the same
/// bytes. Floats are the exception: we keep their value, not their width.
fn check_one_spelling(bytes: &[u8]) {
    let Ok(value) = Value::read(bytes) else { return };
    if !value.holds_float() {
        assert_eq!(value.encode(), bytes, "{}", hex(bytes));
    }
}

#[test]
fn three_byte_inputs_have_one_encoding() {
    for a in 0..=255 {
        check_one_spelling(&[a]);
        for b in 0..=255 {
            check_one_spelling(&[a, b]);
            for c in 0..=255 {
                check_one_spelling(&[a, b, c]);
            }
        }
    }
}

/// Our value as the other library would hold it.
fn theirs(value: &Value<'_>) -> ciborium::Value {
    use ciborium::Value as Other;
    match value {
        Value::Int(n) => Other::Integer((*n).try_into().unwrap()),
        Value::Bytes(b) => Other::Bytes(b.to_vec()),
        Value::Text(t) => Other::Text((*t).to_owned()),
        Value::Array(items) => Other::Array(items.iter().map(theirs).collect()),
        Value::Map(entries) => {
            Other::Map(entries.iter().map(|(k, v)| (theirs(k), theirs(v))).collect())
        }
        Value::Tag(tag, item) => Other::Tag(*tag, Box::new(theirs(item))),
        Value::Bool(b) => Other::Bool(*b),
        Value::Float(f) => Other::Float(*f),
        Value::Null => Other::Null,
        Value::Simple(n) => panic!("the other library has no simple({n})"),
    }
}

fn spelt(value: &ciborium::Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

fn any_value() -> impl Strategy<Value = ciborium::Value> {
    use ciborium::Value as Other;
    let int = any::<i64>().prop_map(Other::from);
    let small = (-300_i64..300).prop_map(Other::from);
    let leaf = prop_oneof![
        int,
        small,
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Other::Bytes),
        ".{0,12}".prop_map(Other::Text),
        any::<bool>().prop_map(Other::Bool),
        prop::num::f64::NORMAL.prop_map(Other::Float),
        Just(Other::Null),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Other::Array),
            prop::collection::vec((inner.clone(), inner.clone()), 0..6).prop_map(Other::Map),
            // Tags 2 and 3 are big numbers to the other library.
            (4_u64..70_000, inner).prop_map(|(tag, item)| Other::Tag(tag, Box::new(item))),
        ]
    })
}

proptest! {
    #[test]
    fn what_another_library_writes_we_read_the_same(value in any_value()) {
        let bytes = spelt(&value);
        match Value::read(&bytes) {
            Ok(ours) => {
                prop_assert_eq!(theirs(&ours), value);
                check_one_spelling(&bytes);
            }
            Err(e) => prop_assert_eq!(e.code(), "cbor-duplicate-key"),
        }
    }

    #[test]
    fn random_bytes_have_one_encoding(
        bytes in prop::collection::vec(any::<u8>(), 0..64)
    ) {
        check_one_spelling(&bytes);
    }

    #[test]
    fn one_changed_byte_never_panics(value in any_value(), at: prop::sample::Index, byte: u8) {
        let mut bytes = spelt(&value);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        check_one_spelling(&bytes);
    }
}

/// Whether the other library knows everything in a value: it has no simple
/// values but three, and reads `undefined` as null.
fn is_known_elsewhere(value: &Value<'_>) -> bool {
    match value {
        Value::Simple(_) => false,
        Value::Tag(tag, item) => !(2..=3).contains(tag) && is_known_elsewhere(item),
        Value::Array(items) => items.iter().all(is_known_elsewhere),
        Value::Map(entries) => {
            entries.iter().all(|(k, v)| is_known_elsewhere(k) && is_known_elsewhere(v))
        }
        _ => true,
    }
}

/// What we take the other library takes with the same meaning; what we refuse
/// and it takes is refused for being a second spelling, or for a limit.
fn check_second_opinion(bytes: &[u8]) {
    let on_purpose = [
        "cbor-duplicate-key",
        "cbor-indefinite-length",
        "cbor-long-head",
        "cbor-too-deep",
        "cbor-too-many-items",
        "cbor-trailing-bytes",
    ];
    // RFC 8949, 3.3: `f8 14` is not `false`; the other library thinks it is.
    let is_long_simple = bytes.windows(2).any(|pair| pair[0] == 0xf8 && pair[1] < 32);
    let other: Result<ciborium::Value, _> = ciborium::from_reader(bytes);
    match (Value::read(bytes), other) {
        (Ok(ours), Ok(other)) if is_known_elsewhere(&ours) => {
            assert_eq!(spelt(&theirs(&ours)), spelt(&other), "{}", hex(bytes));
        }
        (Ok(ours), Err(e)) => assert!(!is_known_elsewhere(&ours), "{}: {e}", hex(bytes)),
        (Err(e), Ok(_)) => {
            assert!(is_long_simple || on_purpose.contains(&e.code()), "{}: {e}", hex(bytes));
        }
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => {}
    }
}

#[test]
fn second_reader_agrees_on_two_byte_inputs() {
    check_second_opinion(&[]);
    for a in 0..=255 {
        check_second_opinion(&[a]);
        (0..=255).for_each(|b| check_second_opinion(&[a, b]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn second_reader_agrees_on_damaged_bytes(
        value in any_value(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut: prop::sample::Index,
    ) {
        let mut bytes = spelt(&value);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_second_opinion(&bytes);
        check_second_opinion(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn second_reader_agrees_on_random_bytes(
        bytes in prop::collection::vec(any::<u8>(), 0..12)
    ) {
        check_second_opinion(&bytes);
    }
}

#[test]
fn diagnostic_notation_truncates_long_strings() {
    let long = [vec![0x58, 65], vec![7; 65]].concat();
    let cases: [(&[u8], &str); 4] = [
        (b"\xa2\x01\x61\x61\x20\x82\xf5\xf6", r#"{1: "a", -1: [true, null]}"#),
        (b"\xc1\x42\x01\x02", "1(h'0102')"),
        (b"\xf7", "simple(23)"),
        (&long, "h'07070707070707070707070707070707…' /65 bytes/"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(Value::read(bytes).unwrap().to_string(), expected);
    }
}

#[test]
fn text_forms() {
    let digest = Digest::of(b"");
    assert_eq!(Digest::from_hex(&digest.to_string()), Some(digest));
    assert_eq!(Digest::from_hex(&digest.to_string().to_uppercase()), None);
    assert_eq!(Digest::from_hex("e3b0"), None);
    assert_eq!(from_hex("abc"), None);
    assert_eq!(from_hex("zz"), None);
    assert_eq!(from_base64url(&base64url(&[251, 255])), Some(vec![251, 255]));
    assert_eq!(base64url(&[251, 255]), "-_8");
    assert_eq!(short(&digest.to_string()), "e3b0c442…b855");
    assert_eq!(short("abcd"), "abcd");
    assert_eq!([0, 999, 1280, 1_000_000].map(grouped), ["0", "999", "1 280", "1 000 000"]);
    assert_eq!(did_you_mean("isuer", ["issuer", "subject"]), Some("issuer"));
    assert_eq!(did_you_mean("colour", ["issuer", "subject"]), None);
    assert_eq!(UnixSeconds::new(u64::MAX).to_string(), "18446744073709551615 s after 1970");
    assert_eq!(UnixSeconds::from_rfc3339("1969-12-31T23:59:59Z"), None);
    assert_eq!(UnixSeconds::from_rfc3339("1970-01-01T00:00:01Z"), Some(UnixSeconds::new(1)));
}
