//! Ancestors and order of records, from the graph of predecessors.
//!
//! In: a graph that gives the predecessors of a record, two ids, a budget.
//! Out: the relation, or the limit or missing record that prevented it. Two
//! records are ordered only if one is an ancestor of the other; otherwise they
//! are concurrent, whatever times their payloads state. Ids are chosen freely,
//! so a graph may contain cycles, and a walk must still end.

use std::collections::{HashSet, VecDeque};

use strum::IntoStaticStr;

use crate::wire::budget::{Budget, BudgetExhausted};

/// Where the predecessors of a record are looked up.
pub trait Predecessors {
    /// Why a lookup can fail.
    type Error;

    /// The direct predecessors of a record; of an id with several contents,
    /// those of all of them. Takes the cost of reading from the budget.
    fn of(&mut self, id: &str) -> Result<Found, Self::Error>;

    /// The budget, from which the walk pays for every link it follows.
    fn budget(&mut self) -> &mut Budget;
}

/// The predecessors of a record, none if it is not known, or an error if the
/// budget is spent.
pub type Found = Result<Option<Vec<String>>, BudgetExhausted>;

/// Edges between the start of a walk and the farthest record looked up.
pub const DEPTH_MAX: usize = 10_000;

/// Why a walk ended early.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// The lineage is deeper than the walk may go.
    Depth,
    /// The lineage has more records, links or bytes than the budget allows.
    Budget(BudgetExhausted),
}

impl From<BudgetExhausted> for Limit {
    fn from(spent: BudgetExhausted) -> Self {
        Self::Budget(spent)
    }
}

impl Limit {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Depth => "pacr-limit-depth",
            Self::Budget(BudgetExhausted::Nodes) => "pacr-limit-nodes",
            Self::Budget(BudgetExhausted::Edges) => "pacr-limit-edges",
            Self::Budget(BudgetExhausted::Bytes) => "pacr-limit-bytes",
        }
    }
}

/// Whether one record is an ancestor of another.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ancestry {
    Yes,
    /// No; the whole lineage was searched.
    No,
    /// Not found within the limits.
    LimitReached(Limit),
    /// Not found, and the lineage leads to this unknown record.
    Unresolved {
        missing: String,
    },
}

/// How two records are ordered.
#[derive(Clone, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum Order {
    /// The first is an ancestor of the second.
    Before,
    /// The second is an ancestor of the first.
    After,
    /// Neither is an ancestor of the other.
    Concurrent,
    /// Each is an ancestor of the other, so some id is used twice.
    Circular,
    /// They have the same id.
    Same,
    LimitReached(Limit),
    /// A lineage leads to this unknown record.
    Unresolved {
        missing: String,
    },
}

impl Order {
    /// Its name in reports and the API.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// The lineage of a record.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ancestors {
    /// Every ancestor that was reached, nearest first.
    pub ids: Vec<String>,
    /// Unknown records among them, the start included.
    pub missing: Vec<String>,
    /// Why the walk ended early, if it did.
    pub limit: Option<Limit>,
    /// Records that were reached but not followed.
    pub unexplored: Vec<String>,
}

/// All ancestors of a record, within depth and budget.
pub fn ancestors<G: Predecessors>(
    graph: &mut G,
    id: &str,
    depth: usize,
) -> Result<Ancestors, G::Error> {
    walk(graph, id, depth, |_| false).map(|(ancestors, _)| ancestors)
}

/// Whether `ancestor` is an ancestor of `id`. Only in a cycle a record is its
/// own ancestor.
pub fn is_ancestor<G: Predecessors>(
    graph: &mut G,
    ancestor: &str,
    id: &str,
    depth: usize,
) -> Result<Ancestry, G::Error> {
    let (mut seen, is_found) = walk(graph, id, depth, |name| name == ancestor)?;
    if is_found {
        return Ok(Ancestry::Yes);
    }
    if let Some(limit) = seen.limit {
        return Ok(Ancestry::LimitReached(limit));
    }
    if seen.missing.is_empty() {
        return Ok(Ancestry::No);
    }
    Ok(Ancestry::Unresolved { missing: seen.missing.swap_remove(0) })
}

/// How two records are ordered. Each of the two walks has the whole budget.
pub fn order<G: Predecessors>(
    graph: &mut G,
    first: &str,
    second: &str,
    depth: usize,
) -> Result<Order, G::Error> {
    if first == second {
        return Ok(Order::Same);
    }
    let before = is_ancestor(graph, first, second, depth)?;
    *graph.budget() = graph.budget().renewed();
    let after = is_ancestor(graph, second, first, depth)?;
    Ok(match (before, after) {
        (Ancestry::Yes, Ancestry::Yes) => Order::Circular,
        (Ancestry::Yes, _) => Order::Before,
        (_, Ancestry::Yes) => Order::After,
        (Ancestry::LimitReached(limit), _) | (_, Ancestry::LimitReached(limit)) => {
            Order::LimitReached(limit)
        }
        (Ancestry::Unresolved { missing }, _) | (_, Ancestry::Unresolved { missing }) => {
            Order::Unresolved { missing }
        }
        (Ancestry::No, Ancestry::No) => Order::Concurrent,
    })
}

/// Breadth first, so that depth is the shortest path. Ends at the first
/// ancestor that is `wanted`.
fn walk<G: Predecessors>(
    graph: &mut G,
    id: &str,
    depth_max: usize,
    wanted: impl Fn(&str) -> bool,
) -> Result<(Ancestors, bool), G::Error> {
    let mut found = Ancestors::default();
    let mut seen = HashSet::from([id.to_owned()]);
    let mut queue = VecDeque::from([(id.to_owned(), 0)]);
    while let Some((name, depth)) = queue.pop_front() {
        let causes = match graph.of(&name)? {
            Ok(Some(causes)) => causes,
            Ok(None) => {
                found.missing.push(name);
                continue;
            }
            Err(spent) => return Ok((found.cut(spent, name, queue), false)),
        };
        let mut is_deeper = false;
        for cause in causes {
            if wanted(&cause) {
                return Ok((found, true));
            }
            if let Err(spent) = graph.budget().edges(1) {
                return Ok((found.cut(spent, name, queue), false));
            }
            if seen.contains(&cause) {
                continue;
            }
            if depth == depth_max {
                is_deeper = true;
                continue;
            }
            seen.insert(cause.clone());
            found.ids.push(cause.clone());
            queue.push_back((cause, depth + 1));
        }
        if is_deeper {
            found.limit = Some(Limit::Depth);
            found.unexplored.push(name);
        }
    }
    Ok((found, false))
}

impl Ancestors {
    /// Ends the walk at `name`, whose links were not all followed.
    fn cut(
        mut self,
        spent: BudgetExhausted,
        name: String,
        queue: VecDeque<(String, usize)>,
    ) -> Self {
        self.limit = Some(spent.into());
        self.unexplored.push(name);
        self.unexplored.extend(queue.into_iter().map(|(name, _)| name));
        self
    }
}
