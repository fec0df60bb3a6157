//! Why the HTTP side could not start or go on.

use std::path::PathBuf;

/// Something about sockets or certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A certificate or key file cannot be used.
    #[error("{}: {detail}", path.display())]
    Certificate { path: PathBuf, detail: String },
    /// The listener failed.
    #[error("the listener failed")]
    Listen(#[from] std::io::Error),
    /// Certificate and key do not go together.
    #[error("the TLS certificate and key cannot be used together")]
    Tls(#[from] rustls::Error),
}
