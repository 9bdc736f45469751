//! Writing a whole database to a file: schema and one record with every row.

use std::path::Path;

use corvid_engine::Database;
use corvid_log::{Stamp, write_schema, write_snapshot};
use corvid_os::lockfile::Lockfile;
use corvid_os::log_file::{LogFile, OpenMode, Replacement, sync_directory_of};
use corvid_os::{clock, errno};

use crate::database::tagged;
use crate::failure::{Failure, shown};

/// Locks a file that is to be replaced, before it is read.
///
/// # Errors
/// Somebody else holds the lock. (Without the tag that other commands put before it, as the reference does here.)
pub(crate) fn lock(path: &Path) -> Result<Lockfile, Failure> {
    Lockfile::lock(path).map_err(|error| {
        let reason = errno::text(&error);
        Failure::new(format!(
            "{}: failed to lock lockfile ({reason})",
            path.display()
        ))
    })
}

/// Puts the contents of `database` in the place of the file `path`, whose lock the caller holds.
///
/// # Errors
/// Nothing was changed, unless only the directory could not be synced.
pub(crate) fn replace(path: &Path, database: &Database, comment: &str) -> Result<(), Failure> {
    let mut file = Replacement::create(path, true).map_err(|error| {
        Failure::io(&format!("{}.tmp", path.display()), "create failed", &error)
    })?;
    write(database, comment, &mut |bytes| file.write(bytes))
        .map_err(|error| Failure::io(&shown(file.path()), "write failed", &error))?;
    let temporary = shown(file.path());
    file.finish().map_err(|error| {
        Failure::io(
            &temporary,
            &format!("failed to replace \"{}\"", path.display()),
            &error,
        )
    })
}

/// Writes the contents of `database` to the new file `path`, and to disk.
///
/// # Errors
/// The file exists, or cannot be made or written; one that was made is removed again.
pub(crate) fn create(path: &Path, database: &Database, comment: &str) -> Result<(), Failure> {
    create_with(path, |file| {
        // Appending checks each piece on its own, so a failure is the file's own error.
        let mut failed = None;
        let written = write(database, comment, &mut |bytes| {
            file.append(&[bytes]).map_err(|error| {
                let code = error.code;
                failed = Some(error);
                errno::from_code(code)
            })
        });
        match (written, failed) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(error)) => Err(disk_failure(&error)),
            (Err(error), None) => Err(Failure::io(&shown(path), "write failed", &error)),
        }
    })
}

/// Makes the file `path`, lets `fill` write it, and forces it to disk, directory entry included.
///
/// # Errors
/// As [`create`].
pub(crate) fn create_with(
    path: &Path,
    fill: impl FnOnce(&mut LogFile) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let name = shown(path);
    let mut file =
        LogFile::open(&name, OpenMode::CreateExclusive).map_err(|error| tagged(&error))?;
    let filled = fill(&mut file).and_then(|()| {
        file.sync().map_err(|error| disk_failure(&error))?;
        sync_directory_of(file.path()).map_err(|error| Failure::io(&name, "fsync failed", &error))
    });
    if filled.is_err() {
        // Half a database would keep the next attempt from succeeding and look like one that was emptied.
        let _ = std::fs::remove_file(file.path());
    }
    filled
}

/// The failure of an operation on an open file.
pub(crate) fn disk_failure(error: &corvid_os::log_file::DiskError) -> Failure {
    Failure::new(format!("I/O error: {error} ({})", error.io_error()))
}

fn write(
    database: &Database,
    comment: &str,
    sink: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut record = Vec::new();
    write_schema(&mut record, database.schema());
    sink(&record)?;
    let snapshot = database.snapshot();
    // Releases before 2.15 cannot read differences, and a file of this kind has none: it stays readable for them.
    let stamp = Stamp {
        date_ms: clock::wall_ms(),
        comment,
        is_diff: false,
    };
    write_snapshot(
        database.schema(),
        &stamp,
        |table| snapshot.rows(table),
        sink,
    )?;
    Ok(())
}
