//! Reads the leaves of a log from its hash tiles.

use anyhow::Context as _;
use tokio::task::JoinSet;

use super::Client;
use crate::cli::output::Out;
use crate::log::{Frontier, TILE_WIDTH, TileId, TreeSize, parse_hash_tile, tiles_of};
use crate::wire::digest::Digest;

/// Concurrent requests for tiles.
const PARALLEL: usize = 8;

/// A tree grown from tiles.
pub(in crate::cli) struct Grown {
    pub(in crate::cli) frontier: Frontier,
    /// The root at the size that was asked for on the way.
    pub(in crate::cli) root_on_the_way: Option<Digest>,
}

/// Grows `from` to `size` with the leaves the log serves, and notes the root
/// when the tree has the size `note_at`.
pub(in crate::cli) async fn grow(
    client: &Client,
    from: Frontier,
    size: TreeSize,
    note_at: Option<TreeSize>,
    out: &Out,
) -> anyhow::Result<Grown> {
    let width = u64::from(TILE_WIDTH);
    let first = from.size().get() / width;
    let leaf_tiles = tiles_of(size).take_while(|tile| tile.level == 0);
    let tiles: Vec<TileId> = leaf_tiles.filter(|tile| tile.index >= first).collect();
    let bar = out.progress(u64::try_from(tiles.len()).unwrap_or(0), "fetching tiles");
    let mut frontier = from;
    let mut root_on_the_way = None;
    for window in tiles.chunks(PARALLEL) {
        for (tile, leaves) in fetch(client, window).await? {
            let at = tile.index.saturating_mul(width);
            let known = usize::try_from(frontier.size().get().saturating_sub(at))?;
            for leaf in leaves.into_iter().skip(known) {
                if Some(frontier.size()) == note_at {
                    root_on_the_way = Some(frontier.root());
                }
                frontier.append(leaf);
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if Some(frontier.size()) == note_at {
        root_on_the_way = Some(frontier.root());
    }
    Ok(Grown { frontier, root_on_the_way })
}

/// Fetches tiles concurrently and returns them in order.
pub(in crate::cli) async fn fetch(
    client: &Client,
    tiles: &[TileId],
) -> anyhow::Result<Vec<(TileId, Vec<Digest>)>> {
    let mut running = JoinSet::new();
    for tile in tiles.iter().copied() {
        let client = client.clone();
        running.spawn(async move {
            let path = tile.path();
            let bytes = client.fetch(&path, "application/octet-stream, */*;q=0.1").await?;
            let leaves = parse_hash_tile(&bytes, tile.width).with_context(|| path)?;
            anyhow::Ok((tile, leaves))
        });
    }
    let mut fetched = Vec::with_capacity(tiles.len());
    while let Some(done) = running.join_next().await {
        fetched.push(done??);
    }
    fetched.sort_by_key(|(tile, _)| *tile);
    Ok(fetched)
}
