//! The service's keys, past and present.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use super::App;
use super::problem::Problem;
use crate::key::key_set;
use crate::wire::text;

/// Long enough to be cached, short enough to see a rotation.
const CACHE: &str = "public, max-age=60";

/// `GET /.well-known/scitt-keys`
pub(super) async fn all(State(app): State<App>) -> Response {
    let keys = app.service.keys();
    cbor(key_set(keys.iter()))
}

/// `GET /.well-known/scitt-keys/{kid}`: the kid in base64url, or in hex.
pub(super) async fn one(
    State(app): State<App>,
    Path(kid): Path<String>,
) -> Result<Response, Problem> {
    let spellings = [text::from_base64url(&kid), text::from_hex(&kid)];
    let keys = app.service.keys();
    let named = keys.iter().find(|key| {
        let id = key.id();
        spellings.iter().flatten().any(|bytes| bytes == id.as_bytes())
    });
    named.map(|key| cbor(key.to_cose_key())).ok_or_else(|| {
        let detail = "No key could be found for this kid value".to_owned();
        Problem::new(StatusCode::NOT_FOUND, "no-such-key", "No such key", detail)
    })
}

fn cbor(body: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/cbor"), (CACHE_CONTROL, CACHE)], body).into_response()
}
