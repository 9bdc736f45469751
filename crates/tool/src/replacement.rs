//! Writing a whole database to a file: schema and one record with every row.
//!
//! The file is written beside its place, synced, and only then renamed to it: whatever happens meanwhile, the place holds
//! what it held or the complete new file.

use std::io;
use std::path::{Path, PathBuf};

use corvid_engine::Database;
use corvid_log::{Stamp, write_schema, write_snapshot};
use corvid_os::lockfile::Lockfile;
use corvid_os::log_file::Replacement;
use corvid_os::{clock, errno};

use crate::failure::{Failure, shown};

/// Where a database will be written; locked against everybody else who would write there.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    is_new: bool,
    _lock: Lockfile,
}

impl Place {
    /// Locks a file that is to be replaced.
    ///
    /// # Errors
    /// Somebody else holds the lock. (Without the tag that other commands put before it, as the reference does here.)
    pub(crate) fn lock(path: &Path) -> Result<Place, Failure> {
        let lock = Lockfile::lock(path).map_err(|error| {
            let reason = errno::text(&error);
            Failure::new(format!(
                "{}: failed to lock lockfile ({reason})",
                path.display()
            ))
        })?;
        Ok(Place {
            path: path.to_owned(),
            is_new: false,
            _lock: lock,
        })
    }

    /// Locks the place of a file that does not exist yet.
    ///
    /// # Errors
    /// As [`Place::lock`], and there is a file already: what it holds is not ours to overwrite.
    pub(crate) fn lock_new(path: &Path) -> Result<Place, Failure> {
        let place = Place::lock(path)?;
        if path.exists() {
            return Err(Failure::new(format!(
                "I/O error: {}: create failed (File exists)",
                path.display()
            )));
        }
        Ok(Place {
            is_new: true,
            ..place
        })
    }

    /// Puts the contents of `database` there.
    ///
    /// # Errors
    /// Nothing was changed, unless only the directory could not be synced.
    pub(crate) fn fill(self, database: &Database, comment: &str) -> Result<(), Failure> {
        // The name of the temporary file could be a database's of its own, whose lock the reference takes when it replaces.
        let mut file = Replacement::create(&self.path, !self.is_new).map_err(|error| {
            Failure::io(
                &format!("{}.tmp", self.path.display()),
                "create failed",
                &error,
            )
        })?;
        let temporary = shown(file.path());
        write(&mut file, database, comment)
            .map_err(|error| Failure::io(&temporary, "write failed", &error))?;
        file.finish().map_err(|error| {
            let what = format!(
                "failed to rename \"{temporary}\" to \"{}\"",
                self.path.display()
            );
            Failure::new(format!("I/O error: {what} ({})", errno::text(&error)))
        })
    }
}

fn write(file: &mut Replacement, database: &Database, comment: &str) -> io::Result<()> {
    let mut record = Vec::new();
    write_schema(&mut record, database.schema());
    file.write(&record)?;
    let snapshot = database.snapshot();
    // Releases before 2.15 cannot read differences, and a file of this kind has none: it stays readable for them.
    let stamp = Stamp {
        date_ms: clock::wall_ms(),
        comment,
        is_diff: false,
        with_defaults: false,
    };
    write_snapshot(
        database.schema(),
        &stamp,
        |table| snapshot.rows(table),
        &mut |bytes| file.write(bytes),
    )?;
    Ok(())
}
