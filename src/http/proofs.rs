//! Checkpoints, tiles and consistency: what monitors follow.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::App;
use super::problem::Problem;
use crate::log::{TilePath, TreeSize};

const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const TEXT: &str = "text/plain; charset=utf-8";

/// `GET /checkpoint`
pub(super) async fn checkpoint(State(app): State<App>) -> Result<Response, Problem> {
    let note = app.service.checkpoint()?;
    Ok(([(CONTENT_TYPE, TEXT), (CACHE_CONTROL, "no-cache")], note).into_response())
}

/// `GET /checkpoint/key`
pub(super) async fn checkpoint_key(State(app): State<App>) -> Result<Response, Problem> {
    let key = app.service.checkpoint_key()?;
    Ok(([(CONTENT_TYPE, TEXT)], format!("{key}\n")).into_response())
}

/// `GET /tile/{path}`
pub(super) async fn tile(
    State(app): State<App>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    let missing = |code, detail| Problem::new(StatusCode::NOT_FOUND, code, "Not Found", detail);
    let tile =
        TilePath::parse(&format!("tile/{path}")).map_err(|e| missing(e.code(), e.to_string()))?;
    let found = match tile {
        TilePath::Hashes(_) => app.service.tile(&tile)?,
        // Made of 256 statements, which may be large.
        TilePath::Entries { .. } => {
            let service = app.service.clone();
            app.tiles.run(app.service, None, move |_| service.tile(&tile)).await?
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
pub(super) struct Range {
    from: u64,
    to: Option<u64>,
}

/// `GET /consistency`
pub(super) async fn consistency(
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
