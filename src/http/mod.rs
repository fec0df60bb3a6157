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
mod openapi;
mod patience;
mod problem;
mod proofs;
mod pulse;
mod routes;
mod search_routes;
mod serve;
mod statements;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{Any, CorsLayer};

use crate::config::{Config, Secret};
use crate::service::{Buckets, Service};
use admission::Admission;

pub use error::Error;
pub use openapi::document as openapi_document;
pub use serve::serve;

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
    /// Bytes of bodies at once, beyond one statement for each request.
    pub work_bytes: usize,
    /// Requests per second and client, and how many at once; none is off.
    pub rate: Option<(u32, u32)>,
    /// Whether a proxy in front tells the client's address.
    pub trust_forwarded_for: bool,
    /// The token that writes need, if any.
    pub token: Option<Secret>,
    /// Whether anyone may read the metrics.
    pub metrics_public: bool,
    /// How long connections may take to finish at the end.
    pub grace: Duration,
    /// TLS, when a certificate was given.
    pub tls: Option<Arc<rustls::ServerConfig>>,
}

impl HttpOptions {
    /// The part of the settings that is ours; reads the TLS files.
    pub fn from_config(config: &Config) -> Result<Self, Error> {
        let seconds = Duration::from_secs;
        let (per_second, burst) = (config.rate.per_second, config.rate.burst);
        let burst = if burst == 0 { per_second } else { burst };
        let tls = match (&config.tls.certificate, &config.tls.key) {
            (Some(certificate), Some(key)) => Some(serve::tls(certificate, key)?),
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
            rate: (per_second > 0).then_some((per_second, burst)),
            trust_forwarded_for: config.rate.trust_forwarded_for,
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
    client_rate: Arc<Buckets<IpAddr>>,
    admission: Arc<Admission>,
}

/// The whole surface, callable without a socket.
pub fn app(service: Arc<Service>, options: HttpOptions) -> Router {
    router(App::new(service, options))
}

impl App {
    fn new(service: Arc<Service>, options: HttpOptions) -> Self {
        let admission = Arc::new(Admission::new(&options, service.metrics().clone()));
        let client_rate = Arc::new(Buckets::new());
        Self { service, options: Arc::new(options), client_rate, admission }
    }
}

fn router(app: App) -> Router {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([axum::http::Method::GET, axum::http::Method::HEAD]);
    routes::router()
        .layer(from_fn_with_state(app.clone(), check::writes))
        .layer(CatchPanicLayer::new())
        .layer(cors)
        .layer(from_fn_with_state(app.clone(), check::observe))
        .with_state(app)
}
