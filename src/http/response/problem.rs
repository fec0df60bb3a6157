//! Every error as a problem: the only place that maps errors to status codes.
//!
//! CBOR problem details (RFC 9290) `{-1: title, -2: detail,
//! "urn:capstan:problem": {"code": .., "request_id": ..}}`; RFC 9457 JSON
//! when the client prefers it.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::escaped_json;
use crate::envelope;
use crate::policy::{Refusal, RuleTrace};
use crate::service::{Fault, Rejected};
use crate::wire::cbor;
use crate::wire::label::problem;

const CBOR: &str = "application/concise-problem-details+cbor";
const JSON: &str = "application/problem+json";

/// An error, before it is rendered for one client.
#[derive(Clone, Debug)]
pub(in crate::http) struct Problem {
    status: StatusCode,
    title: &'static str,
    detail: String,
    code: &'static str,
    retry_after: Option<u64>,
    refusal: Option<Box<Refusal>>,
}

impl Problem {
    pub(in crate::http) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: String,
    ) -> Self {
        Self { status, title, detail, code, retry_after: None, refusal: None }
    }

    pub(in crate::http) fn malformed(code: &'static str, detail: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, "Malformed request", detail)
    }

    pub(in crate::http) fn unauthorized() -> Self {
        let detail = "registering needs a bearer token".to_owned();
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized", detail)
    }

    /// All read slots are taken.
    pub(in crate::http) fn reads_busy() -> Self {
        let detail = "too many searches are running; try again in a second".to_owned();
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, "reads-busy", "Busy", detail).retry_after(1)
    }

    /// One client sends requests more often than allowed.
    pub(in crate::http) fn too_often(what: &str, per_second: u32, retry_seconds: u64) -> Self {
        let detail = format!("Only {per_second} {what} per second are allowed.");
        let status = StatusCode::TOO_MANY_REQUESTS;
        let problem = Self::new(status, "too-many-requests", "Too Many Requests", detail);
        problem.retry_after(retry_seconds)
    }

    /// One client has more requests in progress than allowed.
    pub(in crate::http) fn too_many_at_once(most: usize) -> Self {
        let detail = format!("Only {most} requests of one address may be in progress at once.");
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self::new(status, "too-many-at-once", "Too Many Requests", detail).retry_after(1)
    }

    pub(in crate::http) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(in crate::http) fn status(&self) -> StatusCode {
        self.status
    }

    /// For errors answered by axum or a layer.
    fn from_status(status: StatusCode) -> Self {
        let (code, title, detail) = match status {
            StatusCode::NOT_FOUND => ("not-found", "Not Found", "there is nothing at this path"),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method-not-allowed", "Method Not Allowed", "this path has no such method")
            }
            StatusCode::BAD_REQUEST => {
                ("malformed-request", "Malformed request", "the request could not be parsed")
            }
            StatusCode::INTERNAL_SERVER_ERROR => (
                "internal",
                "Internal Server Error",
                "the request failed on the server; its log has the reason",
            ),
            _ => ("error", "Error", "the request could not be answered"),
        };
        Self::new(status, code, title, detail.to_owned())
    }

    /// The problem as CBOR, alone or in the answer to a batch.
    pub(in crate::http) fn to_cbor(&self, request_id: &str) -> Vec<u8> {
        let mut out = Vec::new();
        cbor::map(&mut out, 3);
        cbor::int(&mut out, problem::TITLE);
        cbor::text(&mut out, self.title);
        cbor::int(&mut out, problem::DETAIL);
        cbor::text(&mut out, &self.detail);
        cbor::text(&mut out, "urn:capstan:problem");
        cbor::map(&mut out, 2);
        cbor::text(&mut out, "code");
        cbor::text(&mut out, self.code);
        cbor::text(&mut out, "request_id");
        cbor::text(&mut out, request_id);
        out
    }

    fn to_json(&self, request_id: &str) -> serde_json::Result<String> {
        escaped_json(&ProblemView {
            r#type: format!("urn:capstan:problem:{}", self.code),
            title: self.title,
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
            request_id,
            policy: self.refusal.as_ref().map(|refusal| refusal.policy()),
            rules: self.refusal.as_ref().map(|refusal| refusal.rules()),
        })
    }
}

/// RFC 9457, with our members.
#[derive(Serialize)]
struct ProblemView<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<&'a [RuleTrace]>,
}

/// The problem travels inside the response until `render` knows the client.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Rejected> for Problem {
    fn from(rejected: Rejected) -> Self {
        let code = rejected.code();
        let detail = rejected.to_string();
        match rejected {
            Rejected::Invalid(error) => {
                Self::new(StatusCode::BAD_REQUEST, code, title(&error), detail)
            }
            Rejected::Refused(refusal) => Self {
                refusal: Some(refusal),
                ..Self::new(StatusCode::BAD_REQUEST, code, "Rejected", detail)
            },
            Rejected::OverLimit { .. } | Rejected::Twin { .. } | Rejected::Unresolved(_) => {
                Self::new(StatusCode::BAD_REQUEST, code, "Rejected", detail)
            }
            Rejected::Fault(fault) => fault.into(),
        }
    }
}

/// The titles that SCRAPI -11 defines; "Rejected" for everything else.
fn title(error: &envelope::Error) -> &'static str {
    use envelope::Error as E;
    match error {
        E::AlgorithmMissing | E::AlgorithmUnsupported { .. } => "Bad Signature Algorithm",
        E::PayloadMissing => "Payload Missing",
        E::ConfirmationKey(_) => "Confirmation Missing",
        E::NotCbor(_) | E::NotSign1 { .. } | E::WrongTag { .. } | E::WrongLength { .. } => {
            "Malformed request"
        }
        _ => "Rejected",
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        let code = fault.code();
        let detail = fault.to_string();
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        match fault {
            Fault::IssuerRate { retry_seconds, .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, code, "Too Many Requests", detail)
                    .retry_after(retry_seconds)
            }
            Fault::Busy { .. } => Self::new(unavailable, code, "Busy", detail).retry_after(1),
            Fault::DiskFull | Fault::ReadOnly { .. } => {
                Self::new(unavailable, code, "Read Only", detail).retry_after(60)
            }
            Fault::ShuttingDown => {
                Self::new(unavailable, code, "Shutting Down", detail).retry_after(5)
            }
            Fault::SelfCheck | Fault::Store(_) => {
                tracing::error!(code, detail, "a request failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, code, "Internal Server Error", detail)
            }
        }
    }
}

/// Identifies a request in its answer and in the server's log.
#[derive(Clone, Debug)]
pub(in crate::http) struct RequestId(pub(in crate::http) String);

/// Renders problems for the client. Errors of the framework become problems
/// here too, so there is no other format.
pub(in crate::http) fn render(
    response: Response,
    prefers_json: bool,
    RequestId(request_id): &RequestId,
) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let problem = response.extensions().get::<Problem>().cloned();
    let problem = problem.unwrap_or_else(|| Problem::from_status(status));
    let json = prefers_json.then(|| problem.to_json(request_id).ok()).flatten();
    let (content_type, body) = match json {
        Some(json) => (JSON, json.into_bytes()),
        None => (CBOR, problem.to_cbor(request_id)),
    };
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(axum::http::header::CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(seconds) = problem.retry_after {
        parts.headers.insert(RETRY_AFTER, seconds.into());
    }
    if status == StatusCode::UNAUTHORIZED {
        parts.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    Response::from_parts(parts, body.into())
}
