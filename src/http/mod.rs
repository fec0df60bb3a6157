//! SCRAPI over axum: the route table and what stands around it.
//!
//! In: requests. Out: receipts, proofs, and problems in one format. Handlers
//! translate; they decide nothing. `problem.rs` is the only place that knows
//! status codes for errors.

mod admission;
mod answers;
mod batch;
mod body;
mod check;
mod entries;
mod error;
mod health;
mod keys;
mod negotiate;
mod network;
mod openapi;
mod patience;
mod problem;
mod proofs;
mod pulse;
mod reads;
mod routes;
mod search_routes;
mod serve;
mod statements;
#[cfg(test)]
mod tests;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{Any, CorsLayer};

use crate::config::{Config, Secret};
use crate::service::{Buckets, Pace, Service};
use crate::wire::budget::Allowance;
use admission::Admission;
use network::{Network, Shares};
use reads::Reads;

pub use error::Error;
pub use openapi::document as openapi_document;
pub use serve::serve;
pub use tls::Tls;

/// What of the settings the HTTP side needs.
#[derive(Clone)]
pub struct HttpOptions {
    /// How long a registration may wait for its commit.
    pub deadline: Duration,
    /// How long a body may take to arrive.
    pub body_time: Duration,
    /// How long headers may take to arrive.
    pub header_time: Duration,
    /// How long a client may take nothing of its answer.
    pub answer_time: Duration,
    /// Bytes of all headers together.
    pub header_bytes: usize,
    /// Connections at once.
    pub connections: usize,
    /// Statements in one batch request.
    pub batch_statements: usize,
    /// Bytes of one batch request.
    pub batch_bytes: usize,
    /// Bytes of one statement.
    pub statement_bytes: usize,
    /// Statements in work at once.
    pub work_statements: usize,
    /// Bytes of requests and answers at once.
    pub work_bytes: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// Requests at once of one address.
    pub requests_per_address: usize,
    /// What one read that looks through the log may cost.
    pub reads: Allowance,
    /// How many of them there may be at once.
    pub reads_at_once: usize,
    /// How many of them for one address.
    pub reads_per_address: usize,
    /// How long one waits for its turn.
    pub reads_wait: Duration,
    /// Registrations per second and address; none is off.
    pub rate: Option<Rate>,
    /// Reads per second and address; none is off.
    pub read_rate: Option<Rate>,
    /// Whether a proxy in front tells the client's address.
    pub trust_forwarded_for: bool,
    /// The token that writes need, if any.
    pub token: Option<Secret>,
    /// Whether anyone may read the metrics.
    pub metrics_public: bool,
    /// How long connections may take to finish at the end.
    pub grace: Duration,
    /// TLS, when a certificate was given.
    pub tls: Option<Arc<Tls>>,
}

/// So many each second, and so many at once.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Each second.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

impl Rate {
    /// As the settings have it: 0 each second is no limit, a burst of 0 is as
    /// many as in a second.
    fn new(per_second: u32, burst: u32) -> Option<Self> {
        let burst = if burst == 0 { per_second } else { burst };
        (per_second > 0).then_some(Self { per_second, burst })
    }

    fn pace(self) -> Pace {
        Pace { per_second: f64::from(self.per_second), burst: self.burst }
    }
}

impl HttpOptions {
    /// The part of the settings that is ours; reads the TLS files.
    pub fn from_config(config: &Config) -> Result<Self, Error> {
        let seconds = Duration::from_secs;
        let (rate, reads) = (&config.rate, &config.reads);
        let tls = match (&config.tls.certificate, &config.tls.key) {
            (Some(certificate), Some(key)) => Some(Arc::new(Tls::open(certificate, key)?)),
            _ => None,
        };
        Ok(Self {
            deadline: seconds(config.limits.request_seconds),
            body_time: seconds(config.limits.body_seconds),
            header_time: seconds(config.limits.header_seconds),
            answer_time: seconds(config.limits.answer_seconds),
            header_bytes: config.limits.header_bytes,
            connections: config.limits.connections,
            batch_statements: config.limits.batch_statements,
            batch_bytes: config.limits.batch_bytes,
            statement_bytes: config.limits.statement_bytes,
            work_statements: config.work.statements,
            work_bytes: config.work.bytes,
            streams_per_connection: config.limits.streams_per_connection,
            requests_per_address: config.limits.requests_per_address,
            reads: Allowance { nodes: reads.nodes, edges: reads.edges, bytes: reads.bytes },
            reads_at_once: reads.at_once,
            reads_per_address: reads.per_address,
            reads_wait: Duration::from_millis(reads.wait_ms),
            rate: Rate::new(rate.per_second, rate.burst),
            read_rate: Rate::new(rate.reads_per_second, rate.reads_burst),
            trust_forwarded_for: rate.trust_forwarded_for,
            token: config.auth.token.clone(),
            metrics_public: config.metrics.public,
            grace: seconds(config.shutdown.grace_seconds),
            tls,
        })
    }
}

/// What every handler can reach.
#[derive(Clone)]
struct App {
    service: Arc<Service>,
    options: Arc<HttpOptions>,
    write_rate: Arc<Buckets<Network>>,
    read_rate: Arc<Buckets<Network>>,
    requests: Shares,
    admission: Arc<Admission>,
    /// Reads that look through the log, and bundles of entries: monitors get
    /// theirs whoever searches meanwhile.
    reads: Reads,
    tiles: Reads,
}

/// The whole surface, callable without a socket.
pub fn app(service: Arc<Service>, options: HttpOptions) -> Router {
    router(App::new(service, options))
}

impl App {
    fn new(service: Arc<Service>, options: HttpOptions) -> Self {
        let metrics = || service.metrics().clone();
        Self {
            admission: Arc::new(Admission::new(&options, metrics())),
            reads: Reads::new(&options, metrics()),
            tiles: Reads::new(&options, metrics()),
            requests: Shares::new(options.requests_per_address),
            write_rate: Arc::default(),
            read_rate: Arc::default(),
            options: Arc::new(options),
            service,
        }
    }
}

fn router(app: App) -> Router {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([axum::http::Method::GET, axum::http::Method::HEAD]);
    routes::router()
        .layer(from_fn_with_state(app.clone(), check::admit))
        .layer(CatchPanicLayer::new())
        .layer(cors)
        .layer(from_fn_with_state(app.clone(), check::observe))
        .with_state(app)
}
