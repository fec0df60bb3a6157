//! The tree as the tiles give it, recomputed while it grows.

use super::broken::{Broken, Promise};
use super::heads::Seen;
use super::random::Random;
use super::run::Run;
use crate::envelope::StatementId;
use crate::log::{
    MemoryNodes, Nodes as _, TILE_WIDTH, TileId, TilePath, TreeSize, leaf_hash, parse_entry_bundle,
    parse_hash_tile, root_at, tiles_of,
};
use crate::wire::digest::Digest;

/// Leaves of the largest tree we recompute: about 128 MiB of hashes.
const LEAVES_MAX: u64 = 2_000_000;
const BYTES: &str = "application/octet-stream";

/// All leaves so far, and every node above them.
#[derive(Default)]
pub(super) struct Tree {
    nodes: MemoryNodes,
}

impl Tree {
    pub(super) fn size(&self) -> u64 {
        self.nodes.size().get()
    }

    /// Reads the leaves up to a head; its root must be theirs. A log too
    /// large for us is left at the size we have.
    pub(super) async fn follow(&mut self, run: &Run, head: &Seen) -> anyhow::Result<()> {
        if head.size > LEAVES_MAX {
            return Ok(());
        }
        if head.size <= self.size() {
            return self.matches(head);
        }
        let first = self.size() / u64::from(TILE_WIDTH);
        let leaves = tiles_of(TreeSize::new(head.size)).take_while(|tile| tile.level == 0);
        for tile in leaves.filter(|tile| tile.index >= first) {
            let known = self.size().saturating_sub(tile.index * u64::from(TILE_WIDTH));
            let hashes = hashes(run, tile).await?;
            let new = hashes.into_iter().skip(usize::try_from(known)?);
            new.for_each(|leaf| self.nodes.append(leaf));
        }
        self.matches(head)
    }

    /// The root at the size of a head is the one that was signed.
    pub(super) fn matches(&self, head: &Seen) -> anyhow::Result<()> {
        let size = TreeSize::new(head.size);
        if head.size > self.size() {
            return Ok(());
        }
        let root = root_at(&self.nodes, size)?;
        if root == head.root {
            return Ok(());
        }
        let what =
            format!("the leaves in the tiles give root {root} at {size}, signed was {}", head.root);
        let broken = Broken::new(Promise::TilesMatch, what).with(head.name, &head.bytes);
        Err(broken.with("leaves.bin", self.leaves(head.size)).into())
    }

    /// A tile of any level, or a bundle of entries, is what its place says.
    pub(super) async fn look(&self, run: &Run, random: &mut Random) -> anyhow::Result<()> {
        let size = TreeSize::new(self.size());
        let tiles: Vec<TileId> = tiles_of(size).collect();
        let Some(tile) = random.pick(&tiles).copied() else { return Ok(()) };
        let expected: Result<Vec<Digest>, _> = (0..u64::from(tile.width))
            .map(|i| self.nodes.node(tile.level * 8, tile.index * u64::from(TILE_WIDTH) + i))
            .collect();
        let is_bundle = tile.level == 0 && random.percent(50);
        let found = if is_bundle { bundle(run, tile).await? } else { hashes(run, tile).await? };
        if found == expected? {
            return Ok(());
        }
        let kind = if is_bundle { "the entries beside" } else { "" };
        let what = format!("{kind} {} do not give the hashes of its place", tile.path());
        let bytes: Vec<u8> = found.iter().flat_map(|hash| *hash.as_bytes()).collect();
        Err(Broken::new(Promise::TilesMatch, what).with("hashes.bin", bytes).into())
    }

    /// Every acknowledged statement is the leaf it was said to be, and no
    /// other leaf. Gives how many were looked at.
    pub(super) fn holds(&self, places: &[(u64, StatementId)]) -> Result<u64, Broken> {
        let mut seen = std::collections::HashMap::new();
        for index in 0..self.size() {
            let Ok(leaf) = self.nodes.node(0, index) else { continue };
            seen.entry(leaf).or_insert_with(Vec::new).push(index);
        }
        let mut checked = 0;
        for (index, id) in places.iter().filter(|(index, _)| *index < self.size()) {
            let leaf = leaf_hash(id.entry());
            let found = seen.get(&leaf).map(Vec::as_slice).unwrap_or_default();
            if found != [*index] {
                let what = format!("{id} was acknowledged as leaf {index} and is at {found:?}");
                return Err(Broken::new(Promise::Keeps, what));
            }
            checked += 1;
        }
        Ok(checked)
    }

    fn leaves(&self, size: u64) -> Vec<u8> {
        let leaf = |index| self.nodes.node(0, index).ok();
        (0..size).filter_map(leaf).flat_map(|leaf| *leaf.as_bytes()).collect()
    }
}

async fn hashes(run: &Run, tile: TileId) -> anyhow::Result<Vec<Digest>> {
    let body = fetch(run, &tile.path()).await?;
    Ok(parse_hash_tile(&body, tile.width).map_err(|e| unreadable(&tile.path(), &body, &e))?)
}

/// The leaves that the entries beside a tile make.
async fn bundle(run: &Run, tile: TileId) -> anyhow::Result<Vec<Digest>> {
    let path = TilePath::Entries { index: tile.index, width: tile.width }.to_string();
    let body = fetch(run, &path).await?;
    let entries = parse_entry_bundle(&body).map_err(|e| unreadable(&path, &body, &e))?;
    Ok(entries.iter().map(leaf_hash).collect())
}

async fn fetch(run: &Run, path: &str) -> anyhow::Result<Vec<u8>> {
    let reply = run.get(path, BYTES).await?;
    run.counts.tiles_read.add();
    if reply.status == 200 {
        Ok(reply.body)
    } else {
        Err(super::writer::unexpected(path, &reply).into())
    }
}

fn unreadable(path: &str, body: &[u8], error: &crate::log::Error) -> Broken {
    Broken::new(Promise::TilesMatch, format!("{path}: {error}")).with("tile.bin", body)
}
