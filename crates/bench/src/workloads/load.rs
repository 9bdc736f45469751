//! `load`: the time to open a file of rows that were each inserted and then modified, with a record
//! for each change, and the memory after that.

use std::thread;
use std::time::Duration;

use crate::database_file::History;
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::server::Server;
use crate::workload::{Run, Scale, Workload};

/// The time that a server gets to release the memory that only loading needed, before its memory is
/// read.
const MEMORY_RELEASE: Duration = Duration::from_secs(1);

pub(crate) struct Load;

/// Rows that were each inserted and then modified, with a record for each change.
pub(super) fn written_twice(scale: Scale) -> History {
    History::of_changes(scale.pick(200_000, 500_000), 2)
}

/// Starts a server with the prepared file. Returns the time and the CPU time of opening it.
pub(super) fn open(run: &Run<'_>) -> Result<(Server, [Figure; 2]), Error> {
    let server = run.start()?;
    let cpu_s = server.measure_cpu_since_start().end()? / 1e6;
    let time_s = server.opened_in().as_secs_f64();
    let figures = [
        Figure::lower("time to the first answer", "s", time_s).digits(3),
        Figure::lower("CPU until then, all threads", "s", cpu_s).digits(2),
    ];
    Ok((server, figures))
}

impl Workload for Load {
    fn name(&self) -> &'static str {
        "load"
    }

    fn about(&self) -> &'static str {
        "opens a file of 200,000 rows (full: 500,000), each written twice, one record each"
    }

    fn history(&self, scale: Scale) -> History {
        written_twice(scale)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let (server, [time, cpu]) = open(run)?;
        thread::sleep(MEMORY_RELEASE);
        let memory = server.memory()?;
        Ok(vec![
            time.aim(Aim::RatioAtMost(1.0 / 8.0)),
            cpu,
            Figure::lower("memory after loading", "MiB", memory.resident_mib)
                .aim(Aim::RatioAtMost(0.5)),
            Figure::lower("peak while loading", "MiB", memory.peak_mib),
            Figure::lower(
                "peak / memory after loading",
                "",
                memory.peak_mib / memory.resident_mib,
            )
            .digits(2)
            .aim(Aim::AtMost(1.5)),
        ])
    }
}
