//! `OVN_Northbound`: the logical network, as the cloud's management asked for it.
//!
//! Routers and switches are cards, their ports, load balancers and translations are inside. A
//! switch's port to a router and the router's port that it names are the ends of an edge. A port of
//! type `localnet` joins its switch to a physical network, which becomes a card of its own.

use std::collections::BTreeMap;

use corvid_data::Uuid;

use crate::graph::{Edge, EdgeKind, Graph, Id, Kind, Node, State};
use crate::natural;
use crate::tables::{Cells, Tables, shown};

use super::{counted, enough, listed, sorted};

/// The tables and columns that are read.
pub const TABLES: &[(&str, &[&str])] = &[
    ("NB_Global", &["name", "nb_cfg", "sb_cfg", "hv_cfg"]),
    (
        "Logical_Switch",
        &[
            "name",
            "ports",
            "acls",
            "qos_rules",
            "load_balancer",
            "load_balancer_group",
            "dns_records",
            "other_config",
        ],
    ),
    (
        "Logical_Switch_Port",
        &[
            "name",
            "type",
            "options",
            "parent_name",
            "tag",
            "addresses",
            "dynamic_addresses",
            "port_security",
            "up",
            "enabled",
            "dhcpv4_options",
            "dhcpv6_options",
        ],
    ),
    (
        "Logical_Router",
        &[
            "name",
            "ports",
            "static_routes",
            "policies",
            "enabled",
            "nat",
            "load_balancer",
            "load_balancer_group",
            "options",
        ],
    ),
    (
        "Logical_Router_Port",
        &[
            "name",
            "networks",
            "mac",
            "peer",
            "enabled",
            "gateway_chassis",
            "ha_chassis_group",
        ],
    ),
    ("Gateway_Chassis", &["chassis_name", "priority"]),
    ("HA_Chassis_Group", &["name", "ha_chassis"]),
    ("HA_Chassis", &["chassis_name", "priority"]),
    ("Load_Balancer", &["name", "vips", "protocol"]),
    ("Load_Balancer_Group", &["name", "load_balancer"]),
    (
        "NAT",
        &["type", "external_ip", "logical_ip", "logical_port"],
    ),
    ("DHCP_Options", &["cidr"]),
    ("Port_Group", &["name", "ports", "acls"]),
    ("ACL", &["priority", "direction", "match", "action"]),
];

/// The most load balancers, and the most translations, that a card shows one by one.
const LISTED_MAX: usize = 24;

/// Makes the graph of the logical network.
#[must_use]
pub fn read(tables: &Tables) -> Graph {
    let mut reading = Reading {
        tables,
        graph: Graph::new(),
        groups: groups_of_ports(tables),
        router_ports: BTreeMap::new(),
    };
    for router in tables.rows("Logical_Router") {
        reading.router(&router);
    }
    for switch in tables.rows("Logical_Switch") {
        reading.switch(&switch);
    }
    reading.peers();
    reading.notes();
    reading.graph
}

struct Reading<'a> {
    tables: &'a Tables,
    graph: Graph,
    /// The port groups of each port.
    groups: BTreeMap<Uuid, Vec<Cells<'a>>>,
    /// The nodes of router ports by name, which is how other rows refer to them.
    router_ports: BTreeMap<&'a str, usize>,
}

fn groups_of_ports(tables: &Tables) -> BTreeMap<Uuid, Vec<Cells<'_>>> {
    let mut groups: BTreeMap<Uuid, Vec<Cells<'_>>> = BTreeMap::new();
    for group in tables.rows("Port_Group") {
        for port in group.references("ports") {
            groups.entry(port).or_default().push(group);
        }
    }
    groups
}

impl<'a> Reading<'a> {
    fn router(&mut self, row: &Cells<'a>) {
        let mut node = Node::of_row("Logical_Router", row.uuid, Kind::Router, row.text("name"));
        if row.boolean("enabled") == Some(false) {
            node.mark(State::Down, "disabled");
        }
        let balancers = self.balancers_of(row);
        node.detail = summary(&[
            (row.len("ports"), "port", "ports"),
            (row.len("nat"), "NAT", "NAT"),
            (balancers.len(), "LB", "LB"),
        ]);
        node.fact("gateway on", row.entry("options", "chassis").unwrap_or(""));
        node.count("static routes", row.len("static_routes"));
        node.count("policies", row.len("policies"));
        let card = self.graph.add(node);
        for port in row.references("ports") {
            if let Some(port) = self.tables.row("Logical_Router_Port", port) {
                self.router_port(card, &port);
            }
        }
        self.add_balancers(card, &balancers);
        self.add_translations(card, row);
    }

