//! The server of one run, or the members of a cluster, with the connections to them: one that
//! prepares, the writers and the watchers. Workloads with several phases use it.
//!
//! In each phase, all writers send their requests. Then a marker is inserted, and the phase ends
//! when every watcher has received the marker. So a phase includes the delivery of its updates.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::connection::Connection;
use crate::cpu_interval::CpuInterval;
use crate::driver::{self, Driver};
use crate::error::Error;
use crate::requests::Requests;
use crate::server::Server;
use crate::workload::Run;

/// The number of the connection that prepares the database and inserts markers.
const PREPARER: usize = 0;

/// A server with its connections.
pub(crate) struct Harness<'a> {
    run: &'a Run<'a>,
    /// Has at least one element. The first server gets the preparation, and also all writers unless
    /// they are spread over the servers.
    servers: Vec<Server>,
    driver: Driver,
    writers: usize,
}

/// The cost of a phase.
#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) transactions: u64,
    pub(crate) elapsed: Duration,
    /// The CPU time of all servers, in microseconds.
    pub(crate) cpu_us: f64,
    /// The latencies, in nanoseconds.
    pub(crate) latencies: Histogram<u64>,
    /// The sizes of all requests and of their replies.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Phase {
    /// Returns the number of transactions per second.
    pub(crate) fn rate(&self) -> f64 {
        self.transactions as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the server's CPU time per transaction, in microseconds.
    pub(crate) fn cpu_us_each(&self) -> f64 {
        self.cpu_us / self.transactions as f64
    }

    /// Returns the wall time per transaction, in microseconds.
    pub(crate) fn wall_us_each(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e6 / self.transactions as f64
    }

    /// Returns the number of bytes of a transaction and its reply.
    pub(crate) fn bytes_each(&self) -> f64 {
        (self.sent_bytes + self.received_bytes) as f64 / self.transactions as f64
    }
}

impl<'a> Harness<'a> {
    /// Starts the server of `run`.
    pub(crate) fn new(run: &'a Run<'a>) -> Result<Harness<'a>, Error> {
        Harness::of_servers(run, vec![run.start()?])
    }

    /// Uses servers that are running already. There must be at least one.
    pub(crate) fn of_servers(run: &'a Run<'a>, servers: Vec<Server>) -> Result<Harness<'a>, Error> {
        let mut driver = Driver::new()?;
        let stream = driver.connect(servers[0].address())?;
        driver.add(Connection::writer(stream, Requests::default(), 0));
        Ok(Harness {
            run,
            servers,
            driver,
            writers: 0,
        })
    }

    /// Returns the first server.
    pub(crate) fn server(&self) -> &Server {
        &self.servers[0]
    }

    /// Returns all servers.
    pub(crate) fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Sends requests one after another. `replied` gets each reply.
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

    /// Opens the connections of the writers to the first server. Must be called only once, before
    /// [`Harness::watch`].
    pub(crate) fn connect(&mut self, writers: usize) -> Result<(), Error> {
        self.connect_to(writers, 1)
    }

    /// Opens the connections of the writers to all servers in turn. Must be called only once,
    /// before [`Harness::watch`].
    pub(crate) fn connect_to_all(&mut self, writers: usize) -> Result<(), Error> {
        self.connect_to(writers, self.servers.len())
    }

    fn connect_to(&mut self, writers: usize, servers: usize) -> Result<(), Error> {
        for writer in 0..writers {
            let address = self.servers[writer % servers].address();
            let stream = self.driver.connect(address)?;
            self.driver
                .add(Connection::writer(stream, Requests::default(), 0));
        }
        self.writers = writers;
        Ok(())
    }

    /// Sends a request from each writer that is not counted, such as a monitor request.
    pub(crate) fn request_each(&mut self, request: &Requests) -> Result<(), Error> {
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
            let stream = self.driver.connect(self.servers[0].address())?;
            let connection = Connection::writer(stream, monitor.clone(), 1);
            let number = self.driver.add(connection);
            self.driver
                .run(|awaited| awaited == number, |_, _, _| {}, |_| {})?;
            self.driver.change(number, Connection::watch)?;
        }
        Ok(())
    }

    /// Sends the requests of all writers, each with `depth` requests in flight. Then sends the
    /// marker, if there is one, and waits until all watchers have received it.
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
        let intervals: Result<Vec<CpuInterval>, Error> =
            self.servers.iter().map(Server::measure_cpu).collect();
        let (intervals, started) = (intervals?, Instant::now());
        self.driver.run(
            |number| is_writer(number, writers),
            |_, reply, nanoseconds| {
                latencies.saturating_record(nanoseconds);
                received_bytes += reply.len() as u64;
            },
            |done| {
                self.run
                    .show(&format!("{} %", done * 100 / transactions.max(1)));
            },
        )?;
        if let Some(marker) = marker {
            self.driver
                .change(PREPARER, |connection| connection.assign(marker, 1))?;
            self.driver
                .run(|number| !is_writer(number, writers), |_, _, _| {}, |_| {})?;
        }
        let elapsed = started.elapsed();
        let mut cpu_us = 0.0;
        for interval in intervals {
            cpu_us += interval.end()?;
        }
        Ok(Phase {
            transactions,
            elapsed,
            cpu_us,
            latencies,
            sent_bytes,
            received_bytes,
        })
    }

    /// Reads until every watcher has received the marker, which somebody else sends.
    pub(crate) fn await_marker(&mut self) -> Result<(), Error> {
        let writers = self.writers;
        self.driver
            .run(|number| number > writers, |_, _, _| {}, |_| {})
    }

    /// Sends the request of a producer, which contains the marker, and waits until all writers,
    /// which are also monitors here, have received the marker.
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
