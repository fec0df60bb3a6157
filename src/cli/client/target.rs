//! Which log a verb talks to: a flag, a variable, or the client section of
//! the settings, in this order.

use std::path::{Path, PathBuf};

use super::Client;
use crate::cli::{CliError, files, settings};
use crate::config::Client as ClientSettings;

/// The address of a log, and the CA certificates to trust.
#[derive(Clone, Default, clap::Args)]
pub(in crate::cli) struct Target {
    /// Address of the log [default: $CAPSTAN_URL, then client.url]
    #[arg(long)]
    pub(in crate::cli) url: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) ca: Ca,
}

/// The CA certificates to trust.
#[derive(Clone, Default, clap::Args)]
pub struct Ca {
    /// Trust only these CA certificates for TLS [default: $CAPSTAN_CA]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl Target {
    /// The address, wherever it is written.
    pub(in crate::cli) fn url(&self) -> anyhow::Result<String> {
        if let Some(url) = self.url.clone().or_else(from_environment) {
            return Ok(url);
        }
        if let Some(url) = client_settings()?.url {
            return Ok(url.as_str().to_owned());
        }
        let file = settings::of_the_user().map_or_else(String::new, |path| {
            format!(", or `[client] url = \"…\"` in {}", path.display())
        });
        let error = CliError::failed("usage", "no log is named");
        Err(error.next(format!("--url URL, CAPSTAN_URL in the environment{file}")).into())
    }

    /// The same with an address that was given in another way, if it was.
    pub(in crate::cli) fn at(url: Option<&str>, ca: &Ca) -> Self {
        Self { url: url.map(str::to_owned), ca: ca.clone() }
    }

    pub(in crate::cli) fn client(&self, token: Option<&str>) -> anyhow::Result<Client> {
        self.ca.client(&self.url()?, token)
    }
}

impl Ca {
    pub fn client(&self, url: &str, token: Option<&str>) -> anyhow::Result<Client> {
        Client::new(url, token, self.file(url)?.as_deref())
    }

    fn file(&self, url: &str) -> anyhow::Result<Option<PathBuf>> {
        let given = self.ca.clone().or_else(|| files::variable("CAPSTAN_CA"));
        match given {
            None if url.starts_with("https:") => Ok(client_settings()?.ca),
            given => Ok(given),
        }
    }
}

/// `$CAPSTAN_URL`, if it says something.
pub(in crate::cli) fn from_environment() -> Option<String> {
    std::env::var("CAPSTAN_URL").ok().filter(|url| !url.is_empty())
}

fn client_settings() -> anyhow::Result<ClientSettings> {
    let user = settings::of_the_user().filter(|path| path.exists());
    let config: Option<&Path> = user.as_deref();
    Ok(settings::load(&settings::Given { config, ..settings::Given::default() })?.config.client)
}
