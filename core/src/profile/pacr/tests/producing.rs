//! What we write: both encodings, descriptions, imports, PROV.

use proptest::prelude::*;

use super::*;

#[test]
fn both_encodings_say_the_same() {
    let (record, _) = read_json(&sound());
    let tuple = record.tuple().unwrap();
    let cbor = record.to_cbor().unwrap();
    let (again, findings) = PacrRecord::read(Encoding::Cbor, &cbor);
    assert_eq!(findings, []);
    assert_eq!(again.tuple(), Some(tuple));
    assert_eq!(again.to_json(), record.to_json());
    let (again, _) = PacrRecord::read(Encoding::Json, &record.to_json().unwrap());
    assert_eq!(again.to_cbor(), Some(cbor.clone()));
    let json = String::from_utf8(record.to_json().unwrap()).unwrap();
    assert!(json.starts_with(r#"{"cognitive_split":{"entropy_rate":{"lower":0.25,"point":0.5,"#));
    // A map of six; the shortest key first; sixteen bytes of identity.
    assert!(cbor.starts_with(b"\xa6\x62id\x50\x01\x90"));
    assert_eq!(tuple.encode(Encoding::Cbor), cbor);
    assert_eq!(Encoding::Cbor.content_type(), CBOR_CONTENT_TYPE);
}

#[test]
fn cbor_has_rules_of_its_own() {
    let id = CausalId::from_hex(ID).unwrap();
    let estimate = || Value::Array(vec![Value::Int(1), Value::Float(0.5), Value::Int(2)]);
    let group = |names: [&'static str; 2]| {
        Value::Map(names.map(|name| (Value::Text(name), estimate())).into())
    };
    let record = |id: Value<'static>, cost: Value<'static>| {
        let fields = [
            ("id", id),
            ("predecessors", Value::Array(Vec::new())),
            ("landauer_cost", cost),
            ("resources", group(["energy", "time"])),
            ("cognitive_split", group(["statistical_complexity", "entropy_rate"])),
            ("payload", Value::Bytes(b"")),
        ];
        let fields = fields.map(|(name, value)| (Value::Text(name), value));
        let (record, findings) =
            PacrRecord::read(Encoding::Cbor, &Value::Map(fields.into()).encode());
        assert_eq!(record.tuple(), None, "space is missing");
        findings.into_iter().map(|f| f.code).collect::<Vec<_>>()
    };
    let bytes: &'static [u8; 16] = Box::leak(Box::new(*id.as_bytes()));
    let missing = "pacr-field-missing";
    assert_eq!(record(Value::Bytes(bytes), estimate()), [missing]);
    assert_eq!(record(Value::Text(ID), estimate()), ["pacr-id-malformed", missing]);
    let as_map = Value::Map(vec![(Value::Text("point"), Value::Int(1))]);
    let malformed = ["pacr-estimate-malformed", missing];
    assert_eq!(record(Value::Bytes(bytes), as_map), malformed);
    let two = Value::Array(vec![Value::Int(1), Value::Int(1)]);
    assert_eq!(record(Value::Bytes(bytes), two), malformed);
}

#[test]
fn a_description() {
    let text = r#"{
        "landauer_cost": 3e-21,
        "resources": { "energy": [5e-19, 4e-19, 6e-19], "time": 0.002, "space": 512 },
        "cognitive_split": { "statistical_complexity": 2.5, "entropy_rate": 0.5 },
        "intervention": "counterfactual", "sim_real_corr": 0.75, "inner": "what if"
    }"#;
    let (tuple, flags) = describe(text.as_bytes()).unwrap();
    assert_eq!(flags, []);
    assert_eq!(tuple.predecessors, []);
    assert_eq!(tuple.resources.energy, Estimate { point: 5e-19, lower: 4e-19, upper: 6e-19 });
    assert_eq!(tuple.cognitive_split.info_gain, Estimate::ZERO);
    let tag = Tag::read(&tuple.payload).unwrap();
    assert_eq!((tag.kind, tag.sim_real_corr), (Kind::Counterfactual, Some(0.75)));
    assert_eq!(tag.inner, b"what if");
    assert_eq!(describe(text.as_bytes()).unwrap().0, tuple, "the same event, the same name");
    let other = describe(text.replace("what if", "what then").as_bytes()).unwrap().0;
    assert_ne!(other.id, tuple.id);
    let (named, _) = describe(sound().to_string().as_bytes()).unwrap();
    assert_eq!(Some(&named), read_json(&sound()).0.tuple());
    let fast = with("/resources/time", json!(1e-17));
    let (_, flags) = describe(fast.to_string().as_bytes()).unwrap();
    assert_eq!(listed(&flags)[0].2, "pacr-time-below-quantum-limit");
}

#[test]
fn descriptions_that_are_none() {
    let part = |name: &str, value: Written| {
        let mut record = without("/payload");
        record[name] = value;
        record.to_string()
    };
    let cases = [
        ("{".to_owned(), "json-truncated", ""),
        ("[]".to_owned(), "pacr-description-wrong", "an object"),
        (with("/inner", "x".into()).to_string(), "pacr-description-wrong", "/payload"),
        (part("intervention", "guess".into()), "pacr-description-wrong", "do-physical"),
        (part("intervention", "counterfactual".into()), "pacr-description-wrong", "sim_real_corr"),
        (part("sim_real_corr", json!(0.5)), "pacr-description-wrong", "only for one"),
        (part("sim_real_corr", "0.5".into()), "pacr-description-wrong", "a number"),
        (part("inner", json!(5)), "pacr-description-wrong", "a string"),
        (with("/resource", json!(1)).to_string(), "pacr-record-broken", "pacr-member-unknown"),
        (with("/id", ZERO.into()).to_string(), "pacr-record-broken", "pacr-id-zero"),
    ];
    for (text, code, detail) in cases {
        let error = describe(text.as_bytes()).unwrap_err();
        assert_eq!(error.code(), code, "{text}");
        assert!(error.to_string().contains(detail), "{error}");
    }
}

#[test]
fn an_import_converts_and_says_so() {
    let mut record = sound();
    record["id"] = "01J0000000000000000000000Z".into();
    record["predecessors"] = json!([CAUSE, 17]);
    record["payload"] = json!([80, 65, 67, 82, 2, 111, 110]);
    let (read, findings) = PacrRecord::import(record.to_string().as_bytes());
    let expected = [
        ("info", None, "pacr-id-number-converted", "/predecessors/1"),
        ("info", None, "pacr-id-ulid-converted", "/id"),
        ("info", None, "pacr-payload-converted", "/payload"),
    ];
    let mut converted = listed(&findings);
    converted.sort_unstable();
    assert_eq!(converted, expected);
    assert_eq!(read.verdict(), Verdict::Valid);
    let tuple = read.tuple().unwrap();
    assert_eq!(tuple.payload, b"PACR\x02on");
    assert_eq!(tuple.predecessors[0].to_string(), format!("{:032X}", 17));
    let (strict, _) = read_json(&record);
    assert_eq!(strict.verdict(), Verdict::Refused, "never without being asked");
    for wrong in
        ["81J0000000000000000000000Z", "01J000000000000000000000IL", "01j0000000000000000000000z"]
    {
        assert_eq!(import::from_ulid(wrong), None, "{wrong}");
    }
    assert_eq!(import::from_ulid("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), Some(u128::MAX));
    let converted = |number: &str| {
        let mut record = Json::object([("id", Json::Number(number.to_owned()))]);
        import::convert(&mut record);
        record.get("id").and_then(Json::text).map(str::to_owned)
    };
    assert_eq!(converted("340282366920938463463374607431768211455"), Some("F".repeat(32)));
    assert_eq!(converted("340282366920938463463374607431768211456"), None);
    assert_eq!(PacrRecord::import(b"{").1[0].code, "json-truncated");
}

#[test]
fn prov_of_a_subgraph() {
    let (first, _) = read_json(&sound());
    let mut simulated = payload(&[b"PACR\x05".as_slice(), &0.5_f64.to_be_bytes()].concat());
    simulated["id"] = OTHER.into();
    simulated["predecessors"] = json!([]);
    let (second, _) = read_json(&simulated);
    let mut odd = payload(b"PACR\x44");
    odd["id"] = CAUSE.into();
    let (third, _) = read_json(&odd);
    let tuples = [first, second, third].map(|record| record.tuple().unwrap().clone());
    let document = prov(&tuples.iter().collect::<Vec<_>>());
    let kind = |id: &str| &document["activity"][format!("record:{id}")]["prov:type"]["$"];
    assert_eq!(kind(ID), "pacr:DoDigital");
    assert_eq!(kind(OTHER), "pacr:Counterfactual");
    assert_eq!(kind(CAUSE), "pacr:UnknownIntervention");
    let simulated = &document["activity"][format!("record:{OTHER}")];
    assert_eq!(simulated["pacr:counterfactual"], true);
    assert_eq!(simulated["pacr:sim_real_corr"]["$"], "0.5");
    assert_eq!(document["entity"][format!("payload:{OTHER}")]["pacr:counterfactual"], true);
    assert_eq!(document["wasInformedBy"].as_object().unwrap().len(), 4);
    let edge = &document["wasInformedBy"][format!("_:{ID}-informed-by-{CAUSE}")];
    assert_eq!(edge["prov:informed"], format!("record:{ID}"));
    assert_eq!(edge["prov:informant"], format!("record:{CAUSE}"));
    let value = &document["entity"][format!("payload:{ID}")]["prov:value"]["$"];
    assert_eq!(*value, text::base64(b"PACR\x02on"));
    assert!(!document.to_string().contains("pacr:Observe"));
    // The same name over other contents: both are listed.
    let mut twice = tuples[0].clone();
    twice.payload = b"other".to_vec();
    let document = prov(&[&tuples[0], &twice, &tuples[0]]);
    let both = document["activity"][format!("record:{ID}")].as_array().unwrap();
    assert_eq!(both.len(), 2);
}

fn estimate() -> impl Strategy<Value = Estimate> {
    let finite = || any::<f64>().prop_filter("finite", |n| n.is_finite());
    (finite(), finite(), finite()).prop_map(|(point, lower, upper)| Estimate {
        point,
        lower,
        upper,
    })
}

fn tuple() -> impl Strategy<Value = SixTuple> {
    let id = || any::<[u8; 16]>().prop_map(|bytes| CausalId::from_bytes(&bytes).unwrap());
    let predecessors = prop::collection::btree_set(id(), 0..6);
    let payload = prop::collection::vec(any::<u8>(), 0..40);
    let estimates = prop::array::uniform7(estimate());
    (id(), predecessors, estimates, payload).prop_map(|(id, predecessors, e, payload)| SixTuple {
        id,
        predecessors: predecessors.into_iter().filter(|id| !id.is_sentinel()).collect(),
        landauer_cost: e[0],
        resources: Resources { energy: e[1], time: e[2], space: e[3] },
        cognitive_split: CognitiveSplit {
            statistical_complexity: e[4],
            entropy_rate: e[5],
            info_gain: e[6],
        },
        payload,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// From JSON to CBOR and back nothing is lost, and both are judged alike.
    #[test]
    fn the_encodings_keep_the_meaning(tuple in tuple()) {
        let (from_json, told_json) = PacrRecord::read(Encoding::Json, &tuple.to_json());
        let (from_cbor, told_cbor) = PacrRecord::read(Encoding::Cbor, &tuple.to_cbor());
        prop_assert_eq!(from_json.tuple(), Some(&tuple));
        prop_assert_eq!(from_cbor.tuple(), Some(&tuple));
        prop_assert_eq!(from_json.verdict(), from_cbor.verdict());
        prop_assert_eq!(told_json, told_cbor);
        prop_assert_eq!(from_json.to_cbor(), Some(tuple.to_cbor()));
        prop_assert_eq!(from_cbor.to_json(), Some(tuple.to_json()));
        let names = |r: &PacrRecord| { let s = r.summary(); (s.record_id, s.predecessors, s.intervention) };
        prop_assert_eq!(names(&from_json), names(&from_cbor));
    }
}
