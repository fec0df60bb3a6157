//! Walks over graphs, small by hand and large at random.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use proptest::prelude::*;

use super::super::dag::*;
use crate::wire::budget::{Allowance, Budget, BudgetExhausted};

struct Graph(HashMap<String, Vec<String>>);

struct Walk<'a>(&'a Graph, Budget);

impl Predecessors for Walk<'_> {
    type Error = Infallible;

    fn of(&mut self, id: &str) -> Result<Found, Infallible> {
        Ok(self.1.node().map(|()| self.0.0.get(id).cloned()))
    }

    fn budget(&mut self) -> &mut Budget {
        &mut self.1
    }
}

impl Graph {
    /// `("d", "b c")`: d was caused by b and c.
    fn of_edges(edges: &[(&str, &str)]) -> Self {
        let causes = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Self(edges.iter().map(|(id, text)| ((*id).to_owned(), causes(text))).collect())
    }

    fn order(&self, first: &str, second: &str, limits: Limits) -> Order {
        order(&mut Walk(self, limits.budget()), first, second, limits.depth).unwrap()
    }

    fn ancestors(&self, id: &str, limits: Limits) -> Ancestors {
        ancestors(&mut Walk(self, limits.budget()), id, limits.depth).unwrap()
    }

    fn is_ancestor(&self, ancestor: &str, id: &str, limits: Limits) -> Ancestry {
        is_ancestor(&mut Walk(self, limits.budget()), ancestor, id, limits.depth).unwrap()
    }
}

#[derive(Clone, Copy)]
struct Limits {
    depth: usize,
    nodes: usize,
    edges: usize,
}

impl Limits {
    fn budget(self) -> Budget {
        Budget::new(Allowance { nodes: self.nodes, edges: self.edges, bytes: 1 })
    }
}

const FAR: Limits = Limits { depth: 100_000, nodes: 100_000, edges: 100_000 };

#[test]
fn ordered_only_by_lineage() {
    let graph = Graph::of_edges(&[
        ("a", ""),
        ("b", "a"),
        ("c", "a"),
        ("d", "b c"),
        ("e", ""),
        ("f", "gone d"),
        ("x", "y"),
        ("y", "x"),
    ]);
    let unresolved = |missing: &str| Order::Unresolved { missing: missing.to_owned() };
    let cases = [
        ("a", "d", Order::Before, "before"),
        ("d", "a", Order::After, "after"),
        ("b", "c", Order::Concurrent, "concurrent"),
        ("e", "d", Order::Concurrent, "concurrent"),
        ("a", "a", Order::Same, "same"),
        ("x", "y", Order::Circular, "circular"),
        ("a", "f", Order::Before, "before"),
        ("gone", "f", Order::Before, "before"),
        ("e", "f", unresolved("gone"), "unresolved"),
        ("nobody", "a", unresolved("nobody"), "unresolved"),
    ];
    for (first, second, expected, name) in cases {
        assert_eq!(graph.order(first, second, FAR), expected, "{first} {second}");
        assert_eq!(expected.name(), name);
    }
    let seen = graph.ancestors("f", FAR);
    assert_eq!(seen.ids, ["gone", "d", "b", "c", "a"]);
    assert_eq!((seen.missing, seen.limit), (vec!["gone".to_owned()], None));
    assert_eq!(graph.is_ancestor("x", "x", FAR), Ancestry::Yes, "in a circle");
    assert_eq!(graph.is_ancestor("a", "a", FAR), Ancestry::No);
}

