//! `compact`: the compaction of rows that were each written twice, by the running server and by
//! `ovsdb-tool`, and the time to open the compacted file.

use std::time::Instant;

use super::load::written_twice;
use crate::database_file::History;
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::target::Target;
use crate::tool;
use crate::workload::{Run, Scale, Workload};

pub(crate) struct Compact;

impl Workload for Compact {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn about(&self) -> &'static str {
        "compacts 200,000 rows (full: 500,000) written twice, by the server and by its ovsdb-tool"
    }

    fn history(&self, scale: Scale) -> History {
        written_twice(scale)
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let Target::Program(program) = run.target else {
            return Err(Error::NeedsProgram);
        };
        let server = run.start()?;
        let before = server.file_mib()?;
        let (interval, began) = (server.measure_cpu()?, Instant::now());
        server.control("ovsdb-server/compact", &[])?;
        let took = began.elapsed();
        interval.end()?;
        let after = server.file_mib()?;
        let peak = server.memory()?.peak_mib;
        run.show("opening the compacted file");
        let server = server.reopen()?;
        let reopened = server.memory()?.peak_mib;
        let opened_in = server.opened_in();
        drop(server);
        run.show("ovsdb-tool");
        let offline = tool::compact(&tool::beside(&program.path, "ovsdb-tool")?, run.file)?;
        Ok(vec![
            Figure::lower("compaction", "s", took.as_secs_f64())
                .digits(2)
                .aim(Aim::RatioAtMost(0.25)),
            Figure::lower("peak after compaction", "MiB", peak).digits(0),
            Figure::plain("file before", "MiB", before),
            Figure::plain("file after", "MiB", after),
            Figure::lower("opening the compacted file", "s", opened_in.as_secs_f64()).digits(2),
            Figure::lower("peak opening that", "MiB", reopened).digits(0),
            Figure::lower("offline tool", "s", offline.took.as_secs_f64())
                .digits(2)
                .aim(Aim::RatioAtMost(0.25)),
            Figure::lower("peak of the offline tool", "MiB", offline.peak_mib).digits(0),
        ])
    }
}
