//! Choices that a seed repeats. Nothing secret depends on them.

/// SplitMix64: every seed is a good one, and one word is the whole state.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The same seed gives every worker choices of its own.
    pub(super) fn for_worker(seed: u64, worker: u64) -> Self {
        Self(Self(seed ^ worker.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `limit`; 0 when there is none.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }

    /// One of them.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let place = self.below(u64::try_from(items.len()).unwrap_or(0));
        items.get(usize::try_from(place).ok()?)
    }

    /// True that often in a hundred.
    pub(super) fn percent(&mut self, often: u32) -> bool {
        self.below(100) < u64::from(often)
    }
}
