//! The written databases as graphs, questions to graphs, and what holds for all interpretations.

use corvid_picture::{Graph, Node, State, interpretations};

use crate::written::{tables, tables_with};

/// The written databases with the names of their schemas.
pub(crate) const WRITTEN: [(&str, &str); 4] = [
    ("OVN_Northbound", include_str!("databases/northbound.json")),
    ("OVN_Southbound", include_str!("databases/southbound.json")),
    ("Open_vSwitch", include_str!("databases/vswitch.json")),
    ("hardware_vtep", include_str!("databases/vtep.json")),
];

/// The graph of a written database.
pub(crate) fn graph(database: &str) -> Graph {
    let written = WRITTEN.iter().find(|(name, _)| *name == database);
    let (_, text) = written.expect("a written database");
    read(database, text)
}

/// The graph of a text.
pub(crate) fn read(database: &str, text: &str) -> Graph {
    let interpretation = interpretations::of(database).expect("a known database");
    (interpretation.read)(&tables(text))
}

/// The only node of a name.
pub(crate) fn named<'g>(graph: &'g Graph, label: &str) -> &'g Node {
    let mut found = graph.nodes.iter().filter(|node| node.label == label);
    let node = found.next().unwrap_or_else(|| panic!("no {label}"));
    assert!(found.next().is_none(), "two {label}");
    node
}

/// A fact of a node; empty without it.
pub(crate) fn fact<'g>(node: &'g Node, name: &str) -> &'g str {
    let fact = node.facts.iter().find(|(known, _)| *known == name);
    fact.map_or("", |(_, value)| value.as_str())
}

/// The name of the card in which a node is.
pub(crate) fn owner<'g>(graph: &'g Graph, label: &str) -> &'g str {
    let owner = named(graph, label).owner.expect("an owner");
    &graph.nodes[owner].label
}

/// The state of a node and its reason.
pub(crate) fn state<'g>(graph: &'g Graph, label: &str) -> (State, &'g str) {
    let node = named(graph, label);
    (node.state, node.reason.as_str())
}

/// The labels of the two ends of each edge, its own, and its state if it is not well.
pub(crate) fn edges(graph: &Graph) -> Vec<String> {
    let label = |node: usize| graph.nodes[node].label.as_str();
    let mut edges: Vec<String> = graph
        .edges
        .iter()
        .map(|edge| {
            let state = match edge.state {
                State::Ok => String::new(),
                state => format!(" ({})", state.word()),
            };
            let kind = edge.kind.class();
            format!(
                "{} {kind} {}: {}{state}",
                label(edge.from),
                label(edge.to),
                edge.label
            )
        })
        .collect();
    edges.sort();
    edges
}

#[test]
fn the_listed_columns_are_enough() {
    for (database, text) in WRITTEN {
        let interpretation = interpretations::of(database).expect("a known database");
        let listed = tables_with(text, |table, column| {
            let listed = interpretation
                .tables
                .iter()
                .find(|(name, _)| *name == table);
            listed.is_some_and(|(_, columns)| columns.contains(&column))
        });
        assert!(
            (interpretation.read)(&listed) == graph(database),
            "{database}"
        );
    }
}

#[test]
fn owners_are_cards_and_ids_can_be_read() {
    for (database, _) in WRITTEN {
        for node in &graph(database).nodes {
            let graph = graph(database);
            assert!(
                node.owner
                    .is_none_or(|owner| graph.nodes[owner].owner.is_none())
            );
            let text = node.id.to_string();
            assert_eq!(
                corvid_picture::Id::parse(&text).as_ref(),
                Some(&node.id),
                "{text}"
            );
        }
    }
}
