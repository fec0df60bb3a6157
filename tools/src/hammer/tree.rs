//! The tree as the tiles give it, recomputed while it grows.

use capstan::log::{
    MemoryNodes, Nodes as _, TILE_WIDTH, TileId, TilePath, TreeSize, hash_tile, leaf_hash,
    parse_entry_bundle, parse_hash_tile, root_at, tiles_of,
};
use capstan::wire::digest::Digest;
use fastrand::Rng;

use super::acknowledged::Acknowledgements;
use super::broken::{Broken, Promise};
use super::heads::SeenHead;
use super::lock;
use super::run::Run;

/// Leaves of the largest tree we recompute: about 128 MiB of hashes.
const LEAVES_MAX: u64 = 2_000_000;
const BYTES: &str = "application/octet-stream";

/// All leaves so far, and every node above them.
#[derive(Default)]
pub(super) struct Tree {
    nodes: MemoryNodes,
}

impl Tree {
    #[cfg(test)]
    pub(super) fn of(leaves: impl Iterator<Item = Digest>) -> Self {
        Self { nodes: leaves.collect() }
    }

    pub(super) fn size(&self) -> u64 {
        self.nodes.size().get()
    }

    /// Reads the leaves up to a head; its root must be theirs. A log too
    /// large for us is left at the size we have.
    pub(super) async fn follow(&mut self, run: &Run, head: &SeenHead) -> anyhow::Result<()> {
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

    /// Every head that the leaves reach has their root: any two of them are
    /// then heads of one log.
    pub(super) fn compare(&self, run: &Run) -> anyhow::Result<()> {
        let heads = lock(&run.heads).to_compare(self.size());
        for head in &heads {
            self.matches(head)?;
            lock(&run.heads).has_compared(head);
        }
        Ok(())
    }

    /// The root at the size of a head is the one that was signed.
    fn matches(&self, head: &SeenHead) -> anyhow::Result<()> {
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

    /// Two trees of any sizes under the leaves, the smaller first.
    pub(super) fn pair(&self, random: &mut Rng) -> anyhow::Result<Option<(SeenHead, SeenHead)>> {
        let (a, b) = (random.u64(..self.size() + 1), random.u64(..self.size() + 1));
        if a.min(b) == 0 || a == b {
            return Ok(None);
        }
        let at = |size| -> anyhow::Result<SeenHead> {
            let root = root_at(&self.nodes, TreeSize::new(size))?;
            let text = format!("the tiles give root {root} at {size} leaves\n");
            Ok(SeenHead::new(size, root, "tiles.txt", text.as_bytes()))
        };
        Ok(Some((at(a.min(b))?, at(a.max(b))?)))
    }

    /// A tile of any level, or a bundle of entries, is what its place says.
    pub(super) async fn look(&self, run: &Run, random: &mut Rng) -> anyhow::Result<()> {
        let tiles: Vec<TileId> = tiles_of(TreeSize::new(self.size())).collect();
        let Some(tile) = random.choice(&tiles) else { return Ok(()) };
        self.look_at(run, *tile, tile.level == 0 && random.u32(..100) < 50).await
    }

    /// The same for all of them; gives how many there are.
    pub(super) async fn look_at_all(&self, run: &Run) -> anyhow::Result<u64> {
        let mut looked = 0;
        for tile in tiles_of(TreeSize::new(self.size())) {
            self.look_at(run, tile, false).await?;
            looked += 1;
            if tile.level == 0 {
                self.look_at(run, tile, true).await?;
                looked += 1;
            }
        }
        Ok(looked)
    }

    async fn look_at(&self, run: &Run, tile: TileId, is_bundle: bool) -> anyhow::Result<()> {
        let expected: Result<Vec<Digest>, _> = (0..u64::from(tile.width))
            .map(|i| self.nodes.node(tile.level * 8, tile.index * u64::from(TILE_WIDTH) + i))
            .collect();
        let found = if is_bundle { bundle(run, tile).await? } else { hashes(run, tile).await? };
        if found == expected? {
            return Ok(());
        }
        let kind = if is_bundle { "the entries beside" } else { "the hashes in" };
        let what = format!("{kind} {} are not those of the leaves", tile.path());
        let broken = Broken::new(Promise::TilesMatch, what).with("hashes.bin", hash_tile(&found));
        Err(broken.with("leaves.bin", self.leaves(self.size())).into())
    }

    /// Every acknowledged statement is the leaf it was said to be, and no
    /// other leaf. Gives how many were looked at.
    pub(super) fn holds(&self, acknowledged: &Acknowledgements) -> Result<u64, Broken> {
        let mut seen = std::collections::HashMap::new();
        for index in 0..self.size() {
            let Ok(leaf) = self.nodes.node(0, index) else { continue };
            seen.entry(leaf).or_insert_with(Vec::new).push(index);
        }
        let mut checked = 0;
        for (index, id) in acknowledged.places().filter(|(index, _)| *index < self.size()) {
            let leaf = leaf_hash(id.entry());
            let found = seen.get(&leaf).map(Vec::as_slice).unwrap_or_default();
            if found != [index] {
                let what = format!("{id} was acknowledged as leaf {index} and is at {found:?}");
                let broken = Broken::new(Promise::Keeps, what);
                let broken = broken.with("leaves.bin", self.leaves(self.size()));
                let kept = acknowledged.kept(index);
                return Err(match kept {
                    Some(kept) => kept.evidence(broken),
                    None => broken,
                });
            }
            checked += 1;
        }
        Ok(checked)
    }

    fn leaves(&self, size: u64) -> Vec<u8> {
        let leaves: Vec<Digest> = (0..size).filter_map(|i| self.nodes.node(0, i).ok()).collect();
        hash_tile(&leaves)
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

fn unreadable(path: &str, body: &[u8], error: &capstan::log::Error) -> Broken {
    Broken::new(Promise::TilesMatch, format!("{path}: {error}")).with("tile.bin", body)
}
