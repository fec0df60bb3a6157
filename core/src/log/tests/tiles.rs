//! Tiles: their names, their bytes, and a tree three tile levels high.

use super::*;

#[test]
fn tile_paths_have_one_spelling() {
    let hashes = |level, index, width| TilePath::Hashes(TileId { level, index, width });
    let good = [
        ("tile/0/000", hashes(0, 0, 256)),
        ("tile/0/x001/x234/067", hashes(0, 1_234_067, 256)),
        ("tile/0/x001/x234/067.p/8", hashes(0, 1_234_067, 8)),
        ("tile/1/x001/000.p/255", hashes(1, 1000, 255)),
        ("tile/63/999.p/1", hashes(63, 999, 1)),
        ("tile/2/x018/x446/x744/x073/x709/x551/615", hashes(2, u64::MAX, 256)),
        ("tile/entries/005", TilePath::Entries { index: 5, width: 256 }),
        ("tile/entries/x001/005.p/10", TilePath::Entries { index: 1005, width: 10 }),
    ];
    for (text, path) in good {
        assert_eq!(TilePath::parse(text), Ok(path));
        assert_eq!(path.to_string(), text);
    }
    let bad = "
        tile tile/ tile/0 tile/0/ tile/0/0 tile/0/00 tile/0/0000 tile/0/x000/000 tile/0/x00/000
        tile/0/001/000 tile/0/x001/x000 tile/0/x001 tile/0/X001/000 tile/0/+01 tile/0/-01
        tile/00/000 tile/+0/000 tile/64/000 tile/256/000 tile/-1/000 tile//000 tile/x/000
        tile/0/000.p/0 tile/0/000.p/256 tile/0/000.p/257 tile/0/000.p/01 tile/0/000.p/
        tile/0/000.p tile/0/000.p/1/ tile/0/000/ tile/0/000.p/+1 tile/0/000.p/1.p/1
        /tile/0/000 tile/entries tile/entries/ tile/entries/0/000 tile/Entries/000
        tile/0/x018/x446/x744/x073/x709/x551/616 tile/data/000 tile/0/٠٠٠ tile/0/000?x";
    for text in bad.split_whitespace().chain(["", " tile/0/000", "tile/0/000\n"]) {
        assert_eq!(TilePath::parse(text), Err(Error::TilePath), "{text}");
    }
}

/// The example of the specification: 273 full tiles and one of width 112, one
/// full and one of width 17, one of width 1.
#[test]
fn tiles_of_a_tree() {
    let all: Vec<TileId> = tiles_of(size(70_000)).collect();
    assert_eq!(all.len(), 273 + 1 + 1 + 1 + 1);
    let partial: Vec<String> = all.iter().filter(|t| !t.is_full()).map(TileId::path).collect();
    assert_eq!(partial, ["tile/0/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"]);
    assert!(all.iter().all(|tile| tile.within(size(70_000))));
    // At 65 536 leaves the last 17 full tiles and two of the partial ones
    // are still to come.
    assert_eq!(all.iter().filter(|tile| !tile.within(size(65_536))).count(), 17 + 2);
    let of_256: Vec<String> = tiles_of(size(256)).map(|t| t.path()).collect();
    assert_eq!(of_256, ["tile/0/000", "tile/1/000.p/1"]);
    assert_eq!(tiles_of(size(0)).count(), 0);
}

#[test]
fn tiles_and_bundles_round_trip() {
    let all = leaves(256);
    for width in [1, 2, 255, 256] {
        let some = &all[..usize::from(width)];
        assert_eq!(parse_hash_tile(&hash_tile(some), width).as_deref(), Ok(some));
        assert!(parse_hash_tile(&hash_tile(some), width + 1).is_err());
        let bundle = entry_bundle(some);
        assert_eq!(bundle.len(), some.len() * 34);
        assert_eq!(parse_entry_bundle(&bundle).as_deref(), Ok(some));
        for bad in [&bundle[1..], &bundle[..bundle.len() - 1], &[0, 31], &[]] {
            let expected = Error::EntryBundle { length: bad.len() };
            assert_eq!(parse_entry_bundle(bad), Err(expected));
        }
        let mut wrong_length = bundle.clone();
        wrong_length[1] = 33;
        assert!(parse_entry_bundle(&wrong_length).is_err());
    }
    assert!(parse_entry_bundle(&entry_bundle(&leaves(257))).is_err());
}

