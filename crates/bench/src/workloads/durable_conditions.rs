//! `durable-conditions`: durable commits on a disk whose sync takes 2 ms, first alone, and then
//! while clients constantly change a condition.
//!
//! In OVN, hypervisors change conditions all day, and a quorum takes about as long as this disk.
//! Each client is a thread, so that requests arrive as those of independent programs do. A single
//! thread would send all requests that one sync has released at the same time, and a commit would
//! never have to wait for a condition change that arrived before it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use corvid_json::Assembler;
use hdrhistogram::Histogram;
use memchr::memmem;

use crate::database_file::History;
use crate::driver;
use crate::error::{Error, joined};
use crate::figure::{Aim, Figure};
use crate::requests;
use crate::server::Server;
use crate::slow_disk::SlowDisk;
use crate::stream::{Address, ReadWrite};
use crate::workload::{Run, Scale, Workload};

pub(crate) struct DurableConditions;

const SYNC: Duration = Duration::from_millis(2);
/// The number of connections with one durable transaction in flight each.
const WRITERS: u64 = 10;
/// The number of connections with one condition change in flight each.
const CHANGERS: u64 = 10;
/// The number of existing rows. Each row has a number, counted from 0. A condition names two of
/// them.
const ROWS: u32 = 10_000;
/// The first number of the rows that the writers insert. No condition names these rows.
const WRITTEN: u32 = 1_000_000;
/// The aim for the part of the rate of commits that remains during condition changes.
const RATE: Aim = Aim::AtLeast(0.9);
/// The aim for the factor by which the p99 rises.
const P99: Aim = Aim::AtMost(1.11);

impl Workload for DurableConditions {
    fn name(&self) -> &'static str {
        "durable-conditions"
    }

    fn about(&self) -> &'static str {
        "10 connections with durable inserts, a sync takes 2 ms; alone, then with 10 others that change a condition without pause"
    }

    fn history(&self, _: Scale) -> History {
        History::of_rows(ROWS)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let disk = SlowDisk::with_sync(SYNC)?;
        let server = run.start_on(&disk)?;
        // The first commit may have to wait until the file is on the disk, so it is not measured.
        server.address().request(&insertion("first", 0))?;
        let time = run.pick(Duration::from_secs(4), Duration::from_secs(20));
        run.show("writers alone");
        let alone = measure(&server, "a", time, 0)?;
        run.show("with changes of conditions");
        let beside = measure(&server, "b", time, CHANGERS)?;
        let kept = beside.commits_s() / alone.commits_s();
        let p99 = beside.ms(0.99) / alone.ms(0.99);
        Ok(vec![
            Figure::higher("alone, rate", "txn/s", alone.commits_s()).digits(0),
            Figure::lower("alone, latency p50", "ms", alone.ms(0.5)).digits(2),
            Figure::lower("alone, latency p99", "ms", alone.ms(0.99)).digits(2),
            Figure::higher("with changes, rate", "txn/s", beside.commits_s()).digits(0),
            Figure::lower("with changes, latency p50", "ms", beside.ms(0.5)).digits(2),
            Figure::lower("with changes, latency p99", "ms", beside.ms(0.99)).digits(2),
            Figure::higher("changes", "1/s", beside.changes_s()).digits(0),
            Figure::higher("rate with changes / alone", "", kept)
                .digits(3)
                .aim(RATE),
            Figure::lower("p99 with changes / alone", "", p99)
                .digits(3)
                .aim(P99),
        ])
    }
}

/// The counts of a measurement.
struct Outcome {
    latencies: Histogram<u64>,
    changes: u64,
    elapsed: Duration,
}

