//! The interpretation of `hardware_vtep`.

use corvid_picture::State;

use crate::graphs::{edges, graph, named, owner, state};

#[test]
fn vlans_and_addresses_join_ports_logical_switches_and_far_ends() {
    let graph = graph("hardware_vtep");
    assert_eq!(
        edges(&graph),
        [
            "backup link swp1: VLAN 20",
            "backup tunnel 192.0.2.11: 1 MAC address",
            "fabric-router link backup: 10.2.0.1/24",
            "fabric-router link storage: 10.1.0.1/24",
            "rack-7 tunnel 192.0.2.11: vxlan_over_ipv4 (down)",
            "storage link swp1: VLAN 10",
            "storage link swp2: VLAN 10 (down)",
            "storage tunnel 192.0.2.11: 2 MAC addresses",
        ]
    );
    assert_eq!(owner(&graph, "swp1"), "rack-7");
    assert_eq!(named(&graph, "storage").detail, "VNI 5010");
    assert_eq!(state(&graph, "swp2"), (State::Down, "no light"));
    // The switch's own endpoint is not a far end.
    assert!(graph.nodes.iter().all(|node| node.label != "192.0.2.7"));
}
