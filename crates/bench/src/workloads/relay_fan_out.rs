//! `relay-fan-out`: many monitors that are spread over four relays receive each commit of the
//! source. For comparison, the same number of monitors receive it from the source itself.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client_pool::{Action, ClientPool, Kind};
use crate::error::Error;
use crate::figure::{Aim, Figure, middle};
use crate::relay;
use crate::requests;
use crate::server::Server;
use crate::workload::{Run, Workload};

pub(super) struct FanOut;

/// The number of relays of one source.
const RELAYS: usize = 4;

impl Workload for FanOut {
    fn name(&self) -> &'static str {
        "relay-fan-out"
    }

    fn about(&self) -> &'static str {
        "200 monitors (full: 1,000) at 4 relays, and at the source: the time until each has a commit"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let source = run.start()?;
        run.show("at the source");
        let commits = run.pick(200, 1_000);
        let direct = deliver(run, &source, &[&source], 0..commits)?;
        run.show("at relays");
        let relays: Result<Vec<Server>, Error> =
            (0..RELAYS).map(|_| relay::start(run, &source)).collect();
        let relays = relays?;
        let at: Vec<&Server> = relays.iter().collect();
        let relayed = deliver(run, &source, &at, commits..2 * commits)?;
        Ok(vec![
            Figure::lower("median delivery through a relay", "ms", relayed.median_ms).digits(2),
            Figure::plain("median delivery directly", "ms", direct.median_ms).digits(2),
            Figure::lower(
                "added by a relay",
                "ms",
                relayed.median_ms - direct.median_ms,
            )
            .digits(2)
            .aim(Aim::AtMost(1.0)),
            Figure::lower("CPU of the relays", "us/kB", relayed.cpu_us_kb).digits(2),
            Figure::plain("CPU of the source alone", "us/kB", direct.cpu_us_kb).digits(2),
            Figure::lower(
                "CPU / CPU of the source",
                "",
                relayed.cpu_us_kb / direct.cpu_us_kb,
            )
            .digits(2)
            .aim(Aim::AtMost(1.0)),
        ])
    }
}

/// The cost of delivery.
struct Delivered {
    median_ms: f64,
    /// The CPU time of the servers with the monitors, for each kB that the monitors received.
    cpu_us_kb: f64,
}

/// Inserts rows at the source one after another, each when all monitors have received the previous
/// one.
fn deliver(
    run: &Run<'_>,
    source: &Server,
    at: &[&Server],
    rows: Range<u32>,
) -> Result<Delivered, Error> {
    let mut pool = ClientPool::new()?;
    let writer = pool.connect(source.address())?;
    let count = run.pick(200, 1_000);
    for server in at {
        let clients = pool.connect_many(server.address(), count / at.len())?;
        let monitor: Arc<[u8]> = requests::monitor().get(0).into();
        pool.call_all(clients, |_| monitor.clone(), |_, _| {})?;
    }
    let monitors = pool.len() - 1;
    let mut delays = Vec::new();
    let intervals: Result<Vec<_>, Error> = at.iter().map(|server| server.measure_cpu()).collect();
    let intervals = intervals?;
    let bytes = pool.received_bytes();
    for number in rows {
        std::thread::sleep(Duration::from_millis(2));
        let insertion = requests::insert_many(number..number + 1);
        let began = Instant::now();
        pool.send(writer, insertion.get(0).into())?;
        let mut left = monitors + 1;
        pool.run(|arrival| {
            if arrival.kind == Kind::Notification {
                delays.push(began.elapsed().as_secs_f64() * 1e3);
            }
            left -= 1;
            if left == 0 {
                Action::Stop
            } else {
                Action::Wait
            }
        })?;
    }
    let mut cpu_us = 0.0;
    for interval in intervals {
        cpu_us += interval.end()?;
    }
    let kilobytes = (pool.received_bytes() - bytes) as f64 / 1e3;
    Ok(Delivered {
        median_ms: middle(delays),
        cpu_us_kb: cpu_us / kilobytes,
    })
}
