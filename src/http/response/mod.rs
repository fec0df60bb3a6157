//! What every response goes through: JSON, problems, request ids, counters.

pub(super) mod negotiate;
pub(super) mod problem;

use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use super::{App, routes};
use crate::wire::printable;
use problem::RequestId;

/// JSON in which characters that could deceive a reader are escaped. All JSON
/// of the API is made here.
pub(super) fn escaped_json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(printable::json(&serde_json::to_string(value)?))
}

/// A JSON answer.
pub(super) fn json(value: &impl Serialize) -> Response {
    match escaped_json(value) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "an answer could not be serialised");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Gives the request an id, counts the answer, and renders problems for the
/// client. One layer, because each layer costs every request a copy of those
/// inside it.
pub(super) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    let id = format!("{:x}-{:x}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let id = RequestId(id);
    let prefers_json = negotiate::prefers_json(request.headers());
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map(|m| m.as_str().to_owned());
    request.extensions_mut().insert(id.clone());
    let response = next.run(request).await;
    let route = path.and_then(|path| routes::with_path(&path)).map_or("other", |route| route.path);
    app.service.metrics().answered(route, method.as_str(), response.status().as_u16());
    let mut response = problem::render(response, prefers_json, &id);
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}
