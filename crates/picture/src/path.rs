//! The way between two nodes: from a port into its switch, through a router, into another port.
//!
//! It is the way with the fewest steps. One that leads through something that is down counts as
//! longer than any other, so it is found only if there is no better one; a way outside of the
//! database counts as longer too.

use std::collections::{BTreeSet, BinaryHeap};

use crate::graph::{Graph, Id, Kind, State};

/// Added to the length of a way by each node or edge that is down.
const DOWN: u64 = 1 << 40;
/// Added by each network outside.
const OUTSIDE: u64 = 1 << 20;

/// A way through a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The nodes on it, both ends included. Cards that are crossed are among them.
    pub nodes: Vec<usize>,
    /// The nodes on it that are down.
    pub down: Vec<usize>,
}

impl Path {
    /// The ids of the nodes, for [`crate::View::only`] and [`crate::View::marked`].
    #[must_use]
    pub fn ids(&self, graph: &Graph) -> BTreeSet<Id> {
        let nodes = self.nodes.iter();
        nodes.map(|&node| graph.nodes[node].id.clone()).collect()
    }
}

/// Finds the way between two nodes.
#[must_use]
pub fn between(graph: &Graph, from: &Id, to: &Id) -> Option<Path> {
    let (from, to) = (graph.find(from)?, graph.find(to)?);
    // A port and its card are neighbours, as are the two ends of an edge.
    let mut near: Vec<Vec<(usize, u64)>> = vec![Vec::new(); graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        if let Some(owner) = node.owner {
            near[index].push((owner, 1));
            near[owner].push((index, 1));
        }
    }
    for edge in &graph.edges {
        let length = if edge.state == State::Down {
            1 + DOWN
        } else {
            1
        };
        near[edge.from].push((edge.to, length));
        near[edge.to].push((edge.from, length));
    }
    let mut best: Vec<Option<(u64, usize)>> = vec![None; graph.nodes.len()];
    let mut queue = BinaryHeap::from([(std::cmp::Reverse(0), from, from)]);
    while let Some((std::cmp::Reverse(length), node, previous)) = queue.pop() {
        if best[node].is_some() {
            continue;
        }
        best[node] = Some((length, previous));
        if node == to {
            break;
        }
        for &(other, step) in near[node]
            .iter()
            .filter(|(other, _)| best[*other].is_none())
        {
            let further = length + step + toll(graph, other);
            queue.push((std::cmp::Reverse(further), other, node));
        }
    }
    let mut nodes = vec![to];
    let mut node = to;
    while node != from {
        node = best[node]?.1;
        nodes.push(node);
    }
    nodes.reverse();
    let is_down = |node: &usize| graph.nodes[*node].state == State::Down;
    Some(Path {
        down: nodes.iter().copied().filter(is_down).collect(),
        nodes,
    })
}

fn toll(graph: &Graph, node: usize) -> u64 {
    match (graph.nodes[node].state, graph.nodes[node].kind) {
        (State::Down, _) => DOWN,
        (_, Kind::Outside) => OUTSIDE,
        _ => 0,
    }
}
