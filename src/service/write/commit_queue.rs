//! The bounded queue between request tasks and the committer.
//!
//! In: admitted statements, and work on the log itself, from many threads. Out:
//! as much of it as one commit takes, in order, to one thread. There is one
//! lock and it is never held for long: a worker that waits for it verifies no
//! signatures meanwhile.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use crate::envelope::StatementId;
use crate::service::QueueLimits;

/// One item of the queue: a statement, or work on the log itself.
pub(super) enum Message<S, W> {
    Statement(StatementId, S),
    Work(W),
}

/// Why something could not be queued.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum PushError {
    /// So many statements are queued already.
    Full { queued: usize },
    /// The log is shutting down.
    Closed,
}

/// Statements `S` and work `W` on their way to the committer.
pub(super) struct CommitQueue<S, W> {
    /// Locked by request tasks to push, by the committer to take.
    state: Mutex<State<S, W>>,
    /// Notified when the committer waits and something was pushed.
    pushed: Condvar,
    /// Statements that are being authenticated or decided and may be pushed
    /// soon. Counted without the lock.
    announced: Arc<AtomicUsize>,
}

struct State<S, W> {
    messages: Vec<Message<S, W>>,
    /// How many of `messages` are work.
    works: usize,
    /// Bytes of the statements that are queued or being committed.
    bytes: usize,
    queued: HashSet<StatementId, RandomState>,
    committing: HashSet<StatementId, RandomState>,
    is_committer_waiting: bool,
    is_closed: bool,
}

impl<S, W> State<S, W> {
    fn statements(&self) -> usize {
        self.messages.len() - self.works
    }

    /// The first messages, at most `limit`, up to and including the first work.
    fn first(&mut self, limit: usize) -> impl Iterator<Item = Message<S, W>> {
        let is_work = |message: &Message<S, W>| matches!(message, Message::Work(_));
        let end = self.messages.iter().take(limit).position(is_work).map(|at| at + 1);
        let end = end.unwrap_or(limit.min(self.messages.len()));
        for message in self.messages.get(..end).unwrap_or_default() {
            match message {
                Message::Work(_) => self.works -= 1,
                Message::Statement(id, _) => {
                    self.queued.remove(id);
                    self.committing.insert(*id);
                }
            }
        }
        self.messages.drain(..end)
    }
}

/// While it exists, the committer may wait a little for one more statement.
pub(super) struct Announcement(Arc<AtomicUsize>);

impl Drop for Announcement {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S, W> CommitQueue<S, W> {
    pub(super) fn new() -> Self {
        let state = State {
            messages: Vec::new(),
            works: 0,
            bytes: 0,
            queued: HashSet::default(),
            committing: HashSet::default(),
            is_committer_waiting: false,
            is_closed: false,
        };
        Self { state: Mutex::new(state), pushed: Condvar::new(), announced: Arc::default() }
    }

    /// Announces that a statement may be pushed soon.
    pub(super) fn announce(&self) -> Announcement {
        self.announced.fetch_add(1, Ordering::Relaxed);
        Announcement(self.announced.clone())
    }

    /// How many statements are announced and not pushed yet.
    pub(super) fn announced(&self) -> usize {
        self.announced.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State<S, W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, mut state: MutexGuard<'_, State<S, W>>, message: Message<S, W>) {
        state.messages.push(message);
        let is_awaited = std::mem::take(&mut state.is_committer_waiting);
        drop(state);
        if is_awaited {
            self.pushed.notify_one();
        }
    }

    /// Queues a statement of so many bytes, if there is room.
    pub(super) fn push(
        &self,
        id: StatementId,
        bytes: usize,
        statement: S,
        limits: &QueueLimits,
    ) -> Result<(), PushError> {
        let mut state = self.state();
        if state.is_closed {
            return Err(PushError::Closed);
        }
        let queued = state.statements();
        if queued >= limits.statements || state.bytes + bytes > limits.bytes {
            return Err(PushError::Full { queued });
        }
        state.bytes += bytes;
        state.queued.insert(id);
        self.send(state, Message::Statement(id, statement));
        Ok(())
    }

    /// Queues work; limits do not apply to it.
    pub(super) fn push_work(&self, work: W) -> Result<(), PushError> {
        let mut state = self.state();
        if state.is_closed {
            return Err(PushError::Closed);
        }
        state.works += 1;
        self.send(state, Message::Work(work));
        Ok(())
    }

    /// Refuses everything from now on.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.pushed.notify_one();
    }

    /// Whether a statement is queued or being committed.
    pub(super) fn contains(&self, id: &StatementId) -> bool {
        let state = self.state();
        state.queued.contains(id) || state.committing.contains(id)
    }

    /// Blocks until there is something to take; false once the queue is closed
    /// and empty.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state();
        while state.messages.is_empty() && !state.is_closed {
            state.is_committer_waiting = true;
            state = self.pushed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.messages.is_empty()
    }

    /// Moves the contents of one commit into an empty vector: at most `limit`
    /// messages, and work only as the last.
    pub(super) fn take(&self, limit: usize, into: &mut Vec<Message<S, W>>) {
        let mut state = self.state();
        if state.works == 0 && state.messages.len() <= limit {
            let State { messages, queued, committing, .. } = &mut *state;
            std::mem::swap(messages, into);
            std::mem::swap(queued, committing);
        } else {
            into.extend(state.first(limit));
        }
    }

