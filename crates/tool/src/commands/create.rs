//! `create`: a database file without rows.

use corvid_log::write_schema;
use corvid_os::log_file::{DiskError, LogFile, OpenMode, sync_directory_of};

use super::{Invocation, Outcome};
use crate::database::tagged;
use crate::failure::{Answer, Failure, shown};
use crate::schema_file;

/// Makes a new file that holds the schema in canonical form.
pub(super) fn create(invocation: &Invocation<'_>) -> Outcome {
    let schema = schema_file::read(&invocation.schema(1))?;
    let mut record = Vec::new();
    write_schema(&mut record, &schema);
    let name = shown(&invocation.database(0));
    let mut file =
        LogFile::open(&name, OpenMode::CreateExclusive).map_err(|error| tagged(&error))?;
    if let Err(error) = store(&mut file, &record) {
        // An empty file would keep the next attempt from succeeding.
        let _ = std::fs::remove_file(file.path());
        return Err(Failure::new(format!(
            "I/O error: {error} ({})",
            error.io_error()
        )));
    }
    sync_directory_of(file.path()).map_err(|error| Failure::io(&name, "fsync failed", &error))?;
    Ok(Answer::Yes)
}

fn store(file: &mut LogFile, record: &[u8]) -> Result<(), DiskError> {
    file.append(&[record])?;
    file.sync()
}
