//! Fetches the entries of a remote log for a replay.
//!
//! Statements come by leaf index; times and certificates that are not in them
//! from the search API. Only what the log has signed is decided: every
//! statement must match its leaf, and the leaves must give the root of the
//! checkpoint.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::checkpoint::{Checkpoint, SignedCheckpoint};
use crate::cli::check::audit;
use crate::cli::client::Client;
use crate::cli::client::tiles;
use crate::cli::output::Out;
use crate::cli::{CliError, files};
use crate::envelope::{SignedStatement, StatementId};
use crate::log::{Frontier, TILE_WIDTH, leaf_hash, tiles_of};
use crate::service::{AdmissionError, Identity, LoggedEntry, Replay, ReplayOptions, Replayed};
use crate::store::Stored;
use crate::wire::digest::Digest;
use crate::wire::text;
use crate::wire::time::UnixSeconds;

/// Concurrent requests for statements.
const PARALLEL: usize = 16;
/// Statements on one page of the search API, at most.
const PAGE: u64 = 200;

/// Repeats the decision on every entry that the log's checkpoint covers.
pub(super) async fn replay(
    client: &Client,
    trust: Option<&Path>,
    options: ReplayOptions,
    out: &Out,
) -> anyhow::Result<Replayed> {
    let signed = SignedCheckpoint::parse(&client.fetch_text("checkpoint").await?)?;
    let trust = files::trust(trust)?;
    let key = audit::checkpoint_key(client, &trust, &signed, None).await?;
    let checkpoint = audit::verified(&signed, &key)?;
    let tree = tiles::grow(client, Frontier::empty(), checkpoint.size, None, out).await?;
    compare(&tree.frontier, &checkpoint)?;
    walk(client, &checkpoint, options, out).await
}

async fn walk(
    client: &Client,
    checkpoint: &Checkpoint,
    options: ReplayOptions,
    out: &Out,
) -> anyhow::Result<Replayed> {
    let size = checkpoint.size.get();
    let identity = identity(client, checkpoint).await?;
    let replay = Replay::new(&identity, client.keys().await?, size, options);
    let mut replay = replay.context("the log publishes no key")?;
    let bar = out.progress(size, "replaying");
    let mut frontier = Frontier::empty();
    for tile in tiles_of(checkpoint.size).take_while(|tile| tile.level == 0) {
        let first = tile.index.saturating_mul(u64::from(TILE_WIDTH));
        let fetched = tiles::fetch(client, &[tile]).await?;
        let leaves: Vec<Digest> = fetched.into_iter().flat_map(|(_, leaves)| leaves).collect();
        leaves.iter().for_each(|leaf| frontier.append(*leaf));
        let found = entries(client, first, &leaves).await?;
        if !replay.take(found, &mut |done, _| bar.set_position(done)) {
            break;
        }
    }
    bar.finish_and_clear();
    // The log may serve other tiles than the first time.
    if frontier.size() == checkpoint.size {
        compare(&frontier, checkpoint)?;
    }
    Ok(replay.finish())
}

fn compare(tree: &Frontier, checkpoint: &Checkpoint) -> Result<(), CliError> {
    if tree.root() == checkpoint.root {
        return Ok(());
    }
    let (found, signed) = (tree.root(), checkpoint.root);
    let what = format!("the tiles give root {found}, the checkpoint says {signed}");
    Err(CliError::no("tiles-differ", what))
}

/// The identity of the log: the issuer of its first entry, which must match the
/// origin of its checkpoints.
async fn identity(client: &Client, checkpoint: &Checkpoint) -> anyhow::Result<Identity> {
    let first = client.fetch("entries/1.0/statement", COSE).await?;
    let first = SignedStatement::parse_any_size(first).context("entry #0")?;
    let issuer = first.header().claims.issuer.as_deref().unwrap_or_default();
    let identity = Identity::from_name(issuer);
    if identity.origin != checkpoint.origin {
        let what = format!("entry #0 is of {issuer:?}, the checkpoint of {:?}", checkpoint.origin);
        return Err(CliError::no("first-entry-foreign", what).into());
    }
    Ok(identity)
}

