//! A log on a socket of this process: no other program has to be built.

use std::path::Path;
use std::time::Duration;

use capstan::config::{Config, LoadFrom};
use capstan::http::{self, HttpOptions};
use capstan::metrics::Metrics;
use capstan::service::{self, Options};
use tokio::runtime::Runtime;

/// A running log, stopped when dropped.
pub(crate) struct Server {
    runtime: Option<Runtime>,
    pub(crate) address: String,
}

impl Server {
    /// Serves a data directory with the `capstan.toml` in it, if there is one.
    pub(crate) fn start(data: &Path) -> Self {
        let config = config(data);
        let runtime = Runtime::new().unwrap();
        let address = runtime.block_on(async {
            let metrics = Metrics::new("test");
            let service = service::open(data, Options::from_config(&config), metrics).unwrap();
            let interval = Duration::from_millis(config.checkpoint.interval_ms);
            tokio::spawn(service::keep_publishing(service.clone(), interval));
            tokio::spawn(service.clone().serve_backups());
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let options = HttpOptions::from_config(&config).unwrap();
            tokio::spawn(http::serve(listener, service, options, std::future::pending()));
            address
        });
        Self { runtime: Some(runtime), address }
    }

    /// Closes the socket and every connection at once.
    pub(crate) fn kill(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn config(data: &Path) -> Config {
    let path = data.join("capstan.toml");
    let text = std::fs::read_to_string(&path).ok();
    let file = text.map(|text| (path.display().to_string(), text));
    let read_file = |path: &str| std::fs::read_to_string(path);
    let from = LoadFrom { file, env: Vec::new(), flags: Vec::new(), read_file: &read_file };
    Config::load(from).unwrap().config
}
