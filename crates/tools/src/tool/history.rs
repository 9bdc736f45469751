//! The history of a database file on the disk, and moments of the command line.
//!
//! `corvid_history` does the reading, from the files that `corvid_disk` opens. The commands
//! `history`, `log`, `diff`, `dump`, `restore` and `query --at` use this module.

mod files;
mod moments;

use std::path::Path;

use corvid_engine::Database;
use corvid_history::{HistoryError, Timeline};

pub(crate) use files::{DiskFile, HistoryFolder};
pub(crate) use moments::{locate, locate_beginning};

use crate::failure::Failure;
use crate::uuids::RandomUuids;

/// A database's history, open for reading.
pub(crate) type OpenHistory = Timeline<DiskFile>;

/// Opens a database file with its history. Nothing is locked.
///
/// # Errors
/// A file cannot be opened, or does not belong to the history.
pub(crate) fn open(path: &Path) -> Result<OpenHistory, Failure> {
    Timeline::open(&HistoryFolder::of(path)).map_err(failure)
}

/// The database at a moment.
///
/// # Errors
/// There is no such moment, or a file is damaged.
pub(crate) fn state_at(
    path: &Path,
    moment: &str,
    uuids: &mut RandomUuids,
) -> Result<Database, Failure> {
    let history = open(path)?;
    let position = locate(&history, moment)?;
    let seed = uuids.hash_seed();
    history.state_at(position, seed, uuids).map_err(failure)
}

/// The error of a command.
#[allow(clippy::needless_pass_by_value)] // the shape that `map_err` needs
pub(crate) fn failure(error: HistoryError) -> Failure {
    Failure::new(error.to_string())
}
