//! `capstan dev`: a temporary log for experiments, deleted when it stops.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use super::{init, serve};
use crate::cli::output::Out;
use crate::cli::{Exit, broken_store, program};
use crate::config::{Config, LogLevel};
use crate::http::HttpOptions;
use crate::key::{Algorithm, SigningKey};
use crate::metrics::Metrics;
use crate::recorder::Recorder;
use crate::service::{self, Options, Service};
use crate::wire::printable::{Printable, printable};

/// A reserved name (RFC 2606), by which verifiers know a development log.
const NAME: &str = "dev.capstan.invalid";
const POLICY: &str = include_str!("../../../policy/open.toml");
const SAMPLES: [(&str, &str); 2] = [
    ("sample-1", r#"{"action":"refund","order":"7781","verdict":"executed"}"#),
    ("sample-2", r#"{"action":"delete_account","verdict":"denied"}"#),
];

#[derive(clap::Args)]
#[command(after_help = "Example: capstan dev")]
pub(in crate::cli) struct Args {
    /// Address and port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787")]
    listen: std::net::SocketAddr,
    /// Directory to keep the log in, instead of deleting it at the end
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    let scratch = if args.data.is_none() { Some(Scratch::new()?) } else { None };
    let data = match (&args.data, &scratch) {
        (Some(data), _) => data.clone(),
        (None, Some(scratch)) => scratch.0.join("log"),
        (None, None) => return Ok(Exit::Failed),
    };
    let mut config = Config { listen: args.listen, ..Config::default() };
    config.log.level = LogLevel::Warn;
    config.disk.min_free_bytes = 0;
    serve::start_logging(&config);
    let stop = serve::stop_signal()?;
    if !data.join("FORMAT").exists() {
        service::init(&data, NAME, POLICY, Algorithm::Es256).map_err(init::refused)?;
    }
    let metrics = Metrics::new(env!("CARGO_PKG_VERSION"));
    let opened = service::open(&data, Options::from_config(&config), metrics);
    let service = opened.map_err(|e| broken_store(e, &data))?;
    register_samples(service.clone()).await?;
    out.note("DEV \u{2014} receipts from this log prove nothing");
    let (listener, address) = serve::listen(&config).await?;
    out.note(next_steps(&format!("http://{address}")));
    let http = HttpOptions::from_config(&config)?;
    let server = serve::Server { service, config: &config, http, listener };
    serve::run_until(server, out, stop).await?;
    Ok(Exit::Yes)
}

/// Registers two records in-process, as an agent runtime would.
async fn register_samples(service: Arc<Service>) -> anyhow::Result<()> {
    let key = SigningKey::generate(Algorithm::EdDsa)?;
    let recorder = Recorder::new(service, key, "https://gate.dev.capstan.invalid");
    for (subject, payload) in SAMPLES {
        recorder.record(subject, "application/json", payload.as_bytes()).await?;
    }
    Ok(())
}

fn next_steps(url: &str) -> Printable {
    printable!(
        "In another terminal:\n\
         \x20 export CAPSTAN_URL={1}\n\
         \x20 {0} keygen -o agent.key\n\
         \x20 {0} seal --example executed > action.json\n\
         \x20 {0} seal action.json --key agent.key -o action.cose\n\
         \x20 {0} register action.cose\n\
         \x20 {0} trust add $CAPSTAN_URL --trust trust.toml --yes\n\
         \x20 {0} trust issuer https://agents.example agent.key.pub --trust trust.toml\n\
         \x20 {0} verify action.transparent.cose --trust trust.toml --allow-dev\n\
         \x20 {0} story order-7781",
        program(),
        url
    )
}

/// A directory that is removed with everything in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let unique = SigningKey::generate(Algorithm::EdDsa)?.public().id().to_string();
        let name = format!("capstan-dev-{}", unique.get(..16).unwrap_or_default());
        let path = std::env::temp_dir().join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(Path::new(&self.0));
    }
}
