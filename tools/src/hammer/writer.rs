//! One writer: sends statements and checks the answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use capstan::cli::CliError;
use capstan::cli::client::Reply;
use capstan::cli::client::registration;
use capstan::verify::Memo;
use fastrand::Rng;

use super::acknowledged::Acknowledged;
use super::broken::{Broken, Promise};
use super::lock;
use super::plan::Plan;
use super::run::{Ask, Run};
use super::statements::{Generator, Item};
use super::worker_rng;

pub(super) const COSE: &str = "application/cose";
/// Between two questions whether a statement is committed by now.
const POLL: Duration = Duration::from_millis(250);

/// The statements of one writer.
pub(super) struct Source {
    pub(super) generator: Generator,
    random: Rng,
    refusals: u32,
    is_batch: bool,
    ready: VecDeque<Item>,
    /// Requests left to send, if all statements were signed ahead.
    requests: Option<u64>,
}

impl Source {
    pub(super) fn new(generator: Generator, plan: &Plan, worker: u16) -> Self {
        Self {
            generator,
            random: worker_rng(!plan.seed, worker.into()),
            refusals: plan.refusals,
            is_batch: plan.batch > 0,
            ready: VecDeque::new(),
            requests: None,
        }
    }

    fn make(&mut self) -> anyhow::Result<Item> {
        if self.random.u32(..100) < self.refusals {
            self.generator.damaged(self.is_batch)
        } else {
            self.generator.next()
        }
    }

    /// Signs the statements of all requests, `many` for each, before the run.
    pub(super) fn sign_ahead(&mut self, requests: u64, many: u64) -> anyhow::Result<()> {
        for _ in 0..requests.saturating_mul(many) {
            let item = self.make()?;
            self.ready.push_back(item);
        }
        self.requests = Some(requests);
        Ok(())
    }

    /// Whether one more request can be made.
    fn has_next(&mut self) -> bool {
        match &mut self.requests {
            None => true,
            Some(left) => left.checked_sub(1).map(|fewer| *left = fewer).is_some(),
        }
    }

    fn next(&mut self) -> anyhow::Result<Item> {
        self.ready.pop_front().map_or_else(|| self.make(), Ok)
    }
}

/// What is sent, and what the log said to it before.
pub(super) struct Sent {
    pub(super) item: Item,
    pub(super) known: Option<Acknowledged>,
}

/// How the log answered one statement.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) receipt: Option<Vec<u8>>,
    pub(super) location: Option<String>,
    /// The answer as it came, and in words.
    pub(super) body: Vec<u8>,
    pub(super) problem: String,
    /// From sending it to this answer, without earlier tries.
    pub(super) took: Duration,
}

impl Response {
    fn is_refusal(&self) -> bool {
        (400..500).contains(&self.status)
    }
}

/// Writes until the run is over or a promise is broken.
pub(super) async fn write(run: Arc<Run>, mut source: Source) -> anyhow::Result<()> {
    let mut memo = Memo::default();
    while source.has_next()
        && let Some((due, many)) = run.next()
    {
        // The timer has a resolution of 1 ms: do not sleep if it is due.
        if due > Instant::now() {
            tokio::time::sleep_until(due.into()).await;
        }
        let mut all = Vec::new();
        for _ in 0..many {
            all.push(chosen(&run, &mut source)?);
        }
        if run.plan.batch > 0 {
            super::batch::send(&run, all, due, &mut memo).await?;
            continue;
        }
        for sent in all {
            match post(&run, &sent.item).await? {
                Some(answer) if run.plan.once && matches!(answer.status, 429 | 503) => {}
                Some(answer) => judge(&run, sent, answer, due, &mut memo)?,
                None => run.counts.unfinished.add(),
            }
        }
    }
    Ok(())
}

/// A new statement, or one the log has acknowledged.
fn chosen(run: &Run, source: &mut Source) -> anyhow::Result<Sent> {
    let again = source.random.u32(..100) < run.plan.duplicates;
    if let Some(known) = again.then(|| lock(&run.acknowledged).any()).flatten() {
        return Ok(Sent { item: known.item.clone(), known: Some(known) });
    }
    Ok(Sent { item: source.next()?, known: None })
}