    fn router_port(&mut self, card: usize, row: &Cells<'a>) {
        let name = row.text("name");
        let mut node = Node::of_row("Logical_Router_Port", row.uuid, Kind::RouterPort, name);
        node.owner = Some(card);
        node.detail = listed(row.texts("networks"));
        if row.boolean("enabled") == Some(false) {
            node.mark(State::Down, "disabled");
        }
        node.fact("MAC", row.text("mac"));
        let mut chassis: Vec<Cells<'_>> = row
            .references("gateway_chassis")
            .filter_map(|id| self.tables.row("Gateway_Chassis", id))
            .collect();
        for group in row.references("ha_chassis_group") {
            let Some(group) = self.tables.row("HA_Chassis_Group", group) else {
                continue;
            };
            node.fact("HA chassis group", group.text("name"));
            let members = group.references("ha_chassis");
            chassis.extend(members.filter_map(|id| self.tables.row("HA_Chassis", id)));
        }
        chassis.sort_by_key(|row| (std::cmp::Reverse(row.integer("priority")), row.uuid));
        let chassis = chassis.iter().map(|row| {
            let priority = row.integer("priority").unwrap_or(0);
            format!("{} (priority {priority})", row.text("chassis_name"))
        });
        node.fact("gateway chassis", enough(chassis));
        let port = self.graph.add(node);
        self.router_ports.insert(name, port);
    }

    /// The load balancers of a switch or router, also those of its groups.
    fn balancers_of(&self, row: &Cells<'_>) -> Vec<Uuid> {
        let mut balancers: Vec<Uuid> = row.references("load_balancer").collect();
        for group in row.references("load_balancer_group") {
            if let Some(group) = self.tables.row("Load_Balancer_Group", group) {
                balancers.extend(group.references("load_balancer"));
            }
        }
        balancers.sort_unstable();
        balancers.dedup();
        balancers
    }

    /// One load balancer serves many switches and routers. Each of them has a node for it.
    fn add_balancers(&mut self, card: usize, balancers: &[Uuid]) {
        if balancers.len() > LISTED_MAX {
            let label = format!("{} load balancers", balancers.len());
            let id = Id::Named("balancers", self.graph.nodes[card].id.to_string());
            let mut node = Node::new(id, Kind::LoadBalancer, label);
            node.owner = Some(card);
            self.graph.add(node);
            return;
        }
        for &uuid in balancers {
            let Some(row) = self.tables.row("Load_Balancer", uuid) else {
                continue;
            };
            let mut node =
                Node::of_row("Load_Balancer", uuid, Kind::LoadBalancer, row.text("name"));
            if let Some(owner) = self.graph.nodes[card].row {
                node.id = Id::Shared("Load_Balancer", uuid, owner.uuid);
            }
            node.owner = Some(card);
            node.fact("protocol", row.text("protocol"));
            let vips = row.pairs("vips");
            node.detail = listed(row.texts("vips"));
            node.fact(
                "addresses",
                sorted(vips.map(|(vip, to)| format!("{} to {}", shown(vip), shown(to)))),
            );
            if row.pairs("vips").any(|(_, to)| to.as_string() == Some("")) {
                node.mark(State::Warn, "an address without a backend");
            }
            self.graph.add(node);
        }
    }

    fn add_translations(&mut self, card: usize, router: &Cells<'_>) {
        let count = router.len("nat");
        if count > LISTED_MAX {
            let id = Id::Named("translations", self.graph.nodes[card].id.to_string());
            let mut node = Node::new(id, Kind::Nat, format!("{count} NAT rules"));
            node.owner = Some(card);
            self.graph.add(node);
            return;
        }
        for row in router
            .references("nat")
            .filter_map(|id| self.tables.row("NAT", id))
        {
            let mut node = Node::of_row("NAT", row.uuid, Kind::Nat, row.text("external_ip"));
            node.owner = Some(card);
            node.detail = row.text("logical_ip").to_owned();
            node.fact("type", row.text("type"));
            node.fact("logical port", row.text("logical_port"));
            self.graph.add(node);
        }
    }

