//! `relay-memory`: the memory of a relay and of its source, with a large database.

use std::thread;
use std::time::Duration;

use super::cluster_compact::rows;
use crate::database_file::History;
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::relay;
use crate::workload::{Run, Scale, Workload};

/// The time that the servers get to release the memory that only loading needed.
const MEMORY_RELEASE: Duration = Duration::from_secs(15);

pub(super) struct MemoryOfRelay;

impl Workload for MemoryOfRelay {
    fn name(&self) -> &'static str {
        "relay-memory"
    }

    fn about(&self) -> &'static str {
        "memory of a relay with 200,000 rows (full: 1,000,000) that nobody changes"
    }

    fn history(&self, scale: Scale) -> History {
        History::of_rows(rows(scale))
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let source = run.start()?;
        let relay = relay::start(run, &source)?;
        thread::sleep(MEMORY_RELEASE);
        let (of_source, of_relay) = (source.memory()?, relay.memory()?);
        let ratio = of_relay.resident_mib / of_source.resident_mib;
        Ok(vec![
            Figure::lower("memory of the relay", "MiB", of_relay.resident_mib),
            Figure::lower("memory of the source", "MiB", of_source.resident_mib),
            Figure::lower("relay / source", "", ratio)
                .digits(2)
                .aim(Aim::AtMost(1.0)),
            Figure::lower("peak memory of the relay", "MiB", of_relay.peak_mib),
        ])
    }
}
