//! What is asked of every request before and after its handler.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, EXPECT};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::negotiate::prefers_json;
use super::problem::{self, Problem, RequestId};
use super::{App, body, routes};

/// Token, rate and room, for requests that write. Who may not is told so from
/// the head of the request.
pub(super) async fn writes(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let Err(problem) = may_write(&app, &request) else { return next.run(request).await };
    // Who asks before sending the body does not send it now.
    if !request.headers().contains_key(EXPECT) {
        body::discard(request.into_body());
    }
    problem.into_response()
}

fn may_write(app: &App, request: &Request) -> Result<(), Problem> {
    if let Some(token) = &app.options.token
        && !bearer(request.headers()).is_some_and(|given| token.is(given))
    {
        return Err(Problem::unauthorized());
    }
    if let Some((per_second, burst)) = app.options.rate
        && let Some(client) = client(app, request)
        && let Err(seconds) = app.client_rate.take(client, f64::from(per_second), burst)
    {
        app.service.metrics().rate_limited();
        let detail = format!("Only {per_second} requests per second are allowed.");
        let status = StatusCode::TOO_MANY_REQUESTS;
        let problem = Problem::new(status, "too-many-requests", "Too Many Requests", detail);
        return Err(problem.retry_after(seconds));
    }
    Ok(app.admission.room()?)
}

/// The token of an Authorization header.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(AUTHORIZATION)?.as_bytes().strip_prefix(b"Bearer ")
}

/// The address to count by. Behind a proxy the last address it appended; a
/// client can write the others itself.
fn client(app: &App, request: &Request) -> Option<IpAddr> {
    if app.options.trust_forwarded_for {
        let forwarded = request.headers().get_all("x-forwarded-for").iter().next_back();
        let last = forwarded.and_then(|v| v.to_str().ok()?.rsplit(',').next());
        if let Some(address) = last.and_then(|a| a.trim().parse().ok()) {
            return Some(address);
        }
    }
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
}

/// Names the request, counts the answer, and spells it for the client. One
/// layer, because each costs every request a copy of those inside it.
pub(super) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    let id = format!("{:x}-{:x}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let json = prefers_json(request.headers());
    let id = RequestId(id);
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map(|m| m.as_str().to_owned());
    request.extensions_mut().insert(id.clone());
    let response = next.run(request).await;
    let route = path.and_then(|p| routes::label(&p)).unwrap_or("other");
    app.service.metrics().answered(route, method.as_str(), response.status().as_u16());
    let mut response = problem::render(response, json, &id);
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}
