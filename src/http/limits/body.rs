//! Reading bodies, with limits in bytes and time.
//!
//! An HTTP/2 client may send a whole window before anything is read. So bytes
//! are reserved one window ahead of what has been read.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode, Version};
use http_body_util::BodyExt as _;

use super::capacity::Reservation;
use crate::http::response::problem::Problem;

/// A statement between its own limit and this one is refused with the limit
/// in the problem; a body above this one is not read to its end.
pub(in crate::http) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What an HTTP/2 stream, and its whole connection, may send before it is read:
/// the minimum that the protocol allows for a connection.
pub(in crate::http) const WINDOW: u32 = 65_535;

/// How long a body that is not needed is still read.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// The parts of a request head that matter for its body.
pub(in crate::http) struct Head<'a> {
    pub(in crate::http) headers: &'a HeaderMap,
    pub(in crate::http) version: Version,
}

impl Head<'_> {
    /// How many unread bytes may have arrived.
    fn ahead(&self, read: usize) -> usize {
        let window = if self.version == Version::HTTP_2 { WINDOW } else { 0 };
        let length = self.headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
        let left = length.unwrap_or(usize::MAX).saturating_sub(read);
        left.min(usize::try_from(window).unwrap_or(usize::MAX))
    }
}

/// The most that is read of a body, and how long it may take to arrive.
pub(in crate::http) struct BodyLimits {
    pub(in crate::http) bytes: usize,
    pub(in crate::http) time: Duration,
}

/// Reads a body of one of the media types `accepted`.
pub(in crate::http) async fn read(
    head: Head<'_>,
    body: Body,
    accepted: &[&str],
    limits: BodyLimits,
    reservation: &mut Reservation,
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
    let collected =
        tokio::time::timeout(limits.time, collect(head, body, limits.bytes, reservation));
    collected.await.map_err(|_| timeout())?
}

async fn collect(
    head: Head<'_>,
    mut body: Body,
    bytes_max: usize,
    reservation: &mut Reservation,
) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let mut reserved = 0;
    loop {
        let needed = bytes.len() + head.ahead(bytes.len());
        if let Err(busy) = reservation.reserve(needed.saturating_sub(reserved)) {
            discard(body, head.version);
            return Err(busy.into());
        }
        reserved = reserved.max(needed);
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

/// Reads the rest of a body and drops it: an HTTP/1 connection that is closed
/// while bytes arrive is reset, and the response may be lost. An HTTP/2 stream
/// ends alone, and its data is dropped.
pub(in crate::http) fn discard(mut body: Body, version: Version) {
    if version == Version::HTTP_2 {
        return;
    }
    let rest = async move {
        let mut left = BODY_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, |data| data.len());
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    tokio::spawn(tokio::time::timeout(DISCARD_TIME, rest));
}
