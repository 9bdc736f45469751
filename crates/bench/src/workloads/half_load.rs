//! `half-load`: the latency at about half of the load that the reference can sustain.

use std::thread;
use std::time::Duration;

use crate::database_file::{self, History};
use crate::driver;
use crate::error::{Error, joined};
use crate::figure::{Aim, Figure};
use crate::latency_probe::{self, Phase};
use crate::requests;
use crate::workload::{Run, Scale, Workload};

pub(crate) struct HalfLoad;

/// The number of clients, each with a transaction each millisecond. The reference sustains about
/// 12,000 transactions per second.
const CLIENTS: u32 = 6;
const ROWS: u32 = 1_000;

impl Workload for HalfLoad {
    fn name(&self) -> &'static str {
        "half-load"
    }

    fn about(&self) -> &'static str {
        "latency of update1 at 6,000 transactions a second, about half of the load that the reference sustains"
    }

    fn history(&self, _: Scale) -> History {
        History::of_rows(ROWS)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let server = run.start()?;
        let (address, phase) = (server.address(), Phase::default());
        // The first transaction may have to wait until the file is on the disk, so it is not
        // measured.
        address.request(&update(0, u64::from(ROWS)))?;
        let (mut all, interval) = (driver::latencies(), server.measure_cpu()?);
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let request = move |number| update(client, number);
                    let phase = &phase;
                    scope.spawn(move || latency_probe::run(address, phase, request))
                })
                .collect();
            thread::sleep(run.pick(Duration::from_secs(4), Duration::from_secs(20)));
            phase.end();
            for client in clients {
                all += joined(client)?.before;
            }
            Ok::<(), Error>(())
        })?;
        interval.end()?;
        let at = |title, part: f64| {
            Figure::lower(title, "us", all.value_at_quantile(part) as f64 / 1e3)
                .digits(0)
                .aim(Aim::RatioAtMost(1.0))
        };
        Ok(vec![
            at("latency p50", 0.5),
            at("latency p99", 0.99),
            at("latency p99.9", 0.999),
            Figure::plain("requests, late ones counted as due", "", all.len() as f64).digits(0),
        ])
    }
}

/// Sets the number of a row to a new value. Each client has its own rows.
fn update(client: u32, number: u64) -> String {
    let share = ROWS / CLIENTS;
    let row = client * share + u32::try_from(number % u64::from(share)).unwrap_or(0);
    let uuid = database_file::uuid(row);
    requests::set_number(number, &uuid, number + u64::from(ROWS))
}
