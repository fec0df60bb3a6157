//! The HTTP surface without a socket: statuses, headers, problem bodies.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use capstan::config::{Config, LoadFrom};
use capstan::envelope::{Draft, seal};
use capstan::http::{HttpOptions, app};
use capstan::key::{Algorithm, SigningKey};
use capstan::metrics::Metrics;
use capstan::receipt::{Proofs, Receipt};
use capstan::service::{self, Options, Service};
use capstan::wire::cbor::Value;
use capstan::wire::text;
use serde_json::Value as Json;
use tower::ServiceExt as _;

/// A log with the open policy in a directory of its own.
struct Log {
    _dir: tempfile::TempDir,
    service: Arc<Service>,
    router: Router,
}

impl Log {
    fn new(flags: &[(&'static str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let policy = include_str!("../../policy/open.toml");
        service::init(&data, "api.invalid", policy, Algorithm::Es256).unwrap();
        let flags = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let read_file = &|_: &str| Err(std::io::Error::other("no files here"));
        let from = LoadFrom { file: None, env: Vec::new(), flags, read_file };
        let config: Config = Config::load(from).unwrap().config;
        let service =
            service::open(&data, Options::from_config(&config), Metrics::new("test")).unwrap();
        service.publish().unwrap();
        let router = app(service.clone(), HttpOptions::from_config(&config).unwrap());
        Self { _dir: dir, service, router }
    }

    async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> (u16, Response<Body>) {
        let response = self.send(Request::get(path).body(Body::empty()).unwrap()).await;
        (response.status().as_u16(), response)
    }

    async fn post(&self, path: &str, content_type: &str, body: Vec<u8>) -> Response<Body> {
        let request = Request::post(path).header("content-type", content_type);
        self.send(request.body(body.into()).unwrap()).await
    }
}

fn statement(text: &str) -> Vec<u8> {
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let draft = Draft {
        content_type: "text/plain",
        issuer: "https://agent.example",
        subject: "urn:example:1",
        issued_at: None,
        payload: text.as_bytes(),
    };
    seal(&draft, &key).unwrap()
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |v| v.to_str().unwrap())
}

async fn body(response: Response<Body>) -> Vec<u8> {
    to_bytes(response.into_body(), 1 << 24).await.unwrap().to_vec()
}

/// Title and code of a CBOR problem; every problem must be one.
async fn problem(response: Response<Body>) -> (String, String) {
    assert_eq!(header(&response, "content-type"), "application/concise-problem-details+cbor");
    let bytes = body(response).await;
    let value = Value::read(&bytes).unwrap();
    let text = |v: Option<&Value<'_>>| v.and_then(Value::text).unwrap().to_owned();
    assert!(!text(value.get(-2)).is_empty(), "a problem has a detail");
    (text(value.get(-1)), text(value.get("urn:capstan:problem").and_then(|p| p.get("code"))))
}

#[tokio::test]
async fn registration_is_idempotent() {
    let log = Log::new(&[]);
    let bytes = statement("once");
    let first = log.post("/entries", "application/cose", bytes.clone()).await;
    assert_eq!(first.status(), 201);
    let location = header(&first, "location").to_owned();
    assert_eq!(header(&first, "content-type"), "application/cose");
    Receipt::parse(body(first).await).unwrap();
    let again = log.post("/entries", "application/cose; cose-type=\"cose-sign1\"", bytes).await;
    assert_eq!((again.status().as_u16(), header(&again, "location")), (201, location.as_str()));
    let (status, fresh) = log.get(&location).await;
    assert_eq!((status, header(&fresh, "location")), (200, location.as_str()));
    let (status, by_index) = log.get("/entries/1.2").await;
    assert_eq!((status, header(&by_index, "location")), (200, location.as_str()));
    let (status, transparent) = log.get(&format!("{location}/statement")).await;
    assert_eq!(status, 200);
    let transparent = body(transparent).await;
    let again = log.post("/entries", "application/scitt-statement+cose", transparent).await;
    assert_eq!(header(&again, "location"), location, "receipts do not change a statement's name");
    assert_eq!(log.service.head().size.get(), 3);
}

#[tokio::test]
async fn older_flow_redirects() {
    let log = Log::new(&[]);
    let version = "?api-version=2026-03-26";
    let response =
        log.post(&format!("/entries{version}"), "application/cose", statement("x")).await;
    assert_eq!(response.status(), 303);
    let location = header(&response, "location").to_owned();
    let (status, receipt) = log.get(&format!("{location}{version}")).await;
    assert_eq!(status, 200);
    Receipt::parse(body(receipt).await).unwrap();
}

/// Request, status, title, code: one row for each way to be told no.
#[tokio::test]
async fn refusals_are_problem_details() {
    let log = Log::new(&[]);
    let unknown = "0".repeat(64);
    let gets = [
        ("/nowhere".to_owned(), 404, "Not Found", "not-found"),
        (format!("/entries/{unknown}"), 404, "Not Found", "entry-unknown"),
        ("/entries/1.99".to_owned(), 404, "Not Found", "entry-unknown"),
        ("/entries/xyz".to_owned(), 400, "Invalid locator", "invalid-locator"),
        (format!("/entries/{unknown}/statement"), 404, "Not Found", "entry-unknown"),
        ("/.well-known/scitt-keys/AAAA".to_owned(), 404, "No such key", "no-such-key"),
        ("/tile/0/000.p/3".to_owned(), 404, "Not Found", "tile-beyond-tree"),
        ("/tile/0/0".to_owned(), 404, "Not Found", "log-tile-path"),
        ("/consistency?from=2&to=2".to_owned(), 400, "Malformed request", "consistency-range"),
        ("/consistency?from=x".to_owned(), 400, "Malformed request", "malformed-request"),
        ("/consistency".to_owned(), 400, "Malformed request", "malformed-request"),
    ];
    for (path, status, title, code) in gets {
        let (found, response) = log.get(&path).await;
        assert!(!header(&response, "x-request-id").is_empty());
        let (found_title, found_code) = problem(response).await;
        assert_eq!(
            (found, found_title.as_str(), found_code.as_str()),
            (status, title, code),
            "{path}"
        );
    }
    let cose = "application/cose";
    let big = vec![0; 2 * 1024 * 1024];
    let mut flipped = statement("x");
    *flipped.last_mut().unwrap() ^= 1;
    let posts = [
        ("/entries", "text/plain", vec![], 415, "Unsupported Media Type", "media-type"),
        ("/entries", cose, vec![], 400, "Malformed request", "not-sign1"),
        ("/entries", cose, big.clone(), 413, "Payload Too Large", "body-too-large"),
        ("/entries", cose, vec![0; 70_000], 400, "Rejected", "too-large"),
        ("/entries", cose, flipped, 400, "Rejected", "signature-invalid"),
        ("/entries/batch", cose, vec![], 415, "Unsupported Media Type", "media-type"),
        (
            "/entries/batch",
            "application/cbor-seq",
            vec![0xff],
            400,
            "Malformed request",
            "cbor-not-well-formed",
        ),
        ("/checkpoint", cose, vec![], 405, "Method Not Allowed", "method-not-allowed"),
    ];
    for (path, content_type, bytes, status, title, code) in posts {
        let response = log.post(path, content_type, bytes).await;
        let found = response.status().as_u16();
        let (found_title, found_code) = problem(response).await;
        assert_eq!(
            (found, found_title.as_str(), found_code.as_str()),
            (status, title, code),
            "{path}"
        );
    }
    assert_eq!(log.service.head().size.get(), 2, "nothing was logged");
}

#[tokio::test]
async fn problem_details_are_json_on_request() {
    let log = Log::new(&[]);
    let cases = [
        (Some("application/json"), None, true),
        (Some("application/problem+json, application/cbor;q=0.5"), None, true),
        (Some("application/cbor, application/json;q=0.9"), None, false),
        (Some("application/cose"), None, false),
        (Some("application/scitt-receipt+cose, */*;q=0.1"), None, false),
        // As curl asks, and as a browser does.
        (Some("*/*"), None, true),
        (Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), None, true),
        // As COSE clients that take anything.
        (Some("*/*"), Some("application/cose"), false),
        (Some("*/*"), Some("application/scitt-statement+cose"), false),
        (Some("*/*"), Some("application/cbor-seq"), false),
        (Some("*/*"), Some("application/json"), true),
        (None, None, false),
    ];
    for (accept, sends, json) in cases {
        let request = Request::get("/entries/xyz");
        let request = accept.into_iter().fold(request, |r, accept| r.header("accept", accept));
        let request = sends.into_iter().fold(request, |r, sends| r.header("content-type", sends));
        let response = log.send(request.body(Body::empty()).unwrap()).await;
        let content_type = header(&response, "content-type").to_owned();
        assert_eq!(
            content_type == "application/problem+json",
            json,
            "Accept: {accept:?}, Content-Type: {sends:?}"
        );
        if json {
            let body: Json = serde_json::from_slice(&body(response).await).unwrap();
            assert_eq!(body["code"], "invalid-locator");
            assert_eq!(body["status"], 400);
        }
    }
}

