//! `relay-herd`: many clients of one relay fetch the whole database at once, and then reconnect at
//! once with their last transaction id.

use super::herd::{self, NONE};
use crate::client_pool::ClientPool;
use crate::database_file::History;
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::relay;
use crate::requests;
use crate::workload::{Run, Scale, Workload};

pub(super) struct RelayHerd;

impl Workload for RelayHerd {
    fn name(&self) -> &'static str {
        "relay-herd"
    }

    fn about(&self) -> &'static str {
        "20 clients (full: 1,000) of a relay fetch 20,000 rows (full: 1,000,000, some 200 MB) at once; all reconnect at once"
    }

    fn history(&self, scale: Scale) -> History {
        History::of_rows(scale.pick(20_000, 1_000_000))
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let source = run.start()?;
        let relay = relay::start(run, &source)?;
        run.show("first");
        let mut pool = ClientPool::new()?;
        // Only as many clients fetch everything as the machine can support. The larger number of
        // clients only reconnects.
        let fetching = pool.connect_many(relay.address(), run.pick(20, 50))?;
        let first = herd::fetch(&mut pool, fetching.clone(), NONE)?;
        let before = relay.memory()?.peak_mib;

        run.show("with a transaction id");
        drop(pool);
        let mut pool = ClientPool::new()?;
        let admin = pool.connect(source.address())?;
        // A change that the reconnecting clients have missed.
        pool.call(admin, [requests::marker().get(0).into()], |_| {})?;
        std::thread::sleep(std::time::Duration::from_millis(500));
        let count = run.pick(20, 1_000);
        let interval = relay.measure_cpu()?;
        let clients = pool.connect_many(relay.address(), count)?;
        let known = herd::fetch(&mut pool, clients, &first.txn_id)?;
        let cpu_us = interval.end()?;
        Ok(vec![
            Figure::higher("delivered", "MB/s", first.megabytes / first.seconds),
            Figure::lower("until all have it", "s", first.seconds).digits(3),
            Figure::lower("until all that come back have it", "s", known.seconds)
                .digits(3)
                .aim(Aim::AtMost(3.0)),
            Figure::lower(
                "relay CPU for each that comes back",
                "us",
                cpu_us / count as f64,
            )
            .digits(1),
            Figure::lower(
                "received by each that comes back",
                "kB",
                known.megabytes * 1e3 / count as f64,
            ),
            Figure::lower("peak memory of the relay", "MiB", before),
        ])
    }
}
