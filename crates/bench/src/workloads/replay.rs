//! `replay`: the time to open a file of many small transactions on few rows.

use super::load::open;
use crate::database_file::History;
use crate::error::Error;
use crate::figure::Figure;
use crate::workload::{Run, Scale, Workload};

/// The number of rows.
const ROWS: u32 = 1_000;

pub(crate) struct Replay;

impl Workload for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn about(&self) -> &'static str {
        "opens a file of 100,000 transactions (full: 1,000,000) on 1,000 rows"
    }

    fn history(&self, scale: Scale) -> History {
        History::of_changes(ROWS, scale.pick(100, 1_000))
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let (server, [time, cpu]) = open(run)?;
        let peak_mib = server.memory()?.peak_mib;
        Ok(vec![
            time,
            cpu,
            Figure::lower("peak while loading", "MiB", peak_mib),
        ])
    }
}
