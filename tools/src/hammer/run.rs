//! What all workers share: the log, the clock, and what was acknowledged.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use capstan::checkpoint::{SignedCheckpoint, VerifierKey};
use capstan::cli::CliError;
use capstan::cli::client::{Client, Reply};
use capstan::envelope::SignedStatement;
use capstan::key::PublicKey;
use capstan::receipt::Receipt;
use capstan::verify::{Memo, inclusion};
use capstan::wire::text::grouped;
use reqwest::Url;

use super::acknowledged::Acknowledgements;
use super::broken::{Broken, Promise};
use super::counts::Counts;
use super::heads::{Heads, SeenHead};
use super::lock;
use super::mix::Kind;
use super::plan::Plan;
use super::signers::KeyKind;
use super::statements::Item;
use super::tree::Tree;

/// How long we wait when the log pushes back and does not say how long.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest a log can make us wait at once.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Until the next try after a broken connection.
const RECONNECT: Duration = Duration::from_millis(50);
/// Times one request is pushed back before we say that the log is shut.
const PUSHES_MAX: u32 = 600;

/// One request.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) accept: &'a str,
    /// Content type and bytes; without them it is a GET.
    pub(super) body: Option<(&'a str, &'a [u8])>,
    /// Whether it is given up when the time of the run is over.
    pub(super) ends: bool,
}

/// One run of the hammer.
pub(super) struct Run {
    pub(super) client: Client,
    pub(super) plan: Plan,
    pub(super) keys: Vec<PublicKey>,
    checkpoint_key: Option<VerifierKey>,
    pub(super) counts: Counts,
    pub(super) acknowledged: Mutex<Acknowledgements>,
    pub(super) heads: Mutex<Heads>,
    pub(super) tree: tokio::sync::Mutex<Tree>,
    admitted: Mutex<HashSet<(Kind, KeyKind)>>,
    next: AtomicU64,
    pub(super) started: Instant,
    /// When somebody wanted no more of it.
    stopped: OnceLock<Instant>,
    /// Since when no connection held.
    silent: Mutex<Option<Instant>>,
}

impl Run {
    /// Asks the log for its keys, and starts the clock.
    pub(super) async fn start(client: Client, plan: Plan) -> anyhow::Result<Self> {
        let keys = match client.keys().await {
            Err(_) if plan.plain => Vec::new(),
            keys => keys.context("the keys of the log")?,
        };
        let checkpoint_key = match plan.plain {
            true => None,
            false => {
                let text = client.fetch_text("checkpoint/key").await;
                Some(VerifierKey::parse(text.context("the checkpoint key of the log")?.trim())?)
            }
        };
        Ok(Self {
            acknowledged: Mutex::new(Acknowledgements::new(plan.seed)),
            client,
            plan,
            keys,
            checkpoint_key,
            counts: Counts::default(),
            heads: Mutex::default(),
            tree: tokio::sync::Mutex::default(),
            admitted: Mutex::default(),
            next: AtomicU64::new(0),
            started: Instant::now(),
            stopped: OnceLock::new(),
            silent: Mutex::default(),
        })
    }

    /// The moment the run is over.
    fn ends(&self) -> Option<Instant> {
        let planned = || self.plan.seconds.map(|s| self.started + Duration::from_secs(s));
        self.stopped.get().copied().or_else(planned)
    }

    /// Ends the run before its time; no when that was done before.
    pub(super) fn stop(&self) -> bool {
        self.stopped.set(Instant::now()).is_ok()
    }

    /// How much of it is done, in thousandths, and in words.
    pub(super) fn progress(&self) -> (u64, String) {
        let done = |part: u64, all: u64| part.min(all).saturating_mul(1000) / all.max(1);
        let elapsed = self.started.elapsed();
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let sent = self.next.load(Ordering::Relaxed);
        let by_time = self.plan.seconds.map(|s| (done(millis, s * 1000), format!("{s} s")));
        let by_count = self.plan.count.map(|count| (done(sent, count), grouped(count)));
        let (part, end) = by_time.max(by_count).unwrap_or_default();
        (part, format!("{} s, {} % of {end}", elapsed.as_secs(), part / 10))
    }

    pub(super) fn is_over(&self) -> bool {
        let all_sent = || self.plan.count.is_some_and(|c| self.next.load(Ordering::Relaxed) >= c);
        self.ends().is_some_and(|ends| Instant::now() >= ends) || all_sent()
    }

