//! `replay`: how long a server takes to open a file of many small transactions on few rows.

use std::path::Path;

use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::Figure;
use crate::workload::{Run, Scale, Workload};

/// Rows that the transactions are spread over.
const ROWS: u32 = 1_000;

/// See the head of this file.
pub(crate) struct Replay;

impl Workload for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn about(&self) -> &'static str {
        "opens a file of 100,000 transactions (full: 1,000,000) on 1,000 rows"
    }

    fn prepare(&self, scale: Scale, file: &Path) -> Result<(), Error> {
        let history = History {
            rows: ROWS,
            versions: scale.pick(100, 1_000),
            rows_per_record: 1,
        };
        Ok(database_file::write(file, history)?)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let server = run.start()?;
        let memory = server.memory()?;
        Ok(vec![
            Figure::lower(
                "time to the first answer",
                "s",
                server.opened_in().as_secs_f64(),
            )
            .digits(3),
            Figure::lower("CPU until then, all threads", "s", server.cpu_us()? / 1e6).digits(2),
            Figure::lower("peak while loading", "MiB", memory.peak_mib),
        ])
    }
}
