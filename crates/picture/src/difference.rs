//! The difference between two moments as one graph, for a picture that shows both.
//!
//! Nodes are the same if their ids are, edges if their ends and kinds are. The result has what
//! either moment has; the later one decides how it looks, and the text that hovering shows tells
//! what it was before.

use std::collections::BTreeMap;

use crate::graph::{Change, Edge, EdgeKind, Graph, Id, Node, State};

/// Merges two graphs of one database. Each node and edge of the result says how it differs.
#[must_use]
pub fn between(before: &Graph, after: &Graph) -> Graph {
    let mut merged = Graph::new();
    for node in &after.nodes {
        let mut node = node.clone();
        match before.find(&node.id) {
            None => node.change = Change::Added,
            Some(old) => compare(&mut node, &before.nodes[old], [before, after]),
        }
        merged.add(node);
    }
    for node in &before.nodes {
        if after.find(&node.id).is_none() {
            let mut node = node.clone();
            node.change = Change::Removed;
            merged.add(node);
        }
    }
    // Owners are indexes, which differ between the graphs.
    for index in 0..merged.nodes.len() {
        let id = merged.nodes[index].id.clone();
        let from = if after.find(&id).is_some() {
            after
        } else {
            before
        };
        let owner = from.find(&id).and_then(|node| from.nodes[node].owner);
        merged.nodes[index].owner = owner.and_then(|owner| merged.find(&from.nodes[owner].id));
    }
    let old = edges_of(before);
    let new = edges_of(after);
    for (key, edge) in &new {
        let change = match old.get(key) {
            None => Change::Added,
            Some(old) if (&old.label, old.state) != (&edge.label, edge.state) => Change::Changed,
            Some(_) => Change::None,
        };
        add_edge(&mut merged, key, edge, change);
    }
    for (key, edge) in &old {
        if !new.contains_key(key) {
            add_edge(&mut merged, key, edge, Change::Removed);
        }
    }
    let count = |change: Change| {
        merged
            .nodes
            .iter()
            .filter(|node| node.change == change)
            .count()
    };
    let text = format!(
        "{} added, {} removed, {} changed",
        count(Change::Added),
        count(Change::Removed),
        count(Change::Changed)
    );
    merged.notes.push((State::Ok, text));
    merged
}

/// Edges by the ids of their ends and their kinds. Of several between the same two, one stays.
fn edges_of(graph: &Graph) -> BTreeMap<(&Id, &Id, EdgeKind), &Edge> {
    let id = |node: usize| &graph.nodes[node].id;
    let edges = graph.edges.iter();
    edges
        .map(|edge| ((id(edge.from), id(edge.to), edge.kind), edge))
        .collect()
}

fn add_edge(merged: &mut Graph, key: &(&Id, &Id, EdgeKind), edge: &Edge, change: Change) {
    if let (Some(from), Some(to)) = (merged.find(key.0), merged.find(key.1)) {
        merged.edges.push(Edge {
            from,
            to,
            change,
            ..edge.clone()
        });
    }
}

/// Tells what of a node was different before.
fn compare(node: &mut Node, old: &Node, [before, after]: [&Graph; 2]) {
    let mut changes = Vec::new();
    let owner = |graph: &Graph, node: &Node| node.owner.map(|owner| graph.nodes[owner].id.clone());
    if owner(before, old) != owner(after, node) {
        let name = old
            .owner
            .map_or("", |owner| before.nodes[owner].label.as_str());
        changes.push(("was in", name.to_owned()));
    }
    if old.label != node.label {
        changes.push(("was named", old.label.clone()));
    }
    if old.detail != node.detail {
        changes.push(("was", old.detail.clone()));
    }
    if (old.state, &old.reason) != (node.state, &node.reason) {
        let reason = match old.reason.is_empty() {
            true => old.state.word().to_owned(),
            false => old.reason.clone(),
        };
        changes.push(("was", reason));
    }
    for (name, value) in &old.facts {
        if !node
            .facts
            .iter()
            .any(|fact| fact == &(*name, value.clone()))
        {
            changes.push(("was", format!("{name}: {value}")));
        }
    }
    let is_changed = !changes.is_empty() || old.facts.len() != node.facts.len();
    if is_changed {
        node.change = Change::Changed;
        node.facts.extend(changes);
    }
}
