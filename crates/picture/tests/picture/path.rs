//! Ways between ports, and search.

use std::collections::BTreeSet;

use corvid_picture::{Graph, Id, Picture, State, Texts, View, path, search};

use crate::graphs::graph;
use crate::written::uuid;

fn port(word: &str) -> Id {
    Id::Row("Logical_Switch_Port", uuid(word))
}

fn way(graph: &Graph, from: &str, to: &str) -> String {
    let path = path::between(graph, &port(from), &port(to)).expect("a way");
    let labels = path
        .nodes
        .iter()
        .map(|&node| graph.nodes[node].label.as_str());
    let down = if path.down.is_empty() { "" } else { " (down)" };
    labels.collect::<Vec<_>>().join(" ") + down
}

#[test]
fn a_way_leads_through_switches_and_routers() {
    let graph = graph("OVN_Northbound");
    assert_eq!(
        way(&graph, "web1", "db1"),
        "web1 web web-core core-web core-router core-db db-core db db1"
    );
    assert_eq!(way(&graph, "web1", "web2"), "web1 web web2");
    assert!(way(&graph, "web1", "public-net").contains(" edge-router "));
    assert!(way(&graph, "web1", "lab1").ends_with(" (down)"));
    assert!(path::between(&graph, &port("web1"), &port("nobody")).is_none());
}

#[test]
fn a_picture_of_a_way_has_its_cards_alone() {
    let graph = graph("OVN_Northbound");
    let path = path::between(&graph, &port("web1"), &port("db1")).expect("a way");
    let view = View {
        only: Some(path.ids(&graph)),
        marked: path.ids(&graph),
        ..View::default()
    };
    let picture = Picture::new(&graph, &view, None);
    let cards: BTreeSet<&str> = picture
        .cards
        .iter()
        .filter_map(|card| card.node)
        .map(|node| graph.nodes[node].label.as_str())
        .collect();
    assert_eq!(cards, BTreeSet::from(["core-router", "db", "web"]));
    let svg = picture.svg(&graph, &Texts::new("Way"));
    assert!(svg.contains("port ok marked"));
}

#[test]
fn search_finds_names_addresses_and_facts() {
    let graph = graph("OVN_Northbound");
    let found = |text: &str| -> Vec<&str> {
        let found = search(&graph, text, 3);
        found
            .iter()
            .map(|&node| graph.nodes[node].label.as_str())
            .collect()
    };
    assert_eq!(found("WEB"), ["web", "web-core", "web1"]);
    // The second one is a backend of a load balancer.
    assert_eq!(found("10.0.1.12"), ["web2", "shop"]);
    assert_eq!(found("servers"), ["db1", "web1", "web2"]);
    assert_eq!(found("0a:00:00:00:01:0d"), ["web3"]);
    assert!(found("  ").is_empty());
    assert!(found("nothing like it").is_empty());
}

#[test]
fn a_neighbourhood_is_bounded_by_its_depth() {
    let graph = graph("OVN_Northbound");
    let around = |depth: usize| {
        let view = View {
            focus: Some(port("web1")),
            depth,
            ..View::default()
        };
        let picture = Picture::new(&graph, &view, None);
        let cards = picture.cards.iter().filter(|card| card.node.is_some());
        (cards.count(), picture.left_out)
    };
    assert_eq!(around(0), (1, 7));
    assert_eq!(around(1), (2, 6));
    assert_eq!(around(2), (5, 3));
    assert_eq!(around(9), (8, 0));
}

#[test]
fn nodes_in_trouble_are_found_the_worst_first() {
    let graph = graph("OVN_Northbound");
    let found = |least: State| -> Vec<&str> {
        let found = search::troubled(&graph, least, 9);
        found
            .iter()
            .map(|&node| graph.nodes[node].label.as_str())
            .collect()
    };
    assert_eq!(found(State::Down), ["core-lab", "db2", "web3"]);
    assert_eq!(
        found(State::Unknown),
        ["core-lab", "db2", "web3", "lab-lost", "lab1"]
    );
}