    fn switch(&mut self, row: &Cells<'a>) {
        let mut node = Node::of_row("Logical_Switch", row.uuid, Kind::Switch, row.text("name"));
        node.detail = row.entry("other_config", "subnet").unwrap_or("").to_owned();
        node.count("ACLs", row.len("acls"));
        node.count("QoS rules", row.len("qos_rules"));
        node.count("DNS records", row.len("dns_records"));
        let balancers = self.balancers_of(row);
        node.count("load balancers", balancers.len());
        let card = self.graph.add(node);
        let mut ports = 0;
        for port in row.references("ports") {
            if let Some(port) = self.tables.row("Logical_Switch_Port", port) {
                self.switch_port(card, &port);
                ports += 1;
            }
        }
        self.add_balancers(card, &balancers);
        let node = &mut self.graph.nodes[card];
        let count = summary(&[(ports, "port", "ports")]);
        match node.detail.is_empty() {
            true => node.detail = count,
            false => node.detail = format!("{} · {count}", node.detail),
        }
    }

    fn switch_port(&mut self, card: usize, row: &Cells<'a>) {
        let port_type = row.text("type");
        let kind = match port_type {
            "router" => Kind::RouterPort,
            "localnet" | "l2gateway" | "vtep" => Kind::Uplink,
            _ => Kind::Port,
        };
        let mut node = Node::of_row("Logical_Switch_Port", row.uuid, kind, row.text("name"));
        node.owner = Some(card);
        // `up` is a matter of ports that a hypervisor binds. OVN leaves it empty until then.
        match (row.boolean("enabled"), row.boolean("up"), port_type) {
            (Some(false), ..) => node.mark(State::Down, "disabled"),
            (_, Some(false), "" | "virtual" | "external" | "l2gateway" | "vtep") => {
                node.mark(State::Down, "down");
            }
            (_, None, "") => node.mark(State::Unknown, "never bound"),
            _ => {}
        }
        self.addresses(&mut node, row);
        node.fact("type", port_type);
        node.fact("inside of", row.text("parent_name"));
        if let Some(tag) = row.integer("tag") {
            node.fact("VLAN", tag.to_string());
        }
        for (column, name) in [("dhcpv4_options", "DHCPv4"), ("dhcpv6_options", "DHCPv6")] {
            for options in row.references(column) {
                if let Some(options) = self.tables.row("DHCP_Options", options) {
                    node.fact(name, options.text("cidr"));
                }
            }
        }
        self.groups_and_rules(&mut node, row.uuid);
        let port = self.graph.add(node);
        match port_type {
            "router" => {
                let to = row.entry("options", "router-port").unwrap_or("");
                self.join_router(port, to);
            }
            "localnet" => {
                let network = row.entry("options", "network_name").unwrap_or("");
                self.join_outside(port, network, row.integer("tag"));
            }
            _ => {}
        }
    }

    fn addresses(&self, node: &mut Node, row: &Cells<'_>) {
        // "MAC IP IP …", or words like "dynamic", "router", "unknown".
        let mut own: Vec<&str> = row.texts("addresses").collect();
        own.sort_unstable_by(|a, b| natural::compare(a, b));
        let addresses: Vec<&str> = row.texts("dynamic_addresses").chain(own).collect();
        node.detail = addresses
            .iter()
            .flat_map(|address| address.split_whitespace())
            .find(|word| word.contains(['.', ':']) && !is_mac(word))
            .unwrap_or_default()
            .to_owned();
        node.fact(
            "addresses",
            enough(addresses.iter().map(|&text| text.to_owned())),
        );
        let security = row.texts("port_security").map(str::to_owned);
        node.fact("port security", sorted(security));
    }

