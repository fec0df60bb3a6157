//! How much waits for somebody, counted when a scraper asks.

use super::{Fault, Service};
use crate::log::TreeSize;
use crate::profile::capsule::{EffectMode, OPEN};
use crate::store::{Field, Query};

/// Records looked at for each number, newest first: some milliseconds.
const LOOKED_AT_MAX: usize = 1_000;
/// What was dispatched and not seen to arrive.
const UNCONFIRMED: &[&str] = &[EffectMode::DispatchedUnconfirmed.name()];

impl Service {
    /// Brings the metrics of open items and unconfirmed effects up to date.
    /// Costs nothing while nothing is logged.
    pub fn count_waiting(&self) -> Result<(), Fault> {
        let mut counted = self.counted.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let size = self.head().size;
        if *counted == Some(size) {
            return Ok(());
        }
        let open = self.count((Field::Verdict, OPEN), size)?;
        let unconfirmed = self.count((Field::EffectMode, UNCONFIRMED), size)?;
        self.metrics().waiting(open, unconfirmed);
        *counted = Some(size);
        Ok(())
    }

    /// Records with one of these values that nothing has taken the place of.
    fn count(
        &self,
        values: (Field, &'static [&'static str]),
        size: TreeSize,
    ) -> Result<usize, Fault> {
        let query = Query { one_of: Some(values), limit: LOOKED_AT_MAX, ..Query::default() };
        let mut count = 0;
        for index in self.store.search(&query, size)?.found {
            let entry = self.told(index)?;
            if !entry.summary.is_concealed && !self.is_superseded(&entry)? {
                count += 1;
            }
        }
        Ok(count)
    }
}
