//! Bytes nobody means well with: findings, never a panic, each limit with a
//! code of its own.

use super::*;

fn codes(encoding: Encoding, bytes: &[u8]) -> Vec<&'static str> {
    let (record, findings) = PacrRecord::read(encoding, bytes);
    assert_eq!(record.summary().ok, Some(false));
    findings.iter().map(|f| f.code).collect()
}

#[test]
fn bombs() {
    let deep = |open: &[u8], depth| open.repeat(depth);
    let many = [b"\x99\xff\xff".as_slice(), &[0; 65_535]].concat();
    let cases: [(Encoding, Vec<u8>, &str); 14] = [
        (Encoding::Cbor, deep(b"\x81", 50_000), "cbor-too-deep"),
        (Encoding::Cbor, deep(b"\xa1\x00", 50_000), "cbor-too-deep"),
        (Encoding::Cbor, deep(b"\xc1", 50_000), "cbor-too-deep"),
        (Encoding::Cbor, many, "cbor-too-many-items"),
        (Encoding::Cbor, b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(), "cbor-unexpected-end"),
        (Encoding::Cbor, b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff".to_vec(), "cbor-unexpected-end"),
        (Encoding::Cbor, b"\x9f\xff".to_vec(), "cbor-indefinite-length"),
        (Encoding::Cbor, b"\xa2\x61a\x00\x61a\x00".to_vec(), "cbor-duplicate-key"),
        (Encoding::Cbor, b"\xa0\x00".to_vec(), "cbor-trailing-bytes"),
        (Encoding::Cbor, b"".to_vec(), "cbor-unexpected-end"),
        (Encoding::Json, deep(b"[", 50_000), "json-too-deep"),
        (Encoding::Json, deep(b"{\"id\":", 9_000), "json-too-deep"),
        (Encoding::Json, b"{\"id\":1,\"id\":1}".to_vec(), "json-duplicate-key"),
        (Encoding::Json, b"".to_vec(), "json-truncated"),
    ];
    for (encoding, bytes, code) in cases {
        assert_eq!(codes(encoding, &bytes), [code]);
    }
}

#[test]
fn huge_sets() {
    let ids = |count: usize| -> Vec<String> { (1..=count).map(|n| format!("{n:032X}")).collect() };
    let set = |count| with("/predecessors", ids(count).into());
    let (record, findings) = read_json(&set(PREDECESSORS_MAX));
    assert_eq!(findings, []);
    assert_eq!(record.summary().predecessors.len(), PREDECESSORS_MAX);
    for count in [PREDECESSORS_MAX + 1, 100_000] {
        let (record, findings) = read_json(&set(count));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].code, "pacr-limit-predecessors");
        assert_eq!(record.summary().predecessors, [""; 0]);
        assert_eq!(record.tuple(), None);
    }
    let mut tuple = read_json(&sound()).0.tuple().unwrap().clone();
    let many = ids(PREDECESSORS_MAX + 1);
    tuple.predecessors = many.iter().map(|id| CausalId::from_hex(id).unwrap()).collect();
    assert_eq!(codes(Encoding::Cbor, &tuple.to_cbor()), ["pacr-limit-predecessors"]);
    let strangers: serde_json::Map<String, Written> =
        (0..9000).map(|n| (format!("x{n}"), Written::Null)).collect();
    assert_eq!(read_json(&strangers.into()).1.len(), 7, "one finding for all strangers");
}

#[test]
fn every_member_of_every_type() {
    let places = [
        "/id",
        "/predecessors",
        "/predecessors/0",
        "/landauer_cost",
        "/landauer_cost/point",
        "/resources",
        "/resources/energy",
        "/resources/time/upper",
        "/cognitive_split",
        "/cognitive_split/info_gain",
        "/cognitive_split/entropy_rate/lower",
        "/payload",
    ];
    let values = [
        "null", "true", "0", "-1", "1.5", "1e308", "\"\"", "\"x\"", "[]", "{}", "[[{}]]", "[1,2,3]",
    ];
    for place in places {
        for value in values {
            let changed = with(place, serde_json::from_str(value).unwrap());
            let (record, findings) = read_json(&changed);
            findings.iter().for_each(|f| assert!(f.at.starts_with('/'), "{f:?}"));
            let refused = findings.iter().any(|f| f.severity == Severity::Error);
            assert_eq!(record.verdict() == Verdict::Refused, refused, "{place} {value}");
            assert_eq!(findings.iter().any(|f| f.gating), refused);
            PacrRecord::import(changed.to_string().as_bytes());
            let _either = describe(changed.to_string().as_bytes());
        }
    }
}

#[test]
fn every_cut_and_every_bit() {
    let whole = read_json(&sound()).0.to_cbor().unwrap();
    for end in 0..whole.len() {
        PacrRecord::read(Encoding::Cbor, &whole[..end]).0.summary();
    }
    for at in 0..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let (record, _) = PacrRecord::read(Encoding::Cbor, &changed);
        let (before, after) = (Digest::of(&whole), record.summary().content.unwrap());
        assert_ne!(before.to_string(), after, "the same name over other bytes is noticed");
    }
}
