//! What waits between the workers and the writer.
//!
//! In: statements that were admitted, and work on the log itself, from many
//! threads. Out: as much of it as one commit takes, in order, to one thread. One
//! lock, held for moments whatever waits: a worker that sleeps over it is a core
//! that verifies nothing.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use crate::envelope::StatementId;
use crate::service::QueueLimits;

/// What travels to the writer: a statement, or work on the log itself.
pub(in crate::service) enum Message<S, W> {
    Statement(StatementId, S),
    Work(W),
}

/// Why something may not stand in line.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::service) enum Turned {
    /// So many statements wait already.
    Full { waiting: usize },
    /// Nothing is taken any more.
    Closed,
}

pub(in crate::service) struct Line<S, W> {
    state: Mutex<State<S, W>>,
    /// Told when the writer waits and something has come.
    something: Condvar,
}

struct State<S, W> {
    messages: Vec<Message<S, W>>,
    /// How many of them are no statements.
    works: usize,
    /// Statements in line and in the writer's hands, their bytes and names.
    bytes: usize,
    in_line: HashSet<StatementId, RandomState>,
    in_hand: HashSet<StatementId, RandomState>,
    is_writer_waiting: bool,
    is_closed: bool,
}

impl<S, W> State<S, W> {
    fn statements(&self) -> usize {
        self.messages.len() - self.works
    }

    /// The first `most` of those in line, up to one that is no statement.
    fn first(&mut self, most: usize) -> impl Iterator<Item = Message<S, W>> {
        let works = |message: &Message<S, W>| matches!(message, Message::Work(_));
        let end = self.messages.iter().take(most).position(works).map(|place| place + 1);
        let end = end.unwrap_or(most.min(self.messages.len()));
        for message in self.messages.get(..end).unwrap_or_default() {
            match message {
                Message::Work(_) => self.works -= 1,
                Message::Statement(id, _) => {
                    self.in_line.remove(id);
                    self.in_hand.insert(*id);
                }
            }
        }
        self.messages.drain(..end)
    }
}

