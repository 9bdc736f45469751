//! The interpretation of `OVN_Southbound`.

use std::collections::BTreeSet;

use corvid_picture::{Graph, Kind, Picture, State, View, interpretations};

use crate::graphs::{edges, fact, named, owner};
use crate::large;

fn graph() -> Graph {
    crate::graphs::graph("OVN_Southbound")
}

#[test]
fn ports_are_inside_of_the_host_that_bound_them() {
    let graph = graph();
    assert_eq!(owner(&graph, "web1"), "compute-1");
    assert_eq!(owner(&graph, "web3"), "compute-2");
    assert_eq!(owner(&graph, "web4"), "On no host");
    assert_eq!(named(&graph, "web1").detail, "web");
    assert_eq!(named(&graph, "compute-1").detail, "2 ports");
    assert_eq!(fact(named(&graph, "web4"), "requested on"), "compute-old");
    assert!(graph.nodes.iter().all(|node| node.label != "public-net"));
}

#[test]
fn hosts_that_lag_or_are_gone_are_told() {
    let graph = graph();
    let state = |label| crate::graphs::state(&graph, label);
    assert_eq!(state("compute-1"), (State::Ok, ""));
    assert_eq!(state("compute-2"), (State::Warn, "nb_cfg 9 of 12"));
    assert_eq!(state("compute-3"), (State::Warn, "no tunnel endpoint"));
    assert_eq!(
        state("compute-old"),
        (State::Down, "gone: it has no chassis row")
    );
    assert_eq!(state("web2"), (State::Warn, "bound, but not up"));
    assert_eq!(
        graph.notes,
        [
            (State::Warn, "1 port is on no host".to_owned()),
            (State::Warn, "1 host has not reached nb_cfg 12".to_owned()),
        ]
    );
}

#[test]
fn gateways_are_joined_to_the_hosts_that_may_serve_them() {
    let graph = graph();
    assert_eq!(named(&graph, "edge-out").kind, Kind::Gateway);
    assert_eq!(
        edges(&graph),
        [
            "gateway-1 link edge-out: priority 20",
            "gateway-1 link lab-out: priority 5 (warn)",
            "gateway-2 standby edge-out: priority 10",
            "gateway-2 standby lab-out: priority 9",
            "gateway-2 standby lost-out: priority 10",
            "geneve tunnel compute-1: 192.0.2.11",
            "geneve tunnel compute-2: 192.0.2.12",
            "geneve tunnel gateway-1: 192.0.2.1",
            "geneve tunnel gateway-2: 192.0.2.2",
        ]
    );
    let state = |label| crate::graphs::state(&graph, label);
    assert_eq!(state("edge-out"), (State::Ok, ""));
    assert_eq!(
        state("lab-out"),
        (State::Warn, "on gateway-1, not on gateway-2 (priority 9)")
    );
    assert_eq!(state("lost-out"), (State::Down, "no host serves it"));
}

#[test]
fn many_gateways_are_inside_of_the_hosts_that_serve_them() {
    let interpretation = interpretations::of("OVN_Southbound").expect("it is known");
    let graph = (interpretation.read)(&large::southbound(60, 20));
    let gateways = graph.nodes.iter().filter(|node| node.kind == Kind::Gateway);
    let owners: BTreeSet<&str> = gateways
        .clone()
        .filter_map(|node| Some(graph.nodes[node.owner?].label.as_str()))
        .collect();
    assert_eq!(gateways.count(), 20);
    let expected = ["compute0", "compute1", "compute2", "compute3"];
    assert_eq!(owners, BTreeSet::from(expected));
    assert_eq!(
        fact(named(&graph, "cr-lrp5"), "hosts"),
        "compute1 (priority 40), compute2 (priority 30), compute3 (priority 20), \
         compute0 (priority 10)"
    );
    let size = Picture::new(&graph, &View::default(), None).layout.size;
    assert!(size.width < 3000 && size.height < 1500, "{size:?}");
}
