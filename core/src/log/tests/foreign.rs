//! Two foreign trees and their verifiers: whatever we prove they take, and
//! what was damaged they refuse as we do. Consistency is known to one of them;
//! there the RFC's own recursion is the second opinion.

use proptest::prelude::*;
use proptest::sample::Index;

use super::oracle::{CtMerkle, Naive, RsMerkle};
use super::*;

fn entry(index: u64) -> Digest {
    Digest::of(&index.to_be_bytes())
}

/// All sizes up to one more than two levels of odd shapes.
#[test]
fn foreign_trees_agree_on_inclusion() {
    let all = leaves(70);
    let mut second = CtMerkle::new();
    for n in 1..=70 {
        second.append(&entry(n - 1));
        let third = RsMerkle::new(&all[..at(n)]);
        let memory: MemoryNodes = all[..at(n)].iter().copied().collect();
        let root = root_at(&memory, size(n)).unwrap();
        assert_eq!((second.root(), third.root()), (root, root), "size {n}");
        for i in 0..n {
            let ours = inclusion_path(&memory, LeafIndex::new(i), size(n)).unwrap();
            assert_eq!(second.inclusion(i), ours, "leaf {i} of {n}");
            assert_eq!(third.inclusion(i), ours, "leaf {i} of {n}");
            assert!(second.accepts_inclusion(&entry(i), i, &ours), "leaf {i} of {n}");
            assert!(RsMerkle::accepts(root, all[at(i)], i, n, &ours), "leaf {i} of {n}");
            for bad in damaged(&ours) {
                let is_ours = inclusion_root(all[at(i)], i, n, &bad) == Ok(root);
                assert_eq!(second.accepts_inclusion(&entry(i), i, &bad), is_ours);
            }
        }
    }
}

#[test]
fn foreign_verifier_agrees_on_consistency() {
    let all = leaves(70);
    let memory: MemoryNodes = all.iter().copied().collect();
    let mut second = CtMerkle::new();
    for n in 1..=70 {
        second.append(&entry(n - 1));
        for m in 1..n {
            let older = root_at(&memory, size(m)).unwrap();
            let ours = consistency_path(&memory, size(m), size(n)).unwrap();
            assert!(second.accepts_consistency(older, m, &ours), "{m} to {n}");
            for bad in damaged(&ours) {
                assert!(!second.accepts_consistency(older, m, &bad), "{m} to {n}");
            }
            assert!(!second.accepts_consistency(entry(n), m, &ours), "{m} to {n}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Larger trees, where the tiles have levels: any leaf, any two sizes.
    #[test]
    fn larger_trees_agree(n in 2_u64..5_000, places in prop::collection::vec(any::<Index>(), 8)) {
        let all = leaves(n);
        let kept = Kept::new(&all);
        let naive = Naive::new(&all);
        let mut second = CtMerkle::new();
        (0..n).for_each(|i| second.append(&entry(i)));
        let third = RsMerkle::new(&all);
        let root = root_at(&kept.nodes(), size(n)).unwrap();
        prop_assert_eq!((second.root(), third.root()), (root, root));
        for place in places {
            let i = u64::try_from(place.index(all.len())).unwrap();
            let ours = inclusion_path(&kept.nodes(), LeafIndex::new(i), size(n)).unwrap();
            prop_assert_eq!(second.inclusion(i), ours.clone());
            prop_assert_eq!(third.inclusion(i), ours);
            let m = i.max(1);
            let ours = consistency_path(&kept.nodes(), size(m), size(n)).unwrap();
            prop_assert_eq!(second.consistency(m), ours.clone());
            prop_assert_eq!(naive.consistency(m, n), ours);
        }
    }
}
