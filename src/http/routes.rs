//! The route table: what is served, by whom, and how it answers. The router
//! and the OpenAPI document are both made from it.

use axum::Router;
use axum::routing::{MethodRouter, get, post};

use super::{App, batch, entries, health, keys, proofs, search_routes};

/// One operation.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// Media types of the body, if there is one.
    pub(super) takes: &'static [&'static str],
    /// Status, media types of the body, what it means.
    pub(super) answers: &'static [(u16, &'static [&'static str], &'static str)],
    /// Problems this operation may answer with, besides 500.
    pub(super) problems: &'static [u16],
    pub(super) demand: Demand,
    pub(super) handler: fn() -> MethodRouter<App>,
}

/// What an operation costs at worst, and so what it has to pass.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Demand {
    /// Next to nothing, and asked when everything else is refused: whether the
    /// log is well.
    Always,
    /// As much however large the log is: a receipt and a consistency proof
    /// read one statement and one tile of 8 KiB for each of its levels, a
    /// bundle of entries the 256 statements whose digests it holds.
    Point,
    /// More with what the log holds: it has a budget, and its turn.
    Walk,
    /// A registration.
    Write,
}

/// A parameter of a path or a query.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) required: bool,
    pub(super) pattern: Option<&'static str>,
    pub(super) about: &'static str,
}

const COSE: &[&str] = &["application/cose"];
const RECEIPT: &[&str] = &["application/cose", "application/scitt-receipt+cose"];
const STATEMENT: &[&str] = &["application/cose", "application/scitt-statement+cose"];
pub(super) const CBOR: &[&str] = &["application/cbor"];
const SEQUENCE: &[&str] = &["application/cbor-seq"];
pub(super) const JSON: &[&str] = &["application/json"];
const TEXT: &[&str] = &["text/plain"];
const BYTES: &[&str] = &["application/octet-stream"];
pub(super) const NOTHING: &[&str] = &[];

pub(super) const ENTRY: Parameter = Parameter {
    name: "id",
    place: "path",
    required: true,
    pattern: Some("^([0-9a-f]{64}|1\\.[0-9]+)$"),
    about: "The statement id (lowercase hex SHA-256 of the statement), or 1.<leaf index>",
};
const VERSION: Parameter = Parameter {
    name: "api-version",
    place: "query",
    required: false,
    pattern: None,
    about: "2026-03-26 asks for the older flow: 303 on POST, 302 while pending",
};
const FROM: Parameter = Parameter {
    name: "from",
    place: "query",
    required: true,
    pattern: Some("^[0-9]+$"),
    about: "The older tree size",
};
const TO: Parameter = Parameter {
    name: "to",
    place: "query",
    required: false,
    pattern: Some("^[0-9]+$"),
    about: "The newer tree size; the newest when absent",
};
const KID: Parameter = Parameter {
    name: "kid",
    place: "path",
    required: true,
    pattern: None,
    about: "The key id in unpadded base64url, or in hex",
};
const TILE: Parameter = Parameter {
    name: "path",
    place: "path",
    required: true,
    pattern: None,
    about: "<level>/<index>[.p/<width>] or entries/<index>[.p/<width>], as in C2SP tlog-tiles",
};

