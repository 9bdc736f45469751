//! A server and the connections to it, of one run: one that prepares, some that write, some that watch. Workloads of several
//! phases are made of it.
//!
//! Each phase has all writers send what they are given, then inserts a marker and waits until every watcher has seen it, so that
//! delivery belongs to the phase that caused it.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::connection::Connection;
use crate::driver::{self, Driver};
use crate::error::Error;
use crate::requests::Requests;
use crate::server::Server;
use crate::workload::Run;

/// The connection that prepares and marks.
const PREPARER: usize = 0;

/// See the head of this file.
pub(crate) struct Stage<'a> {
    run: &'a Run<'a>,
    server: Server,
    driver: Driver,
    writers: usize,
}

/// What a phase took.
#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) transactions: u64,
    pub(crate) elapsed: Duration,
    /// Server CPU time, microseconds.
    pub(crate) cpu_us: f64,
    /// Nanoseconds.
    pub(crate) latencies: Histogram<u64>,
    /// Bytes of all requests, and of all replies to them.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Phase {
    /// Transactions per second.
    pub(crate) fn rate(&self) -> f64 {
        self.transactions as f64 / self.elapsed.as_secs_f64()
    }

    /// Server CPU time of a transaction, microseconds.
    pub(crate) fn cpu_us_each(&self) -> f64 {
        self.cpu_us / self.transactions as f64
    }

    /// Wall time of a transaction, microseconds.
    pub(crate) fn wall_us_each(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e6 / self.transactions as f64
    }

    /// Bytes of a transaction both ways.
    pub(crate) fn bytes_each(&self) -> f64 {
        (self.sent_bytes + self.received_bytes) as f64 / self.transactions as f64
    }
}

impl<'a> Stage<'a> {
    /// Starts the server of `run`.
    pub(crate) fn new(run: &'a Run<'a>) -> Result<Stage<'a>, Error> {
        let server = run.start()?;
        let mut driver = Driver::new()?;
        let stream = driver.connect(server.address())?;
        driver.add(Connection::writer(stream, Requests::default(), 0));
        Ok(Stage {
            run,
            server,
            driver,
            writers: 0,
        })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Sends requests one after the other; `replied` is given each reply.
    pub(crate) fn prepare(
        &mut self,
        requests: Requests,
        mut replied: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        self.driver
            .change(PREPARER, |connection| connection.assign(requests, 1))?;
        self.driver.run(
            |number| number == PREPARER,
            |number, reply, _| {
                if number == PREPARER {
                    replied(reply);
                }
            },
            |_| {},
        )
    }

    /// Opens the connections that write. Called once, before [`Stage::watch`].
    pub(crate) fn connect(&mut self, writers: usize) -> Result<(), Error> {
        for _ in 0..writers {
            let stream = self.driver.connect(self.server.address())?;
            self.driver
                .add(Connection::writer(stream, Requests::default(), 0));
        }
        self.writers = writers;
        Ok(())
    }

    /// Has each writer send a request that is not counted, such as one for a monitor of its own.
    pub(crate) fn introduce(&mut self, request: &Requests) -> Result<(), Error> {
        for number in (PREPARER + 1..).take(self.writers) {
            self.driver
                .change(number, |connection| connection.assign(request.clone(), 1))?;
        }
        let writers = self.writers;
        self.driver
            .run(|number| is_writer(number, writers), |_, _, _| {}, |_| {})
    }

    /// Opens connections that send `monitor` and then watch.
    pub(crate) fn watch(&mut self, watchers: usize, monitor: &Requests) -> Result<(), Error> {
        for _ in 0..watchers {
            let stream = self.driver.connect(self.server.address())?;
            let connection = Connection::writer(stream, monitor.clone(), 1);
            let number = self.driver.add(connection);
            self.driver
                .run(|awaited| awaited == number, |_, _, _| {}, |_| {})?;
            self.driver.change(number, Connection::watch)?;
        }
        Ok(())
    }

    /// Has each writer send its requests, `depth` in flight; then, where there is a marker, has it sent and waits until all
    /// watchers have seen it.
    pub(crate) fn phase(
        &mut self,
        requests: Vec<Requests>,
        depth: usize,
        marker: Option<Requests>,
    ) -> Result<Phase, Error> {
        let writers = self.writers;
        let transactions: u64 = requests.iter().map(|requests| requests.len() as u64).sum();
        let sent_bytes = requests.iter().map(Requests::bytes).sum();
        for (number, requests) in (PREPARER + 1..=writers).zip(requests) {
            self.driver
                .change(number, |connection| connection.assign(requests, depth))?;
        }
        for number in writers + 1..self.driver.len() {
            self.driver.change(number, Connection::watch)?;
        }
        let (mut latencies, mut received_bytes) = (driver::latencies(), 0);
        let (spell, started) = (self.server.spell()?, Instant::now());
        self.driver.run(
            |number| is_writer(number, writers),
            |_, reply, nanoseconds| {
                latencies.saturating_record(nanoseconds);
                received_bytes += reply.len() as u64;
            },
            |done| {
                self.run
                    .say(&format!("{} %", done * 100 / transactions.max(1)));
            },
        )?;
        if let Some(marker) = marker {
            self.driver
                .change(PREPARER, |connection| connection.assign(marker, 1))?;
            self.driver
                .run(|number| !is_writer(number, writers), |_, _, _| {}, |_| {})?;
        }
        let elapsed = started.elapsed();
        Ok(Phase {
            transactions,
            elapsed,
            cpu_us: spell.end()?,
            latencies,
            sent_bytes,
            received_bytes,
        })
    }

    /// Reads until every watcher has seen the marker, which somebody else sends.
    pub(crate) fn hear(&mut self) -> Result<(), Error> {
        let writers = self.writers;
        self.driver
            .run(|number| number > writers, |_, _, _| {}, |_| {})
    }

    /// A producer's request that all writers are to hear of, as the monitors that they are: sends it, and waits until each has
    /// read the marker that it leaves behind.
    pub(crate) fn produce(&mut self, request: Requests) -> Result<(), Error> {
        for number in (PREPARER + 1..).take(self.writers) {
            self.driver.change(number, Connection::awaiting_marker)?;
        }
        self.driver
            .change(PREPARER, |connection| connection.assign(request, 1))?;
        self.driver.run(|_| true, |_, _, _| {}, |_| {})
    }
}

fn is_writer(number: usize, writers: usize) -> bool {
    number > PREPARER && number <= PREPARER + writers
}