#[tokio::test]
async fn batch_results_are_in_order() {
    let log = Log::new(&[]);
    let good = statement("good");
    let mut bad = statement("bad");
    *bad.last_mut().unwrap() ^= 1;
    let sequence = [good.clone(), bad, vec![0x01], good].concat();
    let response = log.post("/entries/batch", "application/cbor-seq", sequence).await;
    assert_eq!(response.status(), 200);
    let bytes = body(response).await;
    let mut reader = capstan::wire::cbor::Reader::new(&bytes);
    let mut statuses = Vec::new();
    while !reader.is_at_end() {
        let item = reader.value().unwrap();
        let [status, answer] = item.array().unwrap() else { panic!("a pair") };
        if let Some(receipt) = answer.bytes() {
            Receipt::parse(receipt.to_vec()).unwrap();
        }
        statuses.push(status.int::<u16>().unwrap());
    }
    assert_eq!(statuses, [201, 400, 400, 201]);
    assert_eq!(log.service.head().size.get(), 3, "two copies are one leaf");
}

#[tokio::test]
async fn only_writes_need_the_token() {
    let log = Log::new(&[("auth.token", "secret")]);
    let post = |token: Option<&str>| {
        let mut request = Request::post("/entries").header("content-type", "application/cose");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        log.send(request.body(statement("x").into()).unwrap())
    };
    for (token, status) in [(None, 401), (Some("wrong"), 401), (Some("secret"), 201)] {
        let response = post(token).await;
        assert_eq!(response.status().as_u16(), status, "{token:?}");
        if status == 401 {
            assert_eq!(header(&response, "www-authenticate"), "Bearer");
            assert_eq!(problem(response).await.1, "unauthorized");
        }
    }
    assert_eq!(log.get("/checkpoint").await.0, 200);
}

