//! Bodies, with a limit in bytes and in time.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};

use super::problem::Problem;

/// A statement above its own limit but below this one is told which limit it
/// broke; above it the body is not read to the end.
pub(super) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Reads a body of one of the media types `accepted`.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    accepted: &[&str],
    (bytes_max, time): (usize, Duration),
) -> Result<Vec<u8>, Problem> {
    let given = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("none");
    let name = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !accepted.contains(&name.as_str()) {
        let detail =
            format!("the content type is {given}; this path takes {}", accepted.join(" or "));
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Problem::new(status, "media-type", "Unsupported Media Type", detail));
    }
    let timeout = || {
        let detail = format!("the body did not arrive within {} s", time.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, "body-timeout", "Request Timeout", detail)
    };
    let read =
        tokio::time::timeout(time, to_bytes(body, bytes_max)).await.map_err(|_| timeout())?;
    let too_large =
        |error: axum::Error| error.into_inner().is::<http_body_util::LengthLimitError>();
    read.map(Into::into).map_err(|error| {
        if !too_large(error) {
            return Problem::malformed("body-cut", "the body ended too early".to_owned());
        }
        let detail = format!("the body has more than {bytes_max} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "Payload Too Large", detail)
    })
}
