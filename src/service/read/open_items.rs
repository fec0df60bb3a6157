//! Records that are still open: the list, and the metric that counts them.

use super::reader::ReadError;
use super::views::{ItemView, SearchPage};
use crate::log::LeafIndex;
use crate::profile::capsule::{EffectMode, OPEN};
use crate::service::{Fault, Reader, Service};
use crate::store::{Field, Page, Query};
use crate::story;
use crate::wire::budget::Budget;

/// Records examined for each metric, newest first: some milliseconds.
const COUNTED_MAX: usize = 1_000;
/// Effects that were dispatched and never confirmed.
const UNCONFIRMED: &[&str] = &[EffectMode::DispatchedUnconfirmed.name()];

impl Service {
    /// Updates the metrics of open items and unconfirmed effects. Does nothing
    /// if the log has not grown, or while another scrape is counting.
    pub fn count_open_items(&self, budget: Budget) -> Result<(), Fault> {
        let Ok(mut counted) = self.counted.try_lock() else { return Ok(()) };
        let mut reader = self.reader(budget);
        if *counted == Some(reader.size()) {
            return Ok(());
        }
        let open = reader.count_not_superseded(Field::Verdict, OPEN)?;
        let unconfirmed =
            reader.with_full_budget().count_not_superseded(Field::EffectMode, UNCONFIRMED)?;
        self.metrics().waiting(open, unconfirmed);
        *counted = Some(reader.size());
        Ok(())
    }
}

impl Reader<'_> {
    /// Open records, newest first (5.4.4).
    pub fn open_items(&mut self, query: &Query) -> Result<SearchPage<ItemView>, Fault> {
        let mut query = Query { one_of: Some((Field::Verdict, OPEN)), ..query.clone() };
        let limit = query.limit;
        let mut items = Vec::new();
        let page = loop {
            query.limit = (limit - items.len()).max(1);
            let page = self.page(&query)?;
            let mut spent_at = None;
            for index in &page.found {
                match self.open_item(*index) {
                    Ok(item) => items.extend(item),
                    Err(ReadError::BudgetExhausted(_)) => {
                        spent_at = Some(index.get() + 1);
                        break;
                    }
                    Err(ReadError::Fault(fault)) => return Err(fault),
                }
            }
            if let Some(next) = spent_at {
                break Page { next: Some(next), ..page };
            }
            if page.next.is_none() || page.is_cut || items.len() >= limit {
                break page;
            }
            query.before = page.next;
        };
        Ok(self.page_view(items, &page))
    }

    fn open_item(&mut self, index: LeafIndex) -> Result<Option<ItemView>, ReadError> {
        let entry = self.entry(index)?;
        let is_open = entry.summary.is_open && !self.is_superseded(&entry)?;
        Ok(is_open.then(|| ItemView::from(&entry)))
    }

    /// Whether an authorised record superseded this one.
    fn is_superseded(&mut self, entry: &story::Entry) -> Result<bool, ReadError> {
        let Some(id) = &entry.summary.record_id else { return Ok(false) };
        let operator = entry.summary.operator.as_deref().unwrap_or_default();
        self.has_superseding(id, operator, entry.authority())
    }

    /// Records with one of these values that are not superseded, as many as
    /// the budget allows.
    fn count_not_superseded(
        &mut self,
        field: Field,
        values: &'static [&'static str],
    ) -> Result<usize, Fault> {
        let one_of = Some((field, values));
        let query = Query { one_of, limit: COUNTED_MAX, ..Query::default() };
        let mut count = 0;
        for index in self.page(&query)?.found {
            let counts = self
                .entry(index)
                .and_then(|entry| Ok(!entry.summary.is_concealed && !self.is_superseded(&entry)?));
            match counts {
                Ok(counts) => count += usize::from(counts),
                Err(ReadError::BudgetExhausted(_)) => break,
                Err(ReadError::Fault(fault)) => return Err(fault),
            }
        }
        Ok(count)
    }
}
