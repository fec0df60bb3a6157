//! What operators and machines ask: is it well, what does it count, by which
//! rules does it work.

use std::sync::LazyLock;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::problem::Problem;
use super::{App, check, openapi};
use crate::metrics::Metrics;

/// `GET /`
pub(super) async fn index(State(app): State<App>) -> Json<Value> {
    let head = app.service.head();
    Json(json!({
        "log": app.service.identity().issuer,
        "software": concat!("capstan ", env!("CARGO_PKG_VERSION")),
        "tree_size": head.size.get(),
        "root": head.root.to_string(),
        "time": head.time.to_string(),
        "links": {
            "register": "/entries", "keys": "/.well-known/scitt-keys", "policy": "/policy",
            "checkpoint": "/checkpoint", "health": "/health", "api": "/openapi.json",
        },
    }))
}

/// `GET /openapi.json`: made once, it takes longer than most answers.
pub(super) async fn api() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document().to_string());
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// `GET /health/live`: the process answers.
pub(super) async fn live() -> Json<Value> {
    Json(json!({ "live": true }))
}

/// `GET /health/ready`: a registration would be taken now.
pub(super) async fn ready(State(app): State<App>) -> Result<Json<Value>, Problem> {
    match app.service.writable() {
        Ok(()) => Ok(Json(json!({ "ready": true }))),
        Err(reason) => Err(unwell("not-ready", reason)),
    }
}

/// `GET /health`: the log is in order, or why not.
pub(super) async fn health(State(app): State<App>) -> Result<Json<Value>, Problem> {
    let head = app.service.head();
    let published = app.service.published_size();
    if published.is_none() {
        return Err(unwell("no-checkpoint", "no checkpoint that verifies has been published"));
    }
    if app.service.damaged() {
        return Err(unwell("degraded", "the store is damaged: what can be proven is served"));
    }
    if let Err(reason) = app.service.writable() {
        return Err(unwell("not-ready", reason));
    }
    if app.service.reload_failed() {
        return Err(unwell(
            "reload-failed",
            "policy or trust could not be reloaded; the old ones are in force",
        ));
    }
    Ok(Json(json!({
        "ok": true,
        "tree_size": head.size.get(),
        "published_size": published.map(|size| size.get()),
        "policy": app.service.rules().policy().name(),
    })))
}

fn unwell(code: &'static str, reason: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, "Unavailable", reason.to_owned())
}

/// `GET /metrics`
pub(super) async fn metrics(
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let token = app.options.token.as_ref();
    let may = || token.zip(check::bearer(&headers)).is_some_and(|(token, given)| token.is(given));
    if !app.options.metrics_public && !may() {
        return Err(Problem::unauthorized());
    }
    let (service, budget) = (app.service.clone(), app.reads.budget());
    let counted = tokio::task::spawn_blocking(move || service.count_open_items(budget)).await;
    if let Ok(Err(fault)) = counted {
        // The other numbers are still true.
        tracing::warn!(code = fault.code(), "open items could not be counted");
    }
    app.service.metrics().in_work(app.admission.in_work());
    app.service.metrics().held_bytes(app.admission.held());
    let body = app.service.metrics().encode();
    Ok(([(CONTENT_TYPE, Metrics::content_type())], body).into_response())
}

/// `GET /policy`
pub(super) async fn policy(State(app): State<App>) -> Json<Value> {
    let rules = app.service.rules();
    let (index, id) = rules.policy_entry();
    Json(json!({
        "issuer": app.service.identity().issuer,
        "name": rules.policy().name(),
        "digest": rules.policy().digest().to_string(),
        "entry": { "id": id.to_string(), "index": index.get(), "receipt": format!("/entries/{id}") },
        "text": rules.policy().text(),
    }))
}
