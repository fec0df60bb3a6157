//! Who caused whom: the graph of causal records, asked through the index.
//!
//! Every walk has a budget. An answer that was cut short says by what, and
//! names where it would have gone on; one that leads to a record that is not
//! logged names it.

use serde_json::{Value, json};

use super::reader::Halt;
use super::{Fault, NOT_PROOF, Reader};
use crate::policy::RECORDS_MAX;
use crate::profile::pacr::dag::{self, DEPTH_MAX, Found, Limit, Order, Predecessors};
use crate::profile::pacr::{self, PacrRecord};
use crate::profile::{Record, read_payload};
use crate::store::Field;
use crate::wire::budget::Budget;

impl Predecessors for Reader<'_> {
    type Error = Fault;

    fn of(&mut self, id: &str) -> Result<Found, Fault> {
        match self.records(id) {
            Ok(records) => {
                let all = records.iter().flat_map(|record| record.summary().predecessors);
                Ok(Ok((!records.is_empty()).then(|| all.collect())))
            }
            Err(Halt::Spent(spent)) => Ok(Err(spent)),
            Err(Halt::Fault(fault)) => Err(fault),
        }
    }

    fn budget(&mut self) -> &mut Budget {
        self.left()
    }
}

impl Reader<'_> {
    /// Every causal record under a name: one, unless somebody equivocated.
    fn records(&mut self, id: &str) -> Result<Vec<PacrRecord>, Halt> {
        let mut records = Vec::new();
        for index in self.having((Field::RecordId, id), RECORDS_MAX)? {
            let logged = self.logged(index)?;
            let payload = logged.statement.payload().unwrap_or_default();
            if let Record::Pacr(record) = read_payload(logged.statement.header(), payload).record {
                records.push(*record);
            }
        }
        Ok(records)
    }

    /// Whether a causal record with this name is logged: the statement itself
    /// is looked at, as others may have a name of the same form.
    fn is_causal(&self, id: &str) -> Result<bool, Fault> {
        let found = self.renewed().of(id)?;
        Ok(!matches!(found, Ok(None)))
    }

    /// The ancestors of a causal record; none if it is not logged.
    pub fn lineage(&mut self, id: &str) -> Result<Option<Value>, Fault> {
        if !self.is_causal(id)? {
            return Ok(None);
        }
        let found = dag::ancestors(self, id, DEPTH_MAX)?;
        Ok(Some(json!({
            "id": id,
            "ancestors": found.ids,
            "missing": found.missing,
            "limit": found.limit.map(Limit::code),
            "unexplored": found.unexplored,
            "tree_size": self.size().get(),
            "note": NOT_PROOF,
        })))
    }

    /// How two causal records are ordered; none if one is not logged.
    pub fn order(&mut self, id: &str, other: &str) -> Result<Option<Value>, Fault> {
        if !self.is_causal(id)? || !self.is_causal(other)? {
            return Ok(None);
        }
        let order = dag::order(self, id, other, DEPTH_MAX)?;
        let limit = if let Order::LimitReached(limit) = &order { Some(limit.code()) } else { None };
        let missing = if let Order::Unresolved { missing } = &order { Some(missing) } else { None };
        Ok(Some(json!({
            "id": id,
            "other": other,
            "order": order.name(),
            "limit": limit,
            "missing": missing,
            "tree_size": self.size().get(),
            "note": NOT_PROOF,
        })))
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
        let mut page = self.renewed();
        let named = std::iter::once(id).chain(lineage.ids.iter().map(String::as_str));
        for (number, name) in named.enumerate().skip(from) {
            match page.described(name) {
                Ok(described) => records.extend(described),
                Err(Halt::Spent(spent)) => {
                    (next, limit) = (Some(number), Some(spent.into()));
                    break;
                }
                Err(Halt::Fault(fault)) => return Err(fault),
            }
        }
        if limit.is_some() {
            self.cut();
        }
        let tuples: Vec<_> = records.iter().filter_map(PacrRecord::tuple).collect();
        let mut document = pacr::prov(&tuples);
        if let Some(limit) = limit {
            pacr::mark_cut(&mut document, id, limit.code(), next);
        }
        Ok(Some(document))
    }

    /// The records under a name, if the page has room for them.
    fn described(&mut self, name: &str) -> Result<Vec<PacrRecord>, Halt> {
        let records = self.records(name)?;
        let bytes: usize = records.iter().filter_map(PacrRecord::tuple).map(pacr::prov_bytes).sum();
        self.pay_bytes(bytes)?;
        Ok(records)
    }
}
