//! Many statements in one request.
//!
//! In: a CBOR sequence of Signed Statements. Out: a CBOR sequence with one
//! `[status, bstr receipt / problem / null]` for each, in the same order. A
//! statement is decided after those before it that it refers to.

use std::collections::HashMap;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tokio::sync::watch;

use super::entries::counted;
use super::{App, Cost, GET, Route, ok};
use crate::http::limits::body::{self, BodyLimits, Head};
use crate::http::limits::{self, Client};
use crate::http::response::problem::{Problem, RequestId};
use crate::service::{Fault, Progress, Registration, Rejected};
use crate::store::Term;
use crate::wire::cbor;

const SEQUENCE: &str = "application/cbor-seq";

pub(super) const ROUTES: &[Route] = &[Route {
    method: "post",
    path: "/entries/batch",
    id: "registerBatch",
    summary: "Register a CBOR sequence of Signed Statements",
    takes: &[SEQUENCE],
    answers: &[ok(&[SEQUENCE], "One [status, receipt / problem / null] for each, in order")],
    problems: &[400, 401, 408, 413, 415, 429, 503],
    cost: Cost::Registration,
    handler: || post(register),
    ..GET
}];

/// Statements per task: enough to spread over the cores, few enough that a
/// small batch is not serialised.
const CHUNK: usize = 16;

/// A statement of the batch.
struct Item {
    started: Instant,
    progress: Result<Progress, Rejected>,
    /// Earlier statements of the batch that can change the decision about this
    /// one. They are logged or refused before it is decided.
    after: Vec<watch::Receiver<Fate>>,
    /// Dropped when this one is done.
    done: watch::Sender<Fate>,
}

/// What later statements of the batch need to know about this one.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// It is logged or refused, or it is pending itself, which is the same to
    /// later statements as not having been sent.
    Decided,
    /// It may be logged later, so a statement that depends on it cannot be
    /// decided now.
    Open,
}

/// `POST /entries/batch`
async fn register(
    State(app): State<App>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    Extension(Client(client)): Extension<Client>,
    version: axum::http::Version,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let limits = BodyLimits { bytes: app.options.batch_bytes, time: app.options.body_time };
    let head = Head { headers: &headers, version };
    let mut reservation = app.capacity.reservation();
    let bytes = body::read(head, body, &[SEQUENCE], limits, &mut reservation).await?;
    let limit = app.options.batch_statements;
    let statements = cbor::split_sequence(&bytes, limit)
        .map_err(|e| Problem::malformed(e.code(), format!("not a CBOR sequence: {e}")))?;
    reservation.start_work(statements.len())?;
    limits::charge_rest(&app, client, statements.len());
    let recognised: Vec<_> = statements
        .chunks(CHUNK)
        .map(|chunk| {
            let app = app.clone();
            let chunk: Vec<Vec<u8>> = chunk.iter().map(|s| s.to_vec()).collect();
            tokio::spawn(async move { recognise(&app, chunk).await })
        })
        .collect();
    let mut last = HashMap::new();
    let mut answers = Vec::with_capacity(recognised.len());
    for chunk in recognised {
        let mut chunk = chunk.await.map_err(|_| broken())?;
        chunk.iter_mut().for_each(|item| order_after(item, &mut last));
        let (app, id) = (app.clone(), request_id.clone());
        answers.push(tokio::spawn(async move { register_chunk(&app, chunk, &id).await }));
    }
    let mut out = Vec::with_capacity(statements.len() * 1024);
    for answer in answers {
        out.extend(answer.await.map_err(|_| broken())?);
    }
    Ok(([(CONTENT_TYPE, SEQUENCE)], out).into_response())
}

fn broken() -> Problem {
    let detail = "part of the batch failed; send it again".to_owned();
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal Server Error", detail)
}

/// Authenticates and reads the statements of a chunk.
async fn recognise(app: &App, chunk: Vec<Vec<u8>>) -> Vec<Item> {
    let mut items = Vec::with_capacity(chunk.len());
    for bytes in chunk {
        let started = Instant::now();
        let progress = app.service.recognise(bytes).await;
        let (after, done) = (Vec::new(), watch::Sender::new(Fate::Decided));
        items.push(Item { started, progress, after, done });
    }
    items
}

/// Finds the earlier statements of the batch that this one has to wait for: a
/// parent before its child, and statements about one record in the order of
/// the request. The last one with a term is enough, since it waits for those
/// before it.
fn order_after(item: &mut Item, last: &mut HashMap<Term, watch::Receiver<Fate>>) {
    let Ok(Progress::Undecided(candidate)) = &item.progress else { return };
    item.after = candidate.depends_on().filter_map(|term| last.get(&term).cloned()).collect();
    for term in candidate.affects() {
        last.insert(term.clone(), item.done.subscribe());
    }
}

/// All statements of a chunk that wait for no other are queued before any of
/// them is waited for, so that they share commits.
async fn register_chunk(app: &App, chunk: Vec<Item>, request_id: &str) -> Vec<u8> {
    let running = chunk.into_iter().map(|item| Box::pin(register_item(app, item))).collect();
    let mut out = Vec::new();
    for registration in join(running).await {
        encode(&mut out, registration, request_id);
    }
    out
}

async fn register_item(app: &App, item: Item) -> Result<Registration, Problem> {
    let Item { started, progress, after, done } = item;
    let outcome = finish(app, progress, after).await;
    if matches!(outcome, Ok(Registration::Queued(_)) | Err(Rejected::Fault(_))) {
        done.send_replace(Fate::Open);
    }
    drop(done);
    counted(app, started, outcome)
}

async fn finish(
    app: &App,
    progress: Result<Progress, Rejected>,
    after: Vec<watch::Receiver<Fate>>,
) -> Result<Registration, Rejected> {
    let progress = progress?;
    let waiting = after.len();
    for mut earlier in after {
        // Ends when the sender is dropped.
        while earlier.changed().await.is_ok() {}
        if *earlier.borrow() == Fate::Open {
            return Err(Fault::Busy { waiting }.into());
        }
    }
    app.service.finish_within(progress, app.options.deadline).await
}

fn encode(out: &mut Vec<u8>, outcome: Result<Registration, Problem>, request_id: &str) {
    cbor::array(out, 2);
    match outcome {
        Ok(Registration::Complete(done)) => {
            cbor::int(out, StatusCode::CREATED.as_u16());
            cbor::bytes(out, &done.receipt);
        }
        Ok(Registration::Queued(_) | Registration::Pending(_)) => {
            cbor::int(out, StatusCode::ACCEPTED.as_u16());
            out.push(0xf6);
        }
        Err(problem) => {
            cbor::int(out, problem.status().as_u16());
            out.extend(problem.to_cbor(request_id));
        }
    }
}

/// Polls all futures until each is done; results in order.
async fn join<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for (future, slot) in futures.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(value) = std::pin::Pin::new(future).poll(context)
            {
                *slot = Some(value);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(done.drain(..).flatten().collect())
        } else {
            std::task::Poll::Pending
        }
    })
    .await
}
