//! Many statements in one request.
//!
//! In: a CBOR sequence of Signed Statements. Out: a CBOR sequence with one
//! `[status, bstr receipt / problem / null]` for each, in the same order.

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::entries::{Answer, answer};
use super::problem::{Problem, RequestId};
use super::{App, body};
use crate::wire::cbor;

const SEQUENCE: &str = "application/cbor-seq";

/// Statements per task: enough to spread over the cores, few enough that a
/// small batch is not serialised.
const CHUNK: usize = 16;

/// `POST /entries/batch`
pub(super) async fn register(
    State(app): State<App>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let limits = (app.options.batch_bytes, app.options.body_time);
    let bytes = body::read(&headers, body, &[SEQUENCE], limits).await?;
    let limit = app.options.batch_statements;
    let statements = cbor::split_sequence(&bytes, limit)
        .map_err(|e| Problem::malformed(e.code(), format!("not a CBOR sequence: {e}")))?;
    let tasks: Vec<_> = statements
        .chunks(CHUNK)
        .map(|chunk| {
            let (app, id) = (app.clone(), request_id.clone());
            let chunk: Vec<Vec<u8>> = chunk.iter().map(|s| s.to_vec()).collect();
            tokio::spawn(async move { register_chunk(&app, chunk, &id).await })
        })
        .collect();
    let mut out = Vec::with_capacity(statements.len() * 1024);
    for task in tasks {
        let answers = task.await.map_err(|_| {
            let detail = "part of the batch failed; send it again".to_owned();
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "Internal Server Error",
                detail,
            )
        })?;
        out.extend(answers);
    }
    Ok(([(CONTENT_TYPE, SEQUENCE)], out).into_response())
}

/// All statements of a chunk enter the queue before the first is waited for,
/// so that they share commits.
async fn register_chunk(app: &App, chunk: Vec<Vec<u8>>, request_id: &str) -> Vec<u8> {
    let waiting: Vec<_> = chunk
        .into_iter()
        .map(|bytes| {
            let app = app.clone();
            Box::pin(async move { answer(&app, bytes).await })
        })
        .collect();
    let mut out = Vec::new();
    for answer in join(waiting).await {
        encode(&mut out, answer, request_id);
    }
    out
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
