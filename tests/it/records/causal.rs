//! Causal records: predecessors, equivocation, lineage, counterfactuals; and the
//! nonces of plan certificates.

use std::collections::BTreeSet;

use capstan::profile::{pacr, pca};
use serde_json::{Value, json};

use super::{AGENT, KEEP, OTHER, STRICT, World, causal, certificate, codes, id_of, indices, name};

#[test]
fn unknown_predecessor_is_refused() {
    let world = World::new(STRICT);
    let effect = world.causal(&name(2), &[&name(1)]);
    let why = world.refused(&effect);
    assert!(why.contains("predecessors is unknown, the policy wants none or known"), "{why}");
    world.admit(&world.causal(&name(1), &[]));
    world.admit(&effect);
    let half = world.causal(&name(3), &[&name(1), &name(9)]);
    assert!(world.refused(&half).contains("predecessors is unknown"), "one of two is not enough");
}

#[test]
fn self_reference_is_flagged_and_not_followed() {
    let own = name(7);
    let mut record: Value = serde_json::from_slice(&causal(&own, &[], json!({}))).unwrap();
    record["predecessors"] = json!([own]);
    let record = record.to_string();
    let strict = World::new(STRICT);
    let statement = |world: &World| world.seal(AGENT, (pacr::JSON_CONTENT_TYPE, record.as_bytes()));
    assert!(strict.refused(&statement(&strict)).contains("findings_at_most is error"));
    let lenient = World::new(KEEP);
    let kept = statement(&lenient);
    lenient.admit(&kept);
    let shown = lenient.get(&format!("/api/v1/statements/{}", id_of(&kept)));
    assert!(codes(&shown["findings"]).contains(&"pacr-self-reference"), "{shown}");
    let found = lenient.get(&format!("/api/v1/lineages/{own}"));
    assert_eq!(found["ancestors"], json!([]), "no walk in a circle");
}

#[test]
fn one_id_with_two_contents_is_equivocation() {
    let said = |inner: &str| causal(&name(1), &[], json!({ "inner": inner }));
    let strict = World::new(STRICT);
    let sealed =
        |world: &World, issuer, inner| world.seal(issuer, (pacr::JSON_CONTENT_TYPE, &said(inner)));
    strict.admit(&sealed(&strict, AGENT, "yes"));
    let why = strict.refused(&sealed(&strict, AGENT, "no"));
    assert!(why.contains("record_id is other-content"), "{why}");
    strict.admit(&sealed(&strict, OTHER, "yes"));

    let lenient = World::new(KEEP);
    for inner in ["yes", "no"] {
        lenient.admit(&sealed(&lenient, AGENT, inner));
    }
    let story = lenient.get(&format!("/api/v1/stories/{}", name(1)));
    assert_eq!(indices(&story["chain"]), [3, 4], "both are kept");
    assert_eq!(codes(&story["findings"]), ["record_id_equivocation"]);
    assert_eq!(story["findings"][0]["index"], 4, "{story}");
    let text = lenient.run_with_url(&format!("story {}", name(1)));
    assert!(text.contains("(record_id_equivocation)"), "{text}");
    let prov = lenient.get(&format!("/api/v1/lineages/{}/prov", name(1)));
    let payload = &prov["entity"][format!("payload:{}", name(1))];
    assert_eq!(payload.as_array().map(Vec::len), Some(2), "both are told: {prov}");
}

/// `a` before `b` and `c`, which are concurrent; all before `d`.
fn diamond(world: &World) -> [String; 4] {
    let [a, b, c, d] = [1, 2, 3, 4].map(name);
    let imagined = json!({ "intervention": "counterfactual", "sim_real_corr": 0.5, "inner": "x" });
    world.admit(&world.causal(&a, &[]));
    world.admit(&world.causal(&b, &[&a]));
    let imagined = causal(&c, &[&a], imagined);
    world.admit(&world.seal(AGENT, (pacr::JSON_CONTENT_TYPE, &imagined)));
    world.admit(&world.causal(&d, &[&b, &c]));
    world.admit(&world.causal(&name(99), &[]));
    [a, b, c, d]
}