/// Sends one statement; follows the log to the receipt.
async fn post(run: &Run, item: &Item) -> anyhow::Result<Option<Response>> {
    let url = run.place("entries")?;
    let ask = Ask { accept: COSE, body: Some((COSE, &item.bytes)), ends: true };
    loop {
        let Some((reply, began)) = run.ask(&url, ask).await? else { return Ok(None) };
        let location = reply.location.clone();
        let answer = |reply: Reply, receipt| {
            let problem = reply.problem().what;
            let status = reply.status;
            let took = began.elapsed();
            Some(Response { status, receipt, location, body: reply.body, problem, took })
        };
        let waits = matches!(reply.status, 202 | 302 | 303);
        let is_final = item.damage.is_some() || !matches!(reply.status, 200 | 201);
        if !waits && is_final {
            return Ok(answer(reply, None));
        }
        if let Some(receipt) = registration::receipt_in(&reply.body).filter(|_| !waits) {
            return Ok(answer(reply, Some(receipt)));
        }
        run.counts.pending.add();
        match poll(run, &reply).await? {
            Polled::Receipt(receipt) => return Ok(answer(reply, Some(receipt))),
            Polled::OutOfTime => return Ok(None),
            // A log that checks statements later has refused it.
            Polled::Forgotten if item.damage.is_some() => {
                return Ok(answer(Reply { status: 404, ..reply }, None));
            }
            // Accepted but lost: nothing was promised yet, so it is sent again.
            Polled::Forgotten => {}
        }
    }
}

enum Polled {
    Receipt(Vec<u8>),
    Forgotten,
    OutOfTime,
}

async fn poll(run: &Run, first: &Reply) -> anyhow::Result<Polled> {
    let mut place = first.location.clone();
    loop {
        let missing = || unexpected("a Location to ask at", first);
        let url = run.place(place.as_deref().ok_or_else(missing)?)?;
        let asked = run.ask(&url, Ask { accept: COSE, body: None, ends: true }).await?;
        let Some((reply, _)) = asked else { return Ok(Polled::OutOfTime) };
        match reply.status {
            200 | 201 => match registration::receipt_in(&reply.body) {
                Some(receipt) => return Ok(Polled::Receipt(receipt)),
                None if run.plan.plain => return Ok(Polled::Receipt(reply.body)),
                None => return Err(unexpected("a receipt", &reply).into()),
            },
            202 | 204 => {}
            302 | 303 | 307 => place = reply.location.clone(),
            404 => return Ok(Polled::Forgotten),
            _ => return Err(unexpected("a receipt", &reply).into()),
        }
        run.pause(reply.retry_after.unwrap_or(POLL).min(POLL), true).await;
    }
}

/// An answer that the interface does not allow.
pub(super) fn unexpected(wanted: &str, reply: &Reply) -> Broken {
    let what = format!("{} answers {} instead of {wanted}", reply.url, reply.problem().what);
    Broken::new(Promise::Answers, what).with("answer.bin", &reply.body)
}

/// Checks an answer against what the log promises.
pub(super) fn judge(
    run: &Run,
    sent: Sent,
    answer: Response,
    due: Instant,
    memo: &mut Memo,
) -> anyhow::Result<()> {
    let Sent { item, known } = sent;
    if let Some(damage) = item.damage {
        if !answer.is_refusal() {
            let what = format!("status {} for {}, although {damage}", answer.status, item.id);
            return Err(shown(&item, &answer, Broken::new(Promise::Refuses, what)).into());
        }
        run.counts.refused.add();
        lock(&run.acknowledged).refuse(&item);
        return Ok(());
    }
    let Some(receipt) = &answer.receipt else {
        return Err(not_taken(run, &item, &answer, known.is_some()));
    };
    let index = run.verified(&item, receipt, memo)?;
    run.counts.took(answer.took, due.elapsed());
    match known {
        Some(known) => {
            known.same_place(index, receipt)?;
            let places = known.location.as_ref().zip(answer.location.as_ref());
            if let Some((first, second)) = places.filter(|(first, second)| first != second) {
                let what = format!("{} has Location {first} and {second}", item.id);
                return Err(shown(&item, &answer, Broken::new(Promise::SameLocation, what)).into());
            }
            run.counts.duplicates.add();
        }
        None => {
            run.admits(&item, true);
            run.counts.acknowledged(item.kind.name());
            let (location, receipt) = (answer.location, receipt.as_slice().into());
            lock(&run.acknowledged).acknowledge(Acknowledged { item, index, location, receipt })?;
        }
    }
    Ok(())
}

/// A valid statement without a receipt. If the log never took one like it, its
/// policy may not admit them.
fn not_taken(run: &Run, item: &Item, answer: &Response, known: bool) -> anyhow::Error {
    let (kind, key) = (item.kind.name(), item.key.name());
    let what = format!("{kind} signed with {key}: {}", answer.problem);
    if !answer.is_refusal() {
        return shown(item, answer, Broken::new(Promise::Answers, what)).into();
    }
    if known || run.admits(item, false) {
        return shown(item, answer, Broken::new(Promise::Admits, what)).into();
    }
    let stop = CliError::failed("not-admitted", format!("the log does not take {what}"));
    stop.next("another --mix or --keys, or give the log the file of --trust-out").into()
}

fn shown(item: &Item, answer: &Response, broken: Broken) -> Broken {
    broken.with("statement.cose", &item.bytes).with("answer.bin", &answer.body)
}
