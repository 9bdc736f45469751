//! Large networks, made by counting.

use corvid_data::{Atom, Datum, DatumBuilder, Str, Uuid};
use corvid_picture::Tables;

/// A datum of one string.
pub(crate) fn text(text: &str) -> Datum {
    Datum::one(Atom::String(Str::new(text)))
}

/// A set of references.
pub(crate) fn references(uuids: impl IntoIterator<Item = Uuid>) -> Datum {
    let mut set = DatumBuilder::new();
    for uuid in uuids {
        set.push(Atom::Uuid(uuid), None);
    }
    set.finish().expect("no UUID repeats")
}

/// A UUID of a kind and a number.
pub(crate) fn uuid(kind: u8, number: usize) -> Uuid {
    let mut bytes = [0; 16];
    bytes[0] = kind;
    bytes[8..].copy_from_slice(&(number as u64).to_be_bytes());
    Uuid(bytes)
}

/// A northbound database: one router, `switches` switches of `ports` ports; every 97th port is
/// down.
pub(crate) fn northbound(switches: usize, ports: usize) -> Tables {
    let mut tables = Tables::new();
    let boolean = |value: bool| Datum::one(Atom::Boolean(value));
    let router_ports = (0..switches).map(|switch| uuid(3, switch));
    tables.set(
        "Logical_Router",
        uuid(1, 0),
        [("name", text("core")), ("ports", references(router_ports))],
    );
    for switch in 0..switches {
        let (rack, row) = (switch / 250, switch % 250);
        tables.set(
            "Logical_Router_Port",
            uuid(3, switch),
            [
                ("name", text(&format!("core-tenant{switch}"))),
                ("networks", text(&format!("10.{rack}.{row}.1/24"))),
            ],
        );
        let own = (0..=ports).map(|port| uuid(4, switch * 1000 + port));
        tables.set(
            "Logical_Switch",
            uuid(2, switch),
            [
                ("name", text(&format!("tenant{switch}"))),
                ("ports", references(own)),
            ],
        );
        tables.set(
            "Logical_Switch_Port",
            uuid(4, switch * 1000),
            [
                ("name", text(&format!("tenant{switch}-core"))),
                ("type", text("router")),
                (
                    "options",
                    Datum::pair(
                        Atom::String(Str::new("router-port")),
                        Atom::String(Str::new(&format!("core-tenant{switch}"))),
                    ),
                ),
            ],
        );
        for port in 1..=ports {
            tables.set(
                "Logical_Switch_Port",
                uuid(4, switch * 1000 + port),
                [
                    ("name", text(&format!("vm{switch}-{port}"))),
                    (
                        "addresses",
                        text(&format!(
                            "0a:00:00:{rack:02x}:{row:02x}:{port:02x} 10.{rack}.{row}.{}",
                            port + 9
                        )),
                    ),
                    ("up", boolean(!(switch * ports + port).is_multiple_of(97))),
                ],
            );
        }
    }
    tables
}

/// A cluster as Kubernetes makes it: each node has a switch at the cluster's router, a gateway
/// router at the switch `join`, and an outer switch at the physical network.
pub(crate) fn cluster(nodes: usize) -> Tables {
    let mut tables = Tables::new();
    let mut links = Links {
        tables: &mut tables,
        next: 0,
        ports: Default::default(),
    };
    links.join("cluster", "join", "100.64.0.1/16");
    for node in 0..nodes {
        let (gateway, outer) = (format!("GR_node{node}"), format!("ext_node{node}"));
        links.join(
            "cluster",
            &format!("node{node}"),
            &format!("10.244.{node}.1/24"),
        );
        links.join(&gateway, "join", &format!("100.64.1.{node}/16"));
        links.join(&gateway, &outer, &format!("172.18.0.{node}/16"));
        links.outside(&outer, "physnet");
    }
    links.finish();
    tables
}

/// Two routers that share all switches, and a third one that has two of these alone.
pub(crate) fn doubled(switches: usize) -> Tables {
    let mut tables = Tables::new();
    let mut links = Links {
        tables: &mut tables,
        next: 0,
        ports: Default::default(),
    };
    for router in ["left", "right"] {
        links.join(router, "transit", "100.64.0.1/24");
        for switch in 0..switches {
            links.join(
                router,
                &format!("net{switch}"),
                &format!("10.0.{switch}.1/24"),
            );
        }
    }
    links.join("side", "net0", "10.0.0.9/24");
    links.join("side", "transit", "100.64.0.9/24");
    links.outside("transit", "physnet1");
    links.outside("backup", "physnet2");
    links.join("left", "backup", "203.0.113.1/24");
    links.finish();
    tables
}

