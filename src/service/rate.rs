//! Token buckets by key, bounded in number.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Instant;

/// Buckets kept at once. A full bucket is the same as none, so those can be
/// dropped whenever room is needed.
const BUCKETS_MAX: usize = 65_536;

/// One bucket per key; each fills at its own pace.
pub struct Buckets<K> {
    buckets: Mutex<HashMap<K, Bucket>>,
}

struct Bucket {
    tokens: f64,
    at: Instant,
    full_after: f64,
}

impl<K: Eq + Hash> Buckets<K> {
    /// No buckets yet.
    pub fn new() -> Self {
        Self { buckets: Mutex::new(HashMap::new()) }
    }

    /// Takes a token, or says in how many seconds there will be one.
    pub fn take(&self, key: K, per_second: f64, burst: u32) -> Result<(), u64> {
        self.take_at(Instant::now(), key, (per_second, burst))
    }

    fn take_at(&self, now: Instant, key: K, (per_second, burst): (f64, u32)) -> Result<(), u64> {
        let burst = f64::from(burst.max(1));
        let mut buckets = self.buckets.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&key) {
            buckets.retain(|_, b| now.duration_since(b.at).as_secs_f64() < b.full_after);
        }
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&key) {
            return Err(1);
        }
        let bucket =
            buckets.entry(key).or_insert(Bucket { tokens: burst, at: now, full_after: 0.0 });
        let gained = now.duration_since(bucket.at).as_secs_f64() * per_second;
        let tokens = (bucket.tokens + gained).min(burst);
        let taken = tokens >= 1.0;
        bucket.tokens = if taken { tokens - 1.0 } else { tokens };
        bucket.at = now;
        bucket.full_after = (burst - bucket.tokens) / per_second;
        if taken { Ok(()) } else { Err(whole_seconds((1.0 - tokens) / per_second)) }
    }
}

impl<K: Eq + Hash> Default for Buckets<K> {
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
    use std::time::Duration;

    #[test]
    fn a_bucket_empties_and_fills_at_its_pace() {
        let buckets = Buckets::new();
        let start = Instant::now();
        let take = |ms: u64| buckets.take_at(start + Duration::from_millis(ms), "a", (2.0, 3));
        let expected =
            [(0, Ok(())), (0, Ok(())), (0, Ok(())), (0, Err(1)), (499, Err(1)), (500, Ok(()))];
        for (at, answer) in expected {
            assert_eq!(take(at), answer, "at {at} ms");
        }
        assert_eq!(buckets.take_at(start, "b", (2.0, 3)), Ok(()), "another key has its own bucket");
    }

    #[test]
    fn the_wait_is_in_whole_seconds() {
        let buckets = Buckets::new();
        let start = Instant::now();
        assert_eq!(buckets.take_at(start, (), (0.1, 1)), Ok(()));
        assert_eq!(buckets.take_at(start, (), (0.1, 1)), Err(10));
    }
}
