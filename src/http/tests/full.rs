//! A log that has enough to do: who comes then is told so at once, and those
//! who only read notice nothing.

use super::*;

/// One statement fills this log, and the writer is held: until the answer is
/// dropped it stays full.
async fn full_house() -> (Log, std::sync::mpsc::Sender<()>, tokio::task::JoinHandle<u16>) {
    let log = Log::new(ROOMY, |options| {
        options.work_statements = 1;
        options.deadline = Duration::from_secs(600);
    });
    let release = hold_writer(&log.service).await;
    let request = Request::post("/entries").header("content-type", "application/cose");
    let request = request.body(Body::from(statement(b"first"))).unwrap();
    let answer = log.router.clone().oneshot(request);
    let first = tokio::spawn(async move { answer.await.unwrap().status().as_u16() });
    while log.app.admission.in_work() == 0 {
        tokio::task::yield_now().await;
    }
    (log, release, first)
}

/// The body of these requests never comes: an answer other than a timeout was
/// given without it.
#[tokio::test]
async fn a_full_house_is_503_from_the_head_of_the_request() {
    let (log, release, first) = full_house().await;
    for path in ["/entries", "/entries/batch"] {
        let busy = log.send("POST", path, Body::new(Stalled)).await;
        assert_eq!((busy.status().as_u16(), header(&busy, "retry-after")), (503, "1"), "{path}");
        let problem = axum::body::to_bytes(busy.into_body(), 10_000).await.unwrap();
        let problem = Value::read(&problem).unwrap();
        let code = problem.get("urn:capstan:problem").and_then(|p| p.get("code")?.text());
        assert_eq!(code, Some("busy"), "{path}");
    }
    drop(release);
    assert_eq!(first.await.unwrap(), 201);
    assert_eq!(log.status("POST", "/entries", statement(b"second")).await, 201, "a place is free");
    assert!(log.service.metrics().encode().contains("capstan_turned_away_total 2\n"));
}

#[tokio::test]
async fn reads_and_health_are_never_turned_away() {
    let (log, _release, _first) = full_house().await;
    let (_, policy) = log.service.rules().policy_entry();
    let entry = format!("/entries/{policy}");
    let paths = ["/", "/health/live", "/health/ready", "/metrics", "/api/v1/statements"];
    for path in paths.into_iter().chain([entry.as_str()]) {
        assert_eq!(log.status("GET", path, Body::empty()).await, 200, "{path}");
    }
    let metrics = log.send("GET", "/metrics", Body::empty()).await;
    let metrics = axum::body::to_bytes(metrics.into_body(), 100_000).await.unwrap();
    assert!(String::from_utf8_lossy(&metrics).contains("\ncapstan_in_work_statements 1\n"));
}

/// A client that goes away gives its place back.
#[tokio::test]
async fn a_place_is_not_lost_with_its_client() {
    let (log, _release, first) = full_house().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    assert_eq!(log.app.admission.in_work(), 0);
}

#[tokio::test]
async fn a_body_that_finds_no_room_is_503() {
    let log = Log::new(ROOMY, |options| {
        (options.statement_bytes, options.work_bytes) = (1000, 500);
    });
    for (size, status) in [(1500, 400), (1501, 503)] {
        let request =
            Request::post("/entries/batch").header("content-type", "application/cbor-seq");
        let request = request.body(Body::from(vec![0; size])).unwrap();
        let answer = log.router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{size} bytes");
    }
}
