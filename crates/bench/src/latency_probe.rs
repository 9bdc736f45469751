//! A client that sends one request each millisecond and records the latencies. Those during a
//! command are recorded separately.
//!
//! It has one thread and one request in flight, like a program that makes many small transactions.
//! The latency of a request is counted from the time at which the request was due, even if an
//! earlier request delayed it. Otherwise a stall would hide all the requests that it delayed
//! (coordinated omission).

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use corvid_json::Assembler;
use hdrhistogram::Histogram;

use crate::driver;
use crate::error::Error;
use crate::requests;
use crate::stream::{self, Address, ReadWrite};

/// The interval between two requests.
const PERIOD: Duration = Duration::from_millis(1);

/// The phase of the measurement.
#[derive(Debug, Default)]
pub(crate) struct Phase(AtomicU8);

const BEFORE: u8 = 0;
const DURING: u8 = 1;
const OVER: u8 = 2;

impl Phase {
    /// Marks the beginning of the command.
    pub(crate) fn begin(&self) {
        self.0.store(DURING, Ordering::SeqCst);
    }

    /// Marks the end of the command. The clients end, too.
    pub(crate) fn end(&self) {
        self.0.store(OVER, Ordering::SeqCst);
    }
}

/// Latencies in ns, counted from the times at which the requests were due.
#[derive(Debug)]
pub(crate) struct Latencies {
    pub(crate) before: Histogram<u64>,
    /// The latencies of requests that overlap with the command.
    pub(crate) during: Histogram<u64>,
}

/// Sends `request(0)`, `request(1)` and so on until the phase is over.
pub(crate) fn run(
    address: &Address,
    phase: &Phase,
    request: impl Fn(u64) -> String,
) -> Result<Latencies, Error> {
    let mut stream = address.open()?;
    let mut latencies = Latencies {
        before: driver::latencies(),
        during: driver::latencies(),
    };
    let period_ns = u64::try_from(PERIOD.as_nanos()).unwrap_or(u64::MAX);
    let mut due = Instant::now();
    for number in 0.. {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let phase_at_start = phase.0.load(Ordering::SeqCst);
        if phase_at_start == OVER {
            break;
        }
        let sent = Instant::now();
        stream.write_all(request(number).as_bytes())?;
        receive(&mut *stream)?;
        let took_ns = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let is_before = phase.0.load(Ordering::SeqCst) == BEFORE;
        let latencies = if is_before {
            &mut latencies.before
        } else {
            &mut latencies.during
        };
        // A longer latency is recorded as the longest that the histogram can hold.
        let took_ns = took_ns.min(latencies.high());
        latencies
            .record_correct(took_ns, period_ns)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        due = (due + PERIOD).max(Instant::now());
    }
    Ok(latencies)
}

/// Waits for the reply.
fn receive(stream: &mut dyn ReadWrite) -> Result<(), Error> {
    let reply = stream::receive(stream, &mut Assembler::default())?;
    match requests::is_error(&reply) {
        true => Err(Error::Refused(String::from_utf8_lossy(&reply).into_owned())),
        false => Ok(()),
    }
}
