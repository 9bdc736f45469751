//! Nodes by what is known of them: a name, an address, a part of either, or a state.

use std::cmp::Reverse;

use crate::graph::{Graph, State};
use crate::natural;

/// Finds nodes that have a text in their name, detail or facts, the closest first. Case does not
/// matter.
#[must_use]
pub fn search(graph: &Graph, text: &str, most: usize) -> Vec<usize> {
    let wanted = text.trim().to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(u8, usize)> = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let label = node.label.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let closeness = if label == wanted {
            0
        } else if label.starts_with(&wanted) {
            1
        } else if label.contains(&wanted) {
            2
        } else if has(&node.detail) || node.id.to_string().contains(&wanted) {
            3
        } else if node.facts.iter().any(|(_, value)| has(value)) {
            4
        } else {
            continue;
        };
        found.push((closeness, index));
    }
    found.sort_by(|a, b| {
        let (x, y) = (&graph.nodes[a.1], &graph.nodes[b.1]);
        // Of equals, cards before ports.
        (a.0, x.kind)
            .cmp(&(b.0, y.kind))
            .then_with(|| natural::compare(&x.label, &y.label))
            .then(a.1.cmp(&b.1))
    });
    found.truncate(most);
    found.into_iter().map(|(_, index)| index).collect()
}

/// Finds nodes whose state is at least as bad as the given one, the worst first. Their ids as
/// [`crate::View::only`] make a picture of what needs a look.
#[must_use]
pub fn troubled(graph: &Graph, least: State, most: usize) -> Vec<usize> {
    let mut found: Vec<usize> = (0..graph.nodes.len())
        .filter(|&index| graph.nodes[index].state >= least)
        .collect();
    found.sort_by(|&a, &b| {
        let (x, y) = (&graph.nodes[a], &graph.nodes[b]);
        Reverse(x.state)
            .cmp(&Reverse(y.state))
            .then_with(|| natural::compare(&x.label, &y.label))
            .then(a.cmp(&b))
    });
    found.truncate(most);
    found
}
