//! Files that must not exist yet, written whole.

use std::path::Path;

use corvid_log::DiskError;
use corvid_shell::log_file::{self, LogFile, OpenMode, sync_directory_of};

use crate::failure::{Failure, shown};
use crate::tool::database::tagged;

/// Makes a file, locked while it is written, of these records; synced, its name too.
///
/// # Errors
/// There is one already, somebody has it locked, or it cannot be written; nothing is left behind then.
pub(crate) fn create(path: &Path, records: &[u8]) -> Result<(), Failure> {
    let name = shown(path);
    let mut file =
        log_file::open(&name, OpenMode::CreateExclusive).map_err(|error| tagged(&error))?;
    if let Err(error) = store(&mut file, records) {
        // An empty file would keep the next attempt from succeeding.
        let _ = std::fs::remove_file(file.disk().path());
        return Err(Failure::new(format!(
            "I/O error: {error} ({})",
            error.fault
        )));
    }
    sync_directory_of(file.disk().path())
        .map(drop)
        .map_err(|error| Failure::io(&name, "fsync failed", &error))
}

fn store(file: &mut LogFile, records: &[u8]) -> Result<(), DiskError> {
    file.append(&[records])?;
    file.sync(file.end())
}
