//! Bodies, with a limit in bytes and in time, of one and of all together.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;

use super::admission::Place;
use super::problem::Problem;

/// A statement above its own limit but below this one is told which limit it
/// broke; above it the body is not read to the end.
pub(super) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// How long we look on while a body comes that nobody will read.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// Reads a body of one of the media types `accepted`.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    accepted: &[&str],
    (bytes_max, time): (usize, Duration),
    place: &mut Place,
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
    tokio::time::timeout(time, collect(body, bytes_max, place)).await.map_err(|_| timeout())?
}

async fn collect(mut body: Body, bytes_max: usize, place: &mut Place) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let cut = |_| Problem::malformed("body-cut", "the body ended too early".to_owned());
        let Ok(chunk) = frame.map_err(cut)?.into_data() else { continue };
        if bytes.len() + chunk.len() > bytes_max {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            let detail = format!("the body has more than {bytes_max} bytes");
            return Err(Problem::new(status, "body-too-large", "Payload Too Large", detail));
        }
        if let Err(busy) = place.hold(chunk.len()) {
            discard(body);
            return Err(busy.into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Lets a client finish what it sends, and keeps nothing of it: a connection
/// that is closed while bytes arrive is reset, and the answer may be lost.
pub(super) fn discard(mut body: Body) {
    let sent = async move {
        let mut left = BODY_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, |data| data.len());
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    tokio::spawn(tokio::time::timeout(DISCARD_TIME, sent));
}
