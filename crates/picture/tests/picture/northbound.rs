//! The interpretation of `OVN_Northbound`.

use corvid_picture::{Graph, Id, Kind, Node, State, interpretations};

use crate::written::{tables, uuid};

fn graph() -> Graph {
    let interpretation = interpretations::of("OVN_Northbound").expect("it is known");
    (interpretation.read)(&tables(include_str!("databases/northbound.json")))
}

fn named<'g>(graph: &'g Graph, label: &str) -> &'g Node {
    let mut found = graph.nodes.iter().filter(|node| node.label == label);
    let node = found.next().unwrap_or_else(|| panic!("no {label}"));
    assert!(found.next().is_none(), "two {label}");
    node
}

fn fact<'g>(node: &'g Node, name: &str) -> &'g str {
    let fact = node.facts.iter().find(|(known, _)| *known == name);
    fact.map_or("", |(_, value)| value.as_str())
}

/// The labels of the two ends of each edge, and its own.
fn edges(graph: &Graph) -> Vec<String> {
    let label = |node: usize| graph.nodes[node].label.as_str();
    let mut edges: Vec<String> = graph
        .edges
        .iter()
        .map(|edge| format!("{} - {}: {}", label(edge.from), label(edge.to), edge.label))
        .collect();
    edges.sort();
    edges
}

#[test]
fn router_ports_join_routers_and_switches() {
    assert_eq!(
        edges(&graph()),
        [
            "core-db - db-core: 10.0.2.1/24",
            "core-lab - lab-core: 10.0.3.1/24",
            "core-up - join-core: 100.64.0.2/24",
            "core-web - web-core: 10.0.1.1/24 +1",
            "edge-in - join-edge: 100.64.0.1/24",
            "edge-out - public-edge: 203.0.113.10/24",
            "physnet1 - public-net: VLAN 100",
        ]
    );
}

#[test]
fn ports_are_inside_of_their_switch() {
    let graph = graph();
    let web1 = named(&graph, "web1");
    let owner = &graph.nodes[web1.owner.expect("a switch")];
    assert_eq!(owner.label, "web");
    assert_eq!(owner.kind, Kind::Switch);
    assert_eq!(web1.id, Id::Row("Logical_Switch_Port", uuid("web1")));
}

#[test]
fn states_of_ports_have_reasons() {
    let graph = graph();
    let state = |label: &str| {
        let node = named(&graph, label);
        (node.state, node.reason.as_str())
    };
    assert_eq!(state("web1"), (State::Ok, ""));
    assert_eq!(state("web3"), (State::Down, "down"));
    assert_eq!(state("db2"), (State::Down, "disabled"));
    assert_eq!(state("core-lab"), (State::Down, "disabled"));
    assert_eq!(state("lab1"), (State::Unknown, "never bound"));
    assert_eq!(
        state("lab-lost"),
        (State::Warn, "there is no router port no-such-port")
    );
}

#[test]
fn addresses_groups_and_rules_of_a_port_are_facts() {
    let graph = graph();
    let web1 = named(&graph, "web1");
    assert_eq!(web1.detail, "10.0.1.11");
    assert_eq!(named(&graph, "web2").detail, "10.0.1.12");
    assert_eq!(fact(web1, "DHCPv4"), "10.0.1.0/24");
    assert_eq!(fact(web1, "port groups"), "servers");
    assert_eq!(fact(web1, "ACLs of its groups"), "2");
    assert_eq!(
        fact(web1, "first of them"),
        "1001 from-lport udp.dst == 53: allow, 100 from-lport ip: drop"
    );
}

#[test]
fn routers_show_translations_balancers_and_gateways() {
    let graph = graph();
    assert_eq!(named(&graph, "edge-router").detail, "2 ports · 2 NAT");
    assert_eq!(named(&graph, "203.0.113.20").detail, "10.0.1.11");
    let shop = named(&graph, "shop");
    assert_eq!(shop.kind, Kind::LoadBalancer);
    assert_eq!(shop.detail, "203.0.113.80:443");
    assert_eq!(
        fact(named(&graph, "edge-out"), "gateway chassis"),
        "gw1 (priority 20), gw2 (priority 10)"
    );
}

#[test]
fn notes_tell_of_ports_that_are_down_and_of_lag() {
    assert_eq!(
        graph().notes,
        [
            (State::Down, "2 ports are down".to_owned()),
            (State::Warn, "The hypervisors: hv_cfg 11 of 12".to_owned()),
        ]
    );
}
