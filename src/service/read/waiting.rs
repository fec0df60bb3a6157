//! How much waits for somebody, counted when a scraper asks.

use super::reader::Halt;
use crate::log::LeafIndex;
use crate::profile::capsule::{EffectMode, OPEN};
use crate::service::{Fault, Reader, Service};
use crate::store::{Field, Query};
use crate::wire::budget::Budget;

/// Records looked at for each number, newest first: some milliseconds.
const LOOKED_AT_MAX: usize = 1_000;
/// What was dispatched and not seen to arrive.
const UNCONFIRMED: &[&str] = &[EffectMode::DispatchedUnconfirmed.name()];

impl Service {
    /// Brings the metrics of open items and unconfirmed effects up to date.
    /// Costs nothing while nothing is logged, and nothing more while somebody
    /// else counts.
    pub fn count_waiting(&self, budget: Budget) -> Result<(), Fault> {
        let Ok(mut counted) = self.counted.try_lock() else { return Ok(()) };
        let mut reader = self.reader(budget);
        if *counted == Some(reader.size()) {
            return Ok(());
        }
        let open = reader.count((Field::Verdict, OPEN))?;
        let unconfirmed = reader.renewed().count((Field::EffectMode, UNCONFIRMED))?;
        self.metrics().waiting(open, unconfirmed);
        *counted = Some(reader.size());
        Ok(())
    }
}

impl Reader<'_> {
    /// Records with one of these values that nothing has taken the place of,
    /// among as many as the budget reaches for.
    fn count(&mut self, values: (Field, &'static [&'static str])) -> Result<usize, Fault> {
        let query = Query { one_of: Some(values), limit: LOOKED_AT_MAX, ..Query::default() };
        let mut count = 0;
        for index in self.page(&query)?.found {
            match self.waits(index) {
                Ok(waits) => count += usize::from(waits),
                Err(Halt::Spent(_)) => break,
                Err(Halt::Fault(fault)) => return Err(fault),
            }
        }
        Ok(count)
    }

    fn waits(&mut self, index: LeafIndex) -> Result<bool, Halt> {
        let entry = self.told(index)?;
        Ok(!entry.summary.is_concealed && !self.is_superseded(&entry)?)
    }
}
