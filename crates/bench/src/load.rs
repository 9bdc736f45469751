//! A steady load: the contents of the database, the number of writers and their transactions, and
//! the number of watchers. The workloads of single-row transactions are values of [`Load`].

use crate::error::Error;
use crate::figure::Figure;
use crate::harness::Harness;
use crate::requests;
use crate::workload::Run;

/// The operation of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Inserts a row.
    Insert,
    /// Updates an existing row, by `_uuid`.
    Update,
}

/// A steady load.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) operation: Operation,
    /// The number of rows that are inserted before the measurement.
    pub(crate) rows: u32,
    pub(crate) writers: u32,
    /// The number of transactions of each writer.
    pub(crate) transactions: u32,
    /// The number of requests in flight of each writer.
    pub(crate) depth: usize,
    pub(crate) monitors: u32,
    /// Whether each transaction is durable, which means that it is on the disk before it is
    /// answered.
    pub(crate) is_durable: bool,
}

impl Load {
    /// Ten connections that update single rows of 1,000, each with one request in flight.
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

    /// Ten connections that insert rows into an empty database, each with one request in flight.
    pub(crate) fn of_inserts(transactions: u32) -> Load {
        Load {
            operation: Operation::Insert,
            rows: 0,
            ..Load::of_updates(transactions)
        }
    }

    /// Fills the database of a new server, starts the watchers, writes, waits until all updates are
    /// delivered, and reads CPU time and memory.
    pub(crate) fn drive(&self, run: &Run<'_>) -> Result<Outcome, Error> {
        let mut harness = Harness::new(run)?;
        self.drive_with(&mut harness, Harness::connect)
    }

    /// Like [`Load::drive`], but on servers that are already running. `connect` opens the
    /// connections of the writers. The memory is that of the server that uses the most.
    pub(crate) fn drive_with<'a>(
        &self,
        harness: &mut Harness<'a>,
        connect: impl FnOnce(&mut Harness<'a>, usize) -> Result<(), Error>,
    ) -> Result<Outcome, Error> {
        let mut uuids = Vec::with_capacity(self.rows as usize);
        harness.prepare(requests::fill(self.rows), |reply| {
            uuids.extend(requests::inserted_uuids(reply));
        })?;
        connect(harness, self.writers as usize)?;
        harness.watch(self.monitors as usize, &requests::monitor())?;
        let of_writer = |writer| requests::of_writer(self, writer, &uuids);
        let requests = (0..self.writers).map(of_writer).collect();
        let marker = (self.monitors > 0).then(requests::marker);
        let phase = harness.phase(requests, self.depth, marker)?;
        let (mut resident_mib, mut peak_mib) = (f64::NAN, f64::NAN);
        for server in harness.servers() {
            let memory = server.memory()?;
            resident_mib = memory.resident_mib.max(resident_mib);
            peak_mib = memory.peak_mib.max(peak_mib);
        }
        let at = |quantile| phase.latencies.value_at_quantile(quantile) as f64 / 1e3;
        Ok(Outcome {
            rate: phase.rate(),
            cpu_us: phase.cpu_us_each(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            resident_mib,
            peak_mib,
        })
    }
}

/// The results of a steady load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Transactions per second.
    pub(crate) rate: f64,
    /// The server's CPU time per transaction, in microseconds.
    pub(crate) cpu_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    /// The resident memory at the end, in MiB.
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
