//! `OVN_Southbound`: hosts, the overlay between them, and which port runs where.
//!
//! Tunnels join every host to every other one, so they are not drawn one by one: an overlay is a
//! card, and each host is joined to it by its own address. Ports are inside the host that they are
//! bound to. Gateway ports are cards of their own while they are few, joined to the hosts that may
//! serve them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use corvid_data::Uuid;

use crate::graph::{Change, Edge, EdgeKind, Graph, Id, Kind, Node, State};
use crate::tables::{Cells, Tables};

use super::{counted, enough, sorted};

/// The tables and columns that are read.
pub const TABLES: &[(&str, &[&str])] = &[
    ("SB_Global", &["nb_cfg"]),
    (
        "Chassis",
        &["name", "hostname", "encaps", "nb_cfg", "transport_zones"],
    ),
    ("Chassis_Private", &["name", "chassis", "nb_cfg"]),
    ("Encap", &["type", "ip"]),
    ("Datapath_Binding", &["external_ids"]),
    (
        "Port_Binding",
        &[
            "logical_port",
            "type",
            "gateway_chassis",
            "ha_chassis_group",
            "options",
            "datapath",
            "parent_port",
            "tag",
            "chassis",
            "additional_chassis",
            "mac",
            "up",
        ],
    ),
    ("Gateway_Chassis", &["chassis", "priority"]),
    ("HA_Chassis_Group", &["ha_chassis"]),
    ("HA_Chassis", &["chassis", "priority"]),
];

/// The most links between gateway ports that are cards and the hosts that may serve them. With more
/// of them, gateway ports are inside the hosts that serve them.
const GATEWAY_LINKS_MAX: usize = 24;

/// Makes the graph of hosts and bindings.
#[must_use]
pub fn read(tables: &Tables) -> Graph {
    let mut reading = Reading {
        tables,
        graph: Graph::new(),
        wanted: tables
            .rows("SB_Global")
            .find_map(|row| row.integer("nb_cfg"))
            .unwrap_or(0),
        behind: 0,
        unbound: 0,
    };
    reading.chassis();
    let (mut gateways, mut ports) = (Vec::new(), Vec::new());
    for row in tables.rows("Port_Binding") {
        match row.text("type") {
            "chassisredirect" => gateways.push(row),
            // The same on every host, or between datapaths: bound nowhere.
            "patch" | "localnet" | "localport" => {}
            _ => ports.push(row),
        }
    }
    for row in &ports {
        reading.port(row);
    }
    let links = gateways.iter().map(|row| reading.candidates(row).len());
    let are_cards = links.sum::<usize>() <= GATEWAY_LINKS_MAX;
    for row in &gateways {
        reading.gateway(row, are_cards);
    }
    reading.counts();
    reading.graph
}

struct Reading<'a> {
    tables: &'a Tables,
    graph: Graph,
    /// `nb_cfg` of the whole.
    wanted: i64,
    /// The number of hosts that have not reached it.
    behind: usize,
    /// The number of ports that are bound to no host.
    unbound: usize,
}

