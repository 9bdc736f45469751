//! `Open_vSwitch`: the bridges of one host, their ports, and the far ends of tunnels.
//!
//! Bridges are cards with their ports inside. A bond is a port followed by its interfaces. Patch
//! ports that name each other join two bridges, and a tunnel joins its bridge to a card for the
//! address of the far end.

use std::collections::BTreeMap;

use crate::graph::{Change, Edge, EdgeKind, Graph, Id, Kind, Node, State};
use crate::tables::{Cells, Tables};

use super::{counted, enough, sorted};

/// The tables and columns that are read.
pub const TABLES: &[(&str, &[&str])] = &[
    (
        "Open_vSwitch",
        &["ovs_version", "external_ids", "manager_options"],
    ),
    (
        "Bridge",
        &[
            "name",
            "ports",
            "controller",
            "fail_mode",
            "datapath_type",
            "mirrors",
        ],
    ),
    (
        "Port",
        &[
            "name",
            "interfaces",
            "tag",
            "trunks",
            "vlan_mode",
            "bond_mode",
            "lacp",
        ],
    ),
    (
        "Interface",
        &[
            "name",
            "type",
            "options",
            "external_ids",
            "admin_state",
            "link_state",
            "link_speed",
            "mtu",
            "mac_in_use",
            "error",
            "ofport",
            "bfd_status",
            "cfm_fault",
        ],
    ),
    ("Controller", &["target", "is_connected", "role"]),
    ("Manager", &["target", "is_connected"]),
];

/// Types of interfaces that are tunnels.
const TUNNELS: [&str; 11] = [
    "geneve",
    "vxlan",
    "gre",
    "ip6gre",
    "erspan",
    "ip6erspan",
    "stt",
    "lisp",
    "gtpu",
    "bareudp",
    "srv6",
];

/// Makes the graph of a host's bridges.
#[must_use]
pub fn read(tables: &Tables) -> Graph {
    let mut reading = Reading {
        tables,
        graph: Graph::new(),
        patches: BTreeMap::new(),
    };
    for row in tables.rows("Bridge") {
        reading.bridge(&row);
    }
    reading.join_patches();
    reading.notes();
    reading.graph
}

struct Reading<'a> {
    tables: &'a Tables,
    graph: Graph,
    /// Patch ports by name: the node and the name of the peer.
    patches: BTreeMap<&'a str, (usize, &'a str)>,
}

impl<'a> Reading<'a> {
    fn bridge(&mut self, row: &Cells<'a>) {
        let mut node = Node::of_row("Bridge", row.uuid, Kind::Switch, row.text("name"));
        node.detail = counted(row.len("ports"), "port", "ports");
        node.fact("datapath", row.text("datapath_type"));
        node.fact("fail mode", row.text("fail_mode"));
        node.count("mirrors", row.len("mirrors"));
        let controllers: Vec<Cells<'_>> = row
            .references("controller")
            .filter_map(|id| self.tables.row("Controller", id))
            .collect();
        node.fact("controllers", sorted(controllers.iter().map(connection)));
        let is_lost = |row: &Cells<'_>| row.boolean("is_connected") == Some(false);
        if !controllers.is_empty() && controllers.iter().all(is_lost) {
            node.mark(State::Warn, "no controller is connected");
        }
        let card = self.graph.add(node);
        for port in row.references("ports") {
            if let Some(port) = self.tables.row("Port", port) {
                self.port(card, &port);
            }
        }
    }

    fn port(&mut self, card: usize, row: &Cells<'a>) {
        let interfaces: Vec<Cells<'a>> = row
            .references("interfaces")
            .filter_map(|id| self.tables.row("Interface", id))
            .collect();
        if let [interface] = interfaces.as_slice() {
            self.interface(card, row, interface, row.text("name"));
            return;
        }
        let mut node = Node::of_row("Port", row.uuid, Kind::Bond, row.text("name"));
        node.owner = Some(card);
        node.detail = counted(interfaces.len(), "interface", "interfaces");
        node.fact("bond mode", row.text("bond_mode"));
        node.fact("LACP", row.text("lacp"));
        vlan(&mut node, row);
        let down = interfaces
            .iter()
            .filter(|row| trouble(row).is_some())
            .count();
        if interfaces.is_empty() {
            node.mark(State::Down, "it has no interface");
        } else if down == interfaces.len() {
            node.mark(State::Down, "all interfaces are down");
        } else if down > 0 {
            node.mark(State::Warn, format!("{down} of {} down", interfaces.len()));
        }
        self.graph.add(node);
        for interface in &interfaces {
            let label = format!("{}/{}", row.text("name"), interface.text("name"));
            self.interface(card, row, interface, &label);
        }
    }

