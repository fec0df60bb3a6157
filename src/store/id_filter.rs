//! Which statement ids are certainly not in the log, answered from memory.
//!
//! Nearly every statement that arrives is new, and to see that in the store
//! costs two searches through its tables: one for the id, one for its ECDSA
//! twin. This is a blocked Bloom filter over the leaf hashes of all statements,
//! which the full tiles give quickly at start. "No" is certain; "maybe" is
//! looked up in the store. When a log outgrows the filter, "maybe" becomes more
//! frequent and lookups cost what they did without it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::wire::digest::Digest;

/// One cache line.
const BLOCK_WORDS: usize = 8;
/// 16 MiB: 1 % false positives at about 13 million statements.
const BLOCKS_MIN: u64 = 1 << 18;
/// 128 MiB: the same at about 100 million.
const BLOCKS_MAX: u64 = 1 << 21;
/// Statements for each block, so that a log can grow to twice its size before
/// one in a hundred lookups is in vain.
const STATEMENTS_PER_BLOCK: u64 = 24;
/// Bits set for each statement, all in one block.
const PROBES: u32 = 5;

/// A filter for one log. Filled at start, then written by the committer; read by
/// everybody without locks.
pub(super) struct IdFilter {
    blocks: Box<[[AtomicU64; BLOCK_WORDS]]>,
}

impl IdFilter {
    /// An empty filter for a log of so many statements.
    pub(super) fn new(statements: u64) -> Self {
        let wanted = (statements / STATEMENTS_PER_BLOCK).next_power_of_two();
        let blocks = wanted.clamp(BLOCKS_MIN, BLOCKS_MAX);
        let block = || std::array::from_fn(|_| AtomicU64::new(0));
        Self { blocks: (0..blocks).map(|_| block()).collect() }
    }

    /// Adds a leaf hash. Must happen before its statement is in the store.
    pub(super) fn insert(&self, leaf: &Digest) {
        self.probes(leaf, |word, bit| {
            word.fetch_or(bit, Ordering::Relaxed);
            true
        });
    }

    /// Whether a leaf may be in the log; false is certain.
    pub(super) fn may_contain(&self, leaf: &Digest) -> bool {
        self.probes(leaf, |word, bit| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Visits the bits of a leaf while `visit` says yes; whether it always did.
    /// A leaf is a SHA-256 digest, so its own bits choose the block and the bits.
    fn probes(&self, leaf: &Digest, visit: impl Fn(&AtomicU64, u64) -> bool) -> bool {
        let (words, _) = leaf.as_bytes().as_chunks::<8>();
        let [first, second, ..] = words else { return true };
        let [first, second] = [first, second].map(|word| u64::from_be_bytes(*word));
        let count = u64::try_from(self.blocks.len()).unwrap_or(u64::MAX);
        let at = usize::try_from(first % count).unwrap_or_default();
        let Some(block) = self.blocks.get(at) else { return true };
        (0..PROBES).all(|probe| {
            let nine = second >> (9 * probe);
            let word = usize::try_from((nine >> 6) & 7).unwrap_or_default();
            block.get(word).is_none_or(|word| visit(word, 1 << (nine & 63)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(n: u64) -> Digest {
        Digest::of(&n.to_be_bytes())
    }

    #[test]
    fn inserted_leaves_always_pass_and_few_others_do() {
        let filter = IdFilter::new(0);
        assert!(!filter.may_contain(&leaf(1)));
        (0..100_000).for_each(|n| filter.insert(&leaf(n)));
        assert!((0..100_000).all(|n| filter.may_contain(&leaf(n))));
        let passed = (100_000..200_000).filter(|n| filter.may_contain(&leaf(*n))).count();
        assert!(passed < 100, "{passed} false positives at a hundredth of the capacity");
    }

    #[test]
    fn size_follows_the_log_within_bounds() {
        let blocks = |statements| IdFilter::new(statements).blocks.len();
        assert_eq!(blocks(0), 1 << 18);
        assert_eq!(blocks(6_000_000), 1 << 18);
        assert_eq!(blocks(12_000_000), 1 << 19);
        assert_eq!(blocks(u64::MAX / 2), 1 << 21);
    }
}
