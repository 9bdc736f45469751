//! `cluster-join`: a fourth member joins a cluster with a large database under load.

use std::thread;
use std::time::{Duration, Instant};

use super::stall;
use crate::cluster;
use crate::database_file::History;
use crate::error::{Error, joined};
use crate::figure::{Aim, Figure};
use crate::latency_probe::{self, Phase};
use crate::workload::{Run, Scale, Workload};

/// The time of the measurement before the member joins.
const BEFORE: Duration = Duration::from_secs(4);

pub(crate) struct Join;

/// The number of rows of the database. 2,000,000 rows make a file of 500 MB.
fn rows(scale: Scale) -> u32 {
    scale.pick(200_000, 2_000_000)
}

impl Workload for Join {
    fn name(&self) -> &'static str {
        "cluster-join"
    }

    fn about(&self) -> &'static str {
        "a fourth member joins a database of 200,000 rows (full: 2,000,000, 500 MB); a transaction each millisecond at the leader"
    }

    fn history(&self, scale: Scale) -> History {
        History::of_rows(rows(scale))
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let members = cluster::start(run)?;
        let rows = rows(run.scale);
        let file_mib = members[0].file_mib()?;
        let resident_before = members[0].memory()?.resident_mib;
        let (phase, address) = (Phase::default(), members[0].address());
        let (latencies, joiner) = thread::scope(|scope| {
            let probe = scope.spawn(|| {
                latency_probe::run(address, &phase, |number| stall::update(number, rows))
            });
            thread::sleep(BEFORE);
            phase.begin();
            let began = Instant::now();
            let joiner = cluster::join(run, &members).map(|joiner| (joiner, began.elapsed()));
            phase.end();
            (joined(probe), joiner)
        });
        let (latencies, (joiner, took)) = (latencies?, joiner?);
        let at = |quantile: f64| {
            let before = latencies.before.value_at_quantile(quantile) as f64 / 1e6;
            let during = latencies.during.value_at_quantile(quantile) as f64 / 1e6;
            (before, during)
        };
        let ((p50, _), (before, during)) = (at(0.5), at(0.99));
        let longest = latencies.during.max() as f64 / 1e6;
        Ok(vec![
            Figure::plain("file", "MiB", file_mib),
            Figure::lower("time to join", "s", took.as_secs_f64()).digits(2),
            Figure::lower("transaction p50 before", "ms", p50).digits(3),
            Figure::lower("transaction p99 before", "ms", before).digits(3),
            Figure::lower("transaction p99 during", "ms", during).digits(3),
            Figure::lower("p99 during / before", "", during / before)
                .digits(2)
                .aim(Aim::AtMost(2.0)),
            Figure::lower("transaction longest during", "ms", longest).digits(3),
            Figure::lower("memory of the leader before", "MiB", resident_before),
            Figure::lower(
                "peak memory of the leader",
                "MiB",
                members[0].memory()?.peak_mib,
            ),
            Figure::lower(
                "peak memory of the joiner",
                "MiB",
                joiner.memory()?.peak_mib,
            ),
        ])
    }
}
