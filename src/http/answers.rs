//! Answers under way, and who does not take them in.
//!
//! HTTP/2 lets a client say how much it will take, and nothing is a size like
//! any other: what was answered would lie here for as long as it keeps pinging.
//! So every answer of a connection is known until its last byte has left, and
//! one that gets nowhere ends the connection.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Buf, Frame, SizeHint};
use tokio::time::Instant;

use super::check::Holding;

/// So much of an answer, or what is left of it, must be taken in the time:
/// some 2 kB/s by default, which the slowest of honest lines does.
const STEP: usize = 64 * 1024;

/// The answers of one connection.
#[derive(Clone, Default)]
pub(super) struct Answers(Arc<Mutex<Ledger>>);

#[derive(Default)]
struct Ledger {
    next: u64,
    under_way: HashMap<u64, Progress>,
}

struct Progress {
    /// When the last step was taken; none while we have nothing to give.
    since: Option<Instant>,
    taken: usize,
}

impl Answers {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A body that is watched until it is gone, and what is held for it.
    pub(super) fn watch(&self, body: Body, holding: Option<Arc<Holding>>) -> Answer {
        let mut ledger = self.ledger();
        let number = ledger.next;
        ledger.next += 1;
        ledger.under_way.insert(number, Progress { since: Some(Instant::now()), taken: 0 });
        Answer { body, place: Arc::new(Place { answers: self.clone(), number, _holding: holding }) }
    }

    /// Returns when an answer got nowhere for so long.
    pub(super) async fn stall(&self, patience: Duration) {
        loop {
            tokio::time::sleep(patience / 4).await;
            let stuck = |progress: &Progress| {
                progress.since.is_some_and(|since| since.elapsed() >= patience)
            };
            if self.ledger().under_way.values().any(stuck) {
                return;
            }
        }
    }
}

/// The place of one answer among them; it ends with the last piece.
struct Place {
    answers: Answers,
    number: u64,
    _holding: Option<Arc<Holding>>,
}

impl Place {
    fn note(&self, note: impl FnOnce(&mut Progress)) {
        if let Some(progress) = self.answers.ledger().under_way.get_mut(&self.number) {
            note(progress);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.answers.ledger().under_way.remove(&self.number);
    }
}

/// A body that tells how much of it was taken.
pub(super) struct Answer {
    body: Body,
    place: Arc<Place>,
}

impl hyper::body::Body for Answer {
    type Data = Piece;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let since = polled.is_ready().then(Instant::now);
        self.place.note(|progress| progress.since = since);
        let piece = |bytes| Piece { bytes, place: self.place.clone() };
        Poll::Ready(ready!(polled).map(|frame| Ok(frame?.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes on their way; the server drops them when they have left.
pub(super) struct Piece {
    bytes: Bytes,
    place: Arc<Place>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.place.note(|progress| {
            progress.taken += count;
            if progress.taken >= STEP {
                *progress = Progress { since: Some(Instant::now()), taken: 0 };
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    async fn stalls(answers: &Answers) -> bool {
        tokio::time::timeout(3 * PATIENCE, answers.stall(PATIENCE)).await.is_ok()
    }

    async fn first(answer: &mut Answer) -> Piece {
        answer.frame().await.unwrap().unwrap().into_data().ok().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_nobody_asks_for_stalls() {
        let answers = Answers::default();
        let answer = answers.watch(Body::from("receipt"), None);
        assert!(stalls(&answers).await);
        drop(answer);
        assert!(!stalls(&answers).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_does_not_leave_stalls() {
        let answers = Answers::default();
        let mut answer = answers.watch(Body::from("receipt"), None);
        let mut piece = first(&mut answer).await;
        assert!(answer.frame().await.is_none());
        drop(answer);
        piece.advance(1);
        assert!(stalls(&answers).await, "a byte is no step");
        piece.advance(6);
        drop(piece);
        assert!(!stalls(&answers).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_line_takes_its_time() {
        let answers = Answers::default();
        let mut answer = answers.watch(Body::from(vec![0; 8 * STEP]), None);
        let mut piece = first(&mut answer).await;
        let reading = async {
            while piece.has_remaining() {
                tokio::time::sleep(PATIENCE / 2).await;
                piece.advance(STEP);
            }
        };
        tokio::select! {
            () = reading => {}
            () = answers.stall(PATIENCE) => panic!("it was let go"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_we_do_not_have_yet_is_not_the_clients_fault() {
        let answers = Answers::default();
        let mut answer = answers.watch(Body::new(Never), None);
        assert!(tokio::time::timeout(PATIENCE / 2, answer.frame()).await.is_err());
        assert!(!stalls(&answers).await);
    }

    /// A body whose first piece does not come.
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
