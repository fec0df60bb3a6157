//! Random requests to every GET route: each is answered with a status that the
//! route table lists.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use super::*;
use crate::envelope::{SignedStatement, StatementId};
use crate::http::routes::{self, Route};

/// A path with its query, and the route it was made from.
#[derive(Clone)]
struct Question {
    target: String,
    route: &'static Route,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.target)
    }
}

/// Every byte but letters and digits, as URLs spell it.
fn encoded(text: &str) -> String {
    let byte = |b: u8| match b {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'.' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Values that some reader takes, nearly takes, or never should.
fn value(known: &str) -> impl Strategy<Value = String> + use<> {
    let near = [
        known,
        &known.to_uppercase(),
        "0",
        "1",
        "2",
        "4",
        "200",
        "201",
        "-1",
        "1.0",
        "1.2",
        "1.99",
        "18446744073709551615",
        "1.18446744073709551616",
        "2026-06-13T00:00:00Z",
        "2026-06-13T00:00:00.5+23:59",
        "9999-12-31T23:59:59Z",
        "-009999-01-01T00:00:00Z",
        "https://agent.example",
        "2026-03-26",
        "00000000000000000000000000000001",
        "0/000",
        "entries/000.p/3",
        "63/x999/x999/999.p/255",
        "../../etc/passwd",
        "",
    ]
    .map(encoded);
    let broken = ["%", "%z", "%ff", "%00", "%C3%28", "+", "a%2Fb", "%E2%80%AE"].map(str::to_owned);
    prop_oneof![
        4 => select(near.to_vec()),
        1 => select(broken.to_vec()),
        2 => any::<String>().prop_map(|text| encoded(&text)),
        1 => (1_usize..3_000).prop_map(|len| "9".repeat(len)),
    ]
}

/// One route with its path filled in, and up to six pairs, some of which it
/// knows.
fn question(known: &str) -> impl Strategy<Value = Question> + use<> {
    let routes: Vec<&'static Route> = routes::all().filter(|route| route.method == "get").collect();
    let known = known.to_owned();
    let numbers = 0..routes.len();
    numbers.prop_flat_map(move |number| {
        let route = routes[number];
        let names: Vec<&str> = route.parameters.iter().map(|parameter| parameter.name).collect();
        let names = select([names, vec!["limit", "any", "x", ""]].concat());
        let pairs = prop::collection::vec((names, value(&known)), 0..6);
        let parts = prop::collection::vec(value(&known), 2);
        (parts, pairs).prop_map(move |(parts, pairs)| {
            let mut path = route.path.to_owned();
            for (name, part) in ["{id}", "{kid}", "{*path}"].iter().map(|name| (name, &parts[0])) {
                path = path.replace(name, part);
            }
            path = path.replace("{other}", &parts[1]);
            let pairs: Vec<_> = pairs.iter().map(|(n, v)| format!("{n}={v}")).collect();
            Question { target: format!("{path}?{}", pairs.join("&")), route }
        })
    })
}

#[test]
fn every_request_is_answered_within_its_contract() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let log = Log::new(ROOMY, |options| options.metrics_public = true);
    let first = statement(b"first");
    let id = StatementId::of(&SignedStatement::parse(first.clone()).unwrap()).to_string();
    let capsules = one_record_twice();
    let capsule = split_sequence(&capsules, 2).unwrap()[0].to_vec();
    for bytes in [first, statement(b"second"), capsule] {
        assert_eq!(runtime.block_on(log.status("POST", "/entries", bytes)), 201);
    }
    log.service.publish().unwrap();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(3_000));
    let asked = runner.run(&question(&id), |Question { target, route }| {
        // What is no URL is refused before it reaches the router.
        if target.parse::<axum::http::Uri>().is_err() {
            return Ok(());
        }
        let status = runtime.block_on(log.status("GET", &target, Body::empty()));
        let answers = route.answers.iter().map(|success| &success.status);
        // An empty part makes another path.
        let named = answers.chain(route.problems).chain(&[404]).any(|known| *known == status);
        prop_assert!(named && status < 500, "{target}: {status}");
        Ok(())
    });
    asked.unwrap();
    assert_eq!(runtime.block_on(log.status("GET", "/health", Body::empty())), 200);
}