#[test]
fn frontiers_round_trip() {
    let mut frontier = Frontier::empty();
    for leaf in leaves(70) {
        let bytes = frontier.encode();
        assert_eq!(Frontier::decode(&bytes).as_ref(), Ok(&frontier));
        assert!(Frontier::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
        assert!(Frontier::decode(&[bytes.as_slice(), &[0; 32]].concat()).is_err());
        let parts = Frontier::from_parts(frontier.size(), frontier.peaks().to_vec());
        assert_eq!(parts.as_ref(), Some(&frontier));
        frontier.append(leaf);
    }
    let beyond = Frontier::from_parts(size((1 << 63) + 1), leaves(2));
    assert_eq!(beyond, None, "sizes past the largest tree are refused");
}

/// A tree that reaches the third tile level: tiles, edge and rebuilt edge
/// agree with all nodes in memory.
#[test]
fn three_tile_levels() {
    let all = leaves(2 * 65_536 + 300);
    let memory: MemoryNodes = all.iter().copied().collect();
    let mut kept = Kept::new(&[]);
    let sizes = [1, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 65_792, 131_071, 131_372];
    for (n, leaf) in (1..).zip(&all) {
        kept.append(*leaf);
        if !sizes.contains(&n) {
            continue;
        }
        let leaf = |index: LeafIndex| {
            assert!(index.get() >= n - n % 256, "only leaves of the partial tile are read");
            Ok(all[at(index.get())])
        };
        let rebuilt = Edge::rebuild(size(n), |id| kept.fetch(id), leaf);
        assert_eq!(rebuilt.as_ref(), Ok(&kept.edge), "size {n}");
        let full = tiles_of(size(n)).filter(TileId::is_full).count();
        assert_eq!(kept.tiles.len(), full, "size {n}");
        for partial in tiles_of(size(n)).filter(|tile| !tile.is_full()) {
            assert_eq!(kept.edge.partial(partial.level).len(), usize::from(partial.width));
        }
        let (nodes, root) = (kept.nodes(), root_at(&memory, size(n)).unwrap());
        assert_eq!(root_at(&nodes, size(n)), Ok(root));
        for i in (0..40).map(|step| (step * 7_919) % n).chain([n - 1]) {
            let path = inclusion_path(&nodes, LeafIndex::new(i), size(n)).unwrap();
            assert_eq!(inclusion_path(&memory, LeafIndex::new(i), size(n)).as_ref(), Ok(&path));
            assert_eq!(inclusion_root(all[at(i)], i, n, &path), Ok(root));
            let path = consistency_path(&nodes, size(i), size(n)).unwrap();
            assert_eq!(consistency_path(&memory, size(i), size(n)).as_ref(), Ok(&path));
            let older = root_at(&nodes, size(i)).unwrap();
            let newer = consistency_roots(i, n, older, &path).map(|(_, newer)| newer);
            assert!(i == 0 || newer == Ok(root), "{i} to {n}");
        }
    }
    let torn = |_: TileId| Ok::<_, Error>(vec![0; 8191]);
    let expected = Error::TileLength { expected: 8192, found: 8191 };
    assert_eq!(TileNodes::new(&kept.edge, torn).node(0, 0), Err(expected.clone()));
    let rebuilt = Edge::rebuild(size(256), torn, |_| Err(Error::PathEmpty));
    assert_eq!(rebuilt, Err(expected));
}
