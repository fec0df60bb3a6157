//! DIDs to URLs, addresses, and a server on loopback that behaves or not.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use reqwest::dns::Resolve as _;
use serde_json::json;

use super::*;

#[test]
fn urls() {
    for (did, expected) in [
        ("did:web:example.org", "https://example.org/.well-known/did.json"),
        ("did:web:example.org:a:b", "https://example.org/a/b/did.json"),
        ("did:web:example.org%3A8443:a", "https://example.org:8443/a/did.json"),
        ("did:web:example.org%3a8443", "https://example.org:8443/.well-known/did.json"),
        ("did:web:localhost", "https://localhost/.well-known/did.json"),
        ("did:web:example.org:a%20b", "https://example.org/a%20b/did.json"),
    ] {
        assert_eq!(did_web::url(did, false).unwrap().as_str(), expected, "{did}");
    }
    let long = format!("did:web:example.org:{}", "a".repeat(1024));
    for bad in [
        "did:key:z6Mk",
        "did:web:",
        "did:web::a",
        "did:web:example.org:",
        "did:web:example.org:a::b",
        "did:web:example.org:..:b",
        "did:web:example.org:%2e%2E:b",
        "did:web:example.org:a%2Fb",
        "did:web:example.org:a/b",
        "did:web:example.org/a",
        "did:web:example.org#key",
        "did:web:example.org?x",
        "did:web:user@example.org",
        "did:web:example.org%3A99999",
        "did:web:example.org%3Ax",
        "did:web:example.org%2Fa",
        "did:web:127.0.0.1",
        "did:web:127.1",
        "did:web:0x7f000001",
        "did:web:2130706433",
        "did:web:8.8.8.8",
        "did:web:[%3A%3A1]",
        &long,
    ] {
        let error = did_web::url(bad, false).expect_err(bad);
        assert_eq!(error.code(), "did-web-syntax", "{bad}");
    }
    let local = |did| did_web::url(did, true).unwrap().to_string();
    assert_eq!(local("did:web:127.0.0.1%3A80"), "http://127.0.0.1/.well-known/did.json");
    assert_eq!(local("did:web:localhost%3A81"), "http://localhost:81/.well-known/did.json");
    assert_eq!(local("did:web:10.0.0.1"), "https://10.0.0.1/.well-known/did.json");
}

#[test]
fn addresses() {
    for public in ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2a00::1"] {
        assert!(address::is_public(public.parse().unwrap()), "{public}");
    }
    for private in [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.168.1.1",
        "198.19.0.1",
        "203.0.113.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "ff02::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "3fff::1",
    ] {
        assert!(!address::is_public(private.parse().unwrap()), "{private}");
    }
}

struct Server {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Server {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let body = move |path: &str| {
            let did = format!("did:web:localhost%3A{port}{path}");
            let key = json!({"id": "#k", "controller": did,
                "publicKeyMultibase": "z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"});
            json!({"id": did, "verificationMethod": [key], "assertionMethod": ["#k"]}).to_string()
        };
        let count = |State(count): State<Arc<AtomicUsize>>,
                     request: axum::extract::Request,
                     next: axum::middleware::Next| async move {
            count.fetch_add(1, Ordering::SeqCst);
            next.run(request).await
        };
        let router = Router::new()
            .route("/.well-known/did.json", get(move || async move { body("") }))
            .route("/agents/7/did.json", get(move || async move { body(":agents:7") }))
            .route("/other/did.json", get(move || async move { body("") }))
            .route("/large/did.json", get(|| async { vec![b' '; 70_000] }))
            .route(
                "/moved/did.json",
                get(|| async { Redirect::temporary("/.well-known/did.json") }),
            )
            .route(
                "/slow/did.json",
                get(|| async {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                    StatusCode::OK.into_response()
                }),
            )
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&requests), count));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, requests }
    }

    fn did(&self, path: &str) -> String {
        format!("did:web:localhost%3A{}{path}", self.port)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn resolver(ttl: Duration) -> DidWebResolver {
    DidWebResolver::new(ResolveOptions {
        timeout: Duration::from_millis(500),
        ttl,
        allow_private: true,
        ..ResolveOptions::default()
    })
    .unwrap()
}

#[tokio::test]
async fn what_a_server_may_answer() {
    let server = Server::start().await;
    let resolver = resolver(Duration::from_secs(60));
    for (path, expected) in [
        ("", "ok"),
        (":agents:7", "ok"),
        (":missing", "did-web-status"),
        (":other", "did-document-other-did"),
        (":large", "did-web-too-large"),
        (":moved", "did-web-redirect"),
        (":slow", "did-web-timeout"),
    ] {
        let before = server.requests();
        // The second answer comes from memory, whichever it is.
        for _ in 0..2 {
            let found = resolver.resolve(&server.did(path)).await;
            assert_eq!(found.map_or_else(|e| e.code(), |_| "ok"), expected, "{path}");
        }
        assert_eq!(server.requests(), before + 1, "{path}");
    }
    let keys = resolver.resolve(&server.did("")).await.unwrap();
    assert_eq!(keys[0].id, server.did("#k"));
}

#[tokio::test]
async fn many_at_once_are_one_request_and_a_stale_answer_is_fetched_again() {
    let server = Server::start().await;
    let resolver = Arc::new(resolver(Duration::from_millis(400)));
    let did = server.did("");
    let all: Vec<_> = (0..20)
        .map(|_| {
            let (resolver, did) = (Arc::clone(&resolver), did.clone());
            tokio::spawn(async move { resolver.resolve(&did).await.map(|keys| keys.len()) })
        })
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap(), Ok(1));
    }
    assert_eq!(server.requests(), 1);
    tokio::time::sleep(Duration::from_millis(450)).await;
    resolver.resolve(&did).await.unwrap();
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn private_addresses_are_refused_after_dns() {
    let server = Server::start().await;
    let resolver = DidWebResolver::new(ResolveOptions::default()).unwrap();
    let error = resolver.resolve(&server.did("")).await.unwrap_err();
    assert_eq!(error.code(), "did-web-private-address", "{error}");
    let literal = format!("did:web:127.0.0.1%3A{}", server.port);
    assert_eq!(resolver.resolve(&literal).await.unwrap_err().code(), "did-web-syntax");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn no_server_no_name_no_room() {
    let resolver = resolver(Duration::from_secs(60));
    let port = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let closed = format!("did:web:127.0.0.1%3A{port}");
    assert_eq!(resolver.resolve(&closed).await.unwrap_err().code(), "did-web-unreachable");
    // Longer than a label may be, so no DNS server is asked.
    let nobody = format!("{}.invalid", "a".repeat(64)).parse().unwrap();
    let Err(error) = address::CheckedDns::new(true).resolve(nobody).await else { panic!() };
    assert_eq!(error.downcast_ref::<Error>().unwrap().code(), "did-web-no-address");
    let _all = resolver.fetches.acquire_many(16).await.unwrap();
    let error = resolver.resolve("did:web:localhost").await.unwrap_err();
    assert_eq!(error.code(), "did-web-busy");
}

#[test]
fn rare_errors_have_codes() {
    assert_eq!(Error::Client.code(), "did-web-client");
}
