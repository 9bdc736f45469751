//! `load`: how long a server takes to open a file of rows that were each inserted and then modified, one record each, and what
//! memory it then needs.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::workload::{Run, Scale, Workload};

/// How long a server has to give back what it needed for loading, before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);

/// See the head of this file.
pub(crate) struct Load;

impl Workload for Load {
    fn name(&self) -> &'static str {
        "load"
    }

    fn about(&self) -> &'static str {
        "opens a file of 200,000 rows (full: 500,000), each written twice, one record each"
    }

    fn prepare(&self, scale: Scale, file: &Path) -> Result<(), Error> {
        let history = History {
            rows: scale.pick(200_000, 500_000),
            versions: 2,
            rows_per_record: 1,
        };
        Ok(database_file::write(file, history)?)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let server = run.start()?;
        let cpu_s = server.cpu_us()? / 1e6;
        thread::sleep(SETTLE);
        let memory = server.memory()?;
        Ok(vec![
            Figure::lower(
                "time to the first answer",
                "s",
                server.opened_in().as_secs_f64(),
            )
            .digits(3)
            .aim(Aim::RatioAtMost(1.0 / 8.0)),
            Figure::lower("CPU until then, all threads", "s", cpu_s).digits(2),
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
