//! `ovn`: a cloud on OVN. The packaged `ovn-northd` translates the northbound into the southbound
//! database. Both are on the server under test, and clients monitor the whole southbound database
//! as hypervisors do. First, the cloud is built with a transaction for each port. Then single ports
//! are added, each after the previous one has been translated (`--wait=sb`).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::client_pool::{Action, ClientPool, Kind};
use crate::cloud;
use crate::database_file;
use crate::driver;
use crate::error::Error;
use crate::figure::Figure;
use crate::northd::Northd;
use crate::server::Server;
use crate::workload::{Run, Scale, Workload};

pub(crate) struct Ovn;

/// The numbers of clients that monitor the southbound database.
const HYPERVISORS: [u32; 2] = [30, 300];
/// The number of the client that writes to the northbound database.
const WRITER: usize = 0;

impl Workload for Ovn {
    fn name(&self) -> &'static str {
        "ovn"
    }

    fn about(&self) -> &'static str {
        "ovn-northd builds 60 switches of 40 ports, 30 and 300 clients monitor the southbound database; then 100 single ports (full: 1,000)"
    }

    fn prepare(&self, _: Scale, file: &Path) -> Result<(), Error> {
        let schema = cloud::schema(cloud::NORTHBOUND)?;
        Ok(database_file::create_with(file, &schema)?)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let mut figures = Vec::new();
        for hypervisors in HYPERVISORS {
            let server = run.start()?;
            let mut cloud = Cloud::new(run, &server, hypervisors as usize)?;
            let built = cloud.build()?;
            let memory = server.memory()?;
            let ports = cloud.add_ports(run.pick(100, 1_000))?;
            let lower = |title, unit, value| {
                Figure::lower(title, unit, value)
                    .digits(2)
                    .at("hypervisors", hypervisors)
            };
            let ms = |latencies: &Histogram<u64>, quantile| {
                latencies.value_at_quantile(quantile) as f64 / 1e6
            };
            let northd_ms = ports.northd_cpu_us / 1e3;
            figures.extend([
                lower("building: server CPU", "s", built.cpu_us / 1e6),
                lower(
                    "building: until all have it",
                    "s",
                    built.elapsed.as_secs_f64(),
                ),
                lower("memory", "MiB", memory.resident_mib),
                lower("port: server CPU", "ms", ports.cpu_us / 1e3),
                Figure::plain("port: CPU of ovn-northd", "ms", northd_ms)
                    .at("hypervisors", hypervisors),
                lower("port: translated, p50", "ms", ms(&ports.translated, 0.5)),
                lower("port: translated, p99", "ms", ms(&ports.translated, 0.99)),
                lower("port: all are told, p50", "ms", ms(&ports.told, 0.5)),
                lower("port: all are told, p99", "ms", ms(&ports.told, 0.99)),
            ]);
        }
        Ok(figures)
    }
}

/// A server with both databases, the compiler between them, and all clients.
struct Cloud<'a> {
    run: &'a Run<'a>,
    server: &'a Server,
    pool: ClientPool,
    hypervisors: usize,
    /// The number of the configuration that was requested last.
    configuration: u64,
    northd: Northd,
}

/// The cost of building the cloud.
struct Built {
    cpu_us: f64,
    elapsed: Duration,
}

/// The cost of a single port. The histograms are in nanoseconds.
struct Ports {
    cpu_us: f64,
    /// The CPU time of the compiler.
    northd_cpu_us: f64,
    /// The time until the compiler has reported the port.
    translated: Histogram<u64>,
    /// The time until the last hypervisor has received an update.
    told: Histogram<u64>,
}

