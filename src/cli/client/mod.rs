//! The HTTP client for one log: bounded responses, retries with backoff.
//!
//! It follows no redirect by itself, and sends its token only to the origin it
//! was given for.

pub mod registration;
pub mod target;
pub(super) mod tiles;

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use reqwest::{Method, Url};

use super::output::chain;
use super::{CliError, Exit, files};
use crate::key::PublicKey;
use crate::wire::cbor::Value;
use crate::wire::label;

/// Bytes of the largest answer we read: a batch of receipts is far smaller.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Tries when the log asks us to come again: with the backoff below they
/// take about a minute.
const TRIES: u32 = 8;
const BACKOFF_FIRST: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// The longest a log can make us wait at once.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Talks to one log.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<String>,
}

/// An answer, whatever it says.
pub struct Reply {
    pub url: Url,
    pub status: u16,
    pub location: Option<String>,
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

impl Client {
    /// `ca` is a file of certificates to trust instead of the system's.
    pub(super) fn new(url: &str, token: Option<&str>, ca: Option<&Path>) -> anyhow::Result<Self> {
        let with_slash = format!("{}/", url.trim_end_matches('/'));
        let base = Url::parse(&with_slash).with_context(|| format!("{url} is not an address"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(CliError::failed("usage", format!("{url} is not an http address")).into());
        }
        let mut http = reqwest::Client::builder();
        if let Some(path) = ca {
            http = http.tls_certs_only(certificates(path)?);
        }
        let http = http
            .user_agent(concat!("capstan/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .timeout(Duration::from_secs(60))
            .build()
            .context("the HTTP client cannot start")?;
        Ok(Self { http, base, token: token.map(str::to_owned) })
    }

    /// The address of the log.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// A path under the log, or an address it gave us.
    pub fn url(&self, path: &str) -> anyhow::Result<Url> {
        self.base.join(path).with_context(|| format!("{path:?} is not an address"))
    }

    /// A GET, or a POST of `body`, repeated while the log asks for it (429, 503).
    pub(super) async fn send(
        &self,
        url: Url,
        accept: &str,
        body: Option<&[u8]>,
    ) -> anyhow::Result<Reply> {
        let mut tries = 0;
        loop {
            let reply = self.once(url.clone(), accept, body).await?;
            tries += 1;
            if !matches!(reply.status, 429 | 503) || tries >= TRIES {
                return Ok(reply);
            }
            pause(tries, reply.retry_after).await;
        }
    }

    /// A single GET, or a single POST of `body`.
    pub(super) async fn once(
        &self,
        url: Url,
        accept: &str,
        body: Option<&[u8]>,
    ) -> anyhow::Result<Reply> {
        self.exchange(url, accept, body.map(|body| ("application/cose", body))).await
    }

    /// The same with a body of any content type.
    pub async fn exchange(
        &self,
        url: Url,
        accept: &str,
        body: Option<(&str, &[u8])>,
    ) -> anyhow::Result<Reply> {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let unreachable = || format!("{method} {url}");
        let mut request = self.http.request(method.clone(), url.clone()).header("accept", accept);
        if let Some(token) = self.token.as_ref().filter(|_| url.origin() == self.base.origin()) {
            request = request.bearer_auth(token);
        }
        if let Some((content_type, body)) = body {
            request = request.header("content-type", content_type).body(body.to_vec());
        }
        let sent = request.send().await.map_err(reqwest::Error::without_url);
        let sent = sent.map_err(|error| explain_certificate(&url, error.into()));
        let mut response = sent.with_context(unreachable)?;
        let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        let (location, retry) = (header("location"), header("retry-after"));
        let retry_after = retry.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.with_context(unreachable)? {
            if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
                anyhow::bail!("{url} answers with more than {ANSWER_BYTES_MAX} bytes");
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Reply { url, status, location, retry_after, body: bytes })
    }

    /// The body of a 200, or the problem.
    pub(super) async fn fetch(&self, path: &str, accept: &str) -> anyhow::Result<Vec<u8>> {
        self.send(self.url(path)?, accept, None).await?.found()
    }

    /// The same, as text.
    pub async fn fetch_text(&self, path: &str) -> anyhow::Result<String> {
        let body = self.fetch(path, "text/plain, */*;q=0.1").await?;
        String::from_utf8(body).with_context(|| format!("{path} is not text"))
    }

    /// The keys the log gives as its own, the active one first.
    pub async fn keys(&self) -> anyhow::Result<Vec<PublicKey>> {
        let path = ".well-known/scitt-keys";
        let body = self.fetch(path, "application/cbor, */*;q=0.1").await?;
        let set = Value::read(&body).with_context(|| format!("{path} is not a COSE_KeySet"))?;
        let keys = set.array().with_context(|| format!("{path} is not a COSE_KeySet"))?;
        Ok(keys.iter().filter_map(|key| PublicKey::from_cose_value(key).ok()).collect())
    }
}

impl Reply {
    /// The body of a 200, or the problem. Here nothing was sent that could be
    /// refused: the question itself was wrong.
    pub(super) fn found(self) -> anyhow::Result<Vec<u8>> {
        match self.status {
            200 => Ok(self.body),
            400 => Err(CliError { exit: Exit::Failed, ..self.problem() }.into()),
            _ => Err(self.problem().into()),
        }
    }

    /// The problem as an error: a refusal exits with 1, others with 2.
    pub fn problem(&self) -> CliError {
        let what = self.problem_text();
        match self.status {
            400 | 403 | 409..=415 | 422 => CliError::no("refused", what),
            401 => CliError::failed("unauthorized", format!("the log wants a token: {what}"))
                .next("set CAPSTAN_TOKEN, or give --token"),
            404 => CliError::no("not-found", what),
            _ => CliError::failed("problem", what),
        }
    }

    /// Whether a log has read the statement and says no: sending it again is
    /// useless. A web server that is no log does not answer with a problem.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.status, 400 | 403 | 413 | 415 | 422) && self.problem_title().is_some()
    }

    /// The stable word for what is wrong, if the log is one of ours.
    pub fn code(&self) -> Option<String> {
        if let Ok(problem) = Value::read(&self.body) {
            return Some(problem.get("urn:capstan:problem")?.get("code")?.text()?.to_owned());
        }
        let json: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        Some(json.get("code")?.as_str()?.to_owned())
    }

    /// `title: detail` of RFC 9290 or RFC 9457, or the bare status.
    fn problem_text(&self) -> String {
        let bare = || format!("{} answers with status {}", self.url, self.status);
        self.problem_title().unwrap_or_else(bare)
    }

    fn problem_title(&self) -> Option<String> {
        if let Ok(problem) = Value::read(&self.body)
            && let Some(title) = problem.get(label::problem::TITLE).and_then(Value::text)
        {
            return Some(joined(title, problem.get(label::problem::DETAIL).and_then(Value::text)));
        }
        let json: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        let text = |name: &str| json.as_ref()?.get(name)?.as_str();
        text("title").map(|title| joined(title, text("detail")))
    }
}

fn certificates(path: &Path) -> anyhow::Result<Vec<reqwest::Certificate>> {
    let found = reqwest::Certificate::from_pem_bundle(&files::read(path)?);
    let found = found.with_context(|| format!("{}", path.display()))?;
    if found.is_empty() {
        let what = format!("{} holds no certificate in PEM", path.display());
        return Err(CliError::failed("usage", what).into());
    }
    Ok(found)
}

/// Explains a certificate that does not verify, and what to do.
fn explain_certificate(url: &Url, error: anyhow::Error) -> anyhow::Error {
    let text = chain(&error);
    let Some((_, why)) = text.split_once("invalid peer certificate: ") else { return error };
    let host = url.host_str().unwrap_or_default();
    let (what, next) = match why {
        "UnknownIssuer" | "BadSignature" => (
            "it is self-signed, or this system does not trust its CA",
            "get the certificate of the CA, or the self-signed one, from the operator and give it \
             with --ca FILE (or CAPSTAN_CA)",
        ),
        why if why.contains("CaUsedAsEndEntity") => (
            "it is a CA certificate, which cannot be used for a server",
            "the operator makes one with basicConstraints CA:FALSE, or has a CA sign one",
        ),
        why if why.contains("not valid for name") || why.contains("NotValidForName") => (
            "it is for another name",
            "use the name in the certificate in --url, or the operator adds this one to it",
        ),
        why if why.starts_with("certificate expired") || why.starts_with("Expired") => {
            ("it has expired", "the operator renews it and sends the log SIGHUP")
        }
        _ => ("it cannot be used", "ask the operator to check it"),
    };
    let what = format!("the TLS certificate of {host} is not trusted: {what} ({why})");
    CliError::failed("tls-not-believed", what).next(next).into()
}

fn joined(title: &str, detail: Option<&str>) -> String {
    detail.map_or_else(|| title.to_owned(), |detail| format!("{title}: {detail}"))
}

/// Waits as long as the log asks, and at least as long as the backoff says,
/// plus up to a quarter so that a crowd does not come back at once.
pub(super) async fn pause(tries: u32, retry_after: Option<Duration>) {
    let backoff = BACKOFF_FIRST.saturating_mul(2_u32.saturating_pow(tries.min(10)));
    let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
    let wait = backoff.min(BACKOFF_MAX).max(asked);
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let jitter = nanos.map_or(0, |t| t.subsec_nanos()) % 250;
    tokio::time::sleep(wait + wait.saturating_mul(jitter) / 1000).await;
}
