//! The road on which a runtime's verdicts reach the log.
//!
//! In: what an agent did, or was not allowed to do, as a payload. Out: its
//! registration. The gate seals and registers in one process: a verdict of
//! its own passes the same checks as a statement from outside, so there is
//! no back door into the log.

use std::sync::Arc;

use crate::envelope::{self, Draft, seal};
use crate::key::SigningKey;
use crate::service::{Registered, Rejected, Service, now};

/// Speaks on the log in the name of one issuer.
pub struct Gate {
    service: Arc<Service>,
    key: SigningKey,
    issuer: String,
}

impl Gate {
    /// A gate in front of a running log.
    pub fn new(service: Arc<Service>, key: SigningKey, issuer: &str) -> Self {
        Self { service, key, issuer: issuer.to_owned() }
    }

    /// Puts one verdict on the log. It is durable when this returns.
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

    fn gate(dir: &Path, policy: &str) -> Gate {
        service::init(dir, "log.example", policy, Algorithm::Es256).unwrap();
        let options = Options { min_free_bytes: 0, ..Options::from_config(&Config::default()) };
        let service = service::open(dir, options, Metrics::new("test")).unwrap();
        Gate::new(service, SigningKey::generate(Algorithm::EdDsa).unwrap(), "https://gate.example")
    }

    #[tokio::test]
    async fn a_verdict_is_logged_and_the_policy_decides_about_gates_too() {
        let dir = tempfile::tempdir().unwrap();
        let open = gate(&dir.path().join("open"), OPEN);
        let registered = open.record("call-1", "application/json", b"{}").await.unwrap();
        assert_eq!(registered.entry.index.get(), 2);

        let closed = gate(&dir.path().join("closed"), ISSUERS);
        let refused = closed.record("call-1", "application/json", b"{}").await;
        assert!(matches!(refused, Err(Rejected::Refused(_))));
    }
}
