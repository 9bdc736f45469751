//! The interpretation of `Open_vSwitch`.

use corvid_picture::{Graph, Kind, State};

use crate::graphs::{edges, fact, named, owner};

fn graph() -> Graph {
    crate::graphs::graph("Open_vSwitch")
}

#[test]
fn patch_ports_and_tunnels_join_bridges() {
    assert_eq!(
        edges(&graph()),
        [
            "ovn-b711-0 tunnel 192.0.2.12: geneve (down)",
            "ovn-gw1-0 tunnel 192.0.2.1: geneve",
            "patch-to-ex link patch-to-int: patch",
        ]
    );
}

#[test]
fn ports_tell_their_kind_and_what_is_behind_them() {
    let graph = graph();
    let told = |label| {
        let node = named(&graph, label);
        (node.kind, node.detail.as_str())
    };
    assert_eq!(told("tap0001"), (Kind::Port, "web1"));
    assert_eq!(told("tap0002"), (Kind::Port, "VLAN 42"));
    assert_eq!(told("ovn-gw1-0"), (Kind::Tunnel, "192.0.2.1"));
    assert_eq!(told("bond0"), (Kind::Bond, "2 interfaces"));
    assert_eq!(told("bond0/eth0"), (Kind::Uplink, "25 Gb/s"));
    assert_eq!(told("patch-to-int"), (Kind::Patch, "patch"));
    assert_eq!(owner(&graph, "bond0/eth0"), "br-ex");
    assert_eq!(fact(named(&graph, "bond0"), "trunk of"), "100, 101");
}

#[test]
fn states_have_reasons() {
    let graph = graph();
    let state = |label| crate::graphs::state(&graph, label);
    assert_eq!(state("bond0"), (State::Warn, "1 of 2 down"));
    assert_eq!(state("bond0/eth1"), (State::Down, "no link"));
    assert_eq!(state("ovn-b711-0"), (State::Down, "BFD: down"));
    assert_eq!(
        state("tap0003"),
        (
            State::Down,
            "could not open network device tap0003 (No such device)"
        )
    );
    assert_eq!(
        state("patch-to-none"),
        (State::Warn, "there is no patch port nowhere")
    );
    let bridges: Vec<&str> = graph
        .nodes
        .iter()
        .filter(|node| node.kind == Kind::Switch)
        .map(|node| node.reason.as_str())
        .collect();
    assert!(bridges.contains(&"no controller is connected"));
    assert_eq!(
        graph.notes,
        [
            (State::Ok, "Open vSwitch 3.5.0 on compute-1".to_owned()),
            (State::Down, "3 ports are down".to_owned()),
        ]
    );
}

#[test]
fn the_own_port_of_a_bridge_may_be_down() {
    let graph = graph();
    let own: Vec<State> = graph
        .nodes
        .iter()
        .filter(|node| node.kind == Kind::Port && node.label == "br-int")
        .map(|node| node.state)
        .collect();
    assert_eq!(own, [State::Ok]);
}
