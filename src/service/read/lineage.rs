//! Who caused whom: the graph of causal records, asked through the index.
//!
//! Every walk has a budget. An answer that was cut short says by what, and
//! names where it would have gone on; one that leads to a record that is not
//! logged names it.

use std::collections::HashMap;

use serde_json::Value;

use super::reader::ReadError;
use super::views::{CauseComparison, EstimatesView, LineageView, NOT_PROOF, OrderView};
use crate::policy::RECORDS_MAX;
use crate::profile::pacr::dag::{self, DEPTH_MAX, Found, Limit, Order, Predecessors};
use crate::profile::pacr::{self, Estimates, PacrRecord, SixTuple};
use crate::profile::{Record, read_payload};
use crate::service::{Fault, Reader};
use crate::store::Field;
use crate::wire::budget::{Budget, BudgetExhausted};

impl Predecessors for Reader<'_> {
    type Error = Fault;

    fn of(&mut self, id: &str) -> Result<Found, Fault> {
        match self.records(id) {
            Ok(records) => Ok(Ok((!records.is_empty()).then(|| causes(&records)))),
            Err(ReadError::BudgetExhausted(spent)) => Ok(Err(spent)),
            Err(ReadError::Fault(fault)) => Err(fault),
        }
    }

    fn budget(&mut self) -> &mut Budget {
        self.budget_mut()
    }
}

/// A reader that keeps what it was asked for on a walk, to compare it later.
struct Keeping<'r, 'a> {
    reader: &'r mut Reader<'a>,
    kept: HashMap<String, Kept>,
}

/// What stays of the records under one name.
struct Kept {
    causes: Vec<String>,
    /// None unless one whole record has the name.
    estimates: Option<Estimates>,
}

impl Predecessors for Keeping<'_, '_> {
    type Error = Fault;

    fn of(&mut self, id: &str) -> Result<Found, Fault> {
        let records = match self.reader.records(id) {
            Ok(records) => records,
            Err(ReadError::BudgetExhausted(spent)) => return Ok(Err(spent)),
            Err(ReadError::Fault(fault)) => return Err(fault),
        };
        let kept = Kept { causes: causes(&records), estimates: estimates(&records) };
        let found = (!records.is_empty()).then(|| kept.causes.clone());
        self.kept.insert(id.to_owned(), kept);
        Ok(Ok(found))
    }

    fn budget(&mut self) -> &mut Budget {
        self.reader.budget_mut()
    }
}

fn causes(records: &[PacrRecord]) -> Vec<String> {
    records.iter().flat_map(|record| record.summary().predecessors).collect()
}

/// Of a name with several contents nobody can tell which was meant.
fn estimates(records: &[PacrRecord]) -> Option<Estimates> {
    match records {
        [record] => record.tuple().map(SixTuple::estimates),
        _ => None,
    }
}

/// How an effect was measured against its cause, if both were.
fn compared(effect: Option<Estimates>, cause: Option<Estimates>) -> Option<EstimatesView> {
    Some(effect?.compare(cause?).into())
}

