//! `capstan serve` runs a log until SIGTERM or SIGINT; `capstan health` asks a
//! running one how it is.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::cli::client::target::{self, Ca};
use crate::cli::output::{LogWriter, Out, chain};
use crate::cli::settings::{self, Given};
use crate::cli::{CliError, Exit, broken_store};
use crate::config::{Config, LogFormat};
use crate::http::{self, HttpOptions, Tls};
use crate::metrics::Metrics;
use crate::service::{self, Options, Service};
use crate::wire::printable::printable;

#[derive(clap::Args)]
#[command(after_help = "Example: capstan serve --data /var/lib/capstan --listen 127.0.0.1:8787")]
pub(in crate::cli) struct Args {
    /// Data directory, made by `capstan init` [also: $CAPSTAN_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Address and port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Settings file instead of capstan.toml in the data directory
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Serve the existing log and register nothing
    #[arg(long)]
    read_only: bool,
}

#[derive(Serialize)]
struct Listening {
    ok: bool,
    code: &'static str,
    url: String,
}

/// What [`run_until`] serves, and how.
pub(in crate::cli) struct Server<'a> {
    pub(in crate::cli) service: Arc<Service>,
    pub(in crate::cli) config: &'a Config,
    pub(in crate::cli) http: HttpOptions,
    pub(in crate::cli) listener: TcpListener,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let given = Given {
        data: args.data.as_deref(),
        config: args.config.as_deref(),
        listen: args.listen.clone(),
    };
    let loaded = settings::load(&given)?;
    let config = loaded.config;
    start_logging(&config);
    loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let data = config.data.clone().ok_or_else(|| CliError::failed("usage", "--data is missing"))?;
    let options = Options { read_only: args.read_only, ..Options::from_config(&config) };
    let opened = service::open(&data, options, Metrics::new(env!("CARGO_PKG_VERSION")));
    let service = opened.map_err(|e| broken_store(e, &data))?;
    let http = HttpOptions::from_config(&config)?;
    tokio::spawn(reload_on_hangup(service.clone(), http.tls.clone())?);
    let stop = stop_signal()?;
    let (listener, _) = listen(&config).await?;
    run_until(Server { service, config: &config, http, listener }, out, stop).await?;
    tracing::info!("stopped");
    Ok(Exit::Yes)
}

/// Logs to standard error as text or JSON, without colour, one line per event.
pub(in crate::cli) fn start_logging(config: &Config) {
    // Below warnings, the storage engine logs only what helps to debug it.
    let filter = format!("{},fjall=warn,lsm_tree=warn", config.log.level.as_str());
    let is_json = config.log.format == LogFormat::Json;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(move || LogWriter::new(is_json))
        .with_ansi(false)
        .with_target(false);
    // A second start in one process keeps the first subscriber.
    let _kept = match config.log.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

/// Opens the socket; with port 0 the address tells which one it got.
pub(in crate::cli) async fn listen(config: &Config) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(config.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", config.listen))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Prints the address and serves until `stop` resolves. Accepted statements
/// are committed and published before this returns.
pub(in crate::cli) async fn run_until(
    server: Server<'_>,
    out: &Out,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let Server { service, config, http: options, listener } = server;
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", listener.local_addr()?);
    let text = printable!("listening on {}", url);
    out.answer(&Listening { ok: true, code: "listening", url }, text)?;
    let interval = Duration::from_millis(config.checkpoint.interval_ms);
    let publishing = tokio::spawn(service::keep_publishing(service.clone(), interval));
    let copies = tokio::spawn(service.clone().serve_backups());
    let scrub = service::keep_scrubbing(service.clone(), config.scrub.bytes_per_second);
    let scrubbing = tokio::spawn(scrub);
    let served = http::serve(listener, service.clone(), options, stop).await;
    publishing.abort();
    copies.abort();
    scrubbing.abort();
    tokio::task::spawn_blocking(move || service.shut_down()).await??;
    Ok(served?)
}

/// Resolves at the first SIGTERM or SIGINT.
pub(in crate::cli) fn stop_signal() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping after open requests have finished");
    })
}

fn reload_on_hangup(
    service: Arc<Service>,
    tls: Option<Arc<Tls>>,
) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        while hangup.recv().await.is_some() {
            match tls.as_ref().map(|tls| tls.reload()) {
                None | Some(Ok(false)) => {}
                Some(Ok(true)) => tracing::info!("reloaded the TLS certificate"),
                Some(Err(error)) => {
                    let why = chain(&error.into());
                    tracing::error!(
                        "cannot reload the TLS certificate, the old one stays in use: {why}"
                    );
                }
            }
            match service.reload().await {
                Ok(changed) if changed.is_empty() => tracing::info!("reload: nothing changed"),
                Ok(changed) => tracing::info!(changed = changed.join(" and "), "reloaded"),
                Err(error) => {
                    let why = chain(&error.into());
                    tracing::error!("reload failed, the old rules stay in force: {why}");
                }
            }
        }
    })
}

#[derive(clap::Args)]
#[command(after_help = "Example: capstan health --url http://127.0.0.1:8787")]
pub(in crate::cli) struct HealthArgs {
    /// Address of the log [default: $CAPSTAN_URL, then the port of $CAPSTAN_LISTEN, or 8787, on this machine]
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    ca: Ca,
}

#[derive(Serialize)]
struct HealthReport {
    ok: bool,
    code: &'static str,
    url: String,
}

pub(in crate::cli) async fn health(args: &HealthArgs, out: &Out) -> anyhow::Result<Exit> {
    let url = args.url.clone().or_else(target::from_environment).unwrap_or_else(on_this_machine);
    let client = args.ca.client(&url, None)?;
    let asked = client.once(client.url("health")?, "application/json", None).await;
    // Unreachable does not mean unhealthy, so this is not a "no".
    let reply = asked.map_err(|error| CliError::failed("unreachable", chain(&error)))?;
    if reply.status != 200 {
        return Err(CliError { exit: Exit::No, ..reply.problem() }.into());
    }
    out.answer(&HealthReport { ok: true, code: "ok", url }, "ok")?;
    Ok(Exit::Yes)
}

fn on_this_machine() -> String {
    let listen = std::env::var("CAPSTAN_LISTEN").ok();
    let port = listen.as_deref().and_then(|listen| listen.rsplit(':').next()).unwrap_or("8787");
    format!("http://127.0.0.1:{port}")
}
