//! `hardware_vtep`: switches of metal at the edge of an overlay.
//!
//! Physical switches are cards with their ports inside. A VLAN of a port is bound to a logical
//! switch; MAC addresses of a logical switch are behind a remote tunnel endpoint.

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::Uuid;

use crate::graph::{Change, Edge, EdgeKind, Graph, Id, Kind, Node, State};
use crate::tables::{Cells, Tables, shown};

use super::{counted, enough, sorted};

/// The tables and columns that are read.
pub const TABLES: &[(&str, &[&str])] = &[
    (
        "Physical_Switch",
        &[
            "name",
            "management_ips",
            "tunnel_ips",
            "ports",
            "tunnels",
            "switch_fault_status",
        ],
    ),
    (
        "Physical_Port",
        &["name", "description", "vlan_bindings", "port_fault_status"],
    ),
    ("Logical_Switch", &["name", "tunnel_key"]),
    ("Logical_Router", &["name", "switch_binding"]),
    ("Physical_Locator", &["encapsulation_type", "dst_ip"]),
    ("Physical_Locator_Set", &["locators"]),
    ("Ucast_Macs_Remote", &["logical_switch", "locator"]),
    ("Mcast_Macs_Remote", &["logical_switch", "locator_set"]),
    ("Tunnel", &["remote", "bfd_status"]),
];

/// Makes the graph of hardware endpoints.
#[must_use]
pub fn read(tables: &Tables) -> Graph {
    let mut reading = Reading {
        tables,
        graph: Graph::new(),
        own_addresses: tables
            .rows("Physical_Switch")
            .flat_map(|row| row.texts("tunnel_ips").collect::<Vec<_>>())
            .collect(),
    };
    for row in tables.rows("Logical_Switch") {
        reading.logical_switch(&row);
    }
    for row in tables.rows("Physical_Switch") {
        reading.physical_switch(&row);
    }
    for row in tables.rows("Logical_Router") {
        reading.logical_router(&row);
    }
    reading.locators();
    reading.graph
}

struct Reading<'a> {
    tables: &'a Tables,
    graph: Graph,
    /// The tunnel endpoints of the physical switches themselves.
    own_addresses: BTreeSet<&'a str>,
}

impl<'a> Reading<'a> {
    fn logical_switch(&mut self, row: &Cells<'_>) {
        let mut node = Node::of_row("Logical_Switch", row.uuid, Kind::Switch, row.text("name"));
        node.detail = row
            .integer("tunnel_key")
            .map_or(String::new(), |key| format!("VNI {key}"));
        self.graph.add(node);
    }

    fn physical_switch(&mut self, row: &Cells<'_>) {
        let mut node = Node::of_row("Physical_Switch", row.uuid, Kind::Host, row.text("name"));
        node.detail = counted(row.len("ports"), "port", "ports");
        for (name, column) in [
            ("management", "management_ips"),
            ("tunnels from", "tunnel_ips"),
        ] {
            node.fact(name, sorted(row.texts(column).map(str::to_owned)));
        }
        faults(&mut node, row, "switch_fault_status");
        let card = self.graph.add(node);
        for port in row.references("ports") {
            if let Some(port) = self.tables.row("Physical_Port", port) {
                self.physical_port(card, &port);
            }
        }
        for tunnel in row.references("tunnels") {
            if let Some(tunnel) = self.tables.row("Tunnel", tunnel) {
                self.tunnel(card, &tunnel);
            }
        }
    }

    fn physical_port(&mut self, card: usize, row: &Cells<'_>) {
        let mut node = Node::of_row("Physical_Port", row.uuid, Kind::Port, row.text("name"));
        node.owner = Some(card);
        node.detail = row.text("description").to_owned();
        node.fact(
            "VLANs",
            enough(row.pairs("vlan_bindings").map(|(vlan, _)| shown(vlan))),
        );
        faults(&mut node, row, "port_fault_status");
        let state = node.state;
        let port = self.graph.add(node);
        for (vlan, switch) in row.pairs("vlan_bindings") {
            let switch = switch.as_uuid();
            if let Some(switch) = switch.and_then(|id| self.graph.find_row("Logical_Switch", id)) {
                self.graph.edges.push(Edge {
                    from: switch,
                    to: port,
                    kind: EdgeKind::Link,
                    label: format!("VLAN {}", shown(vlan)),
                    state,
                    change: Change::None,
                });
            }
        }
    }

    fn logical_router(&mut self, row: &Cells<'_>) {
        let node = Node::of_row("Logical_Router", row.uuid, Kind::Router, row.text("name"));
        let router = self.graph.add(node);
        for (prefix, switch) in row.pairs("switch_binding") {
            let switch = switch.as_uuid();
            if let Some(switch) = switch.and_then(|id| self.graph.find_row("Logical_Switch", id)) {
                self.graph
                    .join(router, switch, EdgeKind::Link, shown(prefix));
            }
        }
    }

    /// The card of a far end; `None` if it is one of our own switches.
    fn remote(&mut self, locator: Uuid) -> Option<(usize, &'a str)> {
        let tables: &'a Tables = self.tables;
        let row = tables.row("Physical_Locator", locator)?;
        let address = row.text("dst_ip");
        if self.own_addresses.contains(address) {
            return None;
        }
        let mut node = Node::new(
            Id::Named("remote", address.to_owned()),
            Kind::Remote,
            address,
        );
        node.detail = "far end of tunnels".to_owned();
        Some((self.graph.add(node), row.text("encapsulation_type")))
    }

    fn tunnel(&mut self, card: usize, row: &Cells<'_>) {
        let Some((remote, kind)) = row.references("remote").find_map(|id| self.remote(id)) else {
            return;
        };
        let is_down = row
            .entry("bfd_status", "state")
            .is_some_and(|state| state != "up");
        self.graph.edges.push(Edge {
            from: card,
            to: remote,
            kind: EdgeKind::Tunnel,
            label: kind.to_owned(),
            state: if is_down { State::Down } else { State::Ok },
            change: Change::None,
        });
    }

    /// Joins logical switches to the far ends behind which they have addresses.
    fn locators(&mut self) {
        let mut macs: BTreeMap<(Uuid, Uuid), usize> = BTreeMap::new();
        let mut add = |switch: Option<Uuid>, locator: Uuid| {
            if let Some(switch) = switch {
                *macs.entry((switch, locator)).or_default() += 1;
            }
        };
        for row in self.tables.rows("Ucast_Macs_Remote") {
            for locator in row.references("locator") {
                add(row.references("logical_switch").next(), locator);
            }
        }
        for row in self.tables.rows("Mcast_Macs_Remote") {
            let sets = row.references("locator_set");
            for set in sets.filter_map(|id| self.tables.row("Physical_Locator_Set", id)) {
                for locator in set.references("locators") {
                    add(row.references("logical_switch").next(), locator);
                }
            }
        }
        for ((switch, locator), count) in macs {
            let Some(switch) = self.graph.find_row("Logical_Switch", switch) else {
                continue;
            };
            if let Some((remote, _)) = self.remote(locator) {
                let label = counted(count, "MAC address", "MAC addresses");
                self.graph.join(switch, remote, EdgeKind::Tunnel, label);
            }
        }
    }
}

/// Marks a node whose column of faults has one.
fn faults(node: &mut Node, row: &Cells<'_>, column: &str) {
    let faults = sorted(row.texts(column).map(str::to_owned));
    if !faults.is_empty() {
        node.mark(State::Down, faults);
    }
}
