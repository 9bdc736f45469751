//! What a workload is: the shape that every file of `workloads/` has, and what it is given to work with.
//!
//! A workload prepares a database file, drives a server that opens it, and returns figures. It knows nothing of rounds, of the
//! other server, of reports.

use std::path::Path;

use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::Figure;
use crate::progress::Progress;
use crate::server::Server;
use crate::slow_disk::SlowDisk;
use crate::spell::Book;
use crate::target::Target;

/// How large a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scale {
    /// Everything on two servers in less than 20 minutes.
    Small,
    /// As the founding documents had it.
    Full,
}

impl Scale {
    /// The one of two values that belongs to this scale.
    pub(crate) fn pick<T>(self, small: T, full: T) -> T {
        match self {
            Scale::Small => small,
            Scale::Full => full,
        }
    }
}

/// One workload.
pub(crate) trait Workload: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it does, in one line, for `corvid-bench list`.
    fn about(&self) -> &'static str;

    /// What is in the database file that each run opens a copy of.
    fn history(&self, _scale: Scale) -> History {
        History::NONE
    }

    /// Writes that file; made once for all runs.
    fn prepare(&self, scale: Scale, file: &Path) -> Result<(), Error> {
        Ok(database_file::write(file, self.history(scale))?)
    }

    /// One run.
    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error>;
}

/// What a run is given.
pub(crate) struct Run<'a> {
    pub(crate) scale: Scale,
    pub(crate) target: &'a Target,
    /// The prepared file.
    pub(crate) file: &'a Path,
    pub(crate) progress: &'a Progress,
    /// Where what the server's threads do is added up.
    pub(crate) book: &'a Book,
}

impl Run<'_> {
    /// A server that has opened a copy of the prepared file. Each call starts another; a value that is dropped ends its server.
    /// A server that is an address, which can be given no file, is emptied instead if the file holds no rows: its tables lose
    /// all of theirs.
    pub(crate) fn start(&self) -> Result<Server, Error> {
        match self.target {
            Target::Program(program) => Server::open(program, self.file, self.book),
            Target::Address(address) => {
                let schema = database_file::schema_of(self.file)?;
                if database_file::has_rows(self.file)? {
                    return Err(Error::NeedsProgram);
                }
                Server::at(address, &schema, self.book)
            }
        }
    }

    /// The same as [`Run::start`], on a disk that is slow. Only a program can be given one.
    pub(crate) fn start_on(&self, disk: &SlowDisk) -> Result<Server, Error> {
        match self.target {
            Target::Program(program) => Server::open(&disk.under(program), self.file, self.book),
            Target::Address(_) => Err(Error::NeedsProgram),
        }
    }

    /// The one of two values that belongs to the scale of this run.
    pub(crate) fn pick<T>(&self, small: T, full: T) -> T {
        self.scale.pick(small, full)
    }

    /// Tells whoever watches what is being done.
    pub(crate) fn say(&self, text: &str) {
        self.progress.detail(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_at_an_address_is_given_no_rows() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("prepared.db");
        database_file::write(&file, History::of_rows(3)).expect("a file");
        let run = Run {
            scale: Scale::Small,
            target: &"unix:nowhere".parse().expect("an address"),
            file: &file,
            progress: &Progress::new(1),
            book: &Book::default(),
        };
        assert!(matches!(run.start(), Err(Error::NeedsProgram)));
        // One without rows is asked to empty its tables, if somebody is there.
        database_file::write(&file, History::NONE).expect("a file");
        assert!(matches!(run.start(), Err(Error::Io(_))));
    }
}