#[tokio::test]
async fn rate_limited_client_gets_retry_after() {
    let log = Log::new(&[
        ("rate.per_second", "1"),
        ("rate.burst", "2"),
        ("rate.trust_forwarded_for", "true"),
    ]);
    let post = |client: &str| {
        let request = Request::post("/entries")
            .header("content-type", "application/cose")
            .header("x-forwarded-for", client.to_owned());
        log.send(request.body(statement("x").into()).unwrap())
    };
    let mut statuses = Vec::new();
    for client in ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.9, 192.0.2.2"] {
        let response = post(client).await;
        statuses.push(response.status().as_u16());
        if response.status() == 429 {
            assert_eq!(header(&response, "retry-after"), "1");
            assert_eq!(
                problem(response).await,
                ("Too Many Requests".into(), "too-many-requests".into())
            );
        }
    }
    assert_eq!(statuses, [201, 201, 429, 201]);
}

#[tokio::test]
async fn keys_are_served_by_base64url_and_hex() {
    let log = Log::new(&[]);
    let (status, response) = log.get("/.well-known/scitt-keys").await;
    assert_eq!((status, header(&response, "content-type")), (200, "application/cbor"));
    let bytes = body(response).await;
    let set = Value::read(&bytes).unwrap();
    let key = &set.array().unwrap()[0];
    let kid = key.get(2).and_then(Value::bytes).unwrap();
    for name in [text::base64url(kid), text::hex(kid)] {
        let (status, one) = log.get(&format!("/.well-known/scitt-keys/{name}")).await;
        assert_eq!(status, 200);
        assert_eq!(&Value::read(&body(one).await).unwrap(), key);
    }
}

