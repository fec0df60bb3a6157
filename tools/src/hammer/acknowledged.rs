//! What the log has acknowledged: every leaf index, and a sample of statements.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use capstan::envelope::StatementId;
use fastrand::Rng;

use super::broken::{Broken, Promise};
use super::statements::Item;

/// Statements kept whole, to be sent and asked for again: a fair sample of
/// all, about 10 MiB of them.
const SAMPLE_MAX: usize = 4096;
/// Refused ones whose absence is looked at in the end.
const REFUSED_MAX: usize = 64;

/// A statement with its first receipt.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
    pub(super) item: Item,
    /// None in a tree without places.
    pub(super) index: Option<u64>,
    pub(super) location: Option<String>,
    pub(super) receipt: Arc<[u8]>,
}

/// All that was promised so far.
pub(super) struct Acknowledgements {
    by_index: HashMap<u64, StatementId>,
    sample: Vec<Acknowledged>,
    refused: Vec<Item>,
    taken: u64,
    random: Rng,
}

impl Acknowledgements {
    pub(super) fn new(seed: u64) -> Self {
        let random = Rng::with_seed(seed);
        Self { by_index: HashMap::new(), sample: Vec::new(), refused: Vec::new(), taken: 0, random }
    }

    /// Takes a statement that was acknowledged for the first time.
    pub(super) fn acknowledge(&mut self, new: Acknowledged) -> Result<(), Broken> {
        if let Some(index) = new.index {
            match self.by_index.entry(index) {
                Entry::Vacant(place) => {
                    place.insert(new.item.id);
                }
                Entry::Occupied(other) if *other.get() != new.item.id => {
                    let what =
                        format!("leaf {index} was given to {} and to {}", other.get(), new.item.id);
                    let broken = new.evidence(Broken::new(Promise::OnePlace, what));
                    return Err(match self.kept(index) {
                        Some(first) => broken.with("first-receipt.cose", &first.receipt),
                        None => broken,
                    });
                }
                Entry::Occupied(_) => {}
            }
        }
        self.taken += 1;
        if self.sample.len() < SAMPLE_MAX {
            self.sample.push(new);
            return Ok(());
        }
        let place = usize::try_from(self.random.u64(..self.taken)).unwrap_or(usize::MAX);
        if let Some(slot) = self.sample.get_mut(place) {
            *slot = new;
        }
        Ok(())
    }

    /// Remembers some that were refused.
    pub(super) fn refuse(&mut self, item: &Item) {
        if self.refused.len() < REFUSED_MAX {
            self.refused.push(item.clone());
        }
    }

    /// Any statement of the sample.
    pub(super) fn any(&mut self) -> Option<Acknowledged> {
        self.random.choice(&self.sample).cloned()
    }

    /// At most so many of the sample.
    pub(super) fn some(&mut self, most: usize) -> Vec<Acknowledged> {
        if self.sample.len() <= most {
            return self.sample.clone();
        }
        (0..most).filter_map(|_| self.any()).collect()
    }

    /// Every place that was given.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, StatementId)> {
        self.by_index.iter().map(|(index, id)| (*index, *id))
    }

    /// The statement at a place, if it is one of the sample.
    pub(super) fn kept(&self, index: u64) -> Option<&Acknowledged> {
        self.sample.iter().find(|kept| kept.index == Some(index))
    }

    pub(super) fn refused(&self) -> Vec<Item> {
        self.refused.clone()
    }
}

impl Acknowledged {
    /// The statement is at the place it got first.
    pub(super) fn same_place(&self, index: Option<u64>, receipt: &[u8]) -> Result<(), Broken> {
        if self.index == index {
            return Ok(());
        }
        let shown =
            |index: Option<u64>| index.map_or("nowhere".to_owned(), |i| format!("leaf {i}"));
        let what = format!("{} was {} and is {}", self.item.id, shown(self.index), shown(index));
        let broken = self.evidence(Broken::new(Promise::OnePlace, what));
        Err(broken.with("second-receipt.cose", receipt))
    }

    /// The statement and its receipt.
    pub(super) fn evidence(&self, broken: Broken) -> Broken {
        broken.with("statement.cose", &self.item.bytes).with("receipt.cose", &self.receipt)
    }
}
