//! The interpretation of `OVN_Northbound`.

use corvid_picture::{Graph, Id, Kind, State};

use crate::graphs::{edges, fact, named, owner};
use crate::written::uuid;

fn graph() -> Graph {
    crate::graphs::graph("OVN_Northbound")
}

#[test]
fn router_ports_join_routers_and_switches() {
    assert_eq!(
        edges(&graph()),
        [
            "core-db link db-core: 10.0.2.1/24",
            "core-lab link lab-core: 10.0.3.1/24 (down)",
            "core-up link join-core: 100.64.0.2/24",
            "core-web link web-core: 10.0.1.1/24 +1",
            "edge-in link join-edge: 100.64.0.1/24",
            "edge-out link public-edge: 203.0.113.10/24",
            "physnet1 link public-net: VLAN 100",
        ]
    );
}

#[test]
fn ports_are_inside_of_their_switch() {
    let graph = graph();
    let web1 = named(&graph, "web1");
    assert_eq!(owner(&graph, "web1"), "web");
    assert_eq!(named(&graph, "web").kind, Kind::Switch);
    assert_eq!(web1.id, Id::Row("Logical_Switch_Port", uuid("web1")));
}

#[test]
fn states_of_ports_have_reasons() {
    let graph = graph();
    let state = |label| crate::graphs::state(&graph, label);
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
    // Six parts, but no MAC address.
    assert_eq!(named(&graph, "db1").detail, "fd00:2:0::0:b");
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
