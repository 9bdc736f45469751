//! Steady load: what is in the database before, who sends how much of what, who watches. The workloads of single-row
//! transactions are values of [`Load`].

use crate::error::Error;
use crate::figure::Figure;
use crate::requests;
use crate::stage::Stage;
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

    /// Fills the database, watches, writes, waits until everything is delivered, reads the meters.
    pub(crate) fn drive(&self, run: &Run<'_>) -> Result<Outcome, Error> {
        let mut stage = Stage::new(run)?;
        let mut uuids = Vec::with_capacity(self.rows as usize);
        stage.prepare(requests::fill(self.rows), |reply| {
            uuids.extend(requests::inserted_uuids(reply));
        })?;
        stage.connect(self.writers as usize)?;
        stage.watch(self.monitors as usize, &requests::monitor())?;
        let of_writer = |writer| requests::of_writer(self, writer, &uuids);
        let requests = (0..self.writers).map(of_writer).collect();
        let marker = (self.monitors > 0).then(requests::marker);
        let phase = stage.phase(requests, self.depth, marker)?;
        let memory = stage.server().memory()?;
        let at = |quantile| phase.latencies.value_at_quantile(quantile) as f64 / 1e3;
        Ok(Outcome {
            rate: phase.rate(),
            cpu_us: phase.cpu_us_each(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            resident_mib: memory.resident_mib,
            peak_mib: memory.peak_mib,
        })
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
