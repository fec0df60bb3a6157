//! Who caused whom: questions to the graph of predecessors.
//!
//! In: a graph that gives the predecessors of a record, two names, a budget.
//! Out: an answer, or which limit or missing record stood in the way. Two
//! records are ordered only if one is an ancestor of the other; everything
//! else is concurrent, whatever times their payloads carry. Names are no
//! addresses, so a graph may hold a circle, and a walk must end all the same.

use std::collections::{HashSet, VecDeque};

use crate::wire::budget::{Budget, BudgetExhausted};

/// Where the predecessors of a record are looked up.
pub trait Predecessors {
    /// Why a lookup can fail.
    type Error;

    /// The direct predecessors of a record, or none if it is not known. Of a
    /// name with several contents: those of all of them. What reading them
    /// costs is taken from the budget here.
    fn of(&mut self, id: &str) -> Result<Found, Self::Error>;

    /// What is left for the walk, which pays for every link it follows.
    fn budget(&mut self) -> &mut Budget;
}

/// What a lookup finds: the predecessors of a record, that there is no such
/// record, or that the budget does not reach for it.
pub type Found = Result<Option<Vec<String>>, BudgetExhausted>;

/// Edges between the record asked about and the farthest one looked up.
pub const DEPTH_MAX: usize = 10_000;

/// What ended a walk early.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// The lineage is longer than the walk.
    Depth,
    /// The lineage has more records, links or bytes than the walk may cost.
    Budget(BudgetExhausted),
}

impl From<BudgetExhausted> for Limit {
    fn from(spent: BudgetExhausted) -> Self {
        Self::Budget(spent)
    }
}

impl Limit {
    /// A stable word.
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
    /// It is.
    Yes,
    /// It is not: the whole lineage was seen.
    No,
    /// It was not found within the limits.
    LimitReached(Limit),
    /// It was not found, and the lineage leads to a record that is not known.
    Unresolved {
        /// The first of those.
        missing: String,
    },
}

/// How two records are ordered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Order {
    /// The first is an ancestor of the second.
    Before,
    /// The second is an ancestor of the first.
    After,
    /// Neither is.
    Concurrent,
    /// Both are, so one of their names is used twice.
    Circular,
    /// They are one record.
    Same,
    /// A walk ended early.
    LimitReached(Limit),
    /// A lineage leads to a record that is not known.
    Unresolved {
        /// The first of those.
        missing: String,
    },
}

impl Order {
    /// Its name in reports and the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Concurrent => "concurrent",
            Self::Circular => "circular",
            Self::Same => "same",
            Self::LimitReached(_) => "limit-reached",
            Self::Unresolved { .. } => "unresolved",
        }
    }
}

/// The lineage of a record.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ancestors {
    /// Every ancestor that was reached, nearest first.
    pub ids: Vec<String>,
    /// Those of them, and the record itself, that are not known.
    pub missing: Vec<String>,
    /// Why there may be more.
    pub limit: Option<Limit>,
    /// Where there may be more: what was reached and not followed.
    pub unexplored: Vec<String>,
}

/// All ancestors of a record, as far as depth and budget go.
pub fn ancestors<G: Predecessors>(
    graph: &mut G,
    id: &str,
    depth: usize,
) -> Result<Ancestors, G::Error> {
    walk(graph, id, depth, |_| false).map(|(ancestors, _)| ancestors)
}

/// Whether `ancestor` is one of `id`. A record is its own ancestor only in a
/// circle.
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

/// Breadth first, so that depth is the shortest way. Ends at the first
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
    /// Ends at `name`, of which not everything was followed.
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
