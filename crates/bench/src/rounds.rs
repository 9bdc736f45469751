//! Rounds: each server in turn with each workload, a fresh process and database every time.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::connection::Connection;
use crate::driver::{self, Driver};
use crate::error::Error;
use crate::figures::{self, Figures};
use crate::options::Load;
use crate::progress::Progress;
use crate::requests;
use crate::server_process::ServerProcess;
use crate::workload::{Kind, Workload};

/// The results of one workload.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) kind: Kind,
    /// One per server, in the order given.
    pub(crate) servers: Vec<ServerOutcome>,
}

/// The results of one server with one workload.
#[derive(Debug)]
pub(crate) struct ServerOutcome {
    pub(crate) program: PathBuf,
    pub(crate) runs: Vec<Figures>,
    pub(crate) median: Figures,
}

/// Measures every workload with every server: A B A B, so that what else the machine does meets both alike.
pub(crate) fn measure(load: &Load, programs: &[&PathBuf]) -> Result<Vec<Outcome>, Error> {
    let count = load.workloads.len() * load.rounds as usize * programs.len();
    let progress = Progress::new(count as u64);
    let mut outcomes = Vec::new();
    for &kind in &load.workloads {
        let workload = Workload::new(kind, load);
        let mut runs = vec![Vec::new(); programs.len()];
        for _ in 0..load.rounds {
            for (program, runs) in programs.iter().zip(&mut runs) {
                progress.say(format!("{kind} {}", program.display()));
                let total = workload.total();
                let tick = |done: u64| {
                    progress.say(format!(
                        "{kind} {} {} %",
                        program.display(),
                        done * 100 / total
                    ));
                };
                runs.push(measure_once(program, &workload, tick)?);
                progress.step();
            }
        }
        let servers = programs
            .iter()
            .zip(runs)
            .map(|(program, runs)| ServerOutcome {
                program: program.to_path_buf(),
                median: figures::median(&runs),
                runs,
            });
        outcomes.push(Outcome {
            kind,
            servers: servers.collect(),
        });
    }
    Ok(outcomes)
}

/// One run: start, fill, watch, write, wait until everything is delivered, read the meters.
pub(crate) fn measure_once(
    program: &Path,
    workload: &Workload,
    tick: impl FnMut(u64),
) -> Result<Figures, Error> {
    let server = ServerProcess::start(program)?;
    let mut driver = Driver::new()?;
    let uuids = fill(&mut driver, &server, workload.rows)?;
    let filler = 0;
    for writer in 0..workload.writers {
        let stream = driver.connect(&server.socket())?;
        let requests = requests::of_writer(workload, writer, &uuids);
        // Nothing may be in flight yet: writers start together, below.
        driver.add(Connection::writer(stream, requests, 0));
    }
    watch(&mut driver, &server, workload)?;
    let is_writer = |number: usize| number > filler && number <= filler + workload.writers as usize;
    for number in (1..).take(workload.writers as usize) {
        driver.change(number, |connection| connection.with_depth(workload.depth))?;
    }
    let mut latencies = driver::latencies();
    let (cpu_before, started) = (server.cpu_us()?, Instant::now());
    driver.run(
        is_writer,
        |_, _, nanoseconds| latencies.saturating_record(nanoseconds),
        tick,
    )?;
    if workload.monitors > 0 {
        driver.change(filler, |connection| {
            connection.assign(requests::marker(), 1)
        })?;
        driver.run(|number| !is_writer(number), |_, _, _| {}, |_| {})?;
    }
    let (elapsed, cpu_after) = (started.elapsed(), server.cpu_us()?);
    let memory = server.memory()?;
    let total = workload.total() as f64;
    Ok(Figures {
        rate: total / elapsed.as_secs_f64(),
        cpu_us: (cpu_after - cpu_before) as f64 / total,
        p50_us: latencies.value_at_quantile(0.5) as f64 / 1e3,
        p99_us: latencies.value_at_quantile(0.99) as f64 / 1e3,
        resident_mib: memory.resident as f64 / 1024.0,
        peak_mib: memory.peak as f64 / 1024.0,
        file_mib: server.file_bytes()? as f64 / (1024.0 * 1024.0),
    })
}

/// Opens the first connection, inserts the rows that are to be there, and returns their identities.
fn fill(driver: &mut Driver, server: &ServerProcess, rows: u32) -> Result<Vec<String>, Error> {
    let stream = driver.connect(&server.socket())?;
    driver.add(Connection::writer(stream, requests::fill(rows), 1));
    let mut uuids = Vec::with_capacity(rows as usize);
    driver.run(
        |_| true,
        |_, reply, _| uuids.extend(requests::inserted_uuids(reply)),
        |_| {},
    )?;
    Ok(uuids)
}

/// Opens the watching connections.
fn watch(driver: &mut Driver, server: &ServerProcess, workload: &Workload) -> Result<(), Error> {
    for _ in 0..workload.monitors {
        let stream = driver.connect(&server.socket())?;
        let number = driver.add(Connection::writer(stream, requests::monitor(), 1));
        driver.run(|awaited| awaited == number, |_, _, _| {}, |_| {})?;
        driver.change(number, Connection::watch)?;
    }
    Ok(())
}
