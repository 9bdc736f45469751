//! `growth`: the cost of the n-th port, for n up to 30,000. The transactions are those of `ports`,
//! with a thousand transactions for each point.

use std::path::Path;

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::harness::Harness;
use crate::northbound;
use crate::workload::{Run, Scale, Workload};

/// The number of ports of one point.
const POINT: u32 = 1_000;
/// The number of all ports.
const PORTS: u32 = 30_000;
/// The number of points over which the last figure is averaged. A single point is not enough,
/// because it takes a fast server only a few milliseconds.
const LAST: usize = 3;
/// The number of connections, each with one request in flight.
const WRITERS: usize = 10;

pub(crate) struct Growth;

impl Workload for Growth {
    fn name(&self) -> &'static str {
        "growth"
    }

    fn about(&self) -> &'static str {
        "server CPU of adding the n-th switch port, n to 30,000"
    }

    fn prepare(&self, _: Scale, file: &Path) -> Result<(), Error> {
        northbound::create(file)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let mut harness = Harness::new(run)?;
        harness.prepare(northbound::topology(), |_| {})?;
        harness.connect(WRITERS)?;
        let mut costs = Vec::new();
        for first in (0..PORTS).step_by(POINT as usize) {
            let texts = (first..first + POINT).map(northbound::add_port);
            let phase = harness.phase(northbound::deal(texts, WRITERS), 1, None)?;
            costs.push(phase.cpu_us_each());
        }
        // Growth is relative to the second point, because during the first one the server is still
        // warming up.
        let last = costs[costs.len() - LAST..].iter().sum::<f64>() / LAST as f64;
        let mut figures: Vec<_> = costs
            .iter()
            .zip((POINT..).step_by(POINT as usize))
            .filter(|(_, ports)| *ports == POINT || ports % 5_000 == 0)
            .map(|(cost, ports)| {
                Figure::lower("server CPU", "us/txn", *cost)
                    .digits(2)
                    .at("ports", ports)
            })
            .collect();
        figures.push(
            Figure::lower("the 30,000th port over the 2,000th", "", last / costs[1])
                .digits(2)
                .aim(Aim::AtMost(1.2)),
        );
        Ok(figures)
    }
}
