//! Every error as a problem: the one place that knows status codes.
//!
//! CBOR problem details (RFC 9290) `{-1: title, -2: detail,
//! "urn:capstan:problem": {"code": .., "request_id": ..}}`; RFC 9457 JSON
//! when the client prefers it.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::envelope;
use crate::policy::Refusal;
use crate::service::{Fault, Rejected};
use crate::wire::{cbor, printable};

const CBOR: &str = "application/concise-problem-details+cbor";
const JSON: &str = "application/problem+json";

/// An answer that says no, before it is spelt for one client.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    status: StatusCode,
    title: &'static str,
    detail: String,
    code: &'static str,
    retry_after: Option<u64>,
    refusal: Option<Box<Refusal>>,
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: String,
    ) -> Self {
        Self { status, title, detail, code, retry_after: None, refusal: None }
    }

    pub(super) fn malformed(code: &'static str, detail: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, "Malformed request", detail)
    }

    pub(super) fn unauthorized() -> Self {
        let detail = "registering needs a bearer token".to_owned();
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized", detail)
    }

    /// All turns of reads that look through the log are taken.
    pub(super) fn reads_busy() -> Self {
        let detail = "too many look through the log at once; come back in a second".to_owned();
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, "reads-busy", "Busy", detail).retry_after(1)
    }

    /// One address asks more often than it may.
    pub(super) fn too_often(what: &str, per_second: u32, retry_seconds: u64) -> Self {
        let detail = format!("Only {per_second} {what} per second are allowed.");
        let status = StatusCode::TOO_MANY_REQUESTS;
        let problem = Self::new(status, "too-many-requests", "Too Many Requests", detail);
        problem.retry_after(retry_seconds)
    }

    /// One address has more requests under way than it may.
    pub(super) fn too_many_at_once(most: usize) -> Self {
        let detail = format!("Only {most} requests of one address may be under way at once.");
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self::new(status, "too-many-at-once", "Too Many Requests", detail).retry_after(1)
    }

    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// For statuses that axum or a layer answered with.
    fn from_status(status: StatusCode) -> Self {
        let (code, title, detail) = match status {
            StatusCode::NOT_FOUND => ("not-found", "Not Found", "there is nothing at this path"),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method-not-allowed", "Method Not Allowed", "this path has no such method")
            }
            StatusCode::BAD_REQUEST => {
                ("malformed-request", "Malformed request", "the request could not be parsed")
            }
            StatusCode::INTERNAL_SERVER_ERROR => {
                ("internal", "Internal Server Error", "something failed here; the log knows more")
            }
            _ => ("error", "Error", "the request could not be answered"),
        };
        Self::new(status, code, title, detail.to_owned())
    }

    /// The problem as CBOR, also one item of a batch answer.
    pub(super) fn to_cbor(&self, request_id: &str) -> Vec<u8> {
        let mut out = Vec::new();
        cbor::map(&mut out, 3);
        cbor::int(&mut out, -1);
        cbor::text(&mut out, self.title);
        cbor::int(&mut out, -2);
        cbor::text(&mut out, &self.detail);
        cbor::text(&mut out, "urn:capstan:problem");
        cbor::map(&mut out, 2);
        cbor::text(&mut out, "code");
        cbor::text(&mut out, self.code);
        cbor::text(&mut out, "request_id");
        cbor::text(&mut out, request_id);
        out
    }

    fn to_json(&self, request_id: &str) -> Vec<u8> {
        let mut body = json!({
            "type": format!("urn:capstan:problem:{}", self.code),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
            "request_id": request_id,
        });
        if let (Some(refusal), Some(body)) = (&self.refusal, body.as_object_mut()) {
            body.insert("policy".to_owned(), json!(refusal.policy()));
            body.insert("rules".to_owned(), rules(refusal));
        }
        printable::json(&body.to_string()).into_bytes()
    }
}

fn rules(refusal: &Refusal) -> serde_json::Value {
    let condition = |c: &crate::policy::ConditionTrace| json!({ "condition": c.condition, "held": c.held, "wanted": c.wanted, "saw": c.saw });
    let rule = |r: &crate::policy::RuleTrace| {
        let conditions: Vec<_> = r.conditions.iter().map(condition).collect();
        let effect = if r.refuses { "refuse" } else { "allow" };
        json!({ "rule": r.rule, "effect": effect, "held": r.holds(), "conditions": conditions })
    };
    refusal.rules().iter().map(rule).collect()
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

/// The titles SCRAPI -11 names; "Rejected" for what it does not.
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
                tracing::error!(code, detail, "a request failed on our side");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, code, "Internal Server Error", detail)
            }
        }
    }
}

/// A name for this request that both sides can quote.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

/// Spells problems for the client at hand. Errors of the framework become
/// problems here too, so there is no other format.
pub(super) fn render(
    response: Response,
    json: bool,
    RequestId(request_id): &RequestId,
) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let problem = response.extensions().get::<Problem>().cloned();
    let problem = problem.unwrap_or_else(|| Problem::from_status(status));
    let (content_type, body) = if json {
        (JSON, problem.to_json(request_id))
    } else {
        (CBOR, problem.to_cbor(request_id))
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
