//! Any question to a real log, put to the whole of its HTTP surface: the
//! answer is one the OpenAPI document names and no fault of ours, every no is
//! a problem, only the token opens what needs it, and the same question has
//! the same answer twice.
//!
//! In: a request as text, `GET /path?query`, a line for each header, an empty
//! line, the body. `{id}` stands for the id of a statement on the log and
//! `{kid}` for that of its key; no URL has braces of its own. The log is in
//! the directory for temporary files and stays there.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Request};
use capstan::config::{Config, LoadFrom};
use capstan::recorder::Recorder;
use capstan::http::{HttpOptions, app, openapi_document};
use capstan::key::{Algorithm, SigningKey};
use capstan::metrics::Metrics;
use capstan::service::{self, Options, Service};
use capstan::wire::cbor::Value as Cbor;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

const TOKEN: &str = "sesame";
const POLICY: &str = include_str!("../../policy/open.toml");
/// Something for each way to search: a Capsule, a causal record, plain bytes.
const RECORDS: [(&str, &[u8]); 3] = [
    ("application/agent-action-capsule+json", include_bytes!("../seeds/capsule/0")),
    ("application/pacr+cbor", include_bytes!("../seeds/pacr/0")),
    ("text/plain", b"x"),
];
/// For a method that a path does not have; POST is asked for the token first.
const NO_SUCH_METHOD: [u16; 3] = [401, 404, 405];

static LOG: LazyLock<Log> = LazyLock::new(Log::new);

struct Log {
    runtime: Runtime,
    router: Router,
    document: Value,
    id: String,
    kid: String,
}

/// What of an answer may not differ when the question is put again.
#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    content_type: String,
    body: Bytes,
}

impl Log {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        let config = settings();
        let data = std::env::temp_dir().join(format!("capstan-query-{}", std::process::id()));
        // Consistency receipts are signed when asked for; ES256 never signs
        // twice the same.
        service::init(&data, "log.example", POLICY, Algorithm::EdDsa).expect("a new log");
        let service = service::open(&data, Options::from_config(&config), Metrics::new("fuzz"));
        let service = service.expect("an open log");
        let id = runtime.block_on(fill(service.clone()));
        let kid = service.keys().first().expect("a key").id().to_string();
        let options = HttpOptions::from_config(&config).expect("no files to read");
        let router = app(service, options);
        Self { router, document: openapi_document(), id, kid, runtime }
    }

    /// The request the bytes spell; none when a client could not send it.
    fn question(&self, bytes: &[u8]) -> Option<(Parts, Vec<u8>)> {
        let end = bytes.windows(2).position(|two| two == b"\n\n");
        let (head, body) = bytes.split_at(end.unwrap_or(bytes.len()));
        let mut lines = head.split(|byte| *byte == b'\n');
        let first = std::str::from_utf8(lines.next()?).ok()?;
        let (method, target) = first.split_once(' ')?;
        let target = target.replace("{id}", &self.id).replace("{kid}", &self.kid);
        let mut request = Request::builder().method(method).uri(target).body(()).ok()?;
        for line in lines {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?.trim_ascii());
            if let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
            {
                request.headers_mut().append(name, value);
            }
        }
        let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
        request.extensions_mut().insert(ConnectInfo(peer));
        Some((request.into_parts().0, body.get(2..).unwrap_or_default().to_vec()))
    }

    fn ask(&self, parts: &Parts, body: &[u8]) -> Answer {
        let request = Request::from_parts(parts.clone(), Body::from(body.to_vec()));
        self.runtime.block_on(async {
            let Ok(response) = self.router.clone().oneshot(request).await;
            let (head, body) = response.into_parts();
            assert!(head.headers.contains_key("x-request-id"), "an answer without a name");
            let content_type = head.headers.get(CONTENT_TYPE);
            let content_type = content_type.map_or("", |value| value.to_str().expect("ours"));
            let content_type = content_type.to_owned();
            let body = to_bytes(body, usize::MAX).await.expect("a whole body");
            Answer { status: head.status.as_u16(), content_type, body }
        })
    }

    /// Whether the document names the status. A path may fit two patterns, as
    /// `/entries/batch` does.
    fn documents(&self, parts: &Parts, status: u16) -> bool {
        let method = match parts.method {
            Method::GET | Method::HEAD => "get",
            Method::POST => "post",
            // Asked by browsers, of any path, and answered by a layer.
            Method::OPTIONS if status == 200 => return true,
            _ => "none",
        };
        let paths = self.document["paths"].as_object().expect("the document has paths");
        let fitting = paths.iter().filter(|(pattern, _)| fits(pattern, parts.uri.path()));
        let mut named = fitting.filter_map(|(_, operations)| operations.get(method)).peekable();
        if named.peek().is_none() {
            return NO_SUCH_METHOD.contains(&status);
        }
        named.any(|operation| operation["responses"].get(status.to_string()).is_some())
    }
}

