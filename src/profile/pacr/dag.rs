//! Who caused whom: questions to the graph of predecessors.
//!
//! In: a graph that gives the predecessors of a record, two names, limits.
//! Out: an answer, or which limit or missing record stood in the way. Two
//! records are ordered only if one is an ancestor of the other; everything
//! else is concurrent, whatever times their payloads carry. Names are no
//! addresses, so a graph may hold a circle, and a walk must end all the same.

use std::collections::HashSet;

/// Where the predecessors of a record are looked up.
pub trait Predecessors {
    /// Why a lookup can fail.
    type Error;

    /// The direct predecessors of a record, or none if it is not known. Of a
    /// name with several contents: those of all of them.
    fn of(&self, id: &str) -> Result<Option<Vec<String>>, Self::Error>;
}

/// How far a walk goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Edges between the record asked about and the farthest one looked up.
    pub depth: usize,
    /// Records looked at, the one asked about included. Bounds memory too.
    pub nodes: usize,
}

impl Default for Limits {
    /// A record takes some microseconds to look up: a tenth of a second.
    fn default() -> Self {
        Self { depth: 10_000, nodes: 10_000 }
    }
}

/// What ended a walk early.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// The lineage is longer than the walk.
    Depth,
    /// The lineage has more records than the walk looks at.
    Nodes,
}

impl Limit {
    /// A stable word.
    pub fn code(self) -> &'static str {
        match self {
            Self::Depth => "pacr-limit-depth",
            Self::Nodes => "pacr-limit-nodes",
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
}

/// All ancestors of a record within the limits.
pub fn ancestors<G: Predecessors>(
    graph: &G,
    id: &str,
    limits: Limits,
) -> Result<Ancestors, G::Error> {
    walk(graph, id, limits, |_| false).map(|(ancestors, _)| ancestors)
}

/// Whether `ancestor` is one of `id`. A record is its own ancestor only in a
/// circle.
pub fn is_ancestor<G: Predecessors>(
    graph: &G,
    ancestor: &str,
    id: &str,
    limits: Limits,
) -> Result<Ancestry, G::Error> {
    let (mut seen, is_found) = walk(graph, id, limits, |name| name == ancestor)?;
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

/// How two records are ordered, each walk within the limits.
pub fn order<G: Predecessors>(
    graph: &G,
    first: &str,
    second: &str,
    limits: Limits,
) -> Result<Order, G::Error> {
    if first == second {
        return Ok(Order::Same);
    }
    let before = is_ancestor(graph, first, second, limits)?;
    let after = is_ancestor(graph, second, first, limits)?;
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
    graph: &G,
    id: &str,
    limits: Limits,
    wanted: impl Fn(&str) -> bool,
) -> Result<(Ancestors, bool), G::Error> {
    let mut found = Ancestors::default();
    let mut seen = HashSet::from([id.to_owned()]);
    let (mut level, mut depth) = (vec![id.to_owned()], 0);
    while !level.is_empty() {
        let mut next = Vec::new();
        for name in level {
            let Some(causes) = graph.of(&name)? else {
                found.missing.push(name);
                continue;
            };
            for cause in causes {
                if wanted(&cause) {
                    return Ok((found, true));
                }
                if seen.contains(&cause) {
                    continue;
                }
                if depth == limits.depth {
                    found.limit = Some(Limit::Depth);
                    continue;
                }
                if seen.len() >= limits.nodes {
                    found.limit = Some(Limit::Nodes);
                    return Ok((found, false));
                }
                seen.insert(cause.clone());
                found.ids.push(cause.clone());
                next.push(cause);
            }
        }
        depth += 1;
        level = next;
    }
    Ok((found, false))
}
