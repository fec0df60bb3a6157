//! Sends many statements in one request and checks the answer to each.

use std::time::{Duration, Instant};

use capstan::cli::client::Reply;
use capstan::verify::Memo;
use capstan::wire::cbor::{Value, split_sequence};
use capstan::wire::label::problem;

use super::broken::{Broken, Promise};
use super::run::{Ask, Run};
use super::writer::{Response, Sent, judge, unexpected};

const SEQUENCE: &str = "application/cbor-seq";
/// Until those of a batch that were pushed back are sent again.
const PAUSE: Duration = Duration::from_millis(250);

/// Sends all, and repeats those that were pushed back, in their order.
pub(super) async fn send(
    run: &Run,
    mut all: Vec<Sent>,
    due: Instant,
    memo: &mut Memo,
) -> anyhow::Result<()> {
    let url = run.place("entries/batch")?;
    loop {
        let body: Vec<u8> = all.iter().flat_map(|sent| sent.item.bytes.iter().copied()).collect();
        let ask = Ask { accept: SEQUENCE, body: Some((SEQUENCE, &body)), ends: true };
        let Some((reply, began)) = run.ask(&url, ask).await? else {
            run.counts.unfinished.more(u64::try_from(all.len()).unwrap_or(0));
            return Ok(());
        };
        if run.plan.once && matches!(reply.status, 429 | 503) {
            return Ok(());
        }
        if reply.status != 200 {
            return Err(unexpected("a sequence of answers", &reply).into());
        }
        let answers = answers(&reply, all.len(), began.elapsed())?;
        let mut again = Vec::new();
        for (sent, answer) in all.into_iter().zip(answers) {
            match answer.status {
                202 => {
                    run.counts.pending.add();
                    again.push(sent);
                }
                429 | 503 => {
                    run.counts.pushed_back(answer.status, "in a batch", answer.took);
                    if !run.plan.once {
                        again.push(sent);
                    }
                }
                _ => judge(run, sent, answer, due, memo)?,
            }
        }
        if again.is_empty() {
            return Ok(());
        }
        all = again;
        run.pause(PAUSE, true).await;
    }
}

/// One `[status, receipt / problem / null]` for each statement.
fn answers(reply: &Reply, wanted: usize, took: Duration) -> Result<Vec<Response>, Broken> {
    let wrong = |what: String| {
        Broken::new(Promise::Answers, format!("the answer to a batch {what}"))
            .with("answer.bin", &reply.body)
    };
    let items = split_sequence(&reply.body, wanted)
        .map_err(|e| wrong(format!("of {wanted} statements is no CBOR sequence: {e}")))?;
    if items.len() != wanted {
        return Err(wrong(format!("has {} items for {wanted} statements", items.len())));
    }
    let one = |bytes: &&[u8]| {
        let value = Value::read(bytes).ok()?;
        let [status, content] = value.array()? else { return None };
        let title = content.get(problem::TITLE).and_then(Value::text).unwrap_or_default();
        let detail = content.get(problem::DETAIL).and_then(Value::text).unwrap_or_default();
        let status = status.int()?;
        Some(Response {
            status,
            receipt: content.bytes().map(<[u8]>::to_vec),
            location: None,
            body: bytes.to_vec(),
            problem: format!("status {status} {title}: {detail}"),
            took,
        })
    };
    let read: Option<Vec<Response>> = items.iter().map(one).collect();
    read.ok_or_else(|| wrong("holds something else than answers".to_owned()))
}
