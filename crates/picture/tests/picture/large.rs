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
