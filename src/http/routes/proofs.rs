//! What verifiers and monitors fetch: keys, checkpoints, tiles, consistency
//! receipts.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use super::{App, CBOR, COSE, GET, Parameter, Route, ok, path_parameter, query_parameter};
use crate::http::response::problem::Problem;
use crate::key::key_set;
use crate::log::{TilePath, TreeSize};
use crate::wire::text;

const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const TEXT: &str = "text/plain; charset=utf-8";
/// Long enough to be cached, short enough to see a rotation.
const KEY_CACHE: &str = "public, max-age=60";

const PLAIN_TEXT: &[&str] = &["text/plain"];

pub(super) const ROUTES: &[Route] = &[
    Route {
        path: "/.well-known/scitt-keys",
        id: "keys",
        summary: "The service's keys, the active one first",
        answers: &[ok(CBOR, "A COSE_KeySet")],
        handler: || get(keys),
        ..GET
    },
    Route {
        path: "/.well-known/scitt-keys/{kid}",
        id: "key",
        summary: "One key of the service, active or retired",
        parameters: &[path_parameter("kid", "The key id in unpadded base64url, or in hex")],
        answers: &[ok(CBOR, "A COSE_Key")],
        problems: &[400, 404, 429, 503],
        handler: || get(key),
        ..GET
    },
    Route {
        path: "/checkpoint",
        id: "checkpoint",
        summary: "The last published checkpoint, a C2SP signed note",
        answers: &[ok(PLAIN_TEXT, "The note")],
        handler: || get(checkpoint),
        ..GET
    },
    Route {
        path: "/checkpoint/key",
        id: "checkpointKey",
        summary: "The key that verifies checkpoints, in note form",
        answers: &[ok(PLAIN_TEXT, "name+hash+key")],
        handler: || get(checkpoint_key),
        ..GET
    },
    Route {
        path: "/tile/{*path}",
        id: "tile",
        summary: "A hash tile or an entry bundle, as in C2SP tlog-tiles",
        parameters: &[path_parameter(
            "path",
            "<level>/<index>[.p/<width>] or entries/<index>[.p/<width>], as in C2SP tlog-tiles",
        )],
        answers: &[ok(&["application/octet-stream"], "The tile; it never changes")],
        problems: &[400, 404, 429, 503],
        handler: || get(tile),
        ..GET
    },
    Route {
        path: "/consistency",
        id: "consistency",
        summary: "A COSE receipt that the tree of one size extends that of another",
        parameters: &[
            Parameter { required: true, ..tree_size("from", "The older tree size") },
            tree_size("to", "The newer tree size; the newest when absent"),
        ],
        answers: &[ok(COSE, "The consistency receipt")],
        problems: &[400, 429, 503],
        handler: || get(consistency),
        ..GET
    },
];

const fn tree_size(name: &'static str, about: &'static str) -> Parameter {
    Parameter { pattern: Some("^[0-9]+$"), ..query_parameter(name, about) }
}

/// `GET /.well-known/scitt-keys`
async fn keys(State(app): State<App>) -> Response {
    key_answer(key_set(app.service.keys().iter()))
}

/// `GET /.well-known/scitt-keys/{kid}`: the kid in base64url, or in hex.
async fn key(State(app): State<App>, Path(kid): Path<String>) -> Result<Response, Problem> {
    let spellings = [text::from_base64url(&kid), text::from_hex(&kid)];
    let keys = app.service.keys();
    let named = keys.iter().find(|key| {
        let id = key.id();
        spellings.iter().flatten().any(|bytes| bytes == id.as_bytes())
    });
    named.map(|key| key_answer(key.to_cose_key())).ok_or_else(|| {
        let detail = "No key could be found for this kid value".to_owned();
        Problem::new(StatusCode::NOT_FOUND, "no-such-key", "No such key", detail)
    })
}

fn key_answer(body: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/cbor"), (CACHE_CONTROL, KEY_CACHE)], body).into_response()
}

/// `GET /checkpoint`
async fn checkpoint(State(app): State<App>) -> Result<Response, Problem> {
    let note = app.service.checkpoint()?;
    Ok(([(CONTENT_TYPE, TEXT), (CACHE_CONTROL, "no-cache")], note).into_response())
}

/// `GET /checkpoint/key`
async fn checkpoint_key(State(app): State<App>) -> Result<Response, Problem> {
    let key = app.service.checkpoint_key()?;
    Ok(([(CONTENT_TYPE, TEXT)], format!("{key}\n")).into_response())
}

/// `GET /tile/{path}`
async fn tile(State(app): State<App>, Path(path): Path<String>) -> Result<Response, Problem> {
    let missing = |code, detail| Problem::new(StatusCode::NOT_FOUND, code, "Not Found", detail);
    let tile =
        TilePath::parse(&format!("tile/{path}")).map_err(|e| missing(e.code(), e.to_string()))?;
    let found = match tile {
        TilePath::Hashes(_) => app.service.tile(&tile)?,
        // Made of up to 256 statements, which may be large.
        TilePath::Entries { .. } => {
            let service = app.service.clone();
            app.tile_slots.run(app.service, None, move |_| service.tile(&tile)).await?
        }
    };
    let bytes = found.ok_or_else(|| {
        missing("tile-beyond-tree", format!("the tree does not reach {tile} yet"))
    })?;
    let headers = [(CONTENT_TYPE, "application/octet-stream"), (CACHE_CONTROL, IMMUTABLE)];
    Ok((headers, bytes).into_response())
}

/// `?from=&to=`
#[derive(Deserialize)]
struct Range {
    from: u64,
    to: Option<u64>,
}

/// `GET /consistency`
async fn consistency(
    State(app): State<App>,
    Query(range): Query<Range>,
) -> Result<Response, Problem> {
    let size = app.service.head().size.get();
    let to = range.to.unwrap_or(size);
    if range.from == 0 || range.from >= to || to > size {
        let detail =
            format!("a proof needs 0 < from < to <= {size}; from is {}, to is {to}", range.from);
        return Err(Problem::malformed("consistency-range", detail));
    }
    let receipt = app.service.consistency(TreeSize::new(range.from), TreeSize::new(to))?;
    Ok(([(CONTENT_TYPE, "application/cose"), (CACHE_CONTROL, "no-cache")], receipt).into_response())
}