    fn interface(&mut self, card: usize, port: &Cells<'_>, row: &Cells<'a>, label: &str) {
        let kind = kind(row, port.len("interfaces") > 1);
        let mut node = Node::of_row("Interface", row.uuid, kind, label);
        node.owner = Some(card);
        // Few hosts use the port that a bridge has in the system itself: it is down nearly
        // everywhere.
        let is_own = row.text("type") == "internal" && self.graph.nodes[card].label == label;
        let error = row.text("error");
        match trouble(row) {
            Some(_) if is_own && error.is_empty() => node.fact("link", "down, as usual"),
            Some(reason) => node.mark(State::Down, reason),
            None => {}
        }
        match row.text("type") {
            "" => {}
            interface_type => node.detail = interface_type.to_owned(),
        }
        let logical_port = row.entry("external_ids", "iface-id").unwrap_or("");
        if !logical_port.is_empty() {
            node.detail = logical_port.to_owned();
        }
        if let Some(speed) = row.integer("link_speed").filter(|&speed| speed > 0) {
            node.detail = shown_speed(speed);
        }
        vlan(&mut node, port);
        for (name, column) in [("type", "type"), ("MAC", "mac_in_use")] {
            node.fact(name, row.text(column));
        }
        for (name, column) in [("MTU", "mtu"), ("OpenFlow port", "ofport")] {
            if let Some(number) = row.integer(column) {
                node.fact(name, number.to_string());
            }
        }
        node.fact("logical port", logical_port);
        let state = node.state;
        let remote = row.entry("options", "remote_ip").filter(|ip| *ip != "flow");
        if kind == Kind::Tunnel {
            node.detail = remote.unwrap_or("any").to_owned();
        }
        let index = self.graph.add(node);
        if kind == Kind::Patch {
            let peer = row.entry("options", "peer").unwrap_or("");
            self.patches.insert(row.text("name"), (index, peer));
        }
        if let Some(address) = remote.filter(|_| kind == Kind::Tunnel) {
            let id = Id::Named("remote", address.to_owned());
            let mut node = Node::new(id, Kind::Remote, address);
            node.detail = "far end of tunnels".to_owned();
            let remote = self.graph.add(node);
            self.graph.edges.push(Edge {
                from: index,
                to: remote,
                kind: EdgeKind::Tunnel,
                label: row.text("type").to_owned(),
                state,
                change: Change::None,
            });
        }
    }

    fn join_patches(&mut self) {
        for (&name, &(port, peer)) in &self.patches {
            let reason = match self.patches.get(peer) {
                Some(&(other, back)) if back == name => {
                    // Each pair once.
                    if name < peer {
                        self.graph.join(port, other, EdgeKind::Link, "patch");
                    }
                    continue;
                }
                Some(_) => format!("its peer {peer} names another port"),
                None if peer.is_empty() => "names no peer".to_owned(),
                None => format!("there is no patch port {peer}"),
            };
            self.graph.nodes[port].mark(State::Warn, reason);
        }
    }

    fn notes(&mut self) {
        for row in self.tables.rows("Open_vSwitch") {
            let host = row.entry("external_ids", "hostname");
            let host = host.or_else(|| row.entry("external_ids", "system-id"));
            let version = row.text("ovs_version");
            if let (Some(host), false) = (host, version.is_empty()) {
                let text = format!("Open vSwitch {version} on {host}");
                self.graph.notes.push((State::Ok, text));
            }
            for manager in row.references("manager_options") {
                let Some(manager) = self.tables.row("Manager", manager) else {
                    continue;
                };
                if manager.boolean("is_connected") == Some(false) {
                    let text = format!("Manager {}", connection(&manager));
                    self.graph.notes.push((State::Warn, text));
                }
            }
        }
        let nodes = self.graph.nodes.iter();
        let down = nodes
            .filter(|node| node.owner.is_some() && node.state == State::Down)
            .count();
        if down > 0 {
            let ports = counted(down, "port is", "ports are");
            self.graph
                .notes
                .push((State::Down, format!("{ports} down")));
        }
    }
}

/// A controller or manager and whether it is connected.
fn connection(row: &Cells<'_>) -> String {
    let target = row.text("target");
    match (row.boolean("is_connected"), row.text("role")) {
        (Some(false), _) => format!("{target} is not connected"),
        (_, "") => target.to_owned(),
        (_, role) => format!("{target} ({role})"),
    }
}

fn kind(row: &Cells<'_>, is_bonded: bool) -> Kind {
    let name = row.text("name");
    let is_virtual = || {
        row.entry("external_ids", "iface-id").is_some()
            || ["tap", "vnet", "veth", "qvo"]
                .iter()
                .any(|start| name.starts_with(start))
    };
    match row.text("type") {
        "patch" => Kind::Patch,
        tunnel if TUNNELS.contains(&tunnel) => Kind::Tunnel,
        "" | "system" | "dpdk" | "afxdp" if is_bonded || !is_virtual() => Kind::Uplink,
        _ => Kind::Port,
    }
}

/// Why an interface does not work.
fn trouble(row: &Cells<'_>) -> Option<String> {
    let error = row.text("error");
    if !error.is_empty() {
        return Some(error.to_owned());
    }
    if row.integer("ofport") == Some(-1) {
        return Some("could not be created".to_owned());
    }
    if row.text("admin_state") == "down" {
        return Some("administratively down".to_owned());
    }
    if row.text("link_state") == "down" {
        return Some("no link".to_owned());
    }
    match row.entry("bfd_status", "state") {
        Some(state) if state != "up" => return Some(format!("BFD: {state}")),
        _ => {}
    }
    (row.boolean("cfm_fault") == Some(true)).then(|| "CFM fault".to_owned())
}

/// Tells the VLANs of a port: an access port's in short, those of a trunk when hovering.
fn vlan(node: &mut Node, port: &Cells<'_>) {
    if let Some(tag) = port.integer("tag") {
        node.detail = format!("VLAN {tag}");
        node.fact("VLAN", tag.to_string());
    }
    node.fact("VLAN mode", port.text("vlan_mode"));
    let trunks = port.cell("trunks").into_iter().flatten();
    node.fact(
        "trunk of",
        enough(trunks.filter_map(|(key, _)| Some(key.as_integer()?.to_string()))),
    );
}

/// Bits per second as a person says them.
fn shown_speed(speed: i64) -> String {
    match speed {
        1_000_000_000.. if speed % 1_000_000_000 == 0 => {
            format!("{} Gb/s", speed / 1_000_000_000)
        }
        _ => format!("{} Mb/s", speed / 1_000_000),
    }
}
