//! A service at its capacity: registrations are refused at once, reads are not.

use super::*;

/// A log with room for one statement, and that statement on its way.
struct FullService {
    log: Log,
    /// Holds the writer until it is dropped.
    release: std::sync::mpsc::Sender<()>,
    /// The status of the registration.
    first: tokio::task::JoinHandle<u16>,
}

async fn full_service() -> FullService {
    let log = Log::new(ROOMY, |options| {
        options.work_statements = 1;
        options.deadline = Duration::from_secs(600);
    });
    let release = hold_writer(&log.service).await;
    let request = Request::post("/entries").header("content-type", "application/cose");
    let request = request.body(Body::from(statement(b"first"))).unwrap();
    let answer = log.router.clone().oneshot(request);
    let first = tokio::spawn(async move { answer.await.unwrap().status().as_u16() });
    while log.app.capacity.statements() == 0 {
        tokio::task::yield_now().await;
    }
    FullService { log, release, first }
}

/// These requests never send their body, so the answer was given without it.
#[tokio::test]
async fn full_service_is_503_before_the_body() {
    let FullService { log, release, first } = full_service().await;
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
    assert_eq!(log.status("POST", "/entries", statement(b"second")).await, 201, "a slot is free");
    assert!(log.service.metrics().encode().contains("capstan_turned_away_total 2\n"));
}

