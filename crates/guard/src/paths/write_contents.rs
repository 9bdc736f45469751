//! `write-contents`: writes the initial contents of a new monitor, a thousand ports, as JSON.

use corvid_data::HashSeed;
use std::hint::black_box;

use corvid_data::UuidSource as _;
use corvid_monitor::{Monitors, SessionId, Version};

use super::Path;
use crate::northbound::{self, Northbound};
use crate::uuids::Uuids;

pub(super) const PATH: Path = Path {
    name: "write-contents",
    about: "writes the initial contents of a monitor of 1,000 ports",
    times: 10,
    prepare,
};

const PORTS: usize = 1000;

const MONITOR: &[u8] = br#"["OVN_Northbound","northbound",{"Logical_Switch_Port":[{"columns":["name","type","options","addresses","port_security","up","enabled","external_ids"]}]},"00000000-0000-0000-0000-000000000000"]"#;

fn prepare(_times: usize) -> Box<dyn FnMut()> {
    let northbound = Northbound::with_ports(PORTS);
    let mut uuids = Uuids::default();
    Box::new(move || {
        // A new group of monitors has no written contents that could be shared.
        let mut monitors = Monitors::new(northbound::schema(), uuids.fresh(), HashSeed::FIXED);
        let reply = monitors
            .monitor(
                &northbound.database,
                SessionId(0),
                Version::V3,
                MONITOR,
                &|_| false,
            )
            .expect("a valid request");
        black_box(reply);
    })
}