    /// Names the port groups of a port and counts the ACLs that these bring.
    fn groups_and_rules(&self, node: &mut Node, port: Uuid) {
        let Some(groups) = self.groups.get(&port) else {
            return;
        };
        node.fact(
            "port groups",
            sorted(groups.iter().map(|group| group.text("name").to_owned())),
        );
        let rules = || groups.iter().flat_map(|group| group.references("acls"));
        node.count("ACLs of its groups", rules().count());
        let mut rules: Vec<Cells<'_>> = rules()
            .filter_map(|id| self.tables.row("ACL", id))
            .collect();
        rules.sort_by_key(|row| (std::cmp::Reverse(row.integer("priority")), row.uuid));
        node.fact(
            "first of them",
            enough(rules.iter().map(|row| {
                let priority = row.integer("priority").unwrap_or(0);
                let [direction, condition, action] =
                    ["direction", "match", "action"].map(|column| row.text(column));
                format!("{priority} {direction} {condition}: {action}")
            })),
        );
    }

    fn join_router(&mut self, port: usize, name: &str) {
        let Some(&peer) = self.router_ports.get(name) else {
            let reason = match name {
                "" => "names no router port".to_owned(),
                name => format!("there is no router port {name}"),
            };
            self.graph.nodes[port].mark(State::Warn, reason);
            return;
        };
        let networks = self.graph.nodes[peer].detail.clone();
        self.graph.nodes[port].fact("router port", name);
        let state = self.graph.nodes[peer]
            .state
            .max(self.graph.nodes[port].state);
        self.graph.edges.push(Edge {
            from: peer,
            to: port,
            kind: EdgeKind::Link,
            label: networks,
            state,
            change: crate::Change::None,
        });
    }

    fn join_outside(&mut self, port: usize, network: &str, tag: Option<i64>) {
        if network.is_empty() {
            self.graph.nodes[port].mark(State::Warn, "names no physical network");
            return;
        }
        self.graph.nodes[port].fact("physical network", network);
        let id = Id::Named("physical", network.to_owned());
        let mut node = Node::new(id, Kind::Outside, network);
        node.detail = "physical network".to_owned();
        let outside = self.graph.add(node);
        let label = tag.map_or(String::new(), |tag| format!("VLAN {tag}"));
        self.graph.join(outside, port, EdgeKind::Link, label);
    }

    /// Joins router ports that name each other.
    fn peers(&mut self) {
        for row in self.tables.rows("Logical_Router_Port") {
            let (name, peer) = (row.text("name"), row.text("peer"));
            let Some(&port) = self.router_ports.get(name) else {
                continue;
            };
            match self.router_ports.get(peer) {
                // Each pair once: the other row names this one too.
                Some(&peer) if port < peer => {
                    let label = self.graph.nodes[port].detail.clone();
                    self.graph.join(port, peer, EdgeKind::Link, label);
                }
                None if !peer.is_empty() => {
                    let reason = format!("there is no router port {peer}");
                    self.graph.nodes[port].mark(State::Warn, reason);
                }
                _ => {}
            }
        }
    }

    fn notes(&mut self) {
        let down = self
            .graph
            .nodes
            .iter()
            .filter(|node| node.kind == Kind::Port && node.state == State::Down)
            .count();
        if down > 0 {
            let ports = counted(down, "port is", "ports are");
            self.graph
                .notes
                .push((State::Down, format!("{ports} down")));
        }
        for global in self.tables.rows("NB_Global") {
            let wanted = global.integer("nb_cfg").unwrap_or(0);
            for (column, place) in [("sb_cfg", "northd"), ("hv_cfg", "The hypervisors")] {
                let reached = global.integer(column).unwrap_or(wanted);
                if reached < wanted {
                    let text = format!("{place}: {column} {reached} of {wanted}");
                    self.graph.notes.push((State::Warn, text));
                }
            }
        }
    }
}

/// The counts that are not 0, as "3 ports · 2 NAT".
fn summary(counts: &[(usize, &str, &str)]) -> String {
    let mut text = String::new();
    for &(count, one, many) in counts.iter().filter(|(count, ..)| *count > 0) {
        if !text.is_empty() {
            text.push_str(" · ");
        }
        text.push_str(&counted(count, one, many));
    }
    text
}

/// Whether a word is a MAC address: six bytes in hexadecimal digits.
fn is_mac(word: &str) -> bool {
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    word.split(':').count() == 6 && word.split(':').all(is_byte)
}
