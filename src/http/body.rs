//! Bodies, with a limit in bytes and in time, of one and of all together.
//!
//! A client of HTTP/2 may send a window's worth before anybody reads it. So a
//! body is paid for a window ahead: what lies in the window is counted before
//! it arrives.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode, Version};
use http_body_util::BodyExt as _;

use super::admission::Place;
use super::problem::Problem;

/// A statement above its own limit but below this one is told which limit it
/// broke; above it the body is not read to the end.
pub(super) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What a stream, and a connection of HTTP/2 as a whole, may send before it is
/// read: the least that the protocol allows for a connection.
pub(super) const WINDOW: u32 = 65_535;

/// How long we look on while a body comes that nobody will read.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// What arrives with the head of a request.
pub(super) struct Head<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) version: Version,
}

impl Head<'_> {
    /// How much more than was read may be here already.
    fn ahead(&self, read: usize) -> usize {
        let window = if self.version == Version::HTTP_2 { WINDOW } else { 0 };
        let length = self.headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
        let left = length.unwrap_or(usize::MAX).saturating_sub(read);
        left.min(usize::try_from(window).unwrap_or(usize::MAX))
    }
}

/// How much of a body is taken, and for how long it is waited for.
pub(super) struct BodyLimits {
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// Reads a body of one of the media types `accepted`.
pub(super) async fn read(
    head: Head<'_>,
    body: Body,
    accepted: &[&str],
    limits: BodyLimits,
    place: &mut Place,
) -> Result<Vec<u8>, Problem> {
    let given = head.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("none");
    let name = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !accepted.contains(&name.as_str()) {
        let detail =
            format!("the content type is {given}; this path takes {}", accepted.join(" or "));
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Problem::new(status, "media-type", "Unsupported Media Type", detail));
    }
    let timeout = || {
        let detail = format!("the body did not arrive within {} s", limits.time.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, "body-timeout", "Request Timeout", detail)
    };
    let collected = tokio::time::timeout(limits.time, collect(head, body, limits.bytes, place));
    collected.await.map_err(|_| timeout())?
}

async fn collect(
    head: Head<'_>,
    mut body: Body,
    bytes_max: usize,
    place: &mut Place,
) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let mut held = 0;
    loop {
        let needed = bytes.len() + head.ahead(bytes.len());
        if let Err(busy) = place.hold(needed.saturating_sub(held)) {
            discard(body, head.version);
            return Err(busy.into());
        }
        held = held.max(needed);
        let Some(frame) = body.frame().await else { break };
        let cut = |_| Problem::malformed("body-cut", "the body ended too early".to_owned());
        let Ok(chunk) = frame.map_err(cut)?.into_data() else { continue };
        if bytes.len() + chunk.len() > bytes_max {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            let detail = format!("the body has more than {bytes_max} bytes");
            return Err(Problem::new(status, "body-too-large", "Payload Too Large", detail));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Lets a client finish what it sends, and keeps nothing of it: a connection
/// of HTTP/1 that is closed while bytes arrive is reset, and the answer may be
/// lost. A stream of HTTP/2 is ended by itself, and what comes is dropped.
pub(super) fn discard(mut body: Body, version: Version) {
    if version == Version::HTTP_2 {
        return;
    }
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