const COSE: &str = "application/cose, */*;q=0.1";

/// The entries under these leaves, in order.
async fn entries(
    client: &Client,
    first: u64,
    leaves: &[Digest],
) -> anyhow::Result<Vec<LoggedEntry>> {
    let end = first.saturating_add(u64::try_from(leaves.len())?);
    let mut metadata = metadata(client, first..end).await?;
    let mut found = Vec::with_capacity(leaves.len());
    let places: Vec<(u64, Digest)> = (first..).zip(leaves.iter().copied()).collect();
    for window in places.chunks(PARALLEL) {
        let mut running = JoinSet::new();
        for (index, leaf) in window.iter().copied() {
            let (client, metadata) = (client.clone(), metadata.remove(&index));
            running.spawn(async move {
                anyhow::Ok((index, entry(&client, index, leaf, metadata).await?))
            });
        }
        while let Some(done) = running.join_next().await {
            found.push(done??);
        }
    }
    found.sort_by_key(|(index, _)| *index);
    Ok(found.into_iter().map(|(_, entry)| entry).collect())
}

async fn entry(
    client: &Client,
    index: u64,
    leaf: Digest,
    metadata: Option<Metadata>,
) -> anyhow::Result<LoggedEntry> {
    let url = client.url(&format!("entries/1.{index}/statement"))?;
    let reply = client.send(url, COSE, None).await?;
    let bytes = match reply.status {
        200 => reply.body,
        404 => {
            return Ok(Err(AdmissionError::new("statement-missing", "the log does not serve it")));
        }
        _ => return Err(reply.problem().into()),
    };
    let canonical = match SignedStatement::parse_any_size(bytes) {
        Ok(statement) => statement.canonical().into_owned(),
        Err(e) => return Ok(Err(AdmissionError::new(e.code(), e))),
    };
    let id = StatementId::of_canonical(&canonical);
    if leaf_hash(id.entry()) != leaf {
        let what = format!("the log serves {id} here, but has signed another statement");
        return Ok(Err(AdmissionError::new("entry-differs", what)));
    }
    let Some(Metadata { time, collateral }) = metadata else {
        return Ok(Err(AdmissionError::new(
            "time-missing",
            "the log gives no time of registration",
        )));
    };
    Ok(Ok(Stored { canonical, collateral, time }))
}

/// What the log stores with a statement.
struct Metadata {
    time: UnixSeconds,
    collateral: Vec<u8>,
}

#[derive(Deserialize)]
struct Page {
    statements: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    index: u64,
    registered_at: String,
    collateral: Option<String>,
}

impl Line {
    fn read(&self) -> Option<Metadata> {
        let collateral =
            self.collateral.as_deref().map_or(Some(EMPTY_MAP.to_vec()), text::from_base64);
        Some(Metadata {
            time: UnixSeconds::from_rfc3339(&self.registered_at)?,
            collateral: collateral?,
        })
    }
}

const EMPTY_MAP: &[u8] = &[0xa0];

async fn metadata(client: &Client, indices: Range<u64>) -> anyhow::Result<HashMap<u64, Metadata>> {
    let mut found = HashMap::new();
    let Range { start, mut end } = indices;
    while end > start {
        let limit = PAGE.min(end - start);
        let path = format!("api/v1/statements?cursor={end}&limit={limit}");
        let body = client.fetch(&path, "application/json").await?;
        let page: Page = serde_json::from_slice(&body).with_context(|| path)?;
        let lines = page.statements.iter().filter(|line| (start..end).contains(&line.index));
        found.extend(lines.filter_map(|line| Some((line.index, line.read()?))));
        end -= limit;
    }
    Ok(found)
}