#[test]
fn limits_are_answers_of_their_own() {
    let names: Vec<String> = (0..50_000).map(|n| n.to_string()).collect();
    let chain = names.iter().zip(names.iter().skip(1));
    let mut chain: HashMap<_, _> =
        chain.map(|(cause, id)| (id.clone(), vec![cause.clone()])).collect();
    chain.insert("0".to_owned(), Vec::new());
    chain.insert("wide".to_owned(), names.clone());
    let graph = Graph(chain);
    let by_depth = Limits { depth: 100, ..FAR };
    let by_nodes = Limits { nodes: 100, ..FAR };
    let by_edges = Limits { edges: 100, ..FAR };
    let (nodes, edges) =
        (Limit::Budget(BudgetExhausted::Nodes), Limit::Budget(BudgetExhausted::Edges));
    let reached = |limits| graph.is_ancestor("0", "49999", limits);
    assert_eq!(reached(by_depth), Ancestry::LimitReached(Limit::Depth));
    assert_eq!(reached(by_nodes), Ancestry::LimitReached(nodes));
    assert_eq!(reached(by_edges), Ancestry::LimitReached(edges));
    assert_eq!(reached(FAR), Ancestry::Yes);
    assert_eq!(graph.order("1", "49999", by_depth), Order::LimitReached(Limit::Depth));
    assert_eq!(Order::LimitReached(Limit::Depth).name(), "limit-reached");
    let near = graph.is_ancestor("49990", "49999", by_nodes);
    assert_eq!(near, Ancestry::Yes, "what is found is found");
    // Names reached, why no more, names that were not followed.
    let rows = [
        ("wide", by_nodes, 50_000, Some(nodes), 49_901),
        ("wide", by_edges, 100, Some(edges), 101),
        ("49999", by_nodes, 100, Some(nodes), 1),
        ("5", Limits { depth: 3, ..FAR }, 3, Some(Limit::Depth), 1),
        ("3", Limits { depth: 3, nodes: 4, edges: 3 }, 3, None, 0),
    ];
    for (id, limits, reached, limit, unexplored) in rows {
        let seen = graph.ancestors(id, limits);
        let found = (seen.ids.len(), seen.limit, seen.unexplored.len());
        assert_eq!(found, (reached, limit, unexplored), "{id}");
    }
    // Who goes on from what was not followed sees the rest.
    let first = graph.ancestors("49999", by_nodes);
    let rest = graph.ancestors(&first.unexplored[0], FAR);
    assert_eq!((first.ids.len() + rest.ids.len(), rest.limit), (49_999, None));
    let codes =
        [Limit::Depth, nodes, edges, Limit::Budget(BudgetExhausted::Bytes)].map(Limit::code);
    assert_eq!(
        codes,
        ["pacr-limit-depth", "pacr-limit-nodes", "pacr-limit-edges", "pacr-limit-bytes"]
    );
}

/// Every ancestor, by following everything.
fn naive(graph: &Graph, id: &str) -> HashSet<String> {
    let (mut seen, mut left) = (HashSet::new(), graph.0[id].clone());
    while let Some(name) = left.pop() {
        if seen.insert(name.clone()) {
            left.extend(graph.0[&name].iter().cloned());
        }
    }
    seen
}

/// A graph of 10,000 records: each has up to four causes among the `reach`
/// records before it.
fn random_graph(seed: u64, reach: u64) -> Graph {
    let mut state = seed | 1;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let causes = (0..10_000_u64).map(|number| {
        let count = if number == 0 { 0 } else { next(5) };
        let back = number.min(reach).max(1);
        let causes = (0..count).map(|_| (number - 1 - next(back)).to_string());
        (number.to_string(), causes.collect())
    });
    Graph(causes.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_walk_equals_a_naive_one(
        seed in any::<u64>(),
        reach in prop_oneof![Just(1_u64), Just(8), Just(300), Just(10_000)],
        pairs in prop::collection::vec((0..10_000_u64, 0..10_000_u64), 12),
    ) {
        let graph = random_graph(seed, reach);
        for (first, second) in pairs {
            let (first, second) = (first.to_string(), second.to_string());
            let (of_first, of_second) = (naive(&graph, &first), naive(&graph, &second));
            let walked = graph.ancestors(&second, FAR);
            prop_assert_eq!(walked.ids.len(), of_second.len());
            prop_assert_eq!(&walked.ids.into_iter().collect::<HashSet<_>>(), &of_second);
            let expected = if first == second {
                Order::Same
            } else if of_second.contains(&first) {
                Order::Before
            } else if of_first.contains(&second) {
                Order::After
            } else {
                Order::Concurrent
            };
            prop_assert_eq!(graph.order(&first, &second, FAR), expected);
            let is_ancestor = graph.is_ancestor(&first, &second, FAR);
            prop_assert_eq!(is_ancestor == Ancestry::Yes, of_second.contains(&first));
        }
    }
}
