//! Token buckets by key, bounded in number.
//!
//! The `governor` crate was not taken: it has weights and a test clock, but its
//! table of keys has no bound, and adding one with eviction is this file.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Buckets kept at once: some 10 MB of addresses.
const BUCKETS_MAX: usize = 65_536;

/// How fast a bucket fills, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Tokens each second; above 0.
    pub per_second: f64,
    /// Tokens at most, and at first.
    pub burst: u32,
}

/// One bucket per key; each fills at its own pace. A full bucket is not stored.
/// When the table is full, the bucket that would be full soonest is dropped: a
/// client that must wait is not forgotten, and a new client always gets a
/// bucket.
pub struct Buckets<K> {
    table: Mutex<Table<K>>,
    most: usize,
}

struct Table<K> {
    by_key: HashMap<K, Bucket>,
    /// When each bucket will be full; the number separates equal times.
    by_fullness: BTreeMap<(Instant, u64), K>,
    next: u64,
}

#[derive(Clone, Copy)]
struct Bucket {
    /// Below zero after a batch that was larger than the bucket.
    tokens: f64,
    at: Instant,
    full: (Instant, u64),
}

impl<K: Clone + Eq + Hash> Buckets<K> {
    /// No buckets yet.
    pub fn new() -> Self {
        Self::with_room(BUCKETS_MAX)
    }

    fn with_room(most: usize) -> Self {
        let table = Table { by_key: HashMap::new(), by_fullness: BTreeMap::new(), next: 0 };
        Self { table: Mutex::new(table), most }
    }

    /// Takes so many tokens, or says in how many seconds there will be enough.
    /// A cost beyond the bucket's size is taken from a full bucket and leaves it
    /// below zero.
    pub fn take(&self, key: &K, cost: u32, pace: Pace) -> Result<(), u64> {
        self.take_at(Instant::now(), key, cost, pace)
    }

    /// Takes so many tokens, even if the bucket then is below zero.
    pub fn owe(&self, key: &K, cost: u32, pace: Pace) {
        self.change(Instant::now(), key, -f64::from(cost), pace);
    }

    /// Refunds tokens.
    pub fn give_back(&self, key: &K, cost: u32, pace: Pace) {
        self.change(Instant::now(), key, f64::from(cost), pace);
    }

    /// Takes nothing; says in how many seconds there will be a token, if there
    /// is none.
    pub fn look(&self, key: &K, pace: Pace) -> Result<(), u64> {
        let tokens = self.table().tokens(Instant::now(), key, pace);
        if tokens >= 1.0 { Ok(()) } else { Err(whole_seconds((1.0 - tokens) / pace.per_second)) }
    }

    fn take_at(&self, now: Instant, key: &K, cost: u32, pace: Pace) -> Result<(), u64> {
        let needed = f64::from(cost.min(pace.burst.max(1)));
        let mut table = self.table();
        let tokens = table.tokens(now, key, pace);
        let is_enough = tokens >= needed;
        let left = if is_enough { tokens - f64::from(cost) } else { tokens };
        table.put(now, key, left, pace, self.most);
        if is_enough { Ok(()) } else { Err(whole_seconds((needed - tokens) / pace.per_second)) }
    }

    fn change(&self, now: Instant, key: &K, by: f64, pace: Pace) {
        let mut table = self.table();
        let tokens = (table.tokens(now, key, pace) + by).min(capacity(pace));
        table.put(now, key, tokens, pace, self.most);
    }

    fn table(&self) -> MutexGuard<'_, Table<K>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> Table<K> {
    /// What is in a bucket now; it is full before it is first used.
    fn tokens(&self, now: Instant, key: &K, pace: Pace) -> f64 {
        let Some(bucket) = self.by_key.get(key) else { return capacity(pace) };
        let gained = now.saturating_duration_since(bucket.at).as_secs_f64() * pace.per_second;
        (bucket.tokens + gained).min(capacity(pace))
    }

    fn put(&mut self, now: Instant, key: &K, tokens: f64, pace: Pace, most: usize) {
        let seconds = (capacity(pace) - tokens) / pace.per_second;
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(FOREVER).min(FOREVER);
        let full = (now + wait, self.next);
        self.next += 1;
        match self.by_key.insert(key.clone(), Bucket { tokens, at: now, full }) {
            Some(before) => drop(self.by_fullness.remove(&before.full)),
            None if self.by_key.len() > most => {
                let fullest = self.by_fullness.pop_first();
                fullest.and_then(|(_, key)| self.by_key.remove(&key));
            }
            None => {}
        }
        self.by_fullness.insert(full, key.clone());
    }
}

/// Longer than any client waits, and small enough to add to a time.
const FOREVER: Duration = Duration::from_secs(365 * 86_400);

fn capacity(pace: Pace) -> f64 {
    f64::from(pace.burst.max(1))
}

impl<K: Clone + Eq + Hash> Default for Buckets<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// At least one second, rounded up: the unit of Retry-After.
fn whole_seconds(seconds: f64) -> u64 {
    (1_u32..3600).find(|whole| f64::from(*whole) >= seconds).map_or(3600, u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { per_second: 2.0, burst: 3 };

    #[test]
    fn a_bucket_empties_and_fills_at_its_pace() {
        let buckets = Buckets::new();
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        // Milliseconds, cost, answer.
        let rows = [
            (0, 1, Ok(())),
            (0, 2, Ok(())),
            (0, 1, Err(1)),
            (499, 1, Err(1)),
            (500, 1, Ok(())),
            (500, 3, Err(2)),
            // A batch larger than the bucket needs a full one, and is paid off.
            (2000, 9, Ok(())),
            (2000, 1, Err(4)),
            (5490, 1, Err(1)),
            (5510, 1, Ok(())),
        ];
        for (ms, cost, answer) in rows {
            assert_eq!(buckets.take_at(at(ms), &"a", cost, PACE), answer, "at {ms} ms");
        }
        assert_eq!(buckets.take_at(start, &"b", 3, PACE), Ok(()), "another key has its own bucket");
    }

    #[test]
    fn the_wait_is_in_whole_seconds() {
        let buckets = Buckets::new();
        let (start, slow) = (Instant::now(), Pace { per_second: 0.1, burst: 1 });
        assert_eq!(buckets.take_at(start, &(), 1, slow), Ok(()));
        assert_eq!(buckets.take_at(start, &(), 1, slow), Err(10));
        assert_eq!(buckets.look(&(), slow), Err(10));
        buckets.give_back(&(), 5, slow);
        assert_eq!(buckets.look(&(), slow), Ok(()));
        buckets.owe(&(), 2, slow);
        assert_eq!(buckets.look(&(), slow), Err(20));
    }

    /// A full table neither locks out new clients nor resets the wait of those
    /// that must wait.
    #[test]
    fn a_full_table_forgets_the_fullest_bucket() {
        let buckets = Buckets::with_room(4);
        let start = Instant::now();
        for _ in 0..3 {
            buckets.take_at(start, &0, 1, PACE).unwrap();
        }
        for stranger in 1..1000 {
            assert_eq!(buckets.take_at(start, &stranger, 1, PACE), Ok(()), "{stranger}");
        }
        assert_eq!(buckets.table().by_key.len(), 4);
        assert_eq!(buckets.table().by_fullness.len(), 4);
        assert_eq!(buckets.take_at(start, &0, 1, PACE), Err(1), "still empty");
        assert_eq!(buckets.take_at(start, &999, 2, PACE), Ok(()), "the newest is kept");
        assert_eq!(buckets.take_at(start, &999, 1, PACE), Err(1));
    }
}