impl<S, W> Line<S, W> {
    pub(in crate::service) fn new() -> Self {
        let state = State {
            messages: Vec::new(),
            works: 0,
            bytes: 0,
            in_line: HashSet::default(),
            in_hand: HashSet::default(),
            is_writer_waiting: false,
            is_closed: false,
        };
        Self { state: Mutex::new(state), something: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<S, W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, mut state: MutexGuard<'_, State<S, W>>, message: Message<S, W>) {
        state.messages.push(message);
        let is_awaited = std::mem::take(&mut state.is_writer_waiting);
        drop(state);
        if is_awaited {
            self.something.notify_one();
        }
    }

    /// Puts a statement of so many bytes in line, if there is room.
    pub(in crate::service) fn push(
        &self,
        (id, bytes): (StatementId, usize),
        statement: S,
        limits: &QueueLimits,
    ) -> Result<(), Turned> {
        let mut state = self.state();
        if state.is_closed {
            return Err(Turned::Closed);
        }
        let waiting = state.statements();
        if waiting >= limits.statements || state.bytes + bytes > limits.bytes {
            return Err(Turned::Full { waiting });
        }
        state.bytes += bytes;
        state.in_line.insert(id);
        self.send(state, Message::Statement(id, statement));
        Ok(())
    }

    /// Puts work in line; there is always room for it.
    pub(in crate::service) fn push_work(&self, work: W) -> Result<(), Turned> {
        let mut state = self.state();
        if state.is_closed {
            return Err(Turned::Closed);
        }
        state.works += 1;
        self.send(state, Message::Work(work));
        Ok(())
    }

    /// Takes nothing more.
    pub(in crate::service) fn close(&self) {
        self.state().is_closed = true;
        self.something.notify_one();
    }

    /// Whether a statement stands in line or is in hand.
    pub(in crate::service) fn holds(&self, id: &StatementId) -> bool {
        let state = self.state();
        state.in_line.contains(id) || state.in_hand.contains(id)
    }

    /// Waits for something; false when nothing will come any more.
    pub(in crate::service) fn wait(&self) -> bool {
        let mut state = self.state();
        while state.messages.is_empty() && !state.is_closed {
            state.is_writer_waiting = true;
            state = self.something.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.messages.is_empty()
    }

    /// Hands out what has come, into an empty vector: at most so much, and work
    /// on the log only as the last.
    pub(in crate::service) fn take(&self, most: usize, into: &mut Vec<Message<S, W>>) {
        let mut state = self.state();
        if state.works == 0 && state.messages.len() <= most {
            let State { messages, in_line, in_hand, .. } = &mut *state;
            std::mem::swap(messages, into);
            std::mem::swap(in_line, in_hand);
        } else {
            into.extend(state.first(most));
        }
    }

    /// Forgets what is in hand; how many statements and bytes are left.
    pub(in crate::service) fn forget(&self, bytes: usize) -> (usize, usize) {
        let mut state = self.state();
        state.in_hand.clear();
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

    /// Small letters are statements of one byte, large ones are work.
    fn line(letters: &str) -> Line<u8, u8> {
        let line = Line::new();
        let limits = QueueLimits { statements: 100, bytes: 100, batch: 100 };
        for letter in letters.bytes() {
            let pushed = match letter {
                b'a'..=b'z' => line.push((id(letter), 1), letter, &limits),
                work => line.push_work(work),
            };
            pushed.unwrap();
        }
        line
    }

    #[test]
    fn all_comes_out_in_order_and_work_is_the_last_of_a_batch() {
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
            let line = line(letters);
            for batch in batches {
                assert!(line.wait(), "{letters}");
                let mut taken = Vec::new();
                line.take(most, &mut taken);
                let letter = |message: &Message<u8, u8>| match message {
                    Message::Statement(_, letter) | Message::Work(letter) => char::from(*letter),
                };
                assert_eq!(taken.iter().map(letter).collect::<String>(), **batch, "{letters}");
                let statements = batch.bytes().filter(u8::is_ascii_lowercase);
                statements.clone().for_each(|letter| assert!(line.holds(&id(letter)), "{letters}"));
                line.forget(statements.clone().count());
                statements.for_each(|letter| assert!(!line.holds(&id(letter)), "{letters}"));
            }
            assert_eq!(line.forget(0), (0, 0), "{letters}");
            line.close();
            assert!(!line.wait(), "{letters}");
        }
    }

    #[test]
    fn what_is_not_taken_yet_is_still_held() {
        let line = line("abc");
        line.take(2, &mut Vec::new());
        assert_eq!(line.forget(2), (1, 1));
        assert!(line.holds(&id(b'c')) && !line.holds(&id(b'a')));
    }

    #[test]
    fn room_is_counted_until_the_commit() {
        let line: Line<(), ()> = Line::new();
        let push = |letter, bytes| line.push((id(letter), bytes), (), &LIMITS);
        assert_eq!(push(b'a', 6), Ok(()));
        assert_eq!(push(b'b', 5), Err(Turned::Full { waiting: 1 }));
        assert!(!line.holds(&id(b'b')));
        line.take(3, &mut Vec::new());
        assert_eq!(push(b'b', 5), Err(Turned::Full { waiting: 0 }), "its bytes are in hand");
        assert_eq!(line.forget(6), (0, 0));
        (0..4).for_each(|letter| assert_eq!(push(letter, 1), Ok(())));
        assert_eq!(push(b'e', 1), Err(Turned::Full { waiting: 4 }));
        assert_eq!(line.push_work(()), Ok(()), "there is room for work");
        line.close();
        assert_eq!(push(b'f', 1), Err(Turned::Closed));
        assert_eq!(line.push_work(()), Err(Turned::Closed));
        assert!(line.wait(), "what was taken is still handed out");
    }

    #[test]
    fn who_waits_is_told() {
        let line = Line::new();
        let limits = QueueLimits { statements: 10_000, bytes: 10_000, batch: 7 };
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut seen, mut taken) = (0, Vec::new());
                while line.wait() {
                    line.take(7, &mut taken);
                    seen += taken.drain(..).count();
                }
                seen
            });
            let push = || (0..1000).for_each(|_: u32| line.push_work(()).unwrap());
            let statements = || {
                (0..1000_u32).for_each(|n| {
                    let id = StatementId::of_canonical(&n.to_be_bytes());
                    line.push((id, 1), (), &limits).unwrap();
                });
            };
            let all = [scope.spawn(push), scope.spawn(statements)];
            all.into_iter().for_each(|one| one.join().unwrap());
            line.close();
            assert_eq!(writer.join().unwrap(), 2000);
        });
    }
}