#[test]
fn lineage_over_http_and_command_line() {
    let world = World::new(STRICT);
    let [a, b, c, d] = diamond(&world);
    let found = world.get(&format!("/api/v1/lineages/{d}"));
    let ancestors: BTreeSet<&str> =
        found["ancestors"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(ancestors, BTreeSet::from([a.as_str(), &b, &c]));
    assert_eq!((&found["missing"], &found["limit"]), (&json!([]), &Value::Null));
    let orders = [
        (&a, &d, "before"),
        (&d, &a, "after"),
        (&b, &c, "concurrent"),
        (&name(99), &d, "concurrent"),
        (&b, &b, "same"),
    ];
    for (one, other, order) in orders {
        let found = world.get(&format!("/api/v1/lineages/{one}/to/{other}"));
        assert_eq!(found["order"], order, "{found}");
    }
    let text = world.run_with_url(&format!("lineage {d}"));
    assert!(text.contains(&format!("{d} has 3 ancestors")), "{text}");
    let text = world.run_with_url(&format!("lineage {b} --to {c}"));
    assert!(text.contains("concurrent"), "{text}");
    for path in ["", "/prov"] {
        assert_eq!(world.status(&format!("/api/v1/lineages/{}{path}", name(77))), 404);
    }
    assert_eq!(world.status(&format!("/api/v1/lineages/{a}/to/{}", name(77))), 404);
    let story = world.get(&format!("/api/v1/stories/{a}"));
    assert_eq!(indices(&story["chain"]), [3, 4, 5, 6], "causes and effects, nothing else");
    assert_eq!(story["forks"], json!([{ "index": 3, "children": [4, 5] }]));
}

/// Each effect against each of its causes, as in `pacr compare`.
#[test]
fn effects_are_compared_with_causes_by_overlap() {
    let world = World::new(KEEP);
    let taking = |id: u32, causes: &[u32], time: Value| {
        let causes: Vec<String> = causes.iter().copied().map(name).collect();
        let causes: Vec<&str> = causes.iter().map(String::as_str).collect();
        let resources = json!({ "energy": 5e-19, "time": time, "space": 512 });
        let record = causal(&name(id), &causes, json!({ "resources": resources }));
        world.admit(&world.seal(AGENT, (pacr::JSON_CONTENT_TYPE, &record)));
    };
    taking(1, &[], json!([2, 1, 3]));
    taking(2, &[1], json!([4, 3, 5]));
    taking(3, &[1, 2], json!([0.5, 0.25, 0.75]));
    // An id with two contents, and an id that is not logged.
    taking(4, &[], json!(1));
    taking(4, &[], json!(2));
    taking(5, &[3, 4, 77], json!([9, 8, 10]));
    let found = world.get(&format!("/api/v1/lineages/{}", name(5)));
    let mut pairs: Vec<_> = found["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            let of = |member: &str| pair[member].as_str().unwrap();
            (of("effect"), of("cause"), pair["estimates"]["time"].as_str().unwrap_or("null"))
        })
        .collect();
    pairs.sort_unstable();
    let expected = [
        (2, 1, "overlaps"),
        (3, 1, "below"),
        (3, 2, "below"),
        (5, 3, "above"),
        (5, 4, "null"),
        (5, 77, "null"),
    ];
    let expected = expected.map(|(effect, cause, time)| (name(effect), name(cause), time));
    let expected: Vec<_> = expected.iter().map(|(e, c, t)| (e.as_str(), c.as_str(), *t)).collect();
    assert_eq!(pairs, expected);
    let first = &found["comparisons"][0]["estimates"];
    assert_eq!(first.as_object().map(serde_json::Map::len), Some(7), "{found}");
    assert_eq!((&first["energy"], &found["comparisons_limit"]), (&json!("overlaps"), &Value::Null));
    for (one, other, time) in [(1, 3, "above"), (3, 1, "below"), (1, 2, "overlaps")] {
        let found = world.get(&format!("/api/v1/lineages/{}/to/{}", name(one), name(other)));
        assert_eq!(found["estimates"]["time"], time, "{found}");
    }
    let found = world.get(&format!("/api/v1/lineages/{}/to/{}", name(5), name(4)));
    assert_eq!(found["estimates"], Value::Null, "two contents: {found}");
    let text = world.run_with_url(&format!("lineage {}", name(3)));
    let line = format!("{} is below {} in time", name(3), name(1));
    assert!(text.contains(&line), "{text}");
    assert!(!text.contains(&format!("{} is", name(2))), "overlaps are no news: {text}");
    let text = world.run_with_url(&format!("lineage {} --to {}", name(1), name(3)));
    assert!(text.contains(&format!("{} is above {} in time", name(1), name(3))), "{text}");
}

