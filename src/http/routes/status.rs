//! What operators and their tools ask: the log's name and head, its policy,
//! health, metrics, and the OpenAPI document.

use std::sync::LazyLock;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

use super::{App, Cost, GET, JSON, Route, ok, openapi};
use crate::envelope::StatementId;
use crate::http::limits::bearer;
use crate::http::response::problem::Problem;
use crate::http::response::{escaped_json, json};
use crate::log::{LeafIndex, TreeSize};
use crate::metrics::Metrics;
use crate::wire::time::UnixSeconds;

pub(super) const ROUTES: &[Route] = &[
    Route {
        path: "/",
        id: "index",
        summary: "What this log is, and where everything else is",
        answers: &[ok(JSON, "The log's name, head and links")],
        handler: || get(index),
        ..GET
    },
    Route {
        path: "/policy",
        id: "policy",
        summary: "The registration policy in force and its entry on the log",
        answers: &[ok(JSON, "Name, digest, entry and text")],
        handler: || get(policy),
        ..GET
    },
    Route {
        path: "/health",
        id: "health",
        summary: "Whether the log is in order",
        answers: &[ok(JSON, "It is")],
        problems: &[503],
        cost: Cost::Health,
        handler: || get(health),
        ..GET
    },
    Route {
        path: "/health/live",
        id: "live",
        summary: "Whether the process answers",
        answers: &[ok(JSON, "It does")],
        problems: &[],
        cost: Cost::Health,
        handler: || get(live),
        ..GET
    },
    Route {
        path: "/health/ready",
        id: "ready",
        summary: "Whether the log accepts registrations now",
        answers: &[ok(JSON, "It does")],
        problems: &[503],
        cost: Cost::Health,
        handler: || get(ready),
        ..GET
    },
    Route {
        path: "/metrics",
        id: "metrics",
        summary: "Counters for Prometheus",
        answers: &[ok(&["application/openmetrics-text"], "OpenMetrics text")],
        problems: &[401],
        cost: Cost::Health,
        handler: || get(metrics),
        ..GET
    },
    Route {
        path: "/openapi.json",
        id: "openapi",
        summary: "This document",
        answers: &[ok(JSON, "OpenAPI 3.1")],
        handler: || get(api),
        ..GET
    },
];

#[derive(Serialize)]
struct Index<'a> {
    log: &'a str,
    software: &'static str,
    tree_size: TreeSize,
    root: String,
    time: UnixSeconds,
    links: Links,
}

#[derive(Serialize)]
struct Links {
    register: &'static str,
    keys: &'static str,
    policy: &'static str,
    checkpoint: &'static str,
    health: &'static str,
    api: &'static str,
}

/// `GET /`
async fn index(State(app): State<App>) -> Response {
    let head = app.service.head();
    json(&Index {
        log: &app.service.identity().issuer,
        software: concat!("capstan ", env!("CARGO_PKG_VERSION")),
        tree_size: head.size,
        root: head.root.to_string(),
        time: head.time,
        links: Links {
            register: "/entries",
            keys: "/.well-known/scitt-keys",
            policy: "/policy",
            checkpoint: "/checkpoint",
            health: "/health",
            api: "/openapi.json",
        },
    })
}

/// `GET /openapi.json`: made once, because it takes longer than most answers.
async fn api() -> Response {
    static DOCUMENT: LazyLock<String> =
        LazyLock::new(|| escaped_json(&openapi::document()).unwrap_or_default());
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// `GET /health/live`: the process answers.
async fn live() -> Response {
    #[derive(Serialize)]
    struct Live {
        live: bool,
    }
    json(&Live { live: true })
}

/// `GET /health/ready`: the log accepts registrations.
async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Ready {
        ready: bool,
    }
    match app.service.writable() {
        Ok(()) => Ok(json(&Ready { ready: true })),
        Err(reason) => Err(unhealthy("not-ready", reason)),
    }
}

/// `GET /health`: the log is in order, or why it is not.
async fn health(State(app): State<App>) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Healthy<'a> {
        ok: bool,
        tree_size: TreeSize,
        published_size: TreeSize,
        policy: &'a str,
    }
    let head = app.service.head();
    let Some(published_size) = app.service.published_size() else {
        return Err(unhealthy("no-checkpoint", "no checkpoint that verifies has been published"));
    };
    if app.service.damaged() {
        return Err(unhealthy("degraded", "the store is damaged: only what verifies is served"));
    }
    if let Err(reason) = app.service.writable() {
        return Err(unhealthy("not-ready", reason));
    }
    if app.service.reload_failed() {
        let reason = "policy or trust could not be reloaded; the old ones are in force";
        return Err(unhealthy("reload-failed", reason));
    }
    let (tree_size, rules) = (head.size, app.service.rules());
    Ok(json(&Healthy { ok: true, tree_size, published_size, policy: rules.policy().name() }))
}

fn unhealthy(code: &'static str, reason: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, "Unavailable", reason.to_owned())
}

/// `GET /metrics`
async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let token = app.options.token.as_ref();
    let is_authorized =
        || token.zip(bearer(&headers)).is_some_and(|(token, given)| token.is(given));
    if !app.options.metrics_public && !is_authorized() {
        return Err(Problem::unauthorized());
    }
    let (service, budget) = (app.service.clone(), app.read_slots.budget());
    let counted = tokio::task::spawn_blocking(move || service.count_open_items(budget)).await;
    if let Ok(Err(fault)) = counted {
        // The other metrics are still correct.
        tracing::warn!(code = fault.code(), "open items could not be counted");
    }
    app.service.metrics().in_work(app.capacity.statements());
    app.service.metrics().held_bytes(app.capacity.bytes());
    let body = app.service.metrics().encode();
    Ok(([(CONTENT_TYPE, Metrics::content_type())], body).into_response())
}

#[derive(Serialize)]
struct PolicyView<'a> {
    issuer: &'a str,
    name: &'a str,
    digest: String,
    entry: PolicyEntry,
    text: &'a str,
}

#[derive(Serialize)]
struct PolicyEntry {
    id: StatementId,
    index: LeafIndex,
    receipt: String,
}

/// `GET /policy`
async fn policy(State(app): State<App>) -> Response {
    let rules = app.service.rules();
    let (index, id) = rules.policy_entry();
    json(&PolicyView {
        issuer: &app.service.identity().issuer,
        name: rules.policy().name(),
        digest: rules.policy().digest().to_string(),
        entry: PolicyEntry { id, index, receipt: format!("/entries/{id}") },
        text: rules.policy().text(),
    })
}
