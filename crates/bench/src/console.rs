//! `corvid-bench console`: the cost of the console, next to `ovsdb-client monitor` and a plain
//! client of our library on the same server.
//!
//! `table` measures pages of a large table and memory, `network` the picture of a network,
//! `viewers` many viewers, `moments` the past, `server` the cost for the server. Times of pages are
//! measured by a client on the same machine, so they include its share of the processor.

mod moments;
mod network;
mod program;
mod server;
mod table;
mod viewers;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use corvid_shell::output;

use crate::cpu_interval::CpuTotals;
use crate::error::Error;
use crate::figure::{self, Figure};
use crate::options::ConsoleOptions;
use crate::report;
use crate::server::Server;
use crate::stream::Address;
use crate::target::Program;
use crate::tool;
use crate::workload::Scale;

use program::Console;

/// One of the measurements.
type Part = fn(&Setup) -> Result<Vec<Figure>, Error>;

/// The input of all measurements.
struct Setup {
    program: Program,
    console: PathBuf,
    client: PathBuf,
    scale: Scale,
}

impl Setup {
    /// Starts a server with a copy of `file`.
    fn serve(&self, file: &std::path::Path) -> Result<Server, Error> {
        Server::open(&self.program, file, &CpuTotals::default())
    }

    fn console(&self, server: &Server) -> Result<Console, Error> {
        Console::start(&self.console, server.address())
    }
}

/// Runs all measurements and prints each figure with its aim.
pub(crate) fn measure(options: &ConsoleOptions) -> Result<(), Error> {
    let setup = Setup {
        program: Program::plain(options.server.clone()),
        console: tool::beside(&options.server, "corvid-console")?,
        client: tool::beside(&options.server, "ovsdb-client")?,
        scale: options.scale,
    };
    let began = Instant::now();
    let scale = format!("{:?}", options.scale).to_lowercase();
    output::report(format_args!(
        "server: {}; scale {scale}\n",
        options.server.display()
    ));
    let parts: [(&str, Part); 5] = [
        ("table", table::measure),
        ("network", network::measure),
        ("viewers", viewers::measure),
        ("moments", moments::measure),
        ("server", server::measure),
    ];
    for (name, part) in parts {
        if options.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        for figure in part(&setup)? {
            output::report(line(&figure));
        }
    }
    output::report(format_args!(
        "\ntotal time {}",
        report::seconds(began.elapsed())
    ));
    Ok(())
}

fn line(figure: &Figure) -> String {
    let digits = figure.digits;
    let mut text = format!("{:70}{:>12.digits$}", figure.label(), figure.value);
    if let Some(is_met) = figure.aim.is_met(figure.value, None) {
        let word = if is_met { "met" } else { "MISSED" };
        text.push_str(&format!("  {}: {word}", figure.aim));
    }
    text
}

/// Executes one transaction; its operations are JSON without the brackets.
fn transact(server: &Address, database: &str, operations: &str) -> Result<(), Error> {
    let reply = server.request(&format!(
        r#"{{"id":0,"method":"transact","params":["{database}",{operations}]}}"#
    ))?;
    let text = reply.to_bytes();
    if crate::requests::is_error(&text) {
        return Err(Error::Refused(String::from_utf8_lossy(&text).into_owned()));
    }
    Ok(())
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The median of the times that a page takes, in milliseconds.
fn median_ms(
    times: usize,
    mut page: impl FnMut(usize) -> Result<Duration, Error>,
) -> Result<f64, Error> {
    let taken: Result<Vec<f64>, Error> = (0..times).map(|at| Ok(ms(page(at)?))).collect();
    Ok(figure::middle(taken?))
}

/// Waits until a process is idle, and returns its CPU time then, in microseconds.
fn idle_us(mut cpu_us: impl FnMut() -> Result<f64, Error>) -> Result<f64, Error> {
    const QUIET_US: f64 = 500.0;
    let mut before = cpu_us()?;
    for _ in 0..300 {
        thread::sleep(Duration::from_millis(200));
        let now = cpu_us()?;
        if now - before < QUIET_US {
            return Ok(now);
        }
        before = now;
    }
    Ok(before)
}
