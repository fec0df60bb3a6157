//! Any change of a byte is noticed, and no bytes are too strange to read.

use proptest::prelude::*;

use super::*;

/// Two linked events, the second with every kind of JSON in its payload.
fn rich() -> String {
    let mut first = event(SESSION, 0, GENESIS);
    let mut text = first.seal().unwrap() + "\n";
    let mut second = event(SESSION, 1, &first.hash);
    second.parent_span_id = Some(first.span_id);
    second.payload = json(
        r#"{"policy_id":"pé\n","result":"allow","l":[1,-2,true,false,null,{"x":"\"\\"}],
            "f":1.5,"g":1e+21,"z":-0.0}"#,
    );
    assert!(second.seal().is_err(), "fractions are for imports");
    text += &written(&second);
    text
}

/// What reading says of a text, where it stands aside.
fn reading(bytes: &[u8]) -> (Option<Span>, Vec<Finding>) {
    let (record, findings) = TraceRecord::read_batch(bytes);
    (record.span().cloned(), findings)
}

/// The JSON of each line; what is equal here is the same events in another
/// spelling: white space, and the escapes of a string.
fn values(bytes: &[u8]) -> Option<Vec<Json>> {
    bytes.split(|b| *b == b'\n').map(|line| Json::read(line).ok()).collect()
}

#[test]
fn a_change_of_any_byte_is_noticed() {
    let text = rich();
    let sound = reading(text.as_bytes());
    assert!(sound.0.is_some(), "{:?}", sound.1);
    let original = values(text.as_bytes()).unwrap();
    let (mut noticed, mut spelling) = (0, 0);
    let mut bytes = text.into_bytes();
    for place in 0..bytes.len() {
        let before = bytes[place];
        let flips = (0..8).map(|bit| before ^ (1 << bit));
        for byte in flips.chain([b' ', b'\n']).filter(|byte| *byte != before) {
            bytes[place] = byte;
            if values(&bytes).as_ref() == Some(&original) {
                spelling += 1;
            } else {
                assert_ne!(reading(&bytes), sound, "byte {place} from {before} to {byte}");
                noticed += 1;
            }
        }
        bytes[place] = before;
    }
    assert!(noticed > 8_000 && spelling < 20, "{noticed} {spelling}");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        TraceRecord::read(&bytes).0.summary();
        TraceRecord::read_batch(&bytes).0.summary();
        History::read(&bytes);
    }

    #[test]
    fn no_json_panics(text in r#"(\{("(sequence|payload|timestamp|event_type|x)":(0|-1|1e9|"é"|null|\[\]|\{\}),){0,4}"y":1\}\n){0,4}"#) {
        let (record, findings) = TraceRecord::read_batch(text.as_bytes());
        prop_assert_eq!(record.summary().ok, Some(false));
        prop_assert!(!findings.is_empty());
    }

    /// cra-core leaves its numbers to serde_json.
    #[test]
    fn numbers_of_cra_core_are_those_of_serde_json(bits: u64, small in -1e7f64..1e7) {
        for number in [f64::from_bits(bits), small, small / 1e12, small.trunc()] {
            let Ok(written) = serde_json::to_string(&number) else { continue };
            if number.is_finite() {
                prop_assert_eq!(Form::CraCore.payload(&Json::Number(format!("{number:e}"))), Some(written));
            }
        }
    }

    /// A change of several bytes is as good as one.
    #[test]
    fn changes_are_noticed(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let text = rich();
        let (sound, original) = (reading(text.as_bytes()), values(text.as_bytes()));
        let mut bytes = text.into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        prop_assert!(values(&bytes) == original || reading(&bytes) != sound);
    }
}