    /// How many statements to send next, and when they are due. By a rate,
    /// the time does not wait for the answers.
    pub(super) fn next(&self) -> Option<(Instant, u64)> {
        let many = self.plan.batch.max(1);
        let before = self.next.fetch_add(many, Ordering::Relaxed);
        let left = self.plan.count.map_or(many, |count| count.saturating_sub(before).min(many));
        let due = match self.plan.rate {
            None => Instant::now(),
            Some(rate) => {
                let nanos = u128::from(before) * 1_000_000_000 / u128::from(rate.max(1));
                self.started + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        };
        let in_time = self.ends().is_none_or(|ends| due < ends && Instant::now() < ends);
        (left > 0 && in_time).then_some((due, left))
    }

    /// Asks until the log answers: what it pushes back comes again after the
    /// time it names, if it may, and a broken connection is tried anew for as
    /// long as our patience lasts. With the answer: when this try began.
    pub(super) async fn ask(
        &self,
        url: &Url,
        ask: Ask<'_>,
    ) -> anyhow::Result<Option<(Reply, Instant)>> {
        let mut pushes = 0;
        loop {
            if ask.ends && self.ends().is_some_and(|ends| Instant::now() >= ends) {
                return Ok(None);
            }
            let began = Instant::now();
            if ask.body.is_some() {
                self.counts.sent(self.started.elapsed());
            }
            let tried = self.client.exchange(url.clone(), ask.accept, ask.body);
            match tried.await {
                Ok(reply) if matches!(reply.status, 429 | 503) => {
                    self.heard();
                    self.pushed_back(&reply, began.elapsed())?;
                    if self.plan.once && ask.body.is_some() {
                        return Ok(Some((reply, began)));
                    }
                    pushes += 1;
                    if pushes > PUSHES_MAX {
                        return Err(reply.problem().into());
                    }
                    let pause = reply.retry_after.unwrap_or(PAUSE).min(PAUSE_MAX);
                    self.pause(pause, ask.ends).await;
                }
                Ok(reply) => {
                    self.heard();
                    return Ok(Some((reply, began)));
                }
                Err(error) if error.chain().any(|e| e.is::<reqwest::Error>()) => {
                    self.counts.connection_errors.add();
                    let silent = lock(&self.silent).get_or_insert_with(Instant::now).elapsed();
                    if silent > self.plan.patience {
                        let what = format!("the log has been silent for {} s", silent.as_secs());
                        return Err(error.context(CliError::failed("gone", what)));
                    }
                    self.pause(RECONNECT, false).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A log of ours that has no time says why, and when it will have some.
    fn pushed_back(&self, reply: &Reply, took: Duration) -> Result<(), Broken> {
        let code = reply.code();
        self.counts.pushed_back(reply.status, code.as_deref().unwrap_or("without a code"), took);
        if self.plan.plain || code.is_some() && reply.retry_after.is_some() {
            return Ok(());
        }
        let what = format!("{} answers {} without Retry-After and code", reply.url, reply.status);
        Err(Broken::new(Promise::Answers, what).with("answer.bin", &reply.body))
    }

    /// A question that is not given up.
    pub(super) async fn get(&self, path: &str, accept: &str) -> anyhow::Result<Reply> {
        let url = self.place(path)?;
        let answer = self.ask(&url, Ask { accept, body: None, ends: false }).await?;
        answer.map(|(reply, _)| reply).context("the question was given up")
    }

    fn heard(&self) {
        *lock(&self.silent) = None;
    }

    pub(super) async fn pause(&self, pause: Duration, ends: bool) {
        let left =
            self.ends().filter(|_| ends).map(|e| e.saturating_duration_since(Instant::now()));
        tokio::time::sleep(left.map_or(pause, |left| pause.min(left))).await;
    }

    /// A path of the log; what it points to elsewhere is not followed, or
    /// the hammer would come down on somebody else.
    pub(super) fn place(&self, path: &str) -> anyhow::Result<Url> {
        let url = self.client.url(path)?;
        if url.origin() == self.client.base().origin() {
            return Ok(url);
        }
        Err(CliError::failed("elsewhere", format!("the log points to {url}")).into())
    }

    /// What the receipt of a statement shows: its place. Every head goes into
    /// the heads.
    pub(super) fn verified(
        &self,
        item: &Item,
        bytes: &[u8],
        memo: &mut Memo,
    ) -> anyhow::Result<Option<u64>> {
        let receipt = Receipt::parse(bytes.to_vec()).map_err(|e| e.to_string());
        let shown = receipt.and_then(|receipt| {
            let statement = SignedStatement::parse(item.bytes.to_vec());
            let statement = statement.map_err(|e| e.to_string())?;
            let included = inclusion(&receipt, &statement.canonical(), &self.keys, memo);
            included.map(|included| (receipt, included)).map_err(|e| e.to_string())
        });
        match shown {
            Ok((receipt, included)) => {
                let head = SeenHead::in_receipt(&receipt, &included);
                head.map_or(Ok(()), |head| lock(&self.heads).saw(head))?;
                Ok(included.place.map(|(index, _)| index))
            }
            // Of a log that is not ours we only know that it answered.
            Err(_) if self.plan.plain => {
                self.counts.not_verified.add();
                Ok(None)
            }
            Err(error) => {
                let what = format!("the receipt of {} does not verify: {error}", item.id);
                let broken = Broken::new(Promise::ReceiptVerifies, what);
                let broken = broken.with("statement.cose", &item.bytes);
                Err(broken.with("receipt.cose", bytes).into())
            }
        }
    }

    /// Asks for the checkpoint and compares it with every other head.
    pub(super) async fn checkpoint(&self) -> anyhow::Result<Option<SeenHead>> {
        let Some(key) = &self.checkpoint_key else { return Ok(None) };
        let before = lock(&self.heads).published();
        let reply = self.get("checkpoint", "text/plain").await?;
        let note = String::from_utf8_lossy(&reply.body);
        let signed = SignedCheckpoint::parse(&note).and_then(|signed| signed.verify(key));
        let checkpoint = signed.map_err(|error| {
            let what = format!("status {}: {error}", reply.status);
            Broken::new(Promise::CheckpointVerifies, what).with("checkpoint.txt", &reply.body)
        })?;
        let (size, root) = (checkpoint.size.get(), checkpoint.root);
        let head = SeenHead::new(size, root, "checkpoint.txt", &reply.body);
        lock(&self.heads).saw_checkpoint(head.clone(), before)?;
        self.counts.checkpoints_read.add();
        Ok(Some(head))
    }

    /// Whether the log took statements of this kind before; from now on it
    /// did.
    pub(super) fn admits(&self, item: &Item, now: bool) -> bool {
        let mut admitted = lock(&self.admitted);
        let like = (item.kind, item.key);
        if now { !admitted.insert(like) } else { admitted.contains(&like) }
    }
}
