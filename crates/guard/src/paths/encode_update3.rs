//! `encode-update3`: records a commit and encodes its update for ten sessions with equal monitors,
//! as one shared body and a head for each session.

use corvid_data::HashSeed;
use std::hint::black_box;
use std::sync::Arc as StdArc;

use corvid_data::UuidSource as _;
use corvid_monitor::{Frame, Monitors, SessionId, Version};

use super::Path;
use crate::northbound::{self, Northbound};
use crate::uuids::Uuids;

pub(super) const PATH: Path = Path {
    name: "encode-update3",
    about: "records the addition of a port and encodes the update3 of 10 equal monitors",
    times: 100,
    prepare,
};

const PORTS: usize = 1000;
const SESSIONS: u64 = 10;

const MONITOR: &[u8] = br#"["OVN_Northbound","northbound",{"Logical_Switch":[{"columns":["name","ports"]}],"Logical_Switch_Port":[{"columns":["name","type","options","addresses","port_security","up","enabled","external_ids"]}],"Address_Set":[{"columns":["name","addresses"]}]},"00000000-0000-0000-0000-000000000000"]"#;

fn prepare(times: usize) -> Box<dyn FnMut()> {
    let mut northbound = Northbound::with_ports(PORTS);
    let mut uuids = Uuids::default();
    let mut monitors = Monitors::new(northbound::schema(), uuids.fresh(), HashSeed::FIXED);
    for session in 0..SESSIONS {
        let session = SessionId(session);
        let database = &northbound.database;
        monitors
            .monitor(database, session, Version::V3, MONITOR, &|_| false)
            .expect("a valid request");
        monitors.set_ready(session, true);
    }
    let deltas: Vec<_> = (PORTS..PORTS + times)
        .map(|number| northbound.execute(northbound::add_port(number).as_bytes()))
        .collect();
    let atoms = northbound.database.atom_count();
    let mut deltas = deltas.into_iter();
    let (mut sessions, mut frames): (Vec<SessionId>, Vec<Frame>) = (Vec::new(), Vec::new());
    Box::new(move || {
        let delta = deltas.next().expect("one each time");
        monitors.commit(&delta, uuids.fresh(), atoms);
        monitors.take_pending(&mut sessions);
        for session in sessions.drain(..) {
            monitors.flush(session, &mut frames);
        }
        assert!(frames.len() == SESSIONS as usize && is_shared(&frames));
        black_box(&frames);
        frames.clear();
    })
}

fn is_shared(frames: &[Frame]) -> bool {
    let body = |frame: &Frame| StdArc::as_ptr(&frame.body.pieces()[0]);
    std::ptr::eq(body(&frames[0]), body(&frames[frames.len() - 1]))
}
