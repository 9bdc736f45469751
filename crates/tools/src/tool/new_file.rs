//! New files, written in one piece.

use std::path::Path;

use corvid_disk::log_file::{self, LogFile, OpenMode, sync_directory_of};
use corvid_log::DiskError;
use corvid_shell::progress::Spinner;

use crate::failure::{Failure, shown};
use crate::tool::database::tagged;

/// Creates a file with these records, and syncs it and its directory. The file is locked while it
/// is written.
///
/// # Errors
/// The file exists, another process has locked it, or it cannot be written. A failure leaves no
/// file.
pub(crate) fn create(path: &Path, records: &[u8]) -> Result<(), Failure> {
    let _progress = Spinner::new("Writing");
    let name = shown(path);
    let mut file =
        log_file::open(&name, OpenMode::CreateExclusive).map_err(|error| tagged(&error))?;
    if let Err(error) = store(&mut file, records) {
        // An incomplete file would make the next attempt fail.
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
