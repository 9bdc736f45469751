//! `execute-port`: the engine executes and commits the addition of a port to a northbound database
//! with 1,000 ports.

use std::hint::black_box;

use super::Path;
use crate::northbound::{self, Northbound};

pub(super) const PATH: Path = Path {
    name: "execute-port",
    about: "executes the addition of a port to an OVN_Northbound with 1,000 ports",
    times: 100,
    prepare,
};

const PORTS: usize = 1000;

fn prepare(times: usize) -> Box<dyn FnMut()> {
    let mut northbound = Northbound::with_ports(PORTS);
    let texts: Vec<String> = (PORTS..PORTS + times).map(northbound::add_port).collect();
    let mut texts = texts.into_iter();
    Box::new(move || {
        let text = texts.next().expect("one each time");
        black_box(northbound.execute(text.as_bytes()));
    })
}
