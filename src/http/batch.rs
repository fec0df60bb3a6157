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
use tokio::sync::watch;

use super::App;
use super::body::{self, BodyLimits, Head};
use super::check::{self, Client};
use super::entries::{Answer, counted, finished};
use super::problem::{Problem, RequestId};
use crate::service::{Fault, Prepared, Recognised, Rejected};
use crate::store::Term;
use crate::wire::cbor;

const SEQUENCE: &str = "application/cbor-seq";

/// Statements per task: enough to spread over the cores, few enough that a
/// small batch is not serialised.
const CHUNK: usize = 16;

/// A statement of the batch, on its way.
struct Item {
    started: Instant,
    recognised: Result<Recognised, Rejected>,
    /// Earlier statements of the batch that say something about what this one
    /// names. They are logged, or refused, before it is decided.
    after: Vec<watch::Receiver<Fate>>,
    /// Dropped when this one is through.
    done: watch::Sender<Fate>,
}

/// What later statements have to know about this one.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// The log knows it, or never will, or it waits for what it names: then
    /// it is no more known than if it had not been sent.
    Decided,
    /// It may be logged later: whatever rests on it cannot be decided now.
    Open,
}

/// `POST /entries/batch`
pub(super) async fn register(
    State(app): State<App>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    Extension(Client(client)): Extension<Client>,
    version: axum::http::Version,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let limits = BodyLimits { bytes: app.options.batch_bytes, time: app.options.body_time };
    let head = Head { headers: &headers, version };
    let mut place = app.admission.place();
    let bytes = body::read(head, body, &[SEQUENCE], limits, &mut place).await?;
    let limit = app.options.batch_statements;
    let statements = cbor::split_sequence(&bytes, limit)
        .map_err(|e| Problem::malformed(e.code(), format!("not a CBOR sequence: {e}")))?;
    place.work(statements.len())?;
    check::charge_rest(&app, client, statements.len());
    let recognised: Vec<_> = statements
        .chunks(CHUNK)
        .map(|chunk| {
            let app = app.clone();
            let chunk: Vec<Vec<u8>> = chunk.iter().map(|s| s.to_vec()).collect();
            tokio::spawn(async move { recognise(&app, chunk).await })
        })
        .collect();
    let mut told = HashMap::new();
    let mut answers = Vec::with_capacity(recognised.len());
    for chunk in recognised {
        let mut chunk = chunk.await.map_err(|_| broken())?;
        chunk.iter_mut().for_each(|item| take_turn(item, &mut told));
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

/// What the statements of a chunk are, whatever the log says.
async fn recognise(app: &App, chunk: Vec<Vec<u8>>) -> Vec<Item> {
    let mut items = Vec::with_capacity(chunk.len());
    for bytes in chunk {
        let started = Instant::now();
        let recognised = app.service.recognise(bytes).await;
        let (after, done) = (Vec::new(), watch::Sender::new(Fate::Decided));
        items.push(Item { started, recognised, after, done });
    }
    items
}

/// Finds the earlier statements of the batch that this one has to wait for:
/// a parent before its child, and what names the same record in the order of
/// the request. The last one under a term is enough, it waits for those
/// before it.
fn take_turn(item: &mut Item, told: &mut HashMap<Term, watch::Receiver<Fate>>) {
    let Ok(Recognised::New(candidate)) = &item.recognised else { return };
    item.after = candidate.names().filter_map(|term| told.get(&term).cloned()).collect();
    for term in candidate.tells() {
        told.insert(term.clone(), item.done.subscribe());
    }
}

/// All statements of a chunk that wait for no other enter the queue before
/// the first is waited for, so that they share commits.
async fn register_chunk(app: &App, chunk: Vec<Item>, request_id: &str) -> Vec<u8> {
    let waiting = chunk.into_iter().map(|item| Box::pin(answer(app, item))).collect();
    let mut out = Vec::new();
    for answer in join(waiting).await {
        encode(&mut out, answer, request_id);
    }
    out
}

async fn answer(app: &App, item: Item) -> Result<Answer, Problem> {
    let Item { started, recognised, after, done } = item;
    let prepared = enqueue(app, recognised, after).await;
    let waits = matches!(prepared, Ok(Prepared::Waiting(_) | Prepared::Held(_)));
    let outcome = match prepared {
        Ok(prepared) => finished(app, prepared).await,
        Err(rejected) => Err(rejected),
    };
    if !waits && matches!(outcome, Ok(Answer::Pending(_)) | Err(Rejected::Fault(_))) {
        done.send_replace(Fate::Open);
    }
    drop(done);
    counted(app, started, outcome)
}

/// Waits for the earlier statements, then for nothing.
async fn enqueue(
    app: &App,
    recognised: Result<Recognised, Rejected>,
    after: Vec<watch::Receiver<Fate>>,
) -> Result<Prepared, Rejected> {
    let candidate = match recognised? {
        Recognised::Known(registered) => return Ok(Prepared::Known(registered)),
        Recognised::New(candidate) => candidate,
    };
    let waiting = after.len();
    for mut earlier in after {
        // It ends when the other side is dropped.
        while earlier.changed().await.is_ok() {}
        if *earlier.borrow() == Fate::Open {
            return Err(Fault::Busy { waiting }.into());
        }
    }
    app.service.enqueue(*candidate)
}

fn encode(out: &mut Vec<u8>, answer: Result<Answer, Problem>, request_id: &str) {
    cbor::array(out, 2);
    match answer {
        Ok(Answer::Registered(done)) => {
            cbor::int(out, StatusCode::CREATED.as_u16());
            cbor::bytes(out, &done.receipt);
        }
        Ok(Answer::Pending(_)) => {
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
