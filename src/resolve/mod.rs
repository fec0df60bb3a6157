//! did:web: the keys an issuer publishes on its own web server.
//!
//! In: a DID. Out: its assertion keys, fetched over HTTPS, or why not.
//!
//! The DID comes from strangers, so the fetch is fenced in: public addresses
//! only, checked after DNS on the very connection used; no redirects and no
//! proxy; a cap on bytes, on time and on fetches at once; and every answer,
//! good or bad, is remembered, so that one issuer cannot buy a fetch per
//! statement.

mod address;
mod did_web;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use crate::trust::did_document::{self, DidKey, parse_did_document};

/// Issuers remembered. With DIDs of at most 1 KiB and a few keys each, the
/// cache stays below 4 MiB.
const CACHED_ISSUERS: usize = 1024;

/// Fetches at once, over all issuers: 16 of 64 KiB are 1 MiB in flight.
const FETCHES_MAX: usize = 16;

/// A failure is remembered at most this long, so that a repaired document is
/// soon seen.
const FAILURE_TTL_MAX: Duration = Duration::from_secs(30);

/// How far a fetch may go.
#[derive(Clone, Debug)]
pub struct ResolveOptions {
    /// From the first DNS packet to the last byte.
    pub timeout: Duration,
    /// Largest document taken.
    pub max_bytes: usize,
    /// How long an answer is used.
    pub ttl: Duration,
    /// Also asks private addresses, and loopback without TLS. For tests and
    /// closed networks: with it, strangers choose what this host connects to.
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

/// Resolves did:web issuers and remembers the answers.
pub struct DidWebResolver {
    options: ResolveOptions,
    client: reqwest::Client,
    fetches: Semaphore,
    cache: Cache<String, Answer>,
}

#[derive(Clone)]
struct Answer {
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
        // Nonsense costs no fetch, so it needs no place in the cache.
        let url = did_web::url(did, self.options.allow_private)?;
        loop {
            match self.cache.get_value_or_guard_async(did).await {
                Ok(answer) if Instant::now() < answer.until => return answer.result,
                Ok(_) => {
                    self.cache.remove_if(did, |answer| answer.until <= Instant::now());
                }
                // Whoever holds the guard fetches; the others wait for it.
                Err(guard) => {
                    let result = self.fetch(did, url).await;
                    if !matches!(result, Err(Error::Busy)) {
                        let ttl = match &result {
                            Ok(_) => self.options.ttl,
                            Err(_) => self.options.ttl.min(FAILURE_TTL_MAX),
                        };
                        let answer = Answer { until: Instant::now() + ttl, result: result.clone() };
                        // Evicted while we fetched: the answer is still good.
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
    /// Too many fetches at once; worth another try.
    #[error("too many issuers are being resolved at once")]
    Busy,
    /// The HTTP client could not be made.
    #[error("the HTTP client cannot start; are there root certificates on this host?")]
    Client,
    /// The document was fetched and is no good.
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
    /// The name leads to an address strangers have no business with.
    #[error("the host of the did:web is at {address}, which is not a public address")]
    PrivateAddress { address: std::net::IpAddr },
    /// The server points elsewhere.
    #[error("the DID document is answered with a redirect ({status})")]
    Redirect { status: u16 },
    /// The server says no.
    #[error("the DID document is answered with status {status}")]
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
    /// Finds what our own DNS check said under the client's wrapping.
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
