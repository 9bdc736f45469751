//! `load-record`: hashes, decodes and applies a record of a file, which adds a port.

use corvid_data::HashSeed;
use std::hint::black_box;

use corvid_engine::Database;
use corvid_log::{Load, write_schema, write_transaction};

use super::Path;
use crate::northbound::{self, Northbound};
use crate::uuids::Uuids;

pub(super) const PATH: Path = Path {
    name: "load-record",
    about: "loads the record of the addition of a port: hash, decode, apply",
    times: 200,
    prepare,
};

const DATE_MS: i64 = 1_700_000_000_000;

fn prepare(times: usize) -> Box<dyn FnMut()> {
    let mut load = Load::open(&*file(times).leak()).expect("a schema");
    let mut database = Database::new(load.schema().clone(), HashSeed::FIXED);
    let mut uuids = Uuids::default();
    let mut next = move || {
        let recorded = load.next_transaction().expect("no damage");
        let recorded = recorded.expect("one each time");
        let delta = database.apply_recorded(recorded, &mut uuids);
        black_box(delta.expect("it fits"));
    };
    // The first record is that of the switches. It must not be measured.
    next();
    Box::new(next)
}

/// Returns the file of a database with `ports` ports.
fn file(ports: usize) -> Vec<u8> {
    let schema = northbound::schema();
    let mut file = Vec::new();
    write_schema(&mut file, &schema);
    let (mut northbound, topology) = Northbound::new();
    write_transaction(&mut file, &schema, &topology, DATE_MS, true).expect("a record");
    for number in 0..ports {
        let delta = northbound.execute(northbound::add_port(number).as_bytes());
        write_transaction(&mut file, &schema, &delta, DATE_MS, true).expect("a record");
    }
    file
}