    /// Ends the commit of statements of so many bytes; how many statements and
    /// bytes are queued now.
    pub(super) fn committed(&self, bytes: usize) -> (usize, usize) {
        let mut state = self.state();
        state.committing.clear();
        state.bytes -= bytes;
        (state.statements(), state.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: QueueLimits = QueueLimits { statements: 4, bytes: 10, batch: 3 };

    fn id(letter: u8) -> StatementId {
        StatementId::of_canonical(&[letter])
    }

    /// Lower-case letters are statements of one byte, upper-case ones are work.
    fn queue(letters: &str) -> CommitQueue<u8, u8> {
        let queue = CommitQueue::new();
        let limits = QueueLimits { statements: 100, bytes: 100, batch: 100 };
        for letter in letters.bytes() {
            let pushed = match letter {
                b'a'..=b'z' => queue.push(id(letter), 1, letter, &limits),
                work => queue.push_work(work),
            };
            pushed.unwrap();
        }
        queue
    }

    #[test]
    fn messages_leave_in_order_and_work_ends_a_batch() {
        let rows: [(&str, usize, &[&str]); 8] = [
            ("", 3, &[]),
            ("abc", 3, &["abc"]),
            ("abcde", 2, &["ab", "cd", "e"]),
            ("X", 3, &["X"]),
            ("XYa", 3, &["X", "Y", "a"]),
            ("aXb", 3, &["aX", "b"]),
            ("abcXd", 3, &["abc", "X", "d"]),
            ("abXcdYe", 3, &["abX", "cdY", "e"]),
        ];
        for (letters, most, batches) in rows {
            let queue = queue(letters);
            for batch in batches {
                assert!(queue.wait(), "{letters}");
                let mut taken = Vec::new();
                queue.take(most, &mut taken);
                let letter = |message: &Message<u8, u8>| match message {
                    Message::Statement(_, letter) | Message::Work(letter) => char::from(*letter),
                };
                assert_eq!(taken.iter().map(letter).collect::<String>(), **batch, "{letters}");
                let statements = batch.bytes().filter(u8::is_ascii_lowercase);
                statements
                    .clone()
                    .for_each(|letter| assert!(queue.contains(&id(letter)), "{letters}"));
                queue.committed(statements.clone().count());
                statements.for_each(|letter| assert!(!queue.contains(&id(letter)), "{letters}"));
            }
            assert_eq!(queue.committed(0), (0, 0), "{letters}");
            queue.close();
            assert!(!queue.wait(), "{letters}");
        }
    }

    #[test]
    fn statements_not_taken_yet_are_still_contained() {
        let queue = queue("abc");
        queue.take(2, &mut Vec::new());
        assert_eq!(queue.committed(2), (1, 1));
        assert!(queue.contains(&id(b'c')) && !queue.contains(&id(b'a')));
    }

    #[test]
    fn bytes_count_until_the_commit_ends() {
        let queue: CommitQueue<(), ()> = CommitQueue::new();
        let push = |letter, bytes| queue.push(id(letter), bytes, (), &LIMITS);
        assert_eq!(push(b'a', 6), Ok(()));
        assert_eq!(push(b'b', 5), Err(PushError::Full { queued: 1 }));
        assert!(!queue.contains(&id(b'b')));
        queue.take(3, &mut Vec::new());
        assert_eq!(
            push(b'b', 5),
            Err(PushError::Full { queued: 0 }),
            "its bytes are being committed"
        );
        assert_eq!(queue.committed(6), (0, 0));
        (0..4).for_each(|letter| assert_eq!(push(letter, 1), Ok(())));
        assert_eq!(push(b'e', 1), Err(PushError::Full { queued: 4 }));
        assert_eq!(queue.push_work(()), Ok(()), "there is room for work");
        queue.close();
        assert_eq!(push(b'f', 1), Err(PushError::Closed));
        assert_eq!(queue.push_work(()), Err(PushError::Closed));
        assert!(queue.wait(), "what was taken is still handed out");
    }

    #[test]
    fn waiting_committer_is_woken() {
        let queue = CommitQueue::new();
        let limits = QueueLimits { statements: 10_000, bytes: 10_000, batch: 7 };
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut seen, mut taken) = (0, Vec::new());
                while queue.wait() {
                    queue.take(7, &mut taken);
                    seen += taken.drain(..).count();
                }
                seen
            });
            let push = || (0..1000).for_each(|_: u32| queue.push_work(()).unwrap());
            let statements = || {
                (0..1000_u32).for_each(|n| {
                    let id = StatementId::of_canonical(&n.to_be_bytes());
                    queue.push(id, 1, (), &limits).unwrap();
                });
            };
            let all = [scope.spawn(push), scope.spawn(statements)];
            all.into_iter().for_each(|one| one.join().unwrap());
            queue.close();
            assert_eq!(writer.join().unwrap(), 2000);
        });
    }

    #[test]
    fn announcements_end_when_dropped() {
        let queue: CommitQueue<(), ()> = CommitQueue::new();
        let (first, second) = (queue.announce(), queue.announce());
        assert_eq!(queue.announced(), 2);
        drop(first);
        assert_eq!(queue.announced(), 1);
        drop(second);
        assert_eq!(queue.announced(), 0);
    }
}