#[tokio::test]
async fn full_service_still_answers_reads_and_health() {
    let FullService { log, release: _release, first: _first } = full_service().await;
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

#[tokio::test]
async fn slot_is_freed_when_its_client_disconnects() {
    let FullService { log, release: _release, first } = full_service().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    assert_eq!(log.app.capacity.statements(), 0);
}

/// Three quarters are for requests larger than a statement; the head counts.
#[tokio::test]
async fn request_body_over_capacity_is_503() {
    let log = Log::new(ROOMY, |options| {
        (options.statement_bytes, options.work_bytes) = (1000, 40_000);
    });
    for (size, status) in [(25_000, 400), (30_000, 503)] {
        let request =
            Request::post("/entries/batch").header("content-type", "application/cbor-seq");
        let request = request.body(Body::from(vec![0; size])).unwrap();
        let answer = log.router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{size} bytes");
    }
    assert_eq!(log.app.capacity.bytes(), 0, "everything is given back");
}

/// Responses count until they are sent.
#[tokio::test]
async fn response_over_capacity_is_503() {
    let log = Log::new(ROOMY, |options| options.work_bytes = 40_000);
    let (head, body) = log.send("GET", "/policy", Body::empty()).await.into_parts();
    let held = log.app.capacity.bytes();
    let body = axum::body::to_bytes(body, 100_000).await.unwrap();
    assert!(held > body.len() && held < 40_000, "{held}");
    let large = log.send("GET", "/openapi.json", Body::empty()).await;
    assert_eq!(large.status(), 503, "it is larger than the capacity");
    drop(head);
    assert_eq!(log.app.capacity.bytes(), 0);
}

/// Health checks do not count, and a batch counts once for each statement.
#[tokio::test]
async fn requests_and_rate_are_limited_per_address() {
    let log = Log::new(ROOMY, |options| {
        (options.requests_per_address, options.trust_forwarded_for) = (2, true);
        options.rate = Rate::new(1, 4);
        options.read_rate = Rate::new(1, 21);
    });
    let send = |method: &str, path: &str, address: &str, body: Vec<u8>| {
        let kind =
            if path.ends_with("batch") { "application/cbor-seq" } else { "application/cose" };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.header("x-forwarded-for", address).body(Body::from(body)).unwrap();
        log.router.clone().oneshot(request)
    };
    let get = |path, address| async move { send("GET", path, address, Vec::new()).await.unwrap() };
    // Two answers are held back.
    let (_first, _second) =
        (get("/policy", "2001:db8::1").await, get("/policy", "2001:db8::2").await);
    for (path, address, status) in [
        ("/policy", "2001:db8::3", 429),
        ("/health/live", "2001:db8::3", 200),
        ("/policy", "2001:db8:0:1::3", 200),
    ] {
        assert_eq!(get(path, address).await.status().as_u16(), status, "{path} {address}");
    }
    assert_eq!(code(get("/policy", "2001:db8::3").await).await, "too-many-at-once");

    // A search costs as much as ten other reads.
    for (path, status) in [
        ("/api/v1/statements", 200),
        ("/policy", 200),
        ("/api/v1/open-items", 200),
        ("/policy", 429),
        ("/health", 200),
    ] {
        assert_eq!(get(path, "192.0.2.1").await.status().as_u16(), status, "{path}");
    }
    assert_eq!(code(get("/policy", "192.0.2.1").await).await, "too-many-requests");

    let batch = [statement(b"1"), statement(b"2"), statement(b"3")].concat();
    let post = |path, body: Vec<u8>| async move {
        send("POST", path, "192.0.2.2", body).await.unwrap().status().as_u16()
    };
    assert_eq!(post("/entries/batch", batch).await, 200);
    assert_eq!(post("/entries", statement(b"4")).await, 201);
    assert_eq!(post("/entries", statement(b"5")).await, 429, "four statements, four tokens");
}

async fn code(answer: Response<Body>) -> String {
    let problem = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
    let problem = Value::read(&problem).unwrap();
    let code = problem.get("urn:capstan:problem").and_then(|p| p.get("code")?.text());
    code.unwrap_or_default().to_owned()
}

/// While all turns are taken, reads that walk are told to come back, and every
/// other route answers as always.
#[tokio::test]
async fn only_expensive_reads_take_a_slot() {
    let log = Log::new(ROOMY, |options| {
        (options.reads_at_once, options.reads_wait) = (1, Duration::ZERO);
    });
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let (reads, service) = (log.app.read_slots.clone(), log.service.clone());
    let walking = tokio::spawn(async move {
        let walk = move |_: &mut crate::service::Reader<'_>| {
            begin.send(()).unwrap();
            let _released = held.recv();
            Ok(())
        };
        reads.run(service, None, walk).await.is_ok()
    });
    begun.await.unwrap();
    for route in super::routes::all().filter(|route| route.method == "get") {
        let path = route.path.replace("{*path}", "0/000").replace("{id}", "1.0");
        let path = path.replace("{other}", "1.1").replace("{kid}", "00");
        let answer = log.send("GET", &path, Body::empty()).await;
        let (status, wait) = (answer.status().as_u16(), header(&answer, "retry-after").to_owned());
        let is_busy = status == 503 && code(answer).await == "reads-busy";
        assert_eq!(is_busy, route.cost == super::routes::Cost::Search, "{path}: {status}");
        assert_eq!(wait == "1", is_busy, "{path}");
    }
    drop(release);
    assert!(walking.await.unwrap());
    assert_eq!(log.status("GET", "/api/v1/statements", Body::empty()).await, 200);
    let metrics = log.service.metrics().encode();
    let searches = super::routes::all().filter(|route| route.cost == super::routes::Cost::Search);
    let counted = format!("capstan_reads_turned_away_total {}\n", searches.count());
    assert!(metrics.contains(&counted), "{counted} in {metrics}");
}

/// One address does not take the turns of all others.
#[tokio::test]
async fn expensive_reads_are_limited_per_address() {
    let log = Log::new(ROOMY, |options| {
        (options.reads_at_once, options.reads_per_address) = (2, 1);
        options.reads_wait = Duration::ZERO;
        options.trust_forwarded_for = true;
    });
    let address: std::net::IpAddr = "192.0.2.1".parse().unwrap();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let (reads, service) = (log.app.read_slots.clone(), log.service.clone());
    tokio::spawn(async move {
        let walk = move |_: &mut crate::service::Reader<'_>| {
            begin.send(()).unwrap();
            let _released = held.recv();
            Ok(())
        };
        reads.run(service, Some(address.into()), walk).await.is_ok()
    });
    begun.await.unwrap();
    for (address, status) in [("192.0.2.1", 503), ("192.0.2.2", 200)] {
        let request = Request::get("/api/v1/statements").header("x-forwarded-for", address);
        let request = request.body(Body::empty()).unwrap();
        let answer = log.router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{address}");
    }
    drop(release);
}
