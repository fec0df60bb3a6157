//! The final checks of everything the log acknowledged.

use std::time::{Duration, Instant};

use capstan::envelope::{SignedStatement, StatementId};
use capstan::receipt::attached;
use capstan::verify::Memo;
use serde::Serialize;

use super::acknowledged::Acknowledged;
use super::broken::{Broken, Promise};
use super::lock;
use super::reader::{grown, receipt_again};
use super::run::Run;
use super::writer::COSE;

/// Statements fetched whole, and pairs of heads compared by receipt. The
/// tiles show all of both; this shows that what is served fits them.
const STATEMENTS_MAX: usize = 500;
const PAIRS_MAX: usize = 100;
/// How long we wait for a checkpoint that holds all that was acknowledged.
const PUBLISHED_WITHIN: Duration = Duration::from_secs(5);

/// What the last look found in order.
#[derive(Default, Serialize)]
pub(super) struct Checked {
    /// Leaves recomputed from the tiles.
    pub(super) leaves: u64,
    /// Heads whose root is that of the leaves.
    pub(super) heads: u64,
    /// Tiles and bundles of entries that give the same leaves.
    pub(super) tiles: u64,
    /// Acknowledged statements found at their leaf, and at no other.
    pub(super) places: u64,
    /// Statements fetched and verified once more.
    pub(super) statements: u64,
    /// Refused ones that the log does not have.
    pub(super) absent: u64,
    /// Whether a checkpoint holds everything that was acknowledged.
    pub(super) published: bool,
}

/// Looks at everything again.
pub(super) async fn check(run: &Run) -> anyhow::Result<Checked> {
    let mut memo = Memo::default();
    let mut checked = Checked::default();
    let some = lock(&run.acknowledged).some(STATEMENTS_MAX);
    for known in &some {
        if run.plan.plain {
            receipt_again(run, known, &mut memo).await?;
        } else {
            statement(run, known, &mut memo).await?;
        }
        checked.statements += 1;
    }
    if run.plan.plain {
        return Ok(checked);
    }
    checked.published = published(run).await?;
    tree(run, &mut checked).await?;
    let heads = lock(&run.heads).all();
    let step = heads.len().div_ceil(PAIRS_MAX).max(1);
    let heads: Vec<_> = heads.iter().step_by(step).collect();
    for pair in heads.windows(2) {
        if let [older, newer] = pair {
            grown(run, older, newer, &mut memo).await?;
        }
    }
    let refused = lock(&run.acknowledged).refused();
    for item in refused {
        let reply = run.get(&format!("entries/{}", item.id), COSE).await?;
        if reply.status != 404 {
            let what = format!("{} was refused, and is there: {}", item.id, reply.status);
            let broken = Broken::new(Promise::Refuses, what).with("statement.cose", &item.bytes);
            return Err(broken.with("answer.bin", &reply.body).into());
        }
        checked.absent += 1;
    }
    Ok(checked)
}

/// The Transparent Statement is the statement we sent, with a receipt of the
/// same place.
async fn statement(run: &Run, known: &Acknowledged, memo: &mut Memo) -> anyhow::Result<()> {
    let reply = run.get(&format!("entries/{}/statement", known.item.id), COSE).await?;
    let gone = |what: String| {
        let broken = known.evidence(Broken::new(Promise::Keeps, what));
        broken.with("answer.bin", &reply.body)
    };
    if reply.status != 200 {
        let what = format!("{} was acknowledged; now {}", known.item.id, reply.problem().what);
        return Err(gone(what).into());
    }
    let served = SignedStatement::parse_any_size(reply.body.clone());
    let served = served.map_err(|e| gone(format!("{} is served as: {e}", known.item.id)))?;
    let id = StatementId::of(&served);
    let receipt = attached(&served).ok().and_then(|all| all.into_iter().next());
    let Some(receipt) = receipt.filter(|_| id == known.item.id) else {
        return Err(gone(format!("{} is served as {id}", known.item.id)).into());
    };
    let index = run.verified(&known.item, &receipt, memo)?;
    Ok(known.same_place(index, &receipt)?)
}

/// Waits for the checkpoint after the last receipt.
async fn published(run: &Run) -> anyhow::Result<bool> {
    let wanted = lock(&run.heads).newest();
    let until = Instant::now() + PUBLISHED_WITHIN;
    loop {
        let size = run.checkpoint().await?.map_or(0, |head| head.size);
        if size >= wanted || Instant::now() > until {
            return Ok(size >= wanted);
        }
        run.pause(Duration::from_millis(200), false).await;
    }
}

/// All leaves, all heads, all places, all tiles.
async fn tree(run: &Run, checked: &mut Checked) -> anyhow::Result<()> {
    let mut tree = run.tree.lock().await;
    let newest = lock(&run.heads).all().pop();
    if let Some(newest) = newest {
        tree.follow(run, &newest).await?;
    }
    tree.compare(run)?;
    checked.heads = lock(&run.heads).compared;
    checked.leaves = tree.size();
    checked.places = tree.holds(&lock(&run.acknowledged))?;
    checked.tiles = tree.look_at_all(run).await?;
    Ok(())
}