#[test]
fn lineage_names_missing_predecessors() {
    let world = World::new(KEEP);
    world.admit(&world.causal(&name(2), &[&name(1)]));
    world.admit(&world.causal(&name(3), &[]));
    let found = world.get(&format!("/api/v1/lineages/{}", name(2)));
    assert_eq!(found["missing"], json!([name(1)]), "{found}");
    let found = world.get(&format!("/api/v1/lineages/{}/to/{}", name(3), name(2)));
    assert_eq!((&found["order"], &found["missing"]), (&json!("unresolved"), &json!(name(1))));
    let url = format!("--url http://{}", world.server.address);
    let text = world.run(3, &format!("lineage {} {url}", name(2)));
    assert!(text.contains(&format!("{}  not logged", name(1))), "{text}");
    let story = world.get(&format!("/api/v1/stories/{}", name(2)));
    assert_eq!(codes(&story["findings"]), ["predecessor_missing"]);
}

#[test]
fn counterfactual_is_marked_everywhere() {
    let world = World::new(STRICT);
    let [a, _, c, d] = diamond(&world);
    let found = world.get(&format!("/api/v1/statements?record_id={c}"));
    let imagined = &found["statements"][0];
    assert_eq!(imagined["record"]["happened"], false, "{imagined}");
    assert_eq!(imagined["record"]["intervention"], "counterfactual");
    let shown = world.get(&format!("/api/v1/statements/{}", imagined["id"].as_str().unwrap()));
    assert_eq!(shown["record"]["happened"], false, "{shown}");
    let found = world.get(&format!("/api/v1/statements?record_id={a}"));
    assert_eq!(found["statements"][0]["record"]["happened"], Value::Null);

    let mark = "COUNTERFACTUAL";
    let index = imagined["index"].as_u64().unwrap();
    for line in ["log".to_owned(), format!("find {c}"), format!("story {d}")] {
        let text = world.run_with_url(&line);
        let (marked, plain): (Vec<&str>, Vec<&str>) =
            text.lines().filter(|line| line.contains('#')).partition(|line| line.contains(mark));
        let [marked] = marked.as_slice() else { panic!("{text}") };
        assert!(marked.contains(&format!("#{index} ")), "{text}");
        let mention = format!("#{index} ");
        let is_listed = |line: &&&str| line.contains(&mention) && !line.contains("fork");
        assert_eq!(plain.iter().find(is_listed), None, "{text}");
    }
    let (_, transparent) = crate::live::request(
        &world.server.address,
        &format!("GET {}", imagined["statement"].as_str().unwrap()),
        b"",
    )
    .unwrap();
    std::fs::write(world.dir.path().join("c.cose"), transparent).unwrap();
    let text = world.run(0, "verify c.cose --trust trust.toml --log-key log.pem --allow-dev");
    assert!(text.contains(mark), "{text}");
    let text = world.run(0, "inspect c.cose");
    assert!(text.contains("counterfactual") && text.contains("happened"), "{text}");
    for prov in [
        world.get(&format!("/api/v1/lineages/{d}/prov")),
        serde_json::from_str(&world.run_with_url(&format!("lineage {d} --prov"))).unwrap(),
    ] {
        assert_eq!(prov["activity"].as_object().map(serde_json::Map::len), Some(4), "{prov}");
        assert_eq!(prov["wasInformedBy"].as_object().map(serde_json::Map::len), Some(4));
        let marked =
            |n: &str| prov["activity"][format!("record:{n}")]["pacr:counterfactual"].clone();
        assert_eq!((marked(&c), marked(&a)), (json!(true), Value::Null), "{prov}");
    }
}

#[test]
fn nonce_is_used_once_per_issuer() {
    let world = World::new(STRICT);
    let sealed = |issuer: &str, nonce: &str, id: &str| {
        let mut plan = certificate(issuer, nonce);
        plan["pc_id"] = json!(id);
        world.seal(issuer, (pca::CERTIFICATE_CONTENT_TYPE, plan.to_string().as_bytes()))
    };
    let first = sealed(AGENT, "n-1", "plan-1");
    world.admit(&first);
    let why = world.refused(&sealed(AGENT, "n-1", "plan-2"));
    assert!(why.contains("nonce is used"), "{why}");
    world.admit(&sealed(AGENT, "n-2", "plan-2"));
    world.admit(&sealed(OTHER, "n-1", "plan-3"));
    world.admit(&first);
    let page = world.get("/api/v1/statements?profile=pca-certificate");
    assert_eq!(page["statements"].as_array().map(Vec::len), Some(3), "sent again is not twice");
}