impl Reading<'_> {
    fn chassis(&mut self) {
        let private: BTreeMap<&str, Cells<'_>> = self
            .tables
            .rows("Chassis_Private")
            .map(|row| (row.text("name"), row))
            .collect();
        for row in self.tables.rows("Chassis") {
            let name = match row.text("hostname") {
                "" => row.text("name"),
                hostname => hostname,
            };
            let mut node = Node::of_row("Chassis", row.uuid, Kind::Host, name);
            node.fact("chassis", row.text("name"));
            node.fact(
                "transport zones",
                sorted(row.texts("transport_zones").map(str::to_owned)),
            );
            let reached = private
                .get(row.text("name"))
                .unwrap_or(&row)
                .integer("nb_cfg")
                .unwrap_or(0);
            // Told only of hosts that lag: it changes everywhere with each change of the network.
            if reached < self.wanted {
                self.behind += 1;
                node.mark(State::Warn, format!("nb_cfg {reached} of {}", self.wanted));
            }
            if row.len("encaps") == 0 {
                node.mark(State::Warn, "no tunnel endpoint");
            }
            let card = self.graph.add(node);
            for encap in row.references("encaps") {
                if let Some(encap) = self.tables.row("Encap", encap) {
                    self.tunnel_endpoint(card, &encap);
                }
            }
        }
        for row in self.tables.rows("Chassis_Private") {
            if row.references("chassis").next().is_none() {
                let name = row.text("name");
                let mut node = Node::of_row("Chassis_Private", row.uuid, Kind::Host, name);
                node.mark(State::Down, "gone: it has no chassis row");
                self.graph.add(node);
            }
        }
    }

    fn tunnel_endpoint(&mut self, card: usize, encap: &Cells<'_>) {
        let kind = encap.text("type");
        let mut node = Node::new(Id::Named("overlay", kind.to_owned()), Kind::Fabric, kind);
        node.detail = "every host to every other one".to_owned();
        let overlay = self.graph.add(node);
        self.graph
            .join(overlay, card, EdgeKind::Tunnel, encap.text("ip"));
        self.graph.nodes[card].fact("tunnel endpoint", format!("{kind} {}", encap.text("ip")));
    }

    fn node_of(&self, row: &Cells<'_>, kind: Kind) -> Node {
        let mut node = Node::of_row("Port_Binding", row.uuid, kind, row.text("logical_port"));
        for datapath in row.references("datapath") {
            if let Some(datapath) = self.tables.row("Datapath_Binding", datapath) {
                node.detail = datapath
                    .entry("external_ids", "name")
                    .unwrap_or("")
                    .to_owned();
            }
        }
        node.fact("type", row.text("type"));
        node.fact("addresses", sorted(row.texts("mac").map(str::to_owned)));
        node.fact("inside of", row.text("parent_port"));
        node.fact(
            "requested on",
            row.entry("options", "requested-chassis").unwrap_or(""),
        );
        let more = row.references("additional_chassis");
        node.fact("also on", sorted(more.map(|chassis| self.name_of(chassis))));
        node
    }

    fn name_of(&self, chassis: Uuid) -> String {
        match self.graph.find_row("Chassis", chassis) {
            Some(card) => self.graph.nodes[card].label.clone(),
            None => "an unknown chassis".to_owned(),
        }
    }

    /// The card of the host that a port is bound to, or the one of ports without a host.
    fn host_of(&mut self, row: &Cells<'_>) -> (usize, bool) {
        let bound = row.references("chassis").next();
        if let Some(card) = bound.and_then(|chassis| self.graph.find_row("Chassis", chassis)) {
            return (card, true);
        }
        self.unbound += 1;
        let mut node = Node::new(
            Id::Named("unbound", String::new()),
            Kind::Remote,
            "On no host",
        );
        node.mark(State::Warn, "no host bound them");
        (self.graph.add(node), false)
    }

    fn port(&mut self, row: &Cells<'_>) {
        let kind = match row.text("type") {
            "l3gateway" => Kind::Gateway,
            "l2gateway" | "vtep" => Kind::Uplink,
            "remote" => Kind::Tunnel,
            _ => Kind::Port,
        };
        let mut node = self.node_of(row, kind);
        let (card, is_bound) = self.host_of(row);
        match (is_bound, row.boolean("up")) {
            (false, _) => node.mark(State::Down, "on no host"),
            (true, Some(false)) => node.mark(State::Warn, "bound, but not up"),
            _ => {}
        }
        node.owner = Some(card);
        self.graph.add(node);
    }

    /// The hosts that may serve a gateway port, the highest priority first.
    fn candidates(&self, row: &Cells<'_>) -> Vec<(i64, Uuid)> {
        let mut rows: Vec<Cells<'_>> = row
            .references("gateway_chassis")
            .filter_map(|id| self.tables.row("Gateway_Chassis", id))
            .collect();
        for group in row.references("ha_chassis_group") {
            let group = self.tables.row("HA_Chassis_Group", group);
            let members = group
                .into_iter()
                .flat_map(|group| group.references("ha_chassis"));
            rows.extend(members.filter_map(|id| self.tables.row("HA_Chassis", id)));
        }
        let mut candidates: Vec<(i64, Uuid)> = rows
            .iter()
            .filter_map(|row| {
                let chassis = row.references("chassis").next()?;
                Some((row.integer("priority").unwrap_or(0), chassis))
            })
            .collect();
        candidates.sort_by_key(|&(priority, chassis)| (Reverse(priority), chassis));
        candidates.dedup();
        candidates
    }

    fn gateway(&mut self, row: &Cells<'_>, is_card: bool) {
        let mut node = self.node_of(row, Kind::Gateway);
        if let Some(name) = row.entry("options", "distributed-port") {
            node.label = name.to_owned();
        }
        let candidates = self.candidates(row);
        let serving = row.references("chassis").next();
        match (serving, candidates.first()) {
            (None, _) => node.mark(State::Down, "no host serves it"),
            (Some(serving), Some(&(priority, first))) if serving != first => {
                let [serving, first] = [serving, first].map(|chassis| self.name_of(chassis));
                let reason = format!("on {serving}, not on {first} (priority {priority})");
                node.mark(State::Warn, reason);
            }
            _ => {}
        }
        let names = candidates
            .iter()
            .map(|&(priority, chassis)| format!("{} (priority {priority})", self.name_of(chassis)));
        node.fact("hosts", enough(names));
        if !is_card {
            let (card, _) = self.host_of(row);
            node.owner = Some(card);
            self.graph.add(node);
            return;
        }
        let state = node.state;
        let gateway = self.graph.add(node);
        for &(priority, chassis) in &candidates {
            let Some(card) = self.graph.find_row("Chassis", chassis) else {
                continue;
            };
            let is_serving = serving == Some(chassis);
            self.graph.edges.push(Edge {
                from: card,
                to: gateway,
                kind: if is_serving {
                    EdgeKind::Link
                } else {
                    EdgeKind::Standby
                },
                label: format!("priority {priority}"),
                state: if is_serving { state } else { State::Ok },
                change: Change::None,
            });
        }
    }

    fn counts(&mut self) {
        let owned = self.graph.owned();
        for (node, ports) in self.graph.nodes.iter_mut().zip(&owned) {
            if node.kind == Kind::Host || node.kind == Kind::Remote {
                node.detail = counted(ports.len(), "port", "ports");
            }
        }
        if self.unbound > 0 {
            let ports = counted(self.unbound, "port is", "ports are");
            self.graph
                .notes
                .push((State::Warn, format!("{ports} on no host")));
        }
        if self.behind > 0 {
            let hosts = counted(self.behind, "host has", "hosts have");
            let text = format!("{hosts} not reached nb_cfg {}", self.wanted);
            self.graph.notes.push((State::Warn, text));
        }
    }
}
