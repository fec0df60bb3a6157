//! Reads that look through the log, with little to spend: what is cut says so,
//! and goes on from where it says.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use capstan::config::Config;
use capstan::envelope::{Draft, seal};
use capstan::http::{HttpOptions, app};
use capstan::key::{Algorithm, SigningKey};
use capstan::metrics::Metrics;
use capstan::profile::pacr::{CausalId, CognitiveSplit, Encoding, Estimate, Resources, SixTuple};
use capstan::service::{self, Options, Service};
use capstan::wire::budget::Allowance;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Records of the log, and causes that each of them names: the ones before it.
const RECORDS: u64 = 60;
const CAUSES: u64 = 10;
const PLENTY: Allowance = Allowance { nodes: 100_000, edges: 1_000_000, bytes: 100_000_000 };

struct Log {
    _dir: tempfile::TempDir,
    service: Arc<Service>,
}

fn name(number: u64) -> CausalId {
    CausalId::from_bytes(&u128::from(number + 1).to_be_bytes()).unwrap()
}

fn record(number: u64) -> Vec<u8> {
    let estimate = |point: f64| Estimate { point, lower: point / 2.0, upper: point * 2.0 };
    let record = SixTuple {
        id: name(number),
        predecessors: (number.saturating_sub(CAUSES)..number).map(name).collect(),
        landauer_cost: estimate(3e-21),
        resources: Resources {
            energy: estimate(5e-19),
            time: estimate(0.002),
            space: estimate(512.0),
        },
        cognitive_split: CognitiveSplit {
            statistical_complexity: estimate(2.5),
            entropy_rate: estimate(0.5),
            info_gain: Estimate::ZERO,
        },
        payload: b"PACR\x02paid".to_vec(),
    };
    record.encode(Encoding::Json)
}