/// Everything that is served.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "get",
        path: "/",
        id: "index",
        summary: "What this log is, and where everything else is",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, JSON, "The log's name, head and links")],
        problems: &[429, 503],
        demand: Demand::Point,
        handler: || get(health::index),
    },
    Route {
        method: "post",
        path: "/entries",
        id: "register",
        summary: "Register a Signed Statement; the answer is its receipt",
        parameters: &[VERSION],
        takes: STATEMENT,
        answers: &[
            (201, RECEIPT, "The receipt; Location names the entry for ever"),
            (202, NOTHING, "Still being committed; ask at Location"),
            (303, NOTHING, "With api-version 2026-03-26: see Location"),
        ],
        problems: &[400, 401, 408, 413, 415, 429, 503],
        demand: Demand::Write,
        handler: || post(entries::register),
    },
    Route {
        method: "post",
        path: "/entries/batch",
        id: "registerBatch",
        summary: "Register a CBOR sequence of Signed Statements",
        parameters: &[],
        takes: SEQUENCE,
        answers: &[(200, SEQUENCE, "One [status, receipt / problem / null] for each, in order")],
        problems: &[400, 401, 408, 413, 415, 429, 503],
        demand: Demand::Write,
        handler: || post(batch::register),
    },
    Route {
        method: "get",
        path: "/entries/{id}",
        id: "resolveReceipt",
        summary: "A fresh receipt for a registered statement",
        parameters: &[ENTRY, VERSION],
        takes: NOTHING,
        answers: &[
            (200, RECEIPT, "The receipt, at the newest head"),
            (204, NOTHING, "Still being committed; ask again"),
            (302, NOTHING, "With api-version 2026-03-26: still being committed"),
        ],
        problems: &[400, 404, 429, 503],
        demand: Demand::Point,
        handler: || get(entries::resolve),
    },
    Route {
        method: "get",
        path: "/entries/{id}/statement",
        id: "transparentStatement",
        summary: "The Transparent Statement: the statement with its receipt in label 394",
        parameters: &[ENTRY],
        takes: NOTHING,
        answers: &[
            (200, STATEMENT, "The Transparent Statement"),
            (204, NOTHING, "Still being committed; ask again"),
        ],
        problems: &[400, 404, 429, 503],
        demand: Demand::Point,
        handler: || get(entries::statement),
    },
    Route {
        method: "get",
        path: "/.well-known/scitt-keys",
        id: "keys",
        summary: "The service's keys, the active one first",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, CBOR, "A COSE_KeySet")],
        problems: &[429, 503],
        demand: Demand::Point,
        handler: || get(keys::all),
    },
    Route {
        method: "get",
        path: "/.well-known/scitt-keys/{kid}",
        id: "key",
        summary: "One key of the service, also a retired one",
        parameters: &[KID],
        takes: NOTHING,
        answers: &[(200, CBOR, "A COSE_Key")],
        problems: &[400, 404, 429, 503],
        demand: Demand::Point,
        handler: || get(keys::one),
    },
    Route {
        method: "get",
        path: "/checkpoint",
        id: "checkpoint",
        summary: "The last published checkpoint, a C2SP signed note",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, TEXT, "The note")],
        problems: &[429, 503],
        demand: Demand::Point,
        handler: || get(proofs::checkpoint),
    },
    Route {
        method: "get",
        path: "/checkpoint/key",
        id: "checkpointKey",
        summary: "The key that verifies checkpoints, in note form",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, TEXT, "name+hash+key")],
        problems: &[429, 503],
        demand: Demand::Point,
        handler: || get(proofs::checkpoint_key),
    },
    Route {
        method: "get",
        path: "/tile/{*path}",
        id: "tile",
        summary: "A hash tile or an entry bundle, as in C2SP tlog-tiles",
        parameters: &[TILE],
        takes: NOTHING,
        answers: &[(200, BYTES, "The tile; it never changes")],
        problems: &[400, 404, 429, 503],
        demand: Demand::Point,
        handler: || get(proofs::tile),
    },
    Route {
        method: "get",
        path: "/consistency",
        id: "consistency",
        summary: "A COSE receipt that the tree of one size extends that of another",
        parameters: &[FROM, TO],
        takes: NOTHING,
        answers: &[(200, COSE, "The consistency receipt")],
        problems: &[400, 429, 503],
        demand: Demand::Point,
        handler: || get(proofs::consistency),
    },
    search_routes::STATEMENTS,
    search_routes::STATEMENT,
    search_routes::NAMES,
    search_routes::STORY,
    search_routes::LINEAGE,
    search_routes::ORDER,
    search_routes::PROV,
    search_routes::OPEN_ITEMS,
    search_routes::BUNDLE,
    Route {
        method: "get",
        path: "/policy",
        id: "policy",
        summary: "The registration policy in force and its entry on the log",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, JSON, "Name, digest, entry and text")],
        problems: &[429, 503],
        demand: Demand::Point,
        handler: || get(health::policy),
    },
    Route {
        method: "get",
        path: "/health",
        id: "health",
        summary: "Whether the log is in order",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, JSON, "It is")],
        problems: &[503],
        demand: Demand::Always,
        handler: || get(health::health),
    },
    Route {
        method: "get",
        path: "/health/live",
        id: "live",
        summary: "Whether the process answers",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, JSON, "It does")],
        problems: &[],
        demand: Demand::Always,
        handler: || get(health::live),
    },
    Route {
        method: "get",
        path: "/health/ready",
        id: "ready",
        summary: "Whether a registration would be taken now",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, JSON, "It would")],
        problems: &[503],
        demand: Demand::Always,
        handler: || get(health::ready),
    },
    Route {
        method: "get",
        path: "/metrics",
        id: "metrics",
        summary: "Counters for Prometheus",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, &["application/openmetrics-text"], "OpenMetrics text")],
        problems: &[401],
        demand: Demand::Always,
        handler: || get(health::metrics),
    },
    Route {
        method: "get",
        path: "/openapi.json",
        id: "openapi",
        summary: "This document",
        parameters: &[],
        takes: NOTHING,
        answers: &[(200, JSON, "OpenAPI 3.1")],
        problems: &[429, 503],
        demand: Demand::Point,
        handler: || get(health::api),
    },
];

/// The router made from the table.
pub(super) fn router() -> Router<App> {
    ROUTES.iter().fold(Router::new(), |router, route| router.route(route.path, (route.handler)()))
}

/// The row of a matched path; no path has two.
pub(super) fn row(path: &str) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.path == path)
}