impl Outcome {
    fn commits_s(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    fn changes_s(&self) -> f64 {
        self.changes as f64 / self.elapsed.as_secs_f64()
    }

    fn ms(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1e6
    }
}

/// Runs all writers and the clients that change a condition, for the given time. `part` makes the
/// names of the rows unique.
fn measure(
    server: &Server,
    part: &'static str,
    time: Duration,
    changers: u64,
) -> Result<Outcome, Error> {
    let (address, is_over) = (server.address(), AtomicBool::new(false));
    let interval = server.measure_cpu()?;
    let began = Instant::now();
    let outcome = thread::scope(|scope| {
        let is_over = &is_over;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let request = move |number| insertion(&format!("{part}-{writer}"), number);
                scope.spawn(move || client(address, None, is_over, request))
            })
            .collect();
        let changers: Vec<_> = (0..changers)
            .map(|changer| {
                let request = move |number| change(changer, number);
                let first = monitor(changer);
                scope.spawn(move || client(address, Some(&first), is_over, request))
            })
            .collect();
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        let mut outcome = Outcome {
            latencies: driver::latencies(),
            changes: 0,
            elapsed: began.elapsed(),
        };
        for writer in writers {
            outcome.latencies += joined(writer)?;
        }
        for changer in changers {
            outcome.changes += joined(changer)?.len();
        }
        Ok::<Outcome, Error>(outcome)
    })?;
    interval.end()?;
    Ok(outcome)
}

/// Sends `request(0)`, `request(1)` and so on, each after the reply to the previous one, until the
/// end of the measurement. Returns the latencies in ns.
fn client(
    address: &Address,
    first: Option<&str>,
    is_over: &AtomicBool,
    request: impl Fn(u64) -> String,
) -> Result<Histogram<u64>, Error> {
    let mut stream = Replies::new(address)?;
    let mut latencies = driver::latencies();
    if let Some(first) = first {
        stream.call(first)?;
    }
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let sent = Instant::now();
        stream.call(&request(number))?;
        let took_ns = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX);
        latencies.saturating_record(took_ns);
    }
    Ok(latencies)
}

/// A connection that waits for replies and skips updates.
struct Replies {
    stream: Box<dyn ReadWrite>,
    assembler: Assembler,
}

impl Replies {
    fn new(address: &Address) -> Result<Replies, Error> {
        Ok(Replies {
            stream: address.open()?,
            assembler: Assembler::default(),
        })
    }

    fn call(&mut self, request: &str) -> Result<(), Error> {
        self.stream.write_all(request.as_bytes())?;
        let mut room = [0; 16 * 1024];
        loop {
            let count = self.stream.read(&mut room)?;
            if count == 0 {
                return Err(Error::Closed);
            }
            if self.has_reply(&room[..count])? {
                return Ok(());
            }
        }
    }

    /// Whether `bytes` complete a reply. With one request in flight, there is at most one.
    fn has_reply(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let mut is_answered = false;
        for text in self.assembler.texts(bytes) {
            let text = &*text?;
            if memmem::find(text, br#""method":"#).is_none() {
                if requests::is_error(text) {
                    return Err(Error::Refused(String::from_utf8_lossy(text).into_owned()));
                }
                is_answered = true;
            }
        }
        Ok(is_answered)
    }
}

fn insertion(name: &str, number: u64) -> String {
    let mut text =
        r#"{"method":"transact","params":["Bench",{"op":"insert","table":"Item","row":"#.to_owned();
    let row = WRITTEN + u32::try_from(number).unwrap_or(0);
    requests::row(&mut text, &format!("{name}-{number:08}"), row);
    text.push_str(r#"},{"op":"commit","durable":true}],"id":0}"#);
    text
}

fn monitor(client: u64) -> String {
    let clauses = clauses(client, client);
    format!(
        r#"{{"method":"monitor_cond_since","params":["Bench","m",{{"Item":[{{"columns":["name","number","options"],"where":{clauses}}}]}},"00000000-0000-0000-0000-000000000000"],"id":0}}"#
    )
}

/// Replaces one of the two rows that the condition names.
fn change(client: u64, number: u64) -> String {
    let clauses = clauses(client, (number * CHANGERS + client) % u64::from(ROWS));
    format!(
        r#"{{"method":"monitor_cond_change","params":["m","m",{{"Item":[{{"where":{clauses}}}]}}],"id":0}}"#
    )
}

fn clauses(stays: u64, changes: u64) -> String {
    format!(r#"[["number","==",{stays}],["number","==",{changes}]]"#)
}
