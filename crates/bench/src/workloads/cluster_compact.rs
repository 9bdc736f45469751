//! `cluster-compact`: the latency of a client of the leader while the members compact their files
//! one after another.

use std::thread;
use std::time::{Duration, Instant};

use super::stall;
use crate::cluster;
use crate::database_file::History;
use crate::error::{Error, joined};
use crate::figure::{Aim, Figure};
use crate::latency_probe::{self, Phase};
use crate::server::Server;
use crate::workload::{Run, Scale, Workload};

/// The time of the measurement before the first compaction.
const BEFORE: Duration = Duration::from_secs(4);

pub(crate) struct Compact;

/// The number of rows of the database.
pub(super) fn rows(scale: Scale) -> u32 {
    scale.pick(200_000, 1_000_000)
}

impl Workload for Compact {
    fn name(&self) -> &'static str {
        "cluster-compact"
    }

    fn about(&self) -> &'static str {
        "a transaction each millisecond while 3 members compact 200,000 rows (full: 1,000,000), the leader first"
    }

    fn history(&self, scale: Scale) -> History {
        History::of_rows(rows(scale))
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let members = cluster::start(run)?;
        let (name, rows) = (cluster::name(run)?, rows(run.scale));
        let (phase, address) = (Phase::default(), members[0].address());
        let term = cluster::term(&members[0], &name)?;
        let intervals: Result<Vec<_>, Error> = members.iter().map(Server::measure_cpu).collect();
        let (latencies, took) = thread::scope(|scope| {
            let probe = scope.spawn(|| {
                latency_probe::run(address, &phase, |number| stall::update(number, rows))
            });
            thread::sleep(BEFORE);
            phase.begin();
            let compact = |member: &Server| {
                let began = Instant::now();
                member.control("ovsdb-server/compact", &[&name])?;
                Ok(began.elapsed().as_secs_f64())
            };
            let took: Result<Vec<f64>, Error> = members.iter().map(compact).collect();
            thread::sleep(stall::AFTER);
            phase.end();
            (joined(probe), took)
        });
        let (latencies, took) = (latencies?, took?);
        for interval in intervals? {
            interval.end()?;
        }
        let changes = cluster::term(&members[0], &name)? - term;
        let longest = took.iter().copied().fold(0.0, f64::max);
        let mut figures = vec![Figure::lower("longest compaction", "s", longest).digits(2)];
        figures.extend(stall::of_client(&latencies, &stall::TRANSACTION));
        figures.push(
            Figure::lower("changes of the leader", "", changes)
                .digits(0)
                .aim(Aim::AtMost(0.0)),
        );
        Ok(figures)
    }
}
