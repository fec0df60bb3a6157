//! The operator's limits for causal records: asked of what comes in, and of
//! nothing that is logged.

use super::*;
use crate::profile::pacr::{JSON_CONTENT_TYPE, describe};
use crate::service::{ReplayOptions, replay};

fn record(number: usize, causes: usize, payload: usize) -> Vec<u8> {
    let key = es256();
    let id = |number: usize| format!("0190A1B2C3D4E5F60718293A{number:08X}");
    let description = serde_json::json!({
        "id": id(number),
        "predecessors": (1..=causes).map(|cause| id(1000 + cause)).collect::<Vec<_>>(),
        "landauer_cost": 3e-21,
        "resources": { "energy": 5e-19, "time": 0.002, "space": 512 },
        "cognitive_split": { "statistical_complexity": 2.5, "entropy_rate": 0.5 },
        // The tag takes five bytes.
        "inner": "x".repeat(payload - 5),
    });
    let (tuple, _) = describe(description.to_string().as_bytes()).unwrap();
    Sketch::self_certified(&key).with(3, JSON_CONTENT_TYPE).payload(&tuple.to_json()).sign(&key)
}

#[tokio::test]
async fn causal_records_over_a_limit_are_refused_by_its_name() {
    let (outside, service) = log_with(OPEN, options());
    let (wide, long) = (record(1, 5, 64), record(2, 0, 200));
    for earlier in [&wide, &long] {
        assert_eq!(code(service.register(earlier.clone()).await), "ok");
    }
    service.shut_down().unwrap();
    drop(service);

    let record_limits = [("pacr.predecessors", 4), ("pacr.payload_bytes", 100)].into();
    let tight = Options { record_limits, ..options() };
    let service = open(&data(&outside), tight, Metrics::new("test")).unwrap();
    for (number, causes, payload, said) in [
        (3, 4, 100, None),
        (4, 5, 64, Some("has 5 predecessors, this log takes at most 4 (pacr.predecessors)")),
        (
            5,
            4,
            101,
            Some("has 101 bytes of payload, this log takes at most 100 (pacr.payload_bytes)"),
        ),
    ] {
        let answer = service.register(record(number, causes, payload)).await;
        match (answer, said) {
            (Ok(_), None) => {}
            (Err(rejected), Some(said)) => {
                assert_eq!(rejected.code(), "limit-exceeded");
                assert!(rejected.to_string().ends_with(said), "{rejected}");
            }
            (answer, said) => panic!("{said:?}: {answer:?}"),
        }
    }
    for earlier in [wide, long] {
        let again = service.register(earlier).await.unwrap();
        assert!(again.known, "what is logged keeps its receipt");
    }
    service.shut_down().unwrap();
    drop(service);
    let replayed = replay(&data(&outside), ReplayOptions::default(), &mut |_, _| {}).unwrap();
    assert!(replayed.changed.is_empty(), "no decision rests on a setting");
}
