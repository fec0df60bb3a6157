//! Registers records from within the process that makes them.
//!
//! In: a payload that says what an agent did or was not allowed to do. Out: its
//! registration. It is sealed and registered like any statement, so it passes
//! the same checks as one that comes over HTTP.

use std::sync::Arc;

use crate::envelope::{self, Draft, seal};
use crate::key::SigningKey;
use crate::service::{Registered, Rejected, Service, now};

/// Registers statements of one issuer.
pub struct Recorder {
    service: Arc<Service>,
    key: SigningKey,
    issuer: String,
}

impl Recorder {
    /// A recorder for a running log.
    pub fn new(service: Arc<Service>, key: SigningKey, issuer: &str) -> Self {
        Self { service, key, issuer: issuer.to_owned() }
    }

    /// Seals and registers one payload. It is durable when this returns.
    pub async fn record(
        &self,
        subject: &str,
        content_type: &str,
        payload: &[u8],
    ) -> Result<Registered, Rejected> {
        let draft =
            Draft { content_type, issuer: &self.issuer, subject, issued_at: Some(now()), payload };
        let statement = seal(&draft, &self.key).map_err(envelope::Error::Key)?;
        self.service.register(statement).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;
    use crate::key::Algorithm;
    use crate::metrics::Metrics;
    use crate::service::{self, Options};

    const OPEN: &str = include_str!("../policy/open.toml");
    const ISSUERS: &str = include_str!("../policy/issuers.toml");

    fn recorder(dir: &Path, policy: &str) -> Recorder {
        service::init(dir, "log.example", policy, Algorithm::Es256).unwrap();
        let options = Options { min_free_bytes: 0, ..Options::from_config(&Config::default()) };
        let service = service::open(dir, options, Metrics::new("test")).unwrap();
        Recorder::new(
            service,
            SigningKey::generate(Algorithm::EdDsa).unwrap(),
            "https://recorder.example",
        )
    }

    #[tokio::test]
    async fn recorded_payloads_are_logged_if_the_policy_admits_them() {
        let dir = tempfile::tempdir().unwrap();
        let open = recorder(&dir.path().join("open"), OPEN);
        let registered = open.record("call-1", "application/json", b"{}").await.unwrap();
        assert_eq!(registered.entry.index.get(), 2);

        let closed = recorder(&dir.path().join("closed"), ISSUERS);
        let refused = closed.record("call-1", "application/json", b"{}").await;
        assert!(matches!(refused, Err(Rejected::Refused(_))));
    }
}
