//! Clients that live on small requests, while the server compacts a large database.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::Figure;
use super::aim::Aim;
use super::pulse::{self, Latencies, Phase};
use crate::database_file;
use crate::error::Error;
use crate::server_process::ServerProcess;

/// How long clients are watched before the compaction.
const BEFORE: Duration = Duration::from_secs(4);
/// Rows that the client updates in turn.
const UPDATED_ROWS: u64 = 1_000;

/// Starts the server on a copy of `file`, which has so many rows.
pub(super) fn measure(program: &Path, file: &Path, rows: u32) -> Result<Vec<Figure>, Error> {
    let server = ServerProcess::open(program, file)?;
    let socket = server.socket();
    let phase = Phase::default();
    let (transact, echo, compaction) = thread::scope(|scope| {
        let transact = scope.spawn(|| pulse::run(&socket, &phase, |number| update(number, rows)));
        let echo = scope.spawn(|| pulse::run(&socket, &phase, echo));
        thread::sleep(BEFORE);
        phase.begin();
        let began = Instant::now();
        let outcome = server.control("ovsdb-server/compact");
        let took = began.elapsed();
        phase.end();
        (joined(transact), joined(echo), outcome.map(|()| took))
    });
    let (transact, echo, compaction) = (transact?, echo?, compaction?);
    let mut figures = vec![Figure::new("compaction, s", compaction.as_secs_f64(), 2)];
    figures.extend(of_client(&transact, &TRANSACTION));
    figures.extend(of_client(&echo, &ECHO));
    Ok(figures)
}

/// A thread of ours that panicked has found a bug of ours.
fn joined(
    thread: thread::ScopedJoinHandle<'_, Result<Latencies, Error>>,
) -> Result<Latencies, Error> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The names of a client's figures.
struct Titles {
    p50_before: &'static str,
    p999_before: &'static str,
    longest_before: &'static str,
    p999_during: &'static str,
    longest_during: &'static str,
    stall: &'static str,
}

const TRANSACTION: Titles = Titles {
    p50_before: "transaction p50 before, ms",
    p999_before: "transaction p99.9 before, ms",
    longest_before: "transaction longest before, ms",
    p999_during: "transaction p99.9 during, ms",
    longest_during: "transaction longest during, ms",
    stall: "transaction longest during - p50 before, ms",
};

const ECHO: Titles = Titles {
    p50_before: "echo p50 before, ms",
    p999_before: "echo p99.9 before, ms",
    longest_before: "echo longest before, ms",
    p999_during: "echo p99.9 during, ms",
    longest_during: "echo longest during, ms",
    stall: "echo longest during - p50 before, ms",
};

/// The longest stall above the normal latency that is aimed at, ms. What is normal is the median: higher quantiles of the time
/// before would let a stall hide behind an earlier one.
const STALL_MAX_MS: f64 = 5.0;

fn of_client(latencies: &Latencies, titles: &Titles) -> Vec<Figure> {
    let at = |latencies: &Histogram<u64>, quantile: f64| {
        latencies.value_at_quantile(quantile) as f64 / 1e6
    };
    let longest = |latencies: &Histogram<u64>| latencies.max() as f64 / 1e6;
    let (before, during) = (&latencies.before, &latencies.during);
    vec![
        Figure::new(titles.p50_before, at(before, 0.5), 3),
        Figure::new(titles.p999_before, at(before, 0.999), 3),
        Figure::new(titles.longest_before, longest(before), 3),
        Figure::new(titles.p999_during, at(during, 0.999), 3),
        Figure::new(titles.longest_during, longest(during), 3),
        Figure::new(titles.stall, longest(during) - at(before, 0.5), 3)
            .aiming(Aim::AtMost(STALL_MAX_MS)),
    ]
}

/// Sets a number that the row did not have.
fn update(number: u64, rows: u32) -> String {
    let row = number % UPDATED_ROWS.min(u64::from(rows));
    let uuid = database_file::uuid(u32::try_from(row).unwrap_or(0));
    format!(
        r#"{{"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"number":{}}}}}],"id":{number}}}"#,
        number + u64::from(rows)
    )
}

fn echo(number: u64) -> String {
    format!(r#"{{"method":"echo","params":[],"id":{number}}}"#)
}
