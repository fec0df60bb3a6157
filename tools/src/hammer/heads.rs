//! Every head the log has shown, from receipts and checkpoints alike.
//!
//! In: size, root and the bytes that show them. Out: the first two that
//! cannot both be true.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan::receipt::Receipt;
use capstan::verify::Included;
use capstan::wire::digest::Digest;
use capstan::wire::time::UnixSeconds;
use fastrand::Rng;

use super::broken::{Broken, Promise};

/// Heads kept. When there are more, every second one of those that were
/// compared with the leaves is let go: those left still lie all along the log.
const HEADS_MAX: usize = 8192;

/// One signed head, and what shows it.
#[derive(Clone, Debug)]
pub(super) struct SeenHead {
    pub(super) size: u64,
    pub(super) root: Digest,
    /// When it was signed, where the receipt says so.
    time: Option<UnixSeconds>,
    /// Whether its root is known to be that of the leaves.
    compared: bool,
    /// `receipt.cose`, `checkpoint.txt`, ...
    pub(super) name: &'static str,
    pub(super) bytes: Arc<[u8]>,
}

/// The heads by their size.
#[derive(Default)]
pub(super) struct Heads {
    by_size: BTreeMap<u64, SeenHead>,
    /// How many different ones were seen.
    pub(super) count: u64,
    /// How many of them have the root of the leaves.
    pub(super) compared: u64,
    /// The newest checkpoint.
    published: Option<SeenHead>,
}

impl SeenHead {
    /// The head under a verified receipt, if its tree has sizes.
    pub(super) fn in_receipt(receipt: &Receipt, included: &Included) -> Option<Self> {
        let (_, size) = included.place?;
        let envelope = receipt.envelope();
        Some(Self {
            size,
            root: included.root,
            time: envelope.header().claims.issued_at,
            compared: false,
            name: "receipt.cose",
            bytes: envelope.bytes().into(),
        })
    }

    /// A head that says nothing about its time.
    pub(super) fn new(size: u64, root: Digest, name: &'static str, bytes: &[u8]) -> Self {
        Self { size, root, time: None, compared: false, name, bytes: bytes.into() }
    }

    #[cfg(test)]
    pub(super) fn signed_at(self, time: UnixSeconds) -> Self {
        Self { time: Some(time), ..self }
    }

    fn describe(&self) -> String {
        format!("{} leaves with root {}", self.size, self.root)
    }

    /// Both sides of a contradiction as evidence.
    pub(super) fn against(&self, other: &Self, broken: Broken) -> Broken {
        broken
            .with(&format!("first-{}", self.name), &self.bytes)
            .with(&format!("second-{}", other.name), &other.bytes)
    }
}

impl Heads {
    /// Takes a head; those before and after it must fit.
    pub(super) fn saw(&mut self, head: SeenHead) -> Result<(), Broken> {
        if let Some(known) = self.by_size.get_mut(&head.size) {
            if known.root != head.root {
                let what = format!("the log showed {} and {}", known.describe(), head.describe());
                return Err(known.against(&head, Broken::new(Promise::OneRoot, what)));
            }
            // A checkpoint says nothing about the time.
            if known.time.is_none() && head.time.is_some() {
                *known = SeenHead { compared: known.compared, ..head };
            }
            return Ok(());
        }
        if head.time.is_some() {
            self.in_order(&head)?;
        }
        self.by_size.insert(head.size, head);
        self.count += 1;
        if self.by_size.len() > HEADS_MAX {
            self.thin();
        }
        Ok(())
    }

    /// Lets heads go. Where nobody compares them with the leaves, any.
    fn thin(&mut self) {
        let compared = self.by_size.values().filter(|seen| seen.compared).count();
        let any = compared < HEADS_MAX / 2;
        let mut keep = false;
        self.by_size.retain(|_, seen| {
            if !any && !seen.compared {
                return true;
            }
            keep = !keep;
            keep
        });
    }

    /// Those up to a size that were not compared with the leaves yet.
    pub(super) fn to_compare(&self, size: u64) -> Vec<SeenHead> {
        let heads = self.by_size.range(..=size).map(|(_, seen)| seen);
        heads.filter(|seen| !seen.compared).cloned().collect()
    }

    /// Takes note that a head has the root of the leaves.
    pub(super) fn has_compared(&mut self, head: &SeenHead) {
        if let Some(own) = self.by_size.get_mut(&head.size).filter(|own| !own.compared) {
            own.compared = true;
            self.compared += 1;
        }
    }

    /// The heads before and after it were not signed after and before it.
    fn in_order(&self, head: &SeenHead) -> Result<(), Broken> {
        let timed = |(_, seen): &(&u64, &SeenHead)| seen.time.is_some();
        let older = self.by_size.range(..head.size).rev().find(timed);
        if let Some((_, older)) = older.filter(|(_, older)| older.time > head.time) {
            return Err(backwards(older, head));
        }
        let newer = self.by_size.range(head.size..).find(timed);
        match newer.filter(|(_, newer)| newer.time < head.time) {
            Some((_, newer)) => Err(backwards(head, newer)),
            None => Ok(()),
        }
    }

    /// The size of the newest checkpoint before a question is asked.
    pub(super) fn published(&self) -> u64 {
        self.published.as_ref().map_or(0, |newest| newest.size)
    }

    /// Takes a checkpoint that was asked for when `before` was the newest.
    pub(super) fn saw_checkpoint(&mut self, head: SeenHead, before: u64) -> Result<(), Broken> {
        if head.size < before {
            let what =
                format!("a checkpoint of {before} leaves was followed by one of {}", head.size);
            let broken = Broken::new(Promise::OnlyGrows, what);
            return Err(match &self.published {
                Some(newest) => newest.against(&head, broken),
                None => broken.with("second-checkpoint.txt", &head.bytes),
            });
        }
        if head.size >= self.published() {
            self.published = Some(head.clone());
        }
        self.saw(head)
    }

    /// All that are kept, by size.
    pub(super) fn all(&self) -> Vec<SeenHead> {
        self.by_size.values().cloned().collect()
    }

    /// The size of the newest.
    pub(super) fn newest(&self) -> u64 {
        self.by_size.last_key_value().map_or(0, |(size, _)| *size)
    }

    /// Two different ones, the older first.
    pub(super) fn pair(&self, random: &mut Rng) -> Option<(SeenHead, SeenHead)> {
        let newest = self.newest();
        let mut one = || {
            let from = random.u64(..newest.saturating_add(1));
            self.by_size.range(from..).next().map(|(_, seen)| seen)
        };
        let (a, b) = (one()?, one()?);
        match a.size.cmp(&b.size) {
            std::cmp::Ordering::Less => Some((a.clone(), b.clone())),
            std::cmp::Ordering::Greater => Some((b.clone(), a.clone())),
            std::cmp::Ordering::Equal => None,
        }
    }
}

fn backwards(older: &SeenHead, newer: &SeenHead) -> Broken {
    let time = |seen: &SeenHead| seen.time.map_or(String::new(), |time| time.to_string());
    let what = format!(
        "the head of {} leaves is of {}, that of {} leaves of {}",
        older.size,
        time(older),
        newer.size,
        time(newer)
    );
    older.against(newer, Broken::new(Promise::TimeGoesOn, what))
}
