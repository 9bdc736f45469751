//! The picture of 60 switches of 40 ports: the first one, and what each change of a port costs.

use std::thread;
use std::time::{Duration, Instant};

use super::program::Viewer;
use super::{Setup, idle_us, median_ms, ms, transact};
use crate::clients::topology;
use crate::database_file;
use crate::error::Error;
use crate::figure::{Aim, Figure};

const SWITCHES: u32 = 60;
const PORTS_EACH: u32 = 40;
/// Changes, each of which is awaited by a viewer.
const CHANGES: u32 = 50;
/// The pause after a change, so that the next one does not share its picture.
const PAUSE: Duration = Duration::from_millis(150);

pub(super) fn measure(setup: &Setup) -> Result<Vec<Figure>, Error> {
    let ports = SWITCHES * PORTS_EACH;
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let file = directory.path().join("network.db");
    topology::write_ports_of(&file, ports, PORTS_EACH)?;
    let server = setup.serve(&file)?;
    let console = setup.console(&server)?;
    let path = "/db/bench/network";
    let began = Instant::now();
    console.page_with(path, "switch-59")?;
    let first = began.elapsed();
    let again = median_ms(9, |_| Ok(console.page(path)?.took))?;

    let mut viewer = console.viewer(&format!("{path}/events"))?;
    thread::sleep(Duration::from_millis(500));
    let mut number = 0;
    let mut change = |viewer: &mut Viewer| {
        let uuid = database_file::uuid(number);
        let is_up = !number.is_multiple_of(2);
        number += 1;
        let row = format!(
            r#"{{"op":"update","table":"Logical_Switch_Port","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"up":{is_up}}}}}"#
        );
        let began = Instant::now();
        transact(server.address(), "OVN_Northbound", &row)?;
        let event = viewer.event()?;
        Ok::<_, Error>((ms(began.elapsed()), event.len()))
    };
    let before_us = idle_us(|| console.cpu_us())?;
    let (mut seen, mut bytes) = (Vec::new(), 0);
    for _ in 0..CHANGES {
        let (took, length) = change(&mut viewer)?;
        seen.push(took);
        bytes += length;
        thread::sleep(PAUSE);
    }
    let cost_us = (idle_us(|| console.cpu_us())? - before_us) / f64::from(CHANGES);
    let drawn = median_ms(9, |_| {
        change(&mut viewer)?;
        thread::sleep(PAUSE);
        Ok(console.page(&format!("{path}?part=1"))?.took)
    })?;
    let at = |figure: Figure| figure.at("ports", ports);
    let middle = crate::figure::middle;
    Ok(vec![
        at(
            Figure::lower("picture: until it is shown first", "ms", ms(first))
                .aim(Aim::AtMost(200.0)),
        ),
        at(Figure::lower("picture: page without a change", "ms", again)),
        at(Figure::lower(
            "picture: until a change reaches a viewer",
            "ms",
            middle(seen),
        )
        .aim(Aim::AtMost(300.0))),
        at(Figure::lower(
            "picture: page of the whole picture after a change",
            "ms",
            drawn,
        )
        .aim(Aim::AtMost(20.0))),
        at(Figure::lower(
            "picture: CPU of the console for a change",
            "ms",
            cost_us / 1e3,
        )
        .aim(Aim::AtMost(20.0))),
        at(Figure::lower(
            "picture: bytes of an event",
            "B",
            bytes as f64 / f64::from(CHANGES),
        )
        .digits(0)),
    ])
}