impl Reader<'_> {
    /// Every causal record under a name: one, unless somebody equivocated.
    fn records(&mut self, id: &str) -> Result<Vec<PacrRecord>, ReadError> {
        let mut records = Vec::new();
        for index in self.indices_with(Field::RecordId, id, RECORDS_MAX)? {
            let logged = self.logged(index)?;
            let payload = logged.statement.payload().unwrap_or_default();
            let read = read_payload(logged.statement.header(), payload);
            records.extend(read.into_record::<PacrRecord>().map(|(record, _)| *record));
        }
        Ok(records)
    }

    /// Whether a causal record with this name is logged: the statement itself
    /// is looked at, as others may have a name of the same form.
    fn is_causal(&self, id: &str) -> Result<bool, Fault> {
        let found = self.with_full_budget().of(id)?;
        Ok(!matches!(found, Ok(None)))
    }

    /// The ancestors of a causal record, and how the Estimates of each effect
    /// lie to those of its causes; none if it is not logged. The comparisons
    /// have a budget of their own.
    pub fn lineage(&mut self, id: &str) -> Result<Option<LineageView>, Fault> {
        if !self.is_causal(id)? {
            return Ok(None);
        }
        let mut graph = Keeping { reader: self, kept: HashMap::new() };
        let found = dag::ancestors(&mut graph, id, DEPTH_MAX)?;
        let kept = graph.kept;
        let names = std::iter::once(id).chain(found.ids.iter().map(String::as_str));
        let (comparisons, comparisons_limit) = self.comparisons(names, &kept);
        Ok(Some(LineageView {
            id: id.to_owned(),
            ancestors: found.ids,
            comparisons,
            comparisons_limit: comparisons_limit.map(|spent| Limit::from(spent).code().into()),
            missing: found.missing,
            limit: found.limit.map(|limit| limit.code().into()),
            unexplored: found.unexplored,
            tree_size: self.size(),
            note: NOT_PROOF.into(),
        }))
    }

    /// Every effect with each of its causes that was looked up, as long as the
    /// answer has room.
    fn comparisons<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
        kept: &HashMap<String, Kept>,
    ) -> (Vec<CauseComparison>, Option<BudgetExhausted>) {
        let mut room = self.with_full_budget();
        let mut pairs = Vec::new();
        for (name, effect) in names.filter_map(|name| Some((name, kept.get(name)?))) {
            for (cause_name, cause) in effect.causes.iter().filter_map(|c| Some((c, kept.get(c)?)))
            {
                let pair = CauseComparison {
                    effect: name.to_owned(),
                    cause: cause_name.clone(),
                    estimates: compared(effect.estimates, cause.estimates),
                };
                let bytes = serde_json::to_string(&pair).map_or(0, |json| json.len());
                if let Err(spent) = room.charge_bytes(bytes) {
                    self.mark_cut();
                    return (pairs, Some(spent));
                }
                pairs.push(pair);
            }
        }
        (pairs, None)
    }

    /// The Estimates of the one record under a name, at a price of their own.
    fn measured(&self, id: &str) -> Result<Option<Estimates>, Fault> {
        match self.with_full_budget().records(id) {
            Ok(records) => Ok(estimates(&records)),
            Err(ReadError::BudgetExhausted(_)) => Ok(None),
            Err(ReadError::Fault(fault)) => Err(fault),
        }
    }

    /// How two causal records are ordered, and how the Estimates of the first
    /// lie to those of the second; none if one is not logged.
    pub fn order(&mut self, id: &str, other: &str) -> Result<Option<OrderView>, Fault> {
        if !self.is_causal(id)? || !self.is_causal(other)? {
            return Ok(None);
        }
        let order = dag::order(self, id, other, DEPTH_MAX)?;
        let limit = match &order {
            Order::LimitReached(limit) => Some(limit.code().into()),
            _ => None,
        };
        let missing = match &order {
            Order::Unresolved { missing } => Some(missing.clone()),
            _ => None,
        };
        Ok(Some(OrderView {
            id: id.to_owned(),
            other: other.to_owned(),
            order: order.name().into(),
            estimates: compared(self.measured(id)?, self.measured(other)?),
            limit,
            missing,
            tree_size: self.size(),
            note: NOT_PROOF.into(),
        }))
    }

    /// A page of the PROV-JSON of a causal record and its ancestors, nearest
    /// first, from the record with this number on; none if it is not logged.
    /// The walk has a budget, and so has the page.
    pub fn prov(&mut self, id: &str, from: usize) -> Result<Option<Value>, Fault> {
        if !self.is_causal(id)? {
            return Ok(None);
        }
        let lineage = dag::ancestors(self, id, DEPTH_MAX)?;
        let mut limit = lineage.limit;
        let mut next = None;
        let mut records = Vec::new();
        let mut page = self.with_full_budget();
        let named = std::iter::once(id).chain(lineage.ids.iter().map(String::as_str));
        for (number, name) in named.enumerate().skip(from) {
            match page.described(name) {
                Ok(described) => records.extend(described),
                Err(ReadError::BudgetExhausted(spent)) => {
                    (next, limit) = (Some(number), Some(spent.into()));
                    break;
                }
                Err(ReadError::Fault(fault)) => return Err(fault),
            }
        }
        if limit.is_some() {
            self.mark_cut();
        }
        let tuples: Vec<_> = records.iter().filter_map(PacrRecord::tuple).collect();
        let mut document = pacr::prov(&tuples);
        if let Some(limit) = limit {
            pacr::mark_cut(&mut document, id, limit.code(), next);
        }
        Ok(Some(document))
    }

    /// The records under a name, if the page has room for them.
    fn described(&mut self, name: &str) -> Result<Vec<PacrRecord>, ReadError> {
        let records = self.records(name)?;
        let bytes: usize = records.iter().filter_map(PacrRecord::tuple).map(pacr::prov_bytes).sum();
        self.charge_bytes(bytes)?;
        Ok(records)
    }
}
