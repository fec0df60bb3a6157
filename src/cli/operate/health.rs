//! `capstan health`: for the health check of a container.

use reqwest::Method;
use serde::Serialize;

use crate::cli::client::target::{self, Ca};
use crate::cli::output::{Out, chain};
use crate::cli::{Answer, Stop};

#[derive(clap::Args)]
#[command(after_help = "Example: capstan health --url http://127.0.0.1:8787")]
pub(in crate::cli) struct Args {
    /// Address of the log [default: $CAPSTAN_URL, then the port of $CAPSTAN_LISTEN, or 8787, on this machine]
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    ca: Ca,
}

#[derive(Serialize)]
struct Well {
    ok: bool,
    code: &'static str,
    url: String,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let url = args.url.clone().or_else(target::from_environment).unwrap_or_else(on_this_machine);
    let client = args.ca.client(&url, None)?;
    let asked = client.once((Method::GET, client.url("health")?), "application/json", None).await;
    // A log that cannot be reached may be well, or somewhere else.
    let reply = asked.map_err(|error| Stop::failed("unreachable", chain(&error)))?;
    if reply.status != 200 {
        return Err(Stop { answer: Answer::No, ..reply.problem() }.into());
    }
    out.answer(&Well { ok: true, code: "ok", url }, "ok")?;
    Ok(Answer::Yes)
}

fn on_this_machine() -> String {
    let listen = std::env::var("CAPSTAN_LISTEN").ok();
    let port = listen.as_deref().and_then(|listen| listen.rsplit(':').next()).unwrap_or("8787");
    format!("http://127.0.0.1:{port}")
}
