//! HTTPS without a proxy: the certificate can be replaced while connections
//! are open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::http::Error;

/// The certificate in use, and the files it was read from.
pub struct Tls {
    // Fixed at start.
    certificate: PathBuf,
    key: PathBuf,
    config: Arc<rustls::ServerConfig>,
    /// Replaced by `reload`; read by each handshake without a lock.
    current: Arc<Current>,
}

#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Tls {
    pub(in crate::http) fn open(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let current = Arc::new(Current(ArcSwap::from_pointee(read(certificate, key, &provider)?)));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Self { certificate, key, current, config: Arc::new(config) })
    }

    /// Reads both files again, for new connections; if they cannot be used,
    /// the old certificate stays. Returns whether the certificate changed.
    pub fn reload(&self) -> Result<bool, Error> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let fresh = read(&self.certificate, &self.key, &provider)?;
        let is_changed = self.current.0.load().cert != fresh.cert;
        self.current.0.store(Arc::new(fresh));
        Ok(is_changed)
    }

    pub(in crate::http) fn config(&self) -> Arc<rustls::ServerConfig> {
        self.config.clone()
    }
}

/// A certificate chain and its key from PEM files; they must match.
fn read(
    certificate: &Path,
    key: &Path,
    provider: &rustls::crypto::CryptoProvider,
) -> Result<CertifiedKey, Error> {
    let wrong = |path: &Path, detail: String| Error::Certificate { path: path.to_owned(), detail };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
        .map_err(|e| wrong(certificate, e.to_string()))?
        .collect();
    let chain = chain.map_err(|e| wrong(certificate, e.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "it holds no certificate".to_owned()));
    }
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(key, e.to_string()))?;
    Ok(CertifiedKey::from_der(chain, key_der, provider)?)
}