/// A cloud: many tenants at one public switch, each with a router and one to three switches.
pub(crate) fn tenants(count: usize) -> Tables {
    let mut tables = Tables::new();
    let mut links = Links {
        tables: &mut tables,
        next: 0,
        ports: Default::default(),
    };
    links.outside("public", "physnet1");
    for tenant in 0..count {
        let router = format!("tenant{tenant}");
        links.join(&router, "public", &format!("203.0.113.{tenant}/24"));
        for switch in 0..=tenant % 3 {
            let name = format!("tenant{tenant}-net{switch}");
            links.join(&router, &name, &format!("192.168.{switch}.1/24"));
        }
    }
    links.finish();
    tables
}

/// A southbound database: `hosts` hosts of ten ports, of which the first four serve `gateways`
/// gateway ports.
pub(crate) fn southbound(hosts: usize, gateways: usize) -> Tables {
    let mut tables = Tables::new();
    for host in 0..hosts {
        let address = format!("192.0.2.{host}");
        let encap = [("type", text("geneve")), ("ip", text(&address))];
        tables.set("Encap", uuid(12, host), encap);
        tables.set(
            "Chassis",
            uuid(11, host),
            [
                ("name", text(&format!("chassis{host}"))),
                ("hostname", text(&format!("compute{host}"))),
                ("encaps", references([uuid(12, host)])),
            ],
        );
        for port in 0..10 {
            tables.set(
                "Port_Binding",
                uuid(13, host * 10 + port),
                [
                    ("logical_port", text(&format!("vm{host}-{port}"))),
                    ("type", text("")),
                    ("chassis", references([uuid(11, host)])),
                ],
            );
        }
    }
    for gateway in 0..gateways {
        let serving = |place: usize| uuid(14, gateway * 4 + place);
        for place in 0..4 {
            let chassis = uuid(11, (gateway + place) % 4);
            let priority = Datum::one(Atom::Integer(10 * (4 - place as i64)));
            let cells = [("chassis", references([chassis])), ("priority", priority)];
            tables.set("Gateway_Chassis", serving(place), cells);
        }
        tables.set(
            "Port_Binding",
            uuid(15, gateway),
            [
                ("logical_port", text(&format!("cr-lrp{gateway}"))),
                ("type", text("chassisredirect")),
                ("chassis", references([uuid(11, gateway % 4)])),
                ("gateway_chassis", references((0..4).map(serving))),
            ],
        );
    }
    tables
}

/// Routers and switches by name, with the ports that join them.
struct Links<'t> {
    tables: &'t mut Tables,
    next: usize,
    ports: std::collections::BTreeMap<(bool, String), Vec<Uuid>>,
}

impl Links<'_> {
    fn port(&mut self, is_router: bool, of: &str) -> Uuid {
        self.next += 1;
        let id = uuid(if is_router { 3 } else { 4 }, self.next);
        self.ports
            .entry((is_router, of.to_owned()))
            .or_default()
            .push(id);
        id
    }

    fn join(&mut self, router: &str, switch: &str, network: &str) {
        let (above, below) = (self.port(true, router), self.port(false, switch));
        let name = format!("{router}-{switch}");
        let cells = [("name", text(&name)), ("networks", text(network))];
        self.tables.set("Logical_Router_Port", above, cells);
        let string = |text: &str| Atom::String(Str::new(text));
        self.tables.set(
            "Logical_Switch_Port",
            below,
            [
                ("name", text(&format!("{switch}-{router}"))),
                ("type", text("router")),
                ("options", Datum::pair(string("router-port"), string(&name))),
            ],
        );
    }

    fn outside(&mut self, switch: &str, network: &str) {
        let port = self.port(false, switch);
        let string = |text: &str| Atom::String(Str::new(text));
        self.tables.set(
            "Logical_Switch_Port",
            port,
            [
                ("name", text(&format!("{switch}-{network}"))),
                ("type", text("localnet")),
                (
                    "options",
                    Datum::pair(string("network_name"), string(network)),
                ),
            ],
        );
    }

    fn finish(self) {
        for (number, ((is_router, name), ports)) in self.ports.into_iter().enumerate() {
            let table = if is_router {
                "Logical_Router"
            } else {
                "Logical_Switch"
            };
            let cells = [("name", text(&name)), ("ports", references(ports))];
            self.tables
                .set(table, uuid(if is_router { 1 } else { 2 }, number), cells);
        }
    }
}