impl Log {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let policy = include_str!("../../policy/open.toml");
        service::init(&data, "reads.invalid", policy, Algorithm::Es256).unwrap();
        let options = Options::from_config(&Config::default());
        let service = service::open(&data, options, Metrics::new("test")).unwrap();
        let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
        for number in 0..RECORDS {
            let draft = Draft {
                content_type: Encoding::Json.content_type(),
                issuer: "https://agent.example",
                subject: "urn:example:cause",
                issued_at: None,
                payload: &record(number),
            };
            service.register(seal(&draft, &key).unwrap()).await.unwrap();
        }
        service.publish().unwrap();
        Self { _dir: dir, service }
    }

    async fn answer(&self, allowance: Allowance, path: &str) -> axum::response::Response {
        let mut options = HttpOptions::from_config(&Config::default()).unwrap();
        options.reads = allowance;
        let request = Request::get(path).body(Body::empty()).unwrap();
        app(self.service.clone(), options).oneshot(request).await.unwrap()
    }

    async fn get(&self, allowance: Allowance, path: &str) -> Value {
        let answer = self.answer(allowance, path).await;
        assert_eq!(answer.status(), 200, "{path}");
        let body = to_bytes(answer.into_body(), 1 << 24).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Whatever runs out, the answer names it, and asking on from what was not
/// followed finds every ancestor in the end.
#[tokio::test]
async fn truncated_lineage_can_be_continued() {
    let log = Log::new().await;
    let last = name(RECORDS - 1).to_string();
    let whole = log.get(PLENTY, &format!("/api/v1/lineages/{last}")).await;
    let all: BTreeSet<_> = texts(&whole["ancestors"]).into_iter().collect();
    assert_eq!((all.len(), &whole["limit"]), (59, &Value::Null), "{whole}");
    assert_eq!(whole["unexplored"], json!([]));
    let pairs = |found: &Value| found["comparisons"].as_array().unwrap().len();
    assert_eq!((pairs(&whole), &whole["comparisons_limit"]), (545, &Value::Null));
    // Enough for the walk, and not for all that is to be said of it.
    let narrow = Allowance { bytes: 100_000, ..PLENTY };
    let part = log.get(narrow, &format!("/api/v1/lineages/{last}")).await;
    assert_eq!((&part["limit"], &part["ancestors"]), (&Value::Null, &whole["ancestors"]));
    assert_eq!(part["comparisons_limit"], "pacr-limit-bytes");
    assert!((100..500).contains(&pairs(&part)), "{}", pairs(&part));
    let rows = [
        (Allowance { nodes: 5, ..PLENTY }, "pacr-limit-nodes"),
        (Allowance { edges: 90, ..PLENTY }, "pacr-limit-edges"),
        (Allowance { bytes: 9_000, ..PLENTY }, "pacr-limit-bytes"),
    ];
    for (allowance, code) in rows {
        let (mut found, mut asked) = (BTreeSet::new(), BTreeSet::new());
        let mut names = vec![last.clone()];
        while let Some(one) = names.pop() {
            if !asked.insert(one.clone()) {
                continue;
            }
            let part = log.get(allowance, &format!("/api/v1/lineages/{one}")).await;
            if one == last {
                assert_eq!(part["limit"], code);
            }
            let reached = texts(&part["ancestors"]);
            assert!(reached.len() <= 100, "{code}: {}", reached.len());
            found.extend(reached);
            names.extend(texts(&part["unexplored"]).into_iter().filter(|name| *name != one));
        }
        assert_eq!(found, all, "{code}");
        let order = format!("/api/v1/lineages/{}/to/{last}", name(0));
        let order = log.get(allowance, &order).await;
        assert_eq!((&order["order"], &order["limit"]), (&"limit-reached".into(), &code.into()));
    }
    assert!(log.service.metrics().encode().contains("capstan_reads_cut_total "));
}

/// The pages of a PROV document together are the document.
#[tokio::test]
async fn prov_document_is_paged() {
    let log = Log::new().await;
    let path = format!("/api/v1/lineages/{}/prov", name(RECORDS - 1));
    let whole = log.get(PLENTY, &path).await;
    let activity = format!("record:{}", name(RECORDS - 1));
    let sections = ["activity", "wasInformedBy", "entity", "wasGeneratedBy"];
    let mut collected = json!({});
    let (mut cursor, mut pages) = ("0".to_owned(), 0);
    loop {
        let allowance = Allowance { bytes: 90_000, ..PLENTY };
        let mut page = log.get(allowance, &format!("{path}?cursor={cursor}")).await;
        assert!(page.to_string().len() < 90_000);
        let marked = page["activity"].get_mut(&activity).and_then(Value::as_object_mut);
        let cut = marked.and_then(|a| Some((a.remove("capstan:cut")?, a.remove("capstan:cursor"))));
        for section in sections {
            let part = page[section].as_object().cloned().unwrap_or_default();
            for (name, value) in part.into_iter().filter(|(_, value)| *value != json!({})) {
                collected[section][name] = value;
            }
        }
        pages += 1;
        assert!(pages < 100, "it comes to an end");
        match cut {
            None => break,
            Some((limit, next)) => {
                assert_eq!(limit, "budget-bytes".replace("budget", "pacr-limit"));
                cursor = next.unwrap().as_str().unwrap().to_owned();
            }
        }
    }
    assert!(pages > 2, "{pages}");
    for section in sections {
        assert_eq!(collected[section], whole[section], "{section}");
    }
    // A walk that itself is cut says so, and has no next page.
    let short = log.get(Allowance { nodes: 5, ..PLENTY }, &path).await;
    let marked = &short["activity"][&activity];
    assert_eq!(marked["capstan:cut"], "pacr-limit-nodes", "{marked}");
}

/// A search or a list of open items ends a page early, and the cursor leads to
/// everything; a story names where there is more.
#[tokio::test]
async fn truncated_pages_and_stories_can_be_continued() {
    let log = Log::new().await;
    let query = "/api/v1/statements?subject=urn:example:cause&limit=50";
    let rows = [
        (Allowance { nodes: 7, ..PLENTY }, "budget-nodes"),
        (Allowance { edges: 12, ..PLENTY }, "budget-edges"),
        (Allowance { bytes: 5_000, ..PLENTY }, "budget-bytes"),
    ];
    for (allowance, code) in rows {
        let (mut path, mut found, mut pages) = (query.to_owned(), Vec::new(), 0);
        loop {
            let page = log.get(allowance, &path).await;
            let statements = page["statements"].as_array().unwrap();
            found.extend(statements.iter().map(|one| one["index"].as_u64().unwrap()));
            let Some(cursor) = page["cursor"].as_str() else { break };
            assert_eq!((&page["is_cut"], &page["limit"]), (&true.into(), &code.into()), "{page}");
            path = format!("{query}&cursor={cursor}");
            pages += 1;
            assert!(pages < 70, "{code}: it comes to an end");
        }
        let all: Vec<u64> = (2..2 + RECORDS).rev().collect();
        assert_eq!(found, all, "{code}");

        let story = log.get(allowance, &format!("/api/v1/stories/{}", name(30))).await;
        assert_eq!((&story["is_cut"], &story["limit"]), (&true.into(), &code.into()));
        let unexplored = texts(&story["unexplored"]);
        assert!(!unexplored.is_empty() && unexplored.len() <= 100, "{unexplored:?}");
    }
    let story = log.get(PLENTY, &format!("/api/v1/stories/{}", name(30))).await;
    let told = story["chain"].as_array().unwrap().len();
    assert_eq!((told, &story["is_cut"], &story["limit"]), (60, &false.into(), &Value::Null));
}

/// A bundle whose chain costs too much comes without the oldest records.
#[tokio::test]
async fn truncated_bundle_is_marked() {
    let log = Log::new().await;
    let header = |answer: &axum::response::Response| {
        answer.headers().get("capstan-cut").map(|cut| cut.to_str().unwrap().to_owned())
    };
    let mut sizes = Vec::new();
    let rows = [(PLENTY, None), (Allowance { nodes: 8, ..PLENTY }, Some("budget-nodes"))];
    for (allowance, cut) in rows {
        let answer = log.answer(allowance, "/api/v1/bundles/1.50").await;
        assert_eq!((answer.status().as_u16(), header(&answer).as_deref()), (200, cut));
        let bytes = to_bytes(answer.into_body(), 1 << 24).await.unwrap();
        let bundle = capstan::wire::cbor::Value::read(&bytes).unwrap();
        sizes.push(bundle.get(4).unwrap().array().unwrap().len());
    }
    assert_eq!(sizes, [10, 7], "records of the chain");
}
