//! `capstan serve`: a log at work, from the first signal to the last.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::cli::output::{LogWriter, Out};
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
    run_until(service, (&config, http), (listener, out), stop).await?;
    tracing::info!("stopped");
    Ok(Exit::Yes)
}

/// Text or JSON on standard error, never in colour, one line for an event
/// whatever was put into it.
pub(in crate::cli) fn start_logging(config: &Config) {
    // The engine's own notes are for people who debug the engine.
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

/// Opens the socket; the address may name port 0.
pub(in crate::cli) async fn listen(config: &Config) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(config.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", config.listen))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Says where it listens, serves until `stop`; what was taken is committed
/// and published before this returns.
pub(in crate::cli) async fn run_until(
    service: Arc<Service>,
    (config, options): (&Config, HttpOptions),
    (listener, out): (TcpListener, &Out),
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", listener.local_addr()?);
    out.answer(
        &json!({ "ok": true, "code": "listening", "url": url }),
        printable!("listening on {}", url),
    )?;
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
        tracing::info!("stopping: open requests may finish");
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
                    let why = crate::cli::output::chain(&error.into());
                    tracing::error!("the TLS certificate stays the old one: {why}");
                }
            }
            match service.reload().await {
                Ok(changed) if changed.is_empty() => tracing::info!("reload: nothing changed"),
                Ok(changed) => tracing::info!(changed = changed.join(" and "), "reloaded"),
                Err(error) => {
                    let why = crate::cli::output::chain(&error.into());
                    tracing::error!("reload failed, the old rules stay in force: {why}");
                }
            }
        }
    })
}
