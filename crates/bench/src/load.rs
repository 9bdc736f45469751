//! Steady load: what is in the database before, who sends how much of what, who watches. The workloads of single-row
//! transactions are values of [`Load`].

use std::time::Instant;

use crate::connection::Connection;
use crate::driver::{self, Driver};
use crate::error::Error;
use crate::figure::Figure;
use crate::requests;
use crate::server::Server;
use crate::workload::Run;

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Inserts a row of its own.
    Insert,
    /// Updates a row that is there, by `_uuid`.
    Update,
}

/// A steady load.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) operation: Operation,
    /// Rows inserted before the measurement.
    pub(crate) rows: u32,
    pub(crate) writers: u32,
    /// Of each writer.
    pub(crate) transactions: u32,
    /// Requests in flight of each writer.
    pub(crate) depth: usize,
    pub(crate) monitors: u32,
    /// Whether each transaction asks to be on the disk before it is answered.
    pub(crate) is_durable: bool,
}

impl Load {
    /// Ten connections that update single rows of 1,000, one request in flight each.
    pub(crate) fn of_updates(transactions: u32) -> Load {
        Load {
            operation: Operation::Update,
            rows: 1_000,
            writers: 10,
            transactions,
            depth: 1,
            monitors: 0,
            is_durable: false,
        }
    }

    /// Ten connections that insert rows into an empty database, one request in flight each.
    pub(crate) fn of_inserts(transactions: u32) -> Load {
        Load {
            operation: Operation::Insert,
            rows: 0,
            ..Load::of_updates(transactions)
        }
    }

    /// Transactions of all writers.
    fn total(&self) -> u64 {
        u64::from(self.writers) * u64::from(self.transactions)
    }

    /// Fills the database, watches, writes, waits until everything is delivered, reads the meters.
    pub(crate) fn drive(&self, run: &Run<'_>) -> Result<Outcome, Error> {
        let server = run.start()?;
        let mut driver = Driver::new()?;
        let uuids = self.fill(&mut driver, &server)?;
        let filler = 0;
        for writer in 0..self.writers {
            let stream = driver.connect(server.address())?;
            let requests = requests::of_writer(self, writer, &uuids);
            // Nothing may be in flight yet: writers start together, below.
            driver.add(Connection::writer(stream, requests, 0));
        }
        self.watch(&mut driver, &server)?;
        let is_writer = |number: usize| number > filler && number <= filler + self.writers as usize;
        for number in (1..).take(self.writers as usize) {
            driver.change(number, |connection| connection.with_depth(self.depth))?;
        }
        let mut latencies = driver::latencies();
        let total = self.total();
        let (cpu_before, started) = (server.cpu_us()?, Instant::now());
        driver.run(
            is_writer,
            |_, _, nanoseconds| latencies.saturating_record(nanoseconds),
            |done| run.say(&format!("{} %", done * 100 / total)),
        )?;
        if self.monitors > 0 {
            driver.change(filler, |connection| {
                connection.assign(requests::marker(), 1)
            })?;
            driver.run(|number| !is_writer(number), |_, _, _| {}, |_| {})?;
        }
        let (elapsed, cpu_after) = (started.elapsed(), server.cpu_us()?);
        let memory = server.memory()?;
        let at = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
        Ok(Outcome {
            rate: total as f64 / elapsed.as_secs_f64(),
            cpu_us: (cpu_after - cpu_before) / total as f64,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            resident_mib: memory.resident_mib,
            peak_mib: memory.peak_mib,
        })
    }

    /// Opens the first connection, inserts the rows that are to be there, and returns their identities.
    fn fill(&self, driver: &mut Driver, server: &Server) -> Result<Vec<String>, Error> {
        let stream = driver.connect(server.address())?;
        driver.add(Connection::writer(stream, requests::fill(self.rows), 1));
        let mut uuids = Vec::with_capacity(self.rows as usize);
        driver.run(
            |_| true,
            |_, reply, _| uuids.extend(requests::inserted_uuids(reply)),
            |_| {},
        )?;
        Ok(uuids)
    }

    /// Opens the watching connections.
    fn watch(&self, driver: &mut Driver, server: &Server) -> Result<(), Error> {
        for _ in 0..self.monitors {
            let stream = driver.connect(server.address())?;
            let number = driver.add(Connection::writer(stream, requests::monitor(), 1));
            driver.run(|awaited| awaited == number, |_, _, _| {}, |_| {})?;
            driver.change(number, Connection::watch)?;
        }
        Ok(())
    }
}

/// What a steady load yields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Transactions per second.
    pub(crate) rate: f64,
    /// Server CPU time per transaction, microseconds.
    pub(crate) cpu_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    /// At the end, MiB.
    pub(crate) resident_mib: f64,
    pub(crate) peak_mib: f64,
}

impl Outcome {
    pub(crate) fn rate(&self) -> Figure {
        Figure::higher("rate", "txn/s", self.rate).digits(0)
    }

    pub(crate) fn cpu(&self) -> Figure {
        Figure::lower("server CPU", "us/txn", self.cpu_us).digits(2)
    }

    pub(crate) fn latencies(&self) -> [Figure; 3] {
        [
            Figure::lower("latency p50", "us", self.p50_us).digits(0),
            Figure::lower("latency p99", "us", self.p99_us).digits(0),
            Figure::lower("latency p99.9", "us", self.p999_us).digits(0),
        ]
    }

    pub(crate) fn resident(&self) -> Figure {
        Figure::lower("memory", "MiB", self.resident_mib)
    }

    pub(crate) fn peak(&self) -> Figure {
        Figure::lower("peak memory", "MiB", self.peak_mib)
    }
}
