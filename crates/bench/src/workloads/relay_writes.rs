//! `relay`: single-row updates by ten connections through a relay, and the same updates without it.

use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::harness::Harness;
use crate::load::Load;
use crate::relay;
use crate::workload::{Run, Workload};

pub(super) struct Writes;

impl Workload for Writes {
    fn name(&self) -> &'static str {
        "relay"
    }

    fn about(&self) -> &'static str {
        "update1 through a relay, and directly"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let load = Load::of_updates(run.pick(2_000, 10_000));
        run.show("directly");
        let direct = load.drive(run)?;
        run.show("through a relay");
        let source = run.start()?;
        let relay = relay::start(run, &source)?;
        let mut harness = Harness::of_servers(run, vec![relay, source])?;
        let relayed = load.drive_with(&mut harness, Harness::connect)?;
        let [p50, p99, _] = relayed.latencies();
        Ok(vec![
            relayed.rate(),
            Figure::plain("direct rate", "txn/s", direct.rate).digits(0),
            Figure::higher("rate / direct rate", "", relayed.rate / direct.rate)
                .digits(2)
                .aim(Aim::AtLeast(0.8)),
            relayed.cpu(),
            p50,
            p99,
        ])
    }
}
