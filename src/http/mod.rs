//! SCRAPI over axum.
//!
//! In: requests. Out: receipts, proofs, and problems in one format. Handlers
//! translate between HTTP and `service`; they decide nothing. `routes` has the
//! route table and the handlers, `limits` what a request must pass before its
//! handler runs, `response` what an answer passes after it, `connection` the
//! sockets below.

mod connection;
mod limits;
mod response;
mod routes;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{Any, CorsLayer};

use crate::config::{Config, Secret};
use crate::service::{Buckets, Pace, Service};
use crate::wire::budget::Allowance;
use limits::capacity::Capacity;
use limits::client::{ClientNetwork, ClientSlots};
use limits::read_slots::ReadSlots;

pub use connection::{Tls, serve};
pub use routes::openapi_document;

/// Why the server could not start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A certificate or key file cannot be used.
    #[error("{}: {detail}", path.display())]
    Certificate { path: PathBuf, detail: String },
    /// The listener failed.
    #[error("the listener failed")]
    Listen(#[from] std::io::Error),
    /// Certificate and key do not match.
    #[error("the TLS certificate and key cannot be used together")]
    Tls(#[from] rustls::Error),
}

/// The settings of the HTTP side.
#[derive(Clone)]
pub struct HttpOptions {
    /// How long a registration may wait for its commit.
    pub deadline: Duration,
    /// How long a body may take to arrive.
    pub body_time: Duration,
    /// How long headers may take to arrive.
    pub header_time: Duration,
    /// How long a client may read nothing of its response.
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
    /// Bytes of requests and responses at once.
    pub work_bytes: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_per_connection: u32,
    /// Requests at once of one address.
    pub requests_per_address: usize,
    /// Budget of one search.
    pub reads: Allowance,
    /// Searches at once.
    pub reads_at_once: usize,
    /// Searches at once of one address.
    pub reads_per_address: usize,
    /// How long a search may wait for a slot.
    pub reads_wait: Duration,
    /// Registrations per second and address; none is off.
    pub rate: Option<Rate>,
    /// Reads per second and address; none is off.
    pub read_rate: Option<Rate>,
    /// Whether X-Forwarded-For of a proxy has the client's address.
    pub trust_forwarded_for: bool,
    /// The token that registrations need, if any.
    pub token: Option<Secret>,
    /// Whether anyone may read the metrics.
    pub metrics_public: bool,
    /// How long connections may take to finish at shutdown.
    pub grace: Duration,
    /// TLS, if a certificate is configured.
    pub tls: Option<Arc<Tls>>,
}

/// A rate limit.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Tokens per second.
    pub per_second: u32,
    /// Tokens that can be saved up.
    pub burst: u32,
}

impl Rate {
    /// From the settings: 0 per second is no limit, a burst of 0 is one
    /// second's worth.
    fn new(per_second: u32, burst: u32) -> Option<Self> {
        let burst = if burst == 0 { per_second } else { burst };
        (per_second > 0).then_some(Self { per_second, burst })
    }

    fn pace(self) -> Pace {
        Pace { per_second: f64::from(self.per_second), burst: self.burst }
    }
}

impl HttpOptions {
    /// From the configuration; reads the TLS files.
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

/// The state of the server, shared by all request tasks.
#[derive(Clone)]
struct App {
    // Fixed at start.
    service: Arc<Service>,
    options: Arc<HttpOptions>,

    // Each has its own lock or atomics.
    write_rate: Arc<Buckets<ClientNetwork>>,
    read_rate: Arc<Buckets<ClientNetwork>>,
    /// Requests in progress of each client.
    client_slots: ClientSlots,
    capacity: Arc<Capacity>,
    read_slots: ReadSlots,
    /// Separate from `read_slots`, so that searches do not delay monitors,
    /// which fetch entry bundles.
    tile_slots: ReadSlots,
}

/// The whole API, callable without a socket.
pub fn app(service: Arc<Service>, options: HttpOptions) -> Router {
    router(App::new(service, options))
}

impl App {
    fn new(service: Arc<Service>, options: HttpOptions) -> Self {
        let metrics = || service.metrics().clone();
        Self {
            capacity: Arc::new(Capacity::new(&options, metrics())),
            read_slots: ReadSlots::new(&options, metrics()),
            tile_slots: ReadSlots::new(&options, metrics()),
            client_slots: ClientSlots::new(options.requests_per_address),
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
        .layer(from_fn_with_state(app.clone(), limits::admit))
        .layer(CatchPanicLayer::new())
        .layer(cors)
        .layer(from_fn_with_state(app.clone(), response::observe))
        .with_state(app)
}