/// A token, rates that nobody reaches, and a proxy in front.
fn settings() -> Config {
    let env = [
        ("CAPSTAN_AUTH__TOKEN", TOKEN),
        ("CAPSTAN_DISK__MIN_FREE_BYTES", "0"),
        ("CAPSTAN_METRICS__PUBLIC", "false"),
        ("CAPSTAN_RATE__PER_SECOND", "1000000"),
        ("CAPSTAN_RATE__TRUST_FORWARDED_FOR", "true"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let read_file = &|_: &str| Err(std::io::ErrorKind::NotFound.into());
    let from = LoadFrom { file: None, env, flags: Vec::new(), read_file };
    Config::load(from).expect("settings of our own").config
}

/// Puts the records on the log; the id of the first.
async fn fill(service: Arc<Service>) -> String {
    let key = SigningKey::generate(Algorithm::EdDsa).expect("a key");
    let recorder = Recorder::new(service, key, "https://agent.example");
    let mut ids = Vec::new();
    for (content_type, payload) in RECORDS {
        let done = recorder.record("urn:example:run:1", content_type, payload).await;
        ids.push(done.expect("the policy takes everything").entry.id.to_string());
    }
    ids.swap_remove(0)
}

/// Whether a path fits a pattern of the document. Tiles go on after slashes.
fn fits(pattern: &str, path: &str) -> bool {
    if let Some(prefix) = pattern.strip_suffix("{path}") {
        return path.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty());
    }
    let mut given = path.split('/');
    pattern.split('/').all(|wanted| {
        given.next().is_some_and(|part| {
            if wanted.starts_with('{') { !part.is_empty() } else { part == wanted }
        })
    }) && given.next().is_none()
}

/// A problem in one of two spellings, with a code.
fn check_problem(answer: &Answer) {
    let code = match answer.content_type.as_str() {
        "application/problem+json" => {
            let body: Value = serde_json::from_slice(&answer.body).expect("a problem is JSON");
            assert_eq!(body["status"], answer.status);
            body["code"].as_str().map(str::to_owned)
        }
        "application/concise-problem-details+cbor" => {
            let body = Cbor::read(&answer.body).expect("a problem is CBOR");
            let ours = body.get("urn:capstan:problem");
            ours.and_then(|ours| ours.get("code")?.text().map(str::to_owned))
        }
        other => panic!("{}: {other} is no problem", answer.status),
    };
    assert!(code.is_some_and(|code| !code.is_empty()), "{answer:?}");
}

fuzz_target!(|bytes: &[u8]| {
    let log = &*LOG;
    let Some((parts, body)) = log.question(bytes) else { return };
    let answer = log.ask(&parts, &body);
    let path = parts.uri.path();
    let (writes, measures) = (parts.method == Method::POST, path == "/metrics");
    // A machine that is busy with others may have no time, and says so.
    if answer.status == 503 {
        return check_problem(&answer);
    }
    assert!(answer.status < 500, "{path}: {answer:?}");
    assert!(log.documents(&parts, answer.status), "{} {path}: {answer:?}", parts.method);

    let given = parts.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let opens = given == Some(format!("Bearer {TOKEN}").as_bytes());
    let reads_metrics = measures && matches!(parts.method, Method::GET | Method::HEAD);
    assert_eq!(answer.status == 401, (writes || reads_metrics) && !opens, "{path}: {answer:?}");

    // An answer to HEAD is only its head.
    if answer.status >= 400 && parts.method != Method::HEAD {
        check_problem(&answer);
    }
    let again = log.ask(&parts, &body);
    if again.status == 503 {
        return;
    }
    // Problems name the request, also inside a batch; metrics count it.
    if answer.status >= 400 || writes || measures {
        assert_eq!((again.status, again.content_type), (answer.status, answer.content_type));
    } else {
        assert_eq!(again, answer);
    }
});
