//! The CPU time that a busy server spends on the console, next to one `ovsdb-client monitor` of the
//! same table. The same updates are sent without either, with the monitor, and with the console.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Setup, idle_us};
use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::{self, Aim, Figure};
use crate::server::Server;
use crate::usage;

const ROWS: u32 = 10_000;
/// Runs with each client, in turn; medians are reported.
const ROUNDS: usize = 9;
/// The pause between two updates.
const PAUSE: Duration = Duration::from_micros(500);

pub(super) fn measure(setup: &Setup) -> Result<Vec<Figure>, Error> {
    let updates = setup.scale.pick(2_000, 5_000);
    let directory = tempfile::Builder::new().prefix("corvid-bench-").tempdir()?;
    let file = directory.path().join("table.db");
    database_file::write(&file, History::of_rows(ROWS))?;
    let mut costs = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let server = setup.serve(&file)?;
        costs[0].push(update(&server, updates)?);
        let server = setup.serve(&file)?;
        let monitor = Monitor::start(setup, &server)?;
        costs[1].push(update(&server, updates)?);
        drop(monitor);
        let server = setup.serve(&file)?;
        let console = setup.console(&server)?;
        console.page_with("/db/bench/table/Item", "<tr data-uuid")?;
        let viewer = console.viewer("/db/bench/table/Item/events")?;
        // The viewer reads in a thread, as a browser does; it ends with the console.
        let reading = thread::spawn(move || {
            let mut viewer = viewer;
            while viewer.event().is_ok() {}
        });
        costs[2].push(update(&server, updates)?);
        drop(console);
        let _ = reading.join();
    }
    let [alone, monitor, console] = costs.map(figure::middle);
    Ok(vec![
        Figure::plain("server CPU of an update: no client", "us", alone),
        Figure::plain(
            "server CPU of an update: ovsdb-client monitor",
            "us",
            monitor,
        ),
        Figure::plain("server CPU of an update: the console", "us", console),
        Figure::lower(
            "server CPU: with the console / with ovsdb-client monitor",
            "",
            console / monitor,
        )
        .digits(3)
        .aim(Aim::AtMost(1.0)),
    ])
}

/// Sends updates one at a time on one connection. Returns the server's CPU time for each, in
/// microseconds.
fn update(server: &Server, updates: u32) -> Result<f64, Error> {
    let pid = server.pid().ok_or(Error::NeedsProgram)?;
    let mut connection = server.address().open()?;
    let mut assembler = corvid_json::Assembler::default();
    let before_us = idle_us(|| Ok(usage::cpu_us(pid)?))?;
    let began = Instant::now();
    for number in 0..updates {
        let uuid = database_file::uuid(number % ROWS);
        let request = format!(
            r#"{{"id":{number},"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"number":{}}}}}]}}"#,
            ROWS + number
        );
        connection.write_all(request.as_bytes())?;
        crate::stream::receive(&mut *connection, &mut assembler)?;
        // At an even pace, whatever the time of a reply.
        let next = PAUSE * (number + 1);
        thread::sleep(next.saturating_sub(began.elapsed()));
    }
    let after_us = idle_us(|| Ok(usage::cpu_us(pid)?))?;
    Ok((after_us - before_us) / f64::from(updates))
}

/// A running `ovsdb-client monitor`, whose output is read and dropped. Dropping the value ends it.
struct Monitor(Child);

impl Monitor {
    fn start(setup: &Setup, server: &Server) -> Result<Monitor, Error> {
        let mut child = Command::new(&setup.client)
            .arg("monitor")
            .arg(server.address().to_string())
            .args(["Bench", "Item"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| Error::Start {
                program: setup.client.clone(),
                source,
            })?;
        let output = child.stdout.take();
        let monitor = Monitor(child);
        if let Some(output) = output {
            let mut output = BufReader::new(output);
            output.read_line(&mut String::new())?;
            // Reads until the monitor ends.
            thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        }
        Ok(monitor)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // A failure to end the process is ignored, because nothing else uses it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
