//! did:web: the keys an issuer publishes on its own web server.
//!
//! In: a DID. Out: its assertion keys, fetched over HTTPS, or why not.
//!
//! The DID is untrusted input, so the fetch is restricted: public addresses
//! only, checked on the address that is connected to; no redirects, no proxy;
//! limits on bytes, time and concurrent fetches. Results and failures are
//! cached, so that an issuer cannot cause a fetch for each statement.

mod address;
mod did_web;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use crate::trust::did_document::{self, DidKey, parse_did_document};

/// Cached issuers. With DIDs of at most 1 KiB and a few keys each, the
/// cache stays below 4 MiB.
const CACHED_ISSUERS: usize = 1024;

/// Fetches at once, over all issuers: 16 of 64 KiB are 1 MiB in flight.
const FETCHES_MAX: usize = 16;

/// A failure is cached at most this long, so that a repaired document is soon
/// used.
const FAILURE_TTL_MAX: Duration = Duration::from_secs(30);

/// Limits of a fetch.
#[derive(Clone, Debug)]
pub struct ResolveOptions {
    /// From the first DNS packet to the last byte.
    pub timeout: Duration,
    /// Largest document accepted.
    pub max_bytes: usize,
    /// How long a result is cached.
    pub ttl: Duration,
    /// Also allows private addresses, and loopback without TLS. For tests and
    /// closed networks only: clients then choose what this host connects to.
    pub allow_private: bool,
}

impl Default for ResolveOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            max_bytes: 64 * 1024,
            ttl: Duration::from_secs(300),
            allow_private: false,
        }
    }
}

/// Resolves did:web issuers, with a cache.
pub struct DidWebResolver {
    options: ResolveOptions,
    client: reqwest::Client,
    fetches: Semaphore,
    cache: Cache<String, CachedKeys>,
}

#[derive(Clone)]
struct CachedKeys {
    until: Instant,
    result: Result<Arc<[DidKey]>, Error>,
}

impl DidWebResolver {
    /// Makes a resolver; nothing is fetched yet.
    pub fn new(options: ResolveOptions) -> Result<Self, Error> {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("capstan/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .https_only(!options.allow_private)
            // A connection kept open would outlive the check of its address.
            .pool_max_idle_per_host(0)
            .dns_resolver(address::CheckedDns::new(options.allow_private));
        let client = builder.build().map_err(|_| Error::Client)?;
        Ok(Self {
            options,
            client,
            fetches: Semaphore::new(FETCHES_MAX),
            cache: Cache::new(CACHED_ISSUERS),
        })
    }

    /// The assertion keys of a did:web.
    pub async fn resolve(&self, did: &str) -> Result<Arc<[DidKey]>, Error> {
        // An invalid DID costs no fetch, so it is not cached.
        let url = did_web::url(did, self.options.allow_private)?;
        loop {
            match self.cache.get_value_or_guard_async(did).await {
                Ok(answer) if Instant::now() < answer.until => return answer.result,
                Ok(_) => {
                    self.cache.remove_if(did, |answer| answer.until <= Instant::now());
                }
                // The holder of the guard fetches; the others wait.
                Err(guard) => {
                    let result = self.fetch(did, url).await;
                    if !matches!(result, Err(Error::Busy)) {
                        let ttl = match &result {
                            Ok(_) => self.options.ttl,
                            Err(_) => self.options.ttl.min(FAILURE_TTL_MAX),
                        };
                        let answer =
                            CachedKeys { until: Instant::now() + ttl, result: result.clone() };
                        // Evicted during the fetch; the result is still valid.
                        drop(guard.insert(answer));
                    }
                    return result;
                }
            }
        }
    }

    async fn fetch(&self, did: &str, url: reqwest::Url) -> Result<Arc<[DidKey]>, Error> {
        let wait = tokio::time::timeout(self.options.timeout, self.fetches.acquire());
        let Ok(Ok(_permit)) = wait.await else { return Err(Error::Busy) };
        let body = tokio::time::timeout(self.options.timeout, self.get(url))
            .await
            .map_err(|_| Error::Timeout { limit: self.options.timeout })??;
        Ok(parse_did_document(did, &body)?.into())
    }

    async fn get(&self, url: reqwest::Url) -> Result<Vec<u8>, Error> {
        let accept = "application/did+json, application/json";
        let request = self.client.get(url).header("accept", accept);
        let mut response = request.send().await.map_err(|e| Error::from_client(&e))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(Error::Redirect { status: status.as_u16() });
        }
        if status != reqwest::StatusCode::OK {
            return Err(Error::Status { status: status.as_u16() });
        }
        let limit = self.options.max_bytes;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| Error::from_client(&e))? {
            if body.len() + chunk.len() > limit {
                return Err(Error::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// Why a did:web gave no keys.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "did-web-")]
pub enum Error {
    /// Too many fetches at once; can be retried.
    #[error("too many issuers are being resolved at once")]
    Busy,
    /// The HTTP client could not be made.
    #[error(
        "the HTTP client cannot start; check that root certificates are installed on this host"
    )]
    Client,
    /// The fetched document is invalid.
    #[error(transparent)]
    #[strum(transparent)]
    Document(#[from] did_document::Error),
    /// The name of the server has no address.
    #[error("the host of the did:web has no address")]
    NoAddress,
    /// The DID is not a did:web.
    #[error("not a did:web: {problem}")]
    #[strum(serialize = "syntax")]
    NotDidWeb { problem: &'static str },
    /// The host has an address that is not public.
    #[error("the host of the did:web is at {address}, which is not a public address")]
    PrivateAddress { address: std::net::IpAddr },
    /// The server redirects.
    #[error(
        "the server redirects the request for the DID document ({status}), which is not followed"
    )]
    Redirect { status: u16 },
    /// The server answers with an error.
    #[error("the server answers the request for the DID document with status {status}")]
    Status { status: u16 },
    /// The server takes too long.
    #[error("the DID document did not arrive within {limit:?}")]
    Timeout { limit: Duration },
    /// The document is too large.
    #[error("the DID document is larger than {limit} bytes")]
    TooLarge { limit: usize },
    /// No connection, no TLS, or it broke.
    #[error("the server of the did:web cannot be reached")]
    Unreachable,
}

impl Error {
    /// Finds the error of our DNS check inside the client's error.
    fn from_client(error: &reqwest::Error) -> Self {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(inner) = source {
            if let Some(own) = inner.downcast_ref::<Self>() {
                return own.clone();
            }
            source = inner.source();
        }
        Self::Unreachable
    }

    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
