//! Two moments in one picture.

use corvid_picture::{Change, Graph, Picture, State, Texts, View, difference};

use crate::graphs::{fact, named, read};

fn merged() -> Graph {
    let moment = |text: &str| read("OVN_Northbound", text);
    difference::between(
        &moment(include_str!("databases/northbound.json")),
        &moment(include_str!("databases/northbound-later.json")),
    )
}

#[test]
fn nodes_and_edges_tell_how_they_differ() {
    let graph = merged();
    let change = |label: &str| named(&graph, label).change;
    assert_eq!(change("ops"), Change::Added);
    assert_eq!(change("web4"), Change::Added);
    assert_eq!(change("lab"), Change::Removed);
    assert_eq!(change("web3"), Change::Removed);
    assert_eq!(change("db2"), Change::Changed);
    assert_eq!(change("web1"), Change::None);
    assert_eq!(named(&graph, "db2").state, State::Ok);
    assert_eq!(fact(named(&graph, "db2"), "was"), "disabled");
    let web3 = named(&graph, "web3");
    assert_eq!(graph.nodes[web3.owner.expect("a switch")].label, "web");
    let mut edges: Vec<(&str, Change)> = graph
        .edges
        .iter()
        .filter(|edge| edge.change != Change::None)
        .map(|edge| (graph.nodes[edge.from].label.as_str(), edge.change))
        .collect();
    edges.sort_by_key(|edge| edge.0);
    assert_eq!(
        edges,
        [
            ("core-db", Change::Changed),
            ("core-lab", Change::Removed),
            ("core-ops", Change::Added),
        ]
    );
}

#[test]
fn a_graph_differs_from_itself_in_nothing() {
    let graph = crate::graphs::graph("OVN_Northbound");
    let merged = difference::between(&graph, &graph);
    assert!(merged.nodes.iter().all(|node| node.change == Change::None));
    assert!(merged.edges.iter().all(|edge| edge.change == Change::None));
    assert_eq!(merged.nodes, graph.nodes);
}

#[test]
fn changes_have_classes_and_marks() {
    let graph = merged();
    let svg = Picture::new(&graph, &View::default(), None).svg(&graph, &Texts::new("Changes"));
    for class in [
        "card switch ok added",
        "card switch ok removed",
        "link link ok changed",
        "port ok changed",
    ] {
        assert!(svg.contains(&format!("class=\"{class}\"")), "{class}");
    }
    for mark in ["added", "removed", "changed"] {
        assert!(
            svg.contains(&format!("href=\"#picture-mark-{mark}\"")),
            "{mark}"
        );
    }
    assert!(
        svg.contains("5 added, 6 removed, 2 changed"),
        "{}",
        &svg[..900]
    );
}

#[test]
fn hosts_that_keep_up_do_not_change_with_nb_cfg() {
    let text = include_str!("databases/southbound.json");
    let before = read("OVN_Southbound", text);
    let after = read(
        "OVN_Southbound",
        &text.replace("\"nb_cfg\": 12", "\"nb_cfg\": 13"),
    );
    let merged = difference::between(&before, &after);
    let changed = merged
        .nodes
        .iter()
        .filter(|node| node.change != Change::None);
    let labels: Vec<&str> = changed.map(|node| node.label.as_str()).collect();
    // It lagged before, and is one more behind.
    assert_eq!(labels, ["compute-2"]);
}
