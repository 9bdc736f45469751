//! `ovn`: a cloud on OVN. `ovn-northd` of the packages translates the northbound into the southbound database, both on the server
//! under test, while clients monitor the whole southbound database as hypervisors do. First the cloud is built, a transaction
//! for each port, then single ports are added, each when the one before has been translated (`--wait=sb`).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::cloud;
use crate::crowd::{Act, Crowd, Kind};
use crate::database_file;
use crate::driver;
use crate::error::Error;
use crate::figure::Figure;
use crate::northd::Northd;
use crate::server::Server;
use crate::workload::{Run, Scale, Workload};

/// See the module.
pub(crate) struct Ovn;

/// Clients that monitor the southbound database.
const HYPERVISORS: [u32; 2] = [30, 300];
/// The client that writes to the northbound database.
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
    crowd: Crowd,
    hypervisors: usize,
    /// The number of the last configuration that was asked for.
    configuration: u64,
    northd: Northd,
}

/// What building the cloud took.
struct Built {
    cpu_us: f64,
    elapsed: Duration,
}

/// What a single port takes. The histograms are in nanoseconds.
struct Ports {
    cpu_us: f64,
    /// Of the compiler.
    northd_cpu_us: f64,
    /// Until the compiler has reported it.
    translated: Histogram<u64>,
    /// Until the last hypervisor has received an update.
    told: Histogram<u64>,
}

impl<'a> Cloud<'a> {
    fn new(run: &'a Run<'a>, server: &'a Server, hypervisors: usize) -> Result<Cloud<'a>, Error> {
        let southbound = cloud::schema(cloud::SOUTHBOUND)?;
        server.add_database(&southbound)?;
        let mut crowd = Crowd::new()?;
        crowd.connect(server.address())?;
        crowd.call(
            WRITER,
            [cloud::globals(), cloud::monitor_translated()],
            |_| {},
        )?;
        let northd = Northd::start(server.address())?;
        let mut cloud = Cloud {
            run,
            server,
            crowd,
            hypervisors,
            configuration: 0,
            northd,
        };
        run.say("ovn-northd starts");
        cloud.request(cloud::next_configuration())?;
        let monitor = cloud::monitor_everything(&southbound);
        let clients = cloud.crowd.connect_many(server.address(), hypervisors)?;
        cloud
            .crowd
            .call_all(clients, |_| monitor.clone(), |_, _| {})?;
        Ok(cloud)
    }

    /// Makes the topology, and waits until every hypervisor has all of its translation.
    fn build(&mut self) -> Result<Built, Error> {
        self.run.say("building");
        let (spell, began) = (self.server.spell()?, Instant::now());
        let switches = (0..cloud::SWITCHES).map(cloud::add_switch);
        let ports = (0..cloud::PORTS)
            .flat_map(|port| (0..cloud::SWITCHES).map(move |switch| cloud::add_port(switch, port)));
        self.crowd.call(WRITER, switches.chain(ports), |_| {})?;
        self.request(cloud::next_configuration())?;
        self.crowd.expect_marker();
        self.crowd.send(WRITER, cloud::southbound_marker())?;
        let mut left = self.hypervisors;
        self.crowd.run(|arrival| {
            left -= usize::from(arrival.kind == Kind::Marker && arrival.client != WRITER);
            if left == 0 { Act::Stop } else { Act::Wait }
        })?;
        Ok(Built {
            elapsed: began.elapsed(),
            cpu_us: spell.end()?,
        })
    }

    /// Adds so many ports, one after the other.
    fn add_ports(&mut self, count: u32) -> Result<Ports, Error> {
        self.restart_northd()?;
        self.run.say("single ports");
        let (mut translated, mut told) = (driver::latencies(), driver::latencies());
        let (spell, northd_began_us) = (self.server.spell()?, self.northd.cpu_us()?);
        for number in 0..count {
            let switch = number % cloud::SWITCHES;
            let port = cloud::PORTS + number / cloud::SWITCHES;
            let times = self.request(cloud::add_port_and_wait(switch, port))?;
            translated.saturating_record(nanoseconds(times.translated));
            told.saturating_record(nanoseconds(times.told));
        }
        Ok(Ports {
            cpu_us: spell.end()? / f64::from(count),
            northd_cpu_us: (self.northd.cpu_us()? - northd_began_us) / f64::from(count),
            translated,
            told,
        })
    }

    /// Puts a fresh compiler in place of the present one. How its memory lies depends on the steps in which it saw the cloud grow, which
    /// differ between servers, and it takes up to 1.4 times as long for the same work.
    fn restart_northd(&mut self) -> Result<(), Error> {
        self.northd = Northd::start(self.server.address())?;
        self.request(cloud::next_configuration())?;
        Ok(())
    }

    /// Sends a request that asks for the next configuration, and waits until the compiler has reported it and every hypervisor
    /// has been told something of it.
    fn request(&mut self, request: Arc<[u8]>) -> Result<Times, Error> {
        self.configuration += 1;
        let wanted = self.configuration;
        let began = Instant::now();
        self.crowd.send(WRITER, request)?;
        let mut is_told = vec![false; self.crowd.len()];
        let mut untold = is_told.len() - 1;
        let (mut is_answered, mut translated, mut told) = (false, None, None);
        self.crowd.run(|arrival| {
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
            if is_done { Act::Stop } else { Act::Wait }
        })?;
        Ok(Times {
            translated: translated.unwrap_or_default(),
            told: told.unwrap_or_default(),
        })
    }
}

/// How long it took since a request was sent.
struct Times {
    /// Until the compiler reported it.
    translated: Duration,
    /// Until every hypervisor had received an update.
    told: Duration,
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
