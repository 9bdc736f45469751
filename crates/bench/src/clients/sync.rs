//! Measures the initial contents: the time until a client has 200,000 ports and their switches, and
//! its memory then.

use std::thread;
use std::time::Duration;

use super::process::Client;
use super::{Line, Setup, topology};
use crate::error::Error;
use crate::figure::{Aim, Figure};

/// The time that a client gets to release the memory that only loading needed.
const MEMORY_RELEASE: Duration = Duration::from_secs(1);

pub(super) fn measure(setup: &Setup<'_>) -> Result<Vec<Line>, Error> {
    let ports = setup.scale.pick(50_000, 200_000);
    let rows = f64::from(ports + ports / topology::PORTS_EACH);
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let (file, schema) = (
        directory.path().join("ports.db"),
        directory.path().join("schema"),
    );
    topology::write_ports(&file, ports)?;
    topology::write_schema(&schema)?;
    let server = setup.serve(&file)?;
    let [mut time_s, mut cpu_s, mut resident, mut peak] = [[f64::NAN; 3]; 4];
    for &(place, kind) in &setup.kinds {
        let client = Client::start(kind, server.address(), &schema)?;
        time_s[place] = client.synced_in.as_secs_f64();
        cpu_s[place] = client.cpu_us()? / 1e6;
        thread::sleep(MEMORY_RELEASE);
        let memory = client.memory()?;
        resident[place] = memory.resident_mib * 1024.0 * 1024.0 / rows;
        peak[place] = memory.peak_mib;
    }
    let at = |figure: Figure| figure.at("ports", ports);
    Ok(vec![
        Line::of(time_s, |value| {
            at(Figure::lower("initial contents: time", "s", value))
                .digits(3)
                .aim(Aim::RatioAtMost(1.0 / 3.0))
        }),
        Line::of(cpu_s, |value| {
            at(Figure::lower("initial contents: client CPU", "s", value)).digits(3)
        }),
        Line::of(resident, |value| {
            at(Figure::lower("memory then", "bytes/row", value))
                .digits(0)
                .aim(Aim::RatioAtMost(0.5))
        }),
        Line::of(peak, |value| at(Figure::lower("peak memory", "MiB", value))),
    ])
}
