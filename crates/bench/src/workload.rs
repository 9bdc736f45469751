//! The interface of a workload, which every file in `workloads/` implements, and the input of a
//! run.
//!
//! A workload prepares a database file, puts load on a server that opens the file, and returns
//! figures. It does not depend on rounds, the other server or reports.

use std::path::Path;

use crate::cpu_interval::CpuTotals;
use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::Figure;
use crate::progress::Progress;
use crate::server::Server;
use crate::slow_disk::SlowDisk;
use crate::target::Target;

/// The size of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scale {
    /// All workloads together take less than 20 minutes on two servers.
    Small,
    /// The sizes of the requirements. This takes hours.
    Full,
}

impl Scale {
    /// Returns the value for this scale.
    pub(crate) fn pick<T>(self, small: T, full: T) -> T {
        match self {
            Scale::Small => small,
            Scale::Full => full,
        }
    }
}

/// One workload.
pub(crate) trait Workload: Sync {
    /// Returns the name on the command line.
    fn name(&self) -> &'static str;

    /// Returns a description in one line, for `corvid-bench list`.
    fn about(&self) -> &'static str;

    /// Returns what the records of the database file contain. Each run opens a copy of the file.
    fn history(&self, _scale: Scale) -> History {
        History::NONE
    }

    /// Writes the database file. Called once for all runs.
    fn prepare(&self, scale: Scale, file: &Path) -> Result<(), Error> {
        Ok(database_file::write(file, self.history(scale))?)
    }

    /// Executes one run.
    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error>;
}

/// The input of a run.
pub(crate) struct Run<'a> {
    pub(crate) scale: Scale,
    pub(crate) target: &'a Target,
    /// The prepared file.
    pub(crate) file: &'a Path,
    pub(crate) progress: &'a Progress,
    /// The sum of the CPU time of the server's threads.
    pub(crate) cpu_totals: &'a CpuTotals,
}

impl Run<'_> {
    /// Starts a server with a copy of the prepared file. Each call starts another server; dropping
    /// the value ends it. A server at an address cannot open a file. If the file has no rows, all
    /// rows of that server's tables are deleted instead; otherwise the result is an error.
    pub(crate) fn start(&self) -> Result<Server, Error> {
        match self.target {
            Target::Program(program) => Server::open(program, self.file, self.cpu_totals),
            Target::Address(address) => {
                let schema = database_file::schema_of(self.file)?;
                if database_file::has_rows(self.file)? {
                    return Err(Error::NeedsProgram);
                }
                Server::at(address, &schema, self.cpu_totals)
            }
        }
    }

    /// Like [`Run::start`], but on a slow disk. Only a server that is a program can use one.
    pub(crate) fn start_on(&self, disk: &SlowDisk) -> Result<Server, Error> {
        match self.target {
            Target::Program(program) => {
                Server::open(&disk.under(program), self.file, self.cpu_totals)
            }
            Target::Address(_) => Err(Error::NeedsProgram),
        }
    }

    /// Returns the value for the scale of this run.
    pub(crate) fn pick<T>(&self, small: T, full: T) -> T {
        self.scale.pick(small, full)
    }

    /// Shows the current step on the terminal.
    pub(crate) fn show(&self, text: &str) {
        self.progress.detail(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_at_an_address_starts_without_rows() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("prepared.db");
        database_file::write(&file, History::of_rows(3)).expect("a file");
        let run = Run {
            scale: Scale::Small,
            target: &"unix:nowhere".parse().expect("an address"),
            file: &file,
            progress: &Progress::new(1),
            cpu_totals: &CpuTotals::default(),
        };
        assert!(matches!(run.start(), Err(Error::NeedsProgram)));
        // For a workload without rows, the benchmark connects to the server to delete the server's
        // rows. Nobody listens at this address.
        database_file::write(&file, History::NONE).expect("a file");
        assert!(matches!(run.start(), Err(Error::Io(_))));
    }
}
