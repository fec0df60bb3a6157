//! Every route: the handlers, and one table that the router and the OpenAPI
//! document are both made from.
//!
//! Each file lists its rows in `ROUTES` beside its handlers. A new page is a
//! handler and its row in one of them; a new file also needs its line in
//! `TABLES`.

mod batch;
mod entries;
mod openapi;
mod proofs;
mod reads;
mod status;

use axum::Router;
use axum::routing::{MethodRouter, get};

use super::App;

pub use openapi::document as openapi_document;

/// One operation.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// Media types of the request body; empty without one.
    pub(super) takes: &'static [&'static str],
    pub(super) answers: &'static [Success],
    /// Statuses of the problems it may answer with, besides 405 and 500.
    pub(super) problems: &'static [u16],
    pub(super) cost: Cost,
    pub(super) handler: fn() -> MethodRouter<App>,
}

/// An answer that is not a problem.
pub(super) struct Success {
    pub(super) status: u16,
    /// Media types of the body; empty without one.
    pub(super) media_types: &'static [&'static str],
    pub(super) about: &'static str,
}

/// A parameter of a path or a query.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// `path` or `query`.
    pub(super) location: &'static str,
    pub(super) required: bool,
    pub(super) pattern: Option<&'static str>,
    pub(super) about: &'static str,
}

/// What an operation costs at worst, which decides the limits it must pass.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cost {
    /// Almost nothing, and needed most when the log is overloaded: no limits.
    Health,
    /// Independent of the size of the log: a receipt and a consistency proof
    /// read one statement and one tile of 8 KiB for each level, an entry
    /// bundle the 256 statements whose digests it holds.
    Constant,
    /// Grows with the log: needs a budget and a read slot.
    Search,
    /// A registration.
    Registration,
}

/// What most rows have in common.
const GET: Route = Route {
    method: "get",
    path: "",
    id: "",
    summary: "",
    parameters: &[],
    takes: NO_BODY,
    answers: &[],
    problems: &[429, 503],
    cost: Cost::Constant,
    handler: || get(async || ()),
};

const CBOR: &[&str] = &["application/cbor"];
const COSE: &[&str] = &["application/cose"];
const JSON: &[&str] = &["application/json"];
const NO_BODY: &[&str] = &[];

const ENTRY_ID: Parameter = Parameter {
    pattern: Some("^([0-9a-f]{64}|1\\.[0-9]+)$"),
    ..path_parameter(
        "id",
        "The statement id (lowercase hex SHA-256 of the statement), or 1.<leaf index>",
    )
};

const fn ok(media_types: &'static [&'static str], about: &'static str) -> Success {
    Success { status: 200, media_types, about }
}

const fn path_parameter(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, location: "path", required: true, pattern: None, about }
}

const fn query_parameter(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, location: "query", required: false, pattern: None, about }
}

const TABLES: &[&[Route]] =
    &[entries::ROUTES, batch::ROUTES, proofs::ROUTES, reads::ROUTES, status::ROUTES];

/// Every route.
pub(super) fn all() -> impl Iterator<Item = &'static Route> {
    TABLES.iter().copied().flatten()
}

/// The router made from the table.
pub(super) fn router() -> Router<App> {
    all().fold(Router::new(), |router, route| router.route(route.path, (route.handler)()))
}

/// The route with a path; no path has two.
pub(super) fn with_path(path: &str) -> Option<&'static Route> {
    all().find(|route| route.path == path)
}
