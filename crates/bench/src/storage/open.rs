//! Opening files: how long until the server answers, what memory it takes; and compacting what was opened.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Figure;
use super::aim::Aim;
use crate::error::Error;
use crate::server_process::ServerProcess;

/// How long a server has to give back what it needed for loading, before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);

/// Opens a copy of `file`, compacts it, and opens what that leaves.
pub(super) fn measure(program: &Path, file: &Path) -> Result<Vec<Figure>, Error> {
    let server = ServerProcess::open(program, file)?;
    let mut figures = of_start(&server, Aim::RatioAtMost(1.0 / 6.0), Aim::RatioAtMost(0.5))?;
    let before = server.file_bytes()?;
    let began = Instant::now();
    server.control("ovsdb-server/compact")?;
    let compaction = began.elapsed();
    let after = server.file_bytes()?;
    let memory = server.memory()?;
    let server = server.reopen()?;
    let reopened = server.memory()?;
    let mib = |bytes: u64| bytes as f64 / (1024.0 * 1024.0);
    figures.extend([
        Figure::new("compaction, s", compaction.as_secs_f64(), 2).aiming(Aim::RatioAtMost(0.25)),
        Figure::new("peak after compaction, MiB", memory.peak as f64 / 1024.0, 0),
        Figure::new("file before, MiB", mib(before), 1),
        Figure::new("file after, MiB", mib(after), 1),
        Figure::new(
            "opening the compacted file, s",
            server.opened_in().as_secs_f64(),
            2,
        ),
        Figure::new("peak opening that, MiB", reopened.peak as f64 / 1024.0, 0),
    ]);
    Ok(figures)
}

/// Opens a copy of `file`.
pub(super) fn measure_start(program: &Path, file: &Path) -> Result<Vec<Figure>, Error> {
    of_start(&ServerProcess::open(program, file)?, Aim::None, Aim::None)
}

/// What every start yields; the aims are those of its time and of the memory that the database then takes.
fn of_start(
    server: &ServerProcess,
    time_aim: Aim,
    resident_aim: Aim,
) -> Result<Vec<Figure>, Error> {
    let cpu_s = server.cpu_us()? as f64 / 1e6;
    thread::sleep(SETTLE);
    let memory = server.memory()?;
    let (resident, peak) = (memory.resident as f64, memory.peak as f64);
    Ok(vec![
        Figure::new(
            "time to the first answer, s",
            server.opened_in().as_secs_f64(),
            3,
        )
        .aiming(time_aim),
        Figure::new("CPU time until then, all threads, s", cpu_s, 2),
        Figure::new("memory after loading, MiB", resident / 1024.0, 1).aiming(resident_aim),
        Figure::new("peak while loading, MiB", peak / 1024.0, 1),
        Figure::new("peak / memory after loading", peak / resident, 2).aiming(Aim::AtMost(1.5)),
    ])
}
