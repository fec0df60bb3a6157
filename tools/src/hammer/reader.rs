//! Readers: fetch again what the log has shown, and compare.

use std::sync::Arc;
use std::time::Duration;

use capstan::cli::client::registration;
use capstan::receipt::Receipt;
use capstan::verify::{Memo, consistency};

use super::acknowledged::Acknowledged;
use super::broken::{Broken, Promise};
use super::heads::SeenHead;
use super::lock;
use super::run::Run;
use super::worker_rng;
use super::writer::{COSE, unexpected};

/// Between two questions of one reader: it is there to check the log, not to
/// load it.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads until the run is over or a promise is broken.
pub(super) async fn read(run: Arc<Run>, worker: u64) -> anyhow::Result<()> {
    let mut random = worker_rng(run.plan.seed.rotate_left(17), worker);
    let mut memo = Memo::default();
    while !run.is_over() {
        let question = if run.plan.plain { 0 } else { random.u64(..8) };
        match question {
            0..=3 => {
                let known = lock(&run.acknowledged).any();
                if let Some(known) = known {
                    receipt_again(&run, &known, &mut memo).await?;
                }
            }
            4 | 5 => {
                let pair = match run.tree.try_lock() {
                    Ok(tree) if question == 5 => tree.pair(&mut random)?,
                    _ => lock(&run.heads).pair(&mut random),
                };
                if let Some((older, newer)) = pair {
                    grown(&run, &older, &newer, &mut memo).await?;
                }
            }
            6 => {
                run.checkpoint().await?;
            }
            _ => {
                // One reader at a time grows the tree; the others go on.
                if let Ok(mut tree) = run.tree.try_lock() {
                    if let Some(head) = run.checkpoint().await? {
                        tree.follow(&run, &head).await?;
                        tree.compare(&run)?;
                    }
                    tree.look(&run, &mut random).await?;
                }
            }
        }
        run.pause(PAUSE, true).await;
    }
    Ok(())
}

/// A statement has its place for ever.
pub(super) async fn receipt_again(
    run: &Run,
    known: &Acknowledged,
    memo: &mut Memo,
) -> anyhow::Result<()> {
    let own = format!("entries/{}", known.item.id);
    let path = known.location.as_deref().filter(|_| run.plan.plain).unwrap_or(&own);
    let reply = run.get(path, COSE).await?;
    run.counts.receipts_read.add();
    let receipt = registration::receipt_in(&reply.body).filter(|_| reply.status == 200);
    let Some(receipt) = receipt else {
        if run.plan.plain && reply.status < 400 {
            return Ok(());
        }
        let what = format!("{} was acknowledged; now {}", known.item.id, reply.problem().what);
        return Err(known.evidence(Broken::new(Promise::Keeps, what)).into());
    };
    let index = run.verified(&known.item, &receipt, memo)?;
    Ok(known.same_place(index, &receipt)?)
}

/// The log shows that the newer of two heads holds the older.
pub(super) async fn grown(
    run: &Run,
    older: &SeenHead,
    newer: &SeenHead,
    memo: &mut Memo,
) -> anyhow::Result<()> {
    let (from, to) = (older.size, newer.size);
    if from == 0 {
        return Ok(());
    }
    let reply = run.get(&format!("consistency?from={from}&to={to}"), COSE).await?;
    if reply.status != 200 {
        let broken = unexpected("a consistency receipt", &reply);
        return Err(older.against(newer, broken).into());
    }
    run.counts.growth_checked.add();
    let shown = Receipt::parse(reply.body.clone())
        .map_err(|e| e.to_string())
        .and_then(|r| consistency(&r, &older.root, &run.keys, memo).map_err(|e| e.to_string()));
    let what = match shown {
        Ok(shown) if shown.sizes == Some((from, to)) && shown.root == newer.root => return Ok(()),
        Ok(shown) => format!("the proof leads to {:?} with root {}", shown.sizes, shown.root),
        Err(error) => error,
    };
    let what = format!(
        "from {from} leaves with root {} to {to} with root {}: {what}",
        older.root, newer.root
    );
    let broken = Broken::new(Promise::OnlyGrows, what).with("consistency.cose", &reply.body);
    Err(older.against(newer, broken).into())
}
