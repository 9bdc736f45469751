//! `stall`: the latencies of clients with small requests while the server compacts a large
//! database.

use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::database_file::{self, History};
use crate::error::{Error, joined};
use crate::figure::{Aim, Figure};
use crate::latency_probe::{self, Latencies, Phase};
use crate::requests;
use crate::workload::{Run, Scale, Workload};

/// The time of the measurement before the compaction.
const BEFORE: Duration = Duration::from_secs(4);
/// How long after the reply to the command the measurement continues, as a part of the compaction:
/// the server closes the replaced file only after the reply.
pub(super) const AFTER: Duration = Duration::from_secs(1);
/// The number of rows that the client updates in turn.
const UPDATED_ROWS: u64 = 1_000;

pub(crate) struct Stall;

/// The number of rows of the file.
fn rows(scale: Scale) -> u32 {
    scale.pick(200_000, 1_000_000)
}

impl Workload for Stall {
    fn name(&self) -> &'static str {
        "stall"
    }

    fn about(&self) -> &'static str {
        "a transaction and an echo each millisecond while the server compacts 200,000 rows (full: 1,000,000)"
    }

    fn history(&self, scale: Scale) -> History {
        History::of_rows(rows(scale))
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let server = run.start()?;
        let (address, rows) = (server.address(), rows(run.scale));
        let (phase, interval) = (Phase::default(), server.measure_cpu()?);
        let (transact, echo, compaction) = thread::scope(|scope| {
            let transact =
                scope.spawn(|| latency_probe::run(address, &phase, |number| update(number, rows)));
            let echo = scope.spawn(|| latency_probe::run(address, &phase, requests::echo));
            thread::sleep(BEFORE);
            phase.begin();
            let began = Instant::now();
            let outcome = server.control("ovsdb-server/compact", &[]);
            let took = began.elapsed();
            thread::sleep(AFTER);
            phase.end();
            (joined(transact), joined(echo), outcome.map(|_| took))
        });
        let (transact, echo, compaction) = (transact?, echo?, compaction?);
        interval.end()?;
        let mut figures =
            vec![Figure::lower("compaction", "s", compaction.as_secs_f64()).digits(2)];
        figures.extend(of_client(&transact, &TRANSACTION));
        figures.extend(of_client(&echo, &ECHO));
        Ok(figures)
    }
}

/// The titles of a client's figures.
pub(super) struct Titles {
    p50_before: &'static str,
    p999_before: &'static str,
    longest_before: &'static str,
    p999_during: &'static str,
    longest_during: &'static str,
    stall: &'static str,
}

pub(super) const TRANSACTION: Titles = Titles {
    p50_before: "transaction p50 before",
    p999_before: "transaction p99.9 before",
    longest_before: "transaction longest before",
    p999_during: "transaction p99.9 during",
    longest_during: "transaction longest during",
    stall: "transaction longest during - p50 before",
};

const ECHO: Titles = Titles {
    p50_before: "echo p50 before",
    p999_before: "echo p99.9 before",
    longest_before: "echo longest before",
    p999_during: "echo p99.9 during",
    longest_during: "echo longest during",
    stall: "echo longest during - p50 before",
};

/// The aim for the longest stall above the normal latency, in ms. The median is the normal latency,
/// because a higher quantile could include an earlier stall.
const STALL_MAX_MS: f64 = 5.0;

pub(super) fn of_client(latencies: &Latencies, titles: &Titles) -> Vec<Figure> {
    let at = |latencies: &Histogram<u64>, quantile: f64| {
        latencies.value_at_quantile(quantile) as f64 / 1e6
    };
    let longest = |latencies: &Histogram<u64>| latencies.max() as f64 / 1e6;
    let (before, during) = (&latencies.before, &latencies.during);
    vec![
        Figure::lower(titles.p50_before, "ms", at(before, 0.5)).digits(3),
        Figure::lower(titles.p999_before, "ms", at(before, 0.999)).digits(3),
        Figure::lower(titles.longest_before, "ms", longest(before)).digits(3),
        Figure::lower(titles.p999_during, "ms", at(during, 0.999)).digits(3),
        Figure::lower(titles.longest_during, "ms", longest(during)).digits(3),
        Figure::lower(titles.stall, "ms", longest(during) - at(before, 0.5))
            .digits(3)
            .aim(Aim::AtMost(STALL_MAX_MS)),
    ]
}

/// Sets the number of a row to a new value.
pub(super) fn update(number: u64, rows: u32) -> String {
    let row = number % UPDATED_ROWS.min(u64::from(rows));
    let uuid = database_file::uuid(u32::try_from(row).unwrap_or(0));
    requests::set_number(number, &uuid, number + u64::from(rows))
}
