//! Registration of one statement, and its receipt.

use std::time::Instant;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;

use super::{App, Cost, ENTRY_ID, GET, NO_BODY, Parameter, Route, Success};
use super::{ok, query_parameter};
use crate::envelope::StatementId;
use crate::http::limits::body::{self, BODY_BYTES_MAX, BodyLimits, Head};
use crate::http::response::negotiate;
use crate::http::response::problem::Problem;
use crate::log::LeafIndex;
use crate::metrics::Outcome;
use crate::service::{Entry, EntryStatus, Registration, Rejected};
use crate::wire::digest::Digest;

const RECEIPT_TYPES: &[&str] = &["application/cose", "application/scitt-receipt+cose"];
const STATEMENT_TYPES: &[&str] = &["application/cose", "application/scitt-statement+cose"];

const VERSION: Parameter = query_parameter(
    "api-version",
    "2026-03-26 selects the older flow: 303 on POST, 302 while pending",
);

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "post",
        path: "/entries",
        id: "register",
        summary: "Register a Signed Statement; the answer is its receipt",
        parameters: &[VERSION],
        takes: STATEMENT_TYPES,
        answers: &[
            Success {
                status: 201,
                media_types: RECEIPT_TYPES,
                about: "The receipt; Location is the permanent path of the entry",
            },
            Success {
                status: 202,
                media_types: NO_BODY,
                about: "Still being committed; ask at Location",
            },
            Success {
                status: 303,
                media_types: NO_BODY,
                about: "With api-version 2026-03-26: see Location",
            },
        ],
        problems: &[400, 401, 408, 413, 415, 429, 503],
        cost: Cost::Registration,
        handler: || post(register),
    },
    Route {
        path: "/entries/{id}",
        id: "resolveReceipt",
        summary: "A fresh receipt for a registered statement",
        parameters: &[ENTRY_ID, VERSION],
        answers: &[
            ok(RECEIPT_TYPES, "The receipt, at the newest head"),
            NOT_COMMITTED,
            Success {
                status: 302,
                media_types: NO_BODY,
                about: "With api-version 2026-03-26: still being committed",
            },
        ],
        problems: &[400, 404, 429, 503],
        handler: || get(resolve),
        ..GET
    },
    Route {
        path: "/entries/{id}/statement",
        id: "transparentStatement",
        summary: "The Transparent Statement: the statement with its receipt in label 394",
        parameters: &[ENTRY_ID],
        answers: &[ok(STATEMENT_TYPES, "The Transparent Statement"), NOT_COMMITTED],
        problems: &[400, 404, 429, 503],
        handler: || get(statement),
        ..GET
    },
];

const NOT_COMMITTED: Success =
    Success { status: 204, media_types: NO_BODY, about: "Still being committed; ask again" };

/// The version by which Microsoft's clients select the older flow.
const REDIRECTING: &str = "2026-03-26";

/// `?api-version=`
#[derive(Deserialize)]
struct Version {
    #[serde(rename = "api-version")]
    api_version: Option<String>,
}

impl Version {
    fn redirects(&self) -> bool {
        self.api_version.as_deref() == Some(REDIRECTING)
    }
}

/// `POST /entries`
async fn register(
    State(app): State<App>,
    Query(version): Query<Version>,
    protocol: axum::http::Version,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let limits = BodyLimits { bytes: BODY_BYTES_MAX, time: app.options.body_time };
    let head = Head { headers: &headers, version: protocol };
    let mut reservation = app.capacity.reservation();
    let bytes = body::read(head, body, STATEMENT_TYPES, limits, &mut reservation).await?;
    reservation.start_work(1)?;
    let receipt_type = negotiate::receipt_type(&headers);
    let response = match register_one(&app, bytes).await? {
        Registration::Queued(id) | Registration::Pending(id) => (
            if version.redirects() { StatusCode::SEE_OTHER } else { StatusCode::ACCEPTED },
            [(LOCATION, location(&id)), (RETRY_AFTER, "1".to_owned())],
        )
            .into_response(),
        Registration::Complete(done) if version.redirects() => {
            (StatusCode::SEE_OTHER, [(LOCATION, location(&done.entry.id))]).into_response()
        }
        Registration::Complete(done) => (
            StatusCode::CREATED,
            [(LOCATION, location(&done.entry.id)), (CONTENT_TYPE, receipt_type.to_owned())],
            done.receipt,
        )
            .into_response(),
    };
    Ok(response)
}

