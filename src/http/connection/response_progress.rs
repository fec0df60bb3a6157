//! Detects clients that do not read their responses.
//!
//! An HTTP/2 client may open a flow-control window of zero and keep the
//! connection alive with pings, and its responses would stay in memory. So
//! every response of a connection is tracked until its last byte has left, and
//! one without progress ends the connection.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Buf, Frame, SizeHint};
use tokio::time::Instant;

use crate::http::limits::RequestPermit;

/// So many bytes of a response, or its rest, must leave within the timeout:
/// about 2 kB/s by default, less than the slowest usable line.
const STEP: usize = 64 * 1024;

/// The responses of one connection. The lock is shared by the tasks of that
/// connection, each of which holds it for one update.
#[derive(Clone, Default)]
pub(super) struct ResponseProgress(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    next: u64,
    active: HashMap<u64, Progress>,
}

struct Progress {
    /// When the last step was made; none while the handler has no data.
    since: Option<Instant>,
    /// Bytes that have left since then.
    sent: usize,
}

impl ResponseProgress {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tracks a body, and keeps the permit of its request, until it is sent.
    pub(super) fn watch(&self, body: Body, permit: Option<Arc<RequestPermit>>) -> WatchedBody {
        let mut table = self.table();
        let number = table.next;
        table.next += 1;
        table.active.insert(number, Progress { since: Some(Instant::now()), sent: 0 });
        let tracker = Tracker { responses: self.clone(), number, _permit: permit };
        WatchedBody { body, tracker: Arc::new(tracker) }
    }

    /// Returns when a response has made no progress for this long.
    pub(super) async fn stalled(&self, timeout: Duration) {
        loop {
            tokio::time::sleep(timeout / 4).await;
            let is_stalled = |progress: &Progress| {
                progress.since.is_some_and(|since| since.elapsed() >= timeout)
            };
            if self.table().active.values().any(is_stalled) {
                return;
            }
        }
    }
}

/// The table entry of one response; removed with its last chunk.
struct Tracker {
    responses: ResponseProgress,
    number: u64,
    _permit: Option<Arc<RequestPermit>>,
}

impl Tracker {
    fn update(&self, update: impl FnOnce(&mut Progress)) {
        if let Some(progress) = self.responses.table().active.get_mut(&self.number) {
            update(progress);
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.responses.table().active.remove(&self.number);
    }
}

/// A response body that reports its progress.
pub(super) struct WatchedBody {
    body: Body,
    tracker: Arc<Tracker>,
}

impl hyper::body::Body for WatchedBody {
    type Data = WatchedChunk;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<WatchedChunk>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let since = polled.is_ready().then(Instant::now);
        self.tracker.update(|progress| progress.since = since);
        let chunk = |bytes| WatchedChunk { bytes, tracker: self.tracker.clone() };
        Poll::Ready(ready!(polled).map(|frame| Ok(frame?.map_data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes of a response; hyper drops them when they have left.
pub(super) struct WatchedChunk {
    bytes: Bytes,
    tracker: Arc<Tracker>,
}

impl Buf for WatchedChunk {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.tracker.update(|progress| {
            progress.sent += count;
            if progress.sent >= STEP {
                *progress = Progress { since: Some(Instant::now()), sent: 0 };
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    async fn stalls(responses: &ResponseProgress) -> bool {
        tokio::time::timeout(3 * TIMEOUT, responses.stalled(TIMEOUT)).await.is_ok()
    }

    async fn first(body: &mut WatchedBody) -> WatchedChunk {
        body.frame().await.unwrap().unwrap().into_data().ok().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn unread_response_stalls() {
        let responses = ResponseProgress::default();
        let body = responses.watch(Body::from("receipt"), None);
        assert!(stalls(&responses).await);
        drop(body);
        assert!(!stalls(&responses).await);
    }

    #[tokio::test(start_paused = true)]
    async fn unsent_chunk_stalls() {
        let responses = ResponseProgress::default();
        let mut body = responses.watch(Body::from("receipt"), None);
        let mut chunk = first(&mut body).await;
        assert!(body.frame().await.is_none());
        drop(body);
        chunk.advance(1);
        assert!(stalls(&responses).await, "one byte is not a step");
        chunk.advance(6);
        drop(chunk);
        assert!(!stalls(&responses).await);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_client_is_not_stalled() {
        let responses = ResponseProgress::default();
        let mut body = responses.watch(Body::from(vec![0; 8 * STEP]), None);
        let mut chunk = first(&mut body).await;
        let reading = async {
            while chunk.has_remaining() {
                tokio::time::sleep(TIMEOUT / 2).await;
                chunk.advance(STEP);
            }
        };
        tokio::select! {
            () = reading => {}
            () = responses.stalled(TIMEOUT) => panic!("it was disconnected"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_handler_is_not_a_stalled_client() {
        let responses = ResponseProgress::default();
        let mut body = responses.watch(Body::new(Never), None);
        assert!(tokio::time::timeout(TIMEOUT / 2, body.frame()).await.is_err());
        assert!(!stalls(&responses).await);
    }

    /// A body whose first chunk never comes.
    struct Never;

    impl hyper::body::Body for Never {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Pending
        }
    }
}
