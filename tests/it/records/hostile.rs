//! Hostile payloads under every content type: findings or a 400, each limit with
//! its own code, never a 5xx.

use capstan::profile::cra::{atlas, carp, trace};
use capstan::profile::{pacr, pca};
use serde_json::{Value, json};

use super::{AGENT, KEEP, STRICT, World, certificate, codes, id_of, name, tuple};

const JSON: [&str; 7] = [
    pacr::JSON_CONTENT_TYPE,
    pca::CERTIFICATE_CONTENT_TYPE,
    pca::EVIDENCE_CONTENT_TYPE,
    carp::CONTENT_TYPE,
    atlas::CONTENT_TYPE,
    trace::CONTENT_TYPE,
    trace::BATCH_CONTENT_TYPE,
];

fn with(mut value: Value, member: &str, new: Value) -> Vec<u8> {
    value[member] = new;
    value.to_string().into_bytes()
}

/// Content type, payload, and the expected finding.
fn payloads() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let cbor = pacr::CBOR_CONTENT_TYPE;
    let many = [b"\x99\xa0\x00".as_slice(), &[0; 0xa000]].concat();
    let mut all = vec![
        (cbor, b"\x81".repeat(50_000), "cbor-too-deep"),
        (cbor, b"\xa1\x00".repeat(20_000), "cbor-too-deep"),
        (cbor, b"\xc1".repeat(50_000), "cbor-too-deep"),
        (cbor, many, "cbor-too-many-items"),
        (cbor, b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(), "cbor-unexpected-end"),
        (cbor, b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff".to_vec(), "cbor-unexpected-end"),
        (cbor, b"\x9f".repeat(50_000), "cbor-indefinite-length"),
        (cbor, b"\xa2\x61a\x00\x61a\x00".to_vec(), "cbor-duplicate-key"),
        (cbor, Vec::new(), "cbor-unexpected-end"),
    ];
    for kind in JSON {
        all.push((kind, b"[".repeat(50_000), "json-too-deep"));
        all.push((kind, b"{\"a\":".repeat(10_000), "json-too-deep"));
        all.push((kind, br#"{"a":1,"a":2}"#.to_vec(), "json-duplicate-key"));
        all.push((kind, br#"{"a":"\ud800"}"#.to_vec(), "json-lone-surrogate"));
        all.push((kind, b"\xff\xfe".to_vec(), "json-bad-utf8"));
    }
    let zeros = |count| Value::from(vec![0; count]);
    let limit = "pca_limit_exceeded";
    all.extend([
        (pca::CERTIFICATE_CONTENT_TYPE, with(certificate(AGENT, "n"), "steps", zeros(4097)), limit),
        (
            pca::EVIDENCE_CONTENT_TYPE,
            with(json!({"capsule_version": "1.0"}), "proofs", zeros(4097)),
            limit,
        ),
        (trace::BATCH_CONTENT_TYPE, b"1\n".repeat(4097), "trace-too-many-events"),
        (trace::BATCH_CONTENT_TYPE, b"1\n".repeat(4096), "cra-findings-left-out"),
        (atlas::CONTENT_TYPE, with(json!({}), "actions", zeros(9000)), "cra-findings-left-out"),
        (
            carp::CONTENT_TYPE,
            with(json!({"resolution_id": "x", "decision": {}}), "constraints", zeros(9000)),
            "cra-findings-left-out",
        ),
    ]);
    all
}

#[test]
fn hostile_payloads_are_refused_or_kept_with_findings() {
    let (strict, lenient) = (World::new(STRICT), World::new(KEEP));
    for (kind, payload, code) in payloads() {
        let start = String::from_utf8_lossy(&payload[..payload.len().min(20)]).into_owned();
        let (status, answer) = strict.post(&strict.seal(AGENT, (kind, &payload)));
        assert_eq!(status, 400, "{kind} {start:?}");
        assert!(!String::from_utf8_lossy(&answer).contains("panic"));
        let kept = lenient.seal(AGENT, (kind, &payload));
        lenient.admit(&kept);
        let shown = lenient.get(&format!("/api/v1/statements/{}", id_of(&kept)));
        let found = codes(&shown["findings"]);
        assert!(found.contains(&code), "{kind} {start:?}: {code} in {found:?}");
        assert!(found.len() < 200, "{kind} {start:?}: {} findings", found.len());
        assert_eq!(shown["record"]["ok"], false, "{kind} {start:?}");
    }
    for world in [&strict, &lenient] {
        assert_eq!(world.status("/health"), 200);
    }
    let size = payloads().len();
    let page = lenient.get("/api/v1/statements?limit=200");
    assert_eq!(page["statements"].as_array().map(Vec::len), Some(size + 3));
    lenient.stop();
    lenient.run(0, "replay --data data");
}

/// No policy admits a causal record beyond the limits of the parser.
#[test]
fn oversized_causal_records_are_rejected_under_every_policy() {
    let ids: Vec<String> = (1..=1025).map(name).collect();
    let mut wide = tuple(&name(0), &[], json!({}));
    wide.predecessors = ids.iter().map(|id| pacr::CausalId::from_hex(id).unwrap()).collect();
    let mut long = tuple(&name(0), &[], json!({}));
    long.payload = vec![7; 50 * 1024];
    let world = World::new(KEEP);
    for (kind, payload, setting) in [
        (pacr::CBOR_CONTENT_TYPE, wide.to_cbor(), "pacr.predecessors"),
        (pacr::JSON_CONTENT_TYPE, wide.to_json(), "pacr.predecessors"),
        (pacr::CBOR_CONTENT_TYPE, long.to_cbor(), "pacr.payload_bytes"),
    ] {
        let why = world.refused(&world.seal(AGENT, (kind, &payload)));
        assert!(why.contains(setting), "{why}");
    }
}

#[test]
fn malformed_names_get_4xx() {
    let world = World::new(KEEP);
    let long = "A".repeat(6_000);
    for name in ["..", "%00", "0", &long, "%ff"] {
        for path in ["stories", "lineages"] {
            let status = world.status(&format!("/api/v1/{path}/{name}"));
            assert!((400..500).contains(&status), "{path} {name:.20}: {status}");
        }
    }
}