impl<'a> Cloud<'a> {
    fn new(run: &'a Run<'a>, server: &'a Server, hypervisors: usize) -> Result<Cloud<'a>, Error> {
        let southbound = cloud::schema(cloud::SOUTHBOUND)?;
        server.add_database(&southbound)?;
        let mut pool = ClientPool::new()?;
        pool.connect(server.address())?;
        pool.call(
            WRITER,
            [cloud::globals(), cloud::monitor_translated()],
            |_| {},
        )?;
        let northd = Northd::start(server.address())?;
        let mut cloud = Cloud {
            run,
            server,
            pool,
            hypervisors,
            configuration: 0,
            northd,
        };
        run.show("ovn-northd starts");
        cloud.request(cloud::next_configuration())?;
        let monitor = cloud::monitor_everything(&southbound);
        let clients = cloud.pool.connect_many(server.address(), hypervisors)?;
        cloud
            .pool
            .call_all(clients, |_| monitor.clone(), |_, _| {})?;
        Ok(cloud)
    }

    /// Builds the topology, and waits until every hypervisor has received its whole translation.
    fn build(&mut self) -> Result<Built, Error> {
        self.run.show("building");
        let (interval, began) = (self.server.measure_cpu()?, Instant::now());
        let switches = (0..cloud::SWITCHES).map(cloud::add_switch);
        let ports = (0..cloud::PORTS)
            .flat_map(|port| (0..cloud::SWITCHES).map(move |switch| cloud::add_port(switch, port)));
        self.pool.call(WRITER, switches.chain(ports), |_| {})?;
        self.request(cloud::next_configuration())?;
        self.pool.expect_marker();
        self.pool.send(WRITER, cloud::southbound_marker())?;
        let mut left = self.hypervisors;
        self.pool.run(|arrival| {
            left -= usize::from(arrival.kind == Kind::Marker && arrival.client != WRITER);
            if left == 0 {
                Action::Stop
            } else {
                Action::Wait
            }
        })?;
        Ok(Built {
            elapsed: began.elapsed(),
            cpu_us: interval.end()?,
        })
    }

    /// Adds `count` ports, one after another.
    fn add_ports(&mut self, count: u32) -> Result<Ports, Error> {
        self.restart_northd()?;
        self.run.show("single ports");
        let (mut translated, mut told) = (driver::latencies(), driver::latencies());
        let (interval, northd_began_us) = (self.server.measure_cpu()?, self.northd.cpu_us()?);
        for number in 0..count {
            let switch = number % cloud::SWITCHES;
            let port = cloud::PORTS + number / cloud::SWITCHES;
            let times = self.request(cloud::add_port_and_wait(switch, port))?;
            translated.saturating_record(nanoseconds(times.translated));
            told.saturating_record(nanoseconds(times.told));
        }
        Ok(Ports {
            cpu_us: interval.end()? / f64::from(count),
            northd_cpu_us: (self.northd.cpu_us()? - northd_began_us) / f64::from(count),
            translated,
            told,
        })
    }

    /// Restarts the compiler. Its memory layout depends on the steps in which it received the
    /// growing cloud, which differ between servers. A bad layout makes it up to 1.4 times slower
    /// for the same work.
    fn restart_northd(&mut self) -> Result<(), Error> {
        self.northd = Northd::start(self.server.address())?;
        self.request(cloud::next_configuration())?;
        Ok(())
    }

    /// Sends a request with the next configuration number, and waits until the compiler has
    /// reported this number and every hypervisor has received an update.
    fn request(&mut self, request: Arc<[u8]>) -> Result<Times, Error> {
        self.configuration += 1;
        let wanted = self.configuration;
        let began = Instant::now();
        self.pool.send(WRITER, request)?;
        let mut is_told = vec![false; self.pool.len()];
        let mut untold = is_told.len() - 1;
        let (mut is_answered, mut translated, mut told) = (false, None, None);
        self.pool.run(|arrival| {
            match arrival.kind {
                Kind::Reply => is_answered |= arrival.client == WRITER,
                Kind::Notification if arrival.client == WRITER => {
                    if cloud::translated(arrival.text).is_some_and(|number| number >= wanted) {
                        translated = Some(began.elapsed());
                    }
                }
                Kind::Notification => {
                    untold -= usize::from(!std::mem::replace(&mut is_told[arrival.client], true));
                }
                Kind::Marker => {}
            }
            if untold == 0 && told.is_none() {
                told = Some(began.elapsed());
            }
            let is_done = is_answered && translated.is_some() && told.is_some();
            if is_done { Action::Stop } else { Action::Wait }
        })?;
        Ok(Times {
            translated: translated.unwrap_or_default(),
            told: told.unwrap_or_default(),
        })
    }
}

/// Times since a request was sent.
struct Times {
    /// The time until the compiler has reported it.
    translated: Duration,
    /// The time until every hypervisor has received an update.
    told: Duration,
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
