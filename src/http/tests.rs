//! Answers that depend on how busy the log is, and on how slow the client:
//! the writer is held, so that nothing here is a matter of luck. All other
//! statuses are in `tests/it/api.rs`.

mod full;
mod queries;

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Request, Response};
use tower::ServiceExt as _;

use super::*;
use crate::envelope::fixture::ed25519;
use crate::envelope::{Draft, seal_with_claims};
use crate::profile::capsule::{self, Action, ActionKind};
use crate::service::tests::{OPEN, hold_writer, log_with, options, statement};
use crate::service::{Options, QueueLimits};
use crate::wire::cbor::{Value, split_sequence};
use crate::wire::time::UnixSeconds;

struct Log {
    _outside: tempfile::TempDir,
    service: Arc<Service>,
    app: App,
    router: Router,
}

impl Log {
    fn new(queue: QueueLimits, change: impl FnOnce(&mut HttpOptions)) -> Self {
        let (outside, service) = log_with(OPEN, Options { queue, ..options() });
        let mut options = HttpOptions::from_config(&Config::default()).unwrap();
        change(&mut options);
        let app = App::new(service.clone(), options);
        let router = router(app.clone());
        Self { _outside: outside, service, app, router }
    }

    async fn send(&self, method: &str, path: &str, body: Body) -> Response<Body> {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/cose").body(body).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn status(&self, method: &str, path: &str, body: impl Into<Body>) -> u16 {
        self.send(method, path, body.into()).await.status().as_u16()
    }
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

const ROOMY: QueueLimits = QueueLimits { statements: 100, bytes: 1_000_000, batch: 8 };

#[tokio::test]
async fn full_queue_is_503_with_retry_after() {
    let queue = QueueLimits { statements: 1, ..ROOMY };
    let log = Log::new(queue, |options| options.deadline = Duration::ZERO);
    let release = hold_writer(&log.service).await;
    assert_eq!(log.status("POST", "/entries", statement(b"first")).await, 202);
    let busy = log.send("POST", "/entries", statement(b"second").into()).await;
    assert_eq!((busy.status().as_u16(), header(&busy, "retry-after")), (503, "1"));
    let problem = axum::body::to_bytes(busy.into_body(), 10_000).await.unwrap();
    assert!(String::from_utf8_lossy(&problem).contains("busy"));
    drop(release);
    // The writer has to get through the first one yet.
    for _ in 0..500 {
        if log.service.register(statement(b"third")).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not recover");
}

#[tokio::test]
async fn past_the_deadline_is_202_and_pending_until_it_is_committed() {
    let log = Log::new(ROOMY, |options| options.deadline = Duration::ZERO);
    let release = hold_writer(&log.service).await;
    let bytes = statement(b"slow");
    let accepted = log.send("POST", "/entries", bytes.clone().into()).await;
    assert_eq!((accepted.status().as_u16(), header(&accepted, "retry-after")), (202, "1"));
    let entry = header(&accepted, "location").to_owned();
    let old = "?api-version=2026-03-26";
    let older = log.send("POST", &format!("/entries{old}"), bytes.clone().into()).await;
    assert_eq!((older.status().as_u16(), header(&older, "location")), (303, entry.as_str()));

    let pending = log.send("GET", &entry, Body::empty()).await;
    assert_eq!((pending.status().as_u16(), header(&pending, "retry-after")), (204, "1"));
    assert_eq!(header(&pending, "cache-control"), "no-store");
    assert_eq!(log.status("GET", &format!("{entry}/statement"), Body::empty()).await, 204);
    let again = format!("{entry}{old}");
    let older = log.send("GET", &again, Body::empty()).await;
    assert_eq!((older.status().as_u16(), header(&older, "location")), (302, again.as_str()));

    drop(release);
    log.service.register(bytes).await.unwrap();
    for path in [&entry, &again, &format!("{entry}/statement")] {
        assert_eq!(log.status("GET", path, Body::empty()).await, 200, "{path}");
    }
}

/// Two statements of one record: the second rests on the first.
fn one_record_twice() -> Vec<u8> {
    let action = Action {
        action_id: "pay-1".to_owned(),
        kind: ActionKind::Fyi,
        operator: "acme".to_owned(),
        developer: "https://agent.example".to_owned(),
        timestamp: UnixSeconds::new(1_780_000_000),
        disposition: None,
        effect: None,
        constraints: Vec::new(),
        model_attestation: None,
        decision_id: None,
        supersedes: None,
    };
    let made = action.produce().unwrap();
    let draft = Draft {
        content_type: capsule::CONTENT_TYPE,
        issuer: &made.issuer,
        subject: &made.subject,
        issued_at: None,
        payload: &made.payload,
    };
    let sealed = || seal_with_claims(&draft, &made.claims, &ed25519()).unwrap();
    [sealed(), sealed()].concat()
}

/// The second is not refused while the first may still fail.
#[tokio::test]
async fn dependent_on_pending_statement_must_retry() {
    let log = Log::new(ROOMY, |options| options.deadline = Duration::ZERO);
    let release = hold_writer(&log.service).await;
    let request = Request::post("/entries/batch").header("content-type", "application/cbor-seq");
    let request = request.body(Body::from(one_record_twice())).unwrap();
    let answer = log.router.clone().oneshot(request).await.unwrap();
    let bytes = axum::body::to_bytes(answer.into_body(), 100_000).await.unwrap();
    let answers = split_sequence(&bytes, 2).unwrap();
    let status = |answer: &&[u8]| Value::read(answer).unwrap().array().unwrap()[0].int().unwrap();
    assert_eq!(answers.iter().map(status).collect::<Vec<u16>>(), [202, 503]);
    drop(release);
}

/// A body of which nothing ever arrives.
struct Stalled;

impl hyper::body::Body for Stalled {
    type Data = hyper::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn stalled_body_is_408() {
    let log = Log::new(ROOMY, |options| options.body_time = Duration::from_millis(10));
    for (path, kind) in
        [("/entries", "application/cose"), ("/entries/batch", "application/cbor-seq")]
    {
        let request = Request::post(path).header("content-type", kind);
        let request = request.body(Body::new(Stalled)).unwrap();
        let answer = log.router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 408, "{path}");
    }
}