/// Registers one statement within the deadline, and counts it.
async fn register_one(app: &App, bytes: Vec<u8>) -> Result<Registration, Problem> {
    let started = Instant::now();
    let outcome = match app.service.recognise(bytes).await {
        Ok(progress) => app.service.finish_within(progress, app.options.deadline).await,
        Err(rejected) => Err(rejected),
    };
    counted(app, started, outcome)
}

/// Counts how a registration ended, and logs it.
pub(super) fn counted(
    app: &App,
    started: Instant,
    outcome: Result<Registration, Rejected>,
) -> Result<Registration, Problem> {
    let seconds = started.elapsed().as_secs_f64();
    let (counted, code) = match &outcome {
        Ok(Registration::Complete(done)) if done.known => (Outcome::Known, "ok"),
        Ok(_) => (Outcome::Registered, "ok"),
        Err(
            rejected @ (Rejected::Invalid(_)
            | Rejected::OverLimit { .. }
            | Rejected::Twin { .. }
            | Rejected::Unresolved(_)),
        ) => (Outcome::Rejected, rejected.code()),
        Err(rejected @ Rejected::Refused(_)) => (Outcome::Refused, rejected.code()),
        Err(rejected @ Rejected::Fault(_)) => (Outcome::Fault, rejected.code()),
    };
    app.service.metrics().registered(counted, code, seconds);
    match &outcome {
        Ok(Registration::Complete(done)) => {
            tracing::debug!(id = %done.entry.id, index = %done.entry.index, known = done.known, seconds, "registered")
        }
        Ok(Registration::Queued(id) | Registration::Pending(id)) => {
            tracing::warn!(%id, seconds, "still pending at the deadline")
        }
        Err(rejected) => {
            tracing::info!(code, seconds, reason = rejected.to_string(), "not registered")
        }
    }
    outcome.map_err(Problem::from)
}

/// `GET /entries/{id}`
async fn resolve(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(version): Query<Version>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some(entry) = locate(&app, &name)? else {
        let status = if version.redirects() { StatusCode::FOUND } else { StatusCode::NO_CONTENT };
        let headers = [(RETRY_AFTER, "1"), (CACHE_CONTROL, "no-store")];
        let mut response = (status, headers).into_response();
        if version.redirects()
            && let Ok(same) = format!("/entries/{name}?api-version={REDIRECTING}").parse()
        {
            response.headers_mut().insert(LOCATION, same);
        }
        return Ok(response);
    };
    let location = location(&entry.id);
    let receipt = app.service.again(entry)?.receipt;
    let content_type = negotiate::receipt_type(&headers).to_owned();
    let no_cache = "no-cache".to_owned();
    let headers = [(LOCATION, location), (CONTENT_TYPE, content_type), (CACHE_CONTROL, no_cache)];
    Ok((headers, receipt).into_response())
}

/// `GET /entries/{id}/statement`
async fn statement(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some(entry) = locate(&app, &name)? else {
        return Ok((StatusCode::NO_CONTENT, [(RETRY_AFTER, "1"), (CACHE_CONTROL, "no-store")])
            .into_response());
    };
    let bytes = app.service.transparent_statement(&entry)?;
    let content_type = negotiate::statement_type(&headers);
    Ok(([(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-cache")], bytes).into_response())
}

/// The entry that a path names; none while it is being committed.
pub(super) fn locate(app: &App, name: &str) -> Result<Option<Entry>, Problem> {
    let unknown = || {
        let detail = format!("Receipt with entry ID {name} not known to this Transparency Service");
        Problem::new(StatusCode::NOT_FOUND, "entry-unknown", "Not Found", detail)
    };
    if let Some(index) = name.strip_prefix("1.").and_then(|n| n.parse().ok()) {
        return app.service.entry_at(LeafIndex::new(index))?.map(Some).ok_or_else(unknown);
    }
    let Some(digest) = Digest::from_hex(name) else {
        let detail = format!("{name} is neither 64 lowercase hex digits nor 1.<leaf index>");
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid-locator",
            "Invalid locator",
            detail,
        ));
    };
    match app.service.find(&StatementId::from_digest(digest))? {
        EntryStatus::Logged(entry) => Ok(Some(entry)),
        EntryStatus::Pending => Ok(None),
        EntryStatus::Unknown => Err(unknown()),
    }
}

fn location(id: &StatementId) -> String {
    format!("/entries/{id}")
}
