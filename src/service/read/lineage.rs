//! The graph of causal records, read through the index.
//!
//! Every walk has a budget. A truncated answer names the limit and the records
//! that were not explored; records that are referred to and not logged are
//! listed as missing.

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

/// A reader that collects the nodes of a walk, to compare them later.
struct CollectingReader<'r, 'a> {
    reader: &'r mut Reader<'a>,
    nodes: HashMap<String, Node>,
}

/// What a comparison needs of the records with one id.
struct Node {
    causes: Vec<String>,
    /// None unless exactly one record, with its six-tuple, has the id.
    estimates: Option<Estimates>,
}

impl Predecessors for CollectingReader<'_, '_> {
    type Error = Fault;

    fn of(&mut self, id: &str) -> Result<Found, Fault> {
        let records = match self.reader.records(id) {
            Ok(records) => records,
            Err(ReadError::BudgetExhausted(spent)) => return Ok(Err(spent)),
            Err(ReadError::Fault(fault)) => return Err(fault),
        };
        let node = Node { causes: causes(&records), estimates: estimates(&records) };
        let found = (!records.is_empty()).then(|| node.causes.clone());
        self.nodes.insert(id.to_owned(), node);
        Ok(Ok(found))
    }

    fn budget(&mut self) -> &mut Budget {
        self.reader.budget_mut()
    }
}

fn causes(records: &[PacrRecord]) -> Vec<String> {
    records.iter().flat_map(|record| record.summary().predecessors).collect()
}

/// None for an id with several records: it is ambiguous.
fn estimates(records: &[PacrRecord]) -> Option<Estimates> {
    match records {
        [record] => record.tuple().map(SixTuple::estimates),
        _ => None,
    }
}

/// The Estimates of an effect compared with those of its cause, if both exist.
fn compared(effect: Option<Estimates>, cause: Option<Estimates>) -> Option<EstimatesView> {
    Some(effect?.compare(cause?).into())
}

impl Reader<'_> {
    /// Every causal record with an id: one, unless an issuer equivocated.
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

    /// Whether a causal record with this id is logged. The statement itself is
    /// read, because other records may have an id of the same form.
    fn is_causal(&self, id: &str) -> Result<bool, Fault> {
        let found = self.with_full_budget().of(id)?;
        Ok(!matches!(found, Ok(None)))
    }

    /// The ancestors of a causal record, and the Estimates of each effect
    /// compared with those of its causes; none if it is not logged. The
    /// comparisons have their own budget.
    pub fn lineage(&mut self, id: &str) -> Result<Option<LineageView>, Fault> {
        if !self.is_causal(id)? {
            return Ok(None);
        }
        let mut graph = CollectingReader { reader: self, nodes: HashMap::new() };
        let found = dag::ancestors(&mut graph, id, DEPTH_MAX)?;
        let nodes = graph.nodes;
        let names = std::iter::once(id).chain(found.ids.iter().map(String::as_str));
        let (comparisons, comparisons_limit) = self.comparisons(names, &nodes);
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

    /// Every effect with each of its causes that was read, up to the budget.
    fn comparisons<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
        nodes: &HashMap<String, Node>,
    ) -> (Vec<CauseComparison>, Option<BudgetExhausted>) {
        let mut room = self.with_full_budget();
        let mut pairs = Vec::new();
        for (name, effect) in names.filter_map(|name| Some((name, nodes.get(name)?))) {
            for (cause_name, cause) in effect.causes.iter().filter_map(|c| Some((c, nodes.get(c)?)))
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

    /// The Estimates of the one record with an id, on their own budget.
    fn measured(&self, id: &str) -> Result<Option<Estimates>, Fault> {
        match self.with_full_budget().records(id) {
            Ok(records) => Ok(estimates(&records)),
            Err(ReadError::BudgetExhausted(_)) => Ok(None),
            Err(ReadError::Fault(fault)) => Err(fault),
        }
    }

    /// The causal order of two records, and the Estimates of the first compared
    /// with those of the second; none if one is not logged.
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
    /// first, starting at record number `from`; none if it is not logged. The
    /// walk and the page have a budget each.
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

    /// The records with an id, if the budget of the page covers them.
    fn described(&mut self, name: &str) -> Result<Vec<PacrRecord>, ReadError> {
        let records = self.records(name)?;
        let bytes: usize = records.iter().filter_map(PacrRecord::tuple).map(pacr::prov_bytes).sum();
        self.charge_bytes(bytes)?;
        Ok(records)
    }
}