#[tokio::test]
async fn consistency_is_proven_between_any_two_sizes() {
    let log = Log::new(&[]);
    for n in 0..6 {
        log.post("/entries", "application/cose", statement(&n.to_string())).await;
    }
    for (from, to) in [(1, 8), (2, 3), (5, 7)] {
        let (status, response) = log.get(&format!("/consistency?from={from}&to={to}")).await;
        assert_eq!(status, 200);
        let receipt = Receipt::parse(body(response).await).unwrap();
        let Proofs::Consistency(proofs) = receipt.proofs() else { panic!("a consistency receipt") };
        assert_eq!((proofs[0].from, proofs[0].to), (from, to));
    }
}

#[tokio::test]
async fn immutable_responses_are_cacheable() {
    let log = Log::new(&[]);
    for path in ["/tile/0/000.p/2", "/tile/entries/000.p/1"] {
        let (status, response) = log.get(path).await;
        assert_eq!(status, 200, "{path}");
        assert!(header(&response, "cache-control").contains("immutable"));
    }
    let (_, checkpoint) = log.get("/checkpoint").await;
    assert_eq!(header(&checkpoint, "cache-control"), "no-cache");
}

#[tokio::test]
async fn cors_allows_reads_only() {
    let log = Log::new(&[]);
    let request = Request::get("/checkpoint").header("origin", "https://other.example");
    let response = log.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(header(&response, "access-control-allow-origin"), "*");
    let preflight = Request::options("/entries")
        .header("origin", "https://other.example")
        .header("access-control-request-method", "POST");
    let response = log.send(preflight.body(Body::empty()).unwrap()).await;
    assert!(!header(&response, "access-control-allow-methods").contains("POST"));
}

#[tokio::test]
async fn health_and_metrics_are_served() {
    let log = Log::new(&[]);
    for path in ["/", "/health", "/health/live", "/health/ready", "/policy", "/openapi.json"] {
        let (status, response) = log.get(path).await;
        assert_eq!(
            (status, header(&response, "content-type")),
            (200, "application/json"),
            "{path}"
        );
        serde_json::from_slice::<Json>(&body(response).await).unwrap();
    }
    let (_, response) = log.get("/metrics").await;
    let text = String::from_utf8(body(response).await).unwrap();
    assert!(text.contains("capstan_tree_size 2"), "{text}");
    let (_, response) = log.get("/policy").await;
    let policy: Json = serde_json::from_slice(&body(response).await).unwrap();
    let entry = policy["entry"]["id"].as_str().unwrap();
    assert_eq!(log.get(&format!("/entries/{entry}")).await.0, 200, "the policy is on the log");
}

#[tokio::test]
async fn read_only_log_refuses_registrations() {
    let log = Log::new(&[("disk.min_free_bytes", "1125899906842624")]);
    log.service.watch_disk().unwrap();
    let response = log.post("/entries", "application/cose", statement("x")).await;
    assert_eq!((response.status().as_u16(), header(&response, "retry-after")), (503, "60"));
    assert_eq!(problem(response).await, ("Read Only".into(), "disk-full".into()));
    let (status, response) = log.get("/health/ready").await;
    assert_eq!((status, problem(response).await.1.as_str()), (503, "not-ready"));
    assert_eq!(log.get("/health").await.0, 503);
    assert_eq!(log.get("/health/live").await.0, 200);
    assert_eq!(log.get("/checkpoint").await.0, 200, "reads go on");
}

/// The committed document is the one the route table makes.
#[test]
fn openapi_document_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/transparency.json");
    let made = serde_json::to_string_pretty(&capstan::http::openapi_document()).unwrap() + "\n";
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == made, "run with UPDATE_EXPECT=1");
}
