//! Who caused whom: the graph of causal records, asked through the index.
//!
//! Every walk is bounded. An answer that a bound cut short says which one,
//! and one that leads to a record that is not logged names it.

use serde_json::{Value, json};

use super::{Fault, NOT_PROOF, Service};
use crate::envelope::SignedStatement;
use crate::log::TreeSize;
use crate::policy::RECORDS_MAX;
use crate::profile::pacr::dag::{self, Limits, Order, Predecessors};
use crate::profile::pacr::{self, PacrRecord};
use crate::profile::{Record, read_payload};
use crate::store::{Error, Field};

/// Records that one PROV document describes.
const PROV_MAX: usize = 1_000;

/// The records among the first statements of a log.
struct Graph<'a> {
    service: &'a Service,
    size: TreeSize,
}

impl Graph<'_> {
    /// Every causal record under a name: one, unless somebody equivocated.
    fn records(&self, id: &str) -> Result<Vec<PacrRecord>, Fault> {
        let found = self.service.store.having((Field::RecordId, id), self.size, RECORDS_MAX)?;
        let mut records = Vec::new();
        for index in found {
            let stored = self.service.stored(index)?;
            let statement = SignedStatement::parse_any_size(stored.canonical);
            let statement = statement.map_err(|_| Error::StatementDamaged { index })?;
            let payload = statement.payload().unwrap_or_default();
            if let Record::Pacr(record) = read_payload(statement.header(), payload).record {
                records.push(*record);
            }
        }
        Ok(records)
    }
}

impl Predecessors for Graph<'_> {
    type Error = Fault;

    fn of(&self, id: &str) -> Result<Option<Vec<String>>, Fault> {
        let records = self.records(id)?;
        let all = records.iter().flat_map(|record| record.summary().predecessors);
        Ok((!records.is_empty()).then(|| all.collect()))
    }
}

impl Service {
    /// The ancestors of a causal record; none if it is not logged.
    pub fn lineage(&self, id: &str) -> Result<Option<Value>, Fault> {
        let graph = self.graph();
        if graph.of(id)?.is_none() {
            return Ok(None);
        }
        let found = dag::ancestors(&graph, id, Limits::default())?;
        Ok(Some(json!({
            "id": id,
            "ancestors": found.ids,
            "missing": found.missing,
            "limit": found.limit.map(dag::Limit::code),
            "tree_size": graph.size.get(),
            "note": NOT_PROOF,
        })))
    }

    /// How two causal records are ordered; none if one is not logged.
    pub fn order(&self, id: &str, other: &str) -> Result<Option<Value>, Fault> {
        let graph = self.graph();
        if graph.of(id)?.is_none() || graph.of(other)?.is_none() {
            return Ok(None);
        }
        let order = dag::order(&graph, id, other, Limits::default())?;
        let limit = if let Order::LimitReached(limit) = &order { Some(limit.code()) } else { None };
        let missing = if let Order::Unresolved { missing } = &order { Some(missing) } else { None };
        Ok(Some(json!({
            "id": id,
            "other": other,
            "order": order.name(),
            "limit": limit,
            "missing": missing,
            "tree_size": graph.size.get(),
            "note": NOT_PROOF,
        })))
    }

    /// A causal record and its ancestors as PROV-JSON; none if it is not
    /// logged.
    pub fn prov(&self, id: &str) -> Result<Option<Value>, Fault> {
        let graph = self.graph();
        let mut records = graph.records(id)?;
        if records.is_empty() {
            return Ok(None);
        }
        let limits = Limits { nodes: PROV_MAX, ..Limits::default() };
        for ancestor in dag::ancestors(&graph, id, limits)?.ids {
            records.extend(graph.records(&ancestor)?);
        }
        let tuples: Vec<_> = records.iter().filter_map(PacrRecord::tuple).collect();
        Ok(Some(pacr::prov(&tuples)))
    }

    fn graph(&self) -> Graph<'_> {
        Graph { service: self, size: self.head().size }
    }
}
