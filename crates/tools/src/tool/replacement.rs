//! Replaces or creates a database file as a whole, for `compact`, `convert` and
//! `cluster-to-standalone`.
//!
//! The new file is written under a temporary name next to the target, synced, and renamed to the
//! target. So at any time the target is either the old file or the complete new one.

use std::path::{Path, PathBuf};

use corvid_disk::lockfile::{Lockfile, follow_links};
use corvid_disk::replacement::Replacement;
use corvid_engine::Database;
use corvid_log::{Stamp, write_schema, write_snapshot};
use corvid_net::{clock, errno};
use corvid_shell::progress::{Progress, Spinner};

use crate::failure::{Failure, shown};

/// The path of a file that will be written, locked against other writers.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    _lock: Lockfile,
    /// The lock of the temporary name, which could be a database's name too. The reference also
    /// locks it.
    _temporary_lock: Option<Lockfile>,
}

/// The form of the error about a lock that another process holds. Commands differ in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Without a tag: `compact`, `convert`.
    Bare,
    /// As an `I/O error`: all other commands.
    Tagged,
}

/// The new file under its temporary name. It is removed unless it is finished.
#[derive(Debug)]
pub(crate) struct Draft {
    file: Replacement,
    temporary: PathBuf,
    target: PathBuf,
}

impl Target {
    /// Locks a file that will be replaced, and its temporary name.
    ///
    /// # Errors
    /// Another process holds a lock.
    pub(crate) fn lock(path: &Path) -> Result<Target, Failure> {
        Ok(Target {
            path: path.to_owned(),
            _lock: lock(path, Wording::Bare)?,
            _temporary_lock: Some(lock(&temporary(path), Wording::Bare)?),
        })
    }

    /// Locks the path of a file that does not exist yet.
    ///
    /// # Errors
    /// As for [`Target::lock`], or the file exists. It is not overwritten.
    pub(crate) fn lock_new(path: &Path, wording: Wording) -> Result<Target, Failure> {
        let lock = lock(path, wording)?;
        // A dangling link is allowed: the file that it points to will be created.
        if path.exists() {
            return Err(Failure::new(format!(
                "I/O error: {}: create failed (File exists)",
                path.display()
            )));
        }
        Ok(Target {
            path: path.to_owned(),
            _lock: lock,
            _temporary_lock: None,
        })
    }

    /// Creates the temporary file. A file left over by a crash is removed.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn begin(&self) -> Result<Draft, Failure> {
        let temporary = temporary(&self.path);
        let file = Replacement::create(&self.path)
            .map_err(|error| Failure::io(&shown(&temporary), "create failed", &error))?;
        Ok(Draft {
            file,
            temporary,
            target: self.path.clone(),
        })
    }

    /// Writes the contents of `database` as the new file: the schema, and one record with all rows.
    ///
    /// # Errors
    /// Writing failed. The target is unchanged, unless only syncing the directory failed.
    pub(crate) fn fill(&self, database: &Database, comment: &str) -> Result<(), Failure> {
        let mut draft = self.begin()?;
        draft.write_database(database, comment)?;
        draft.finish()
    }
}

impl Draft {
    /// Appends bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file
            .write(bytes)
            .map_err(|error| Failure::io(&shown(&self.temporary), "write failed", &error))
    }

    /// The path of the temporary file, for reading it.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Appends schema and rows.
    ///
    /// # Errors
    /// As for [`Draft::write`].
    pub(crate) fn write_database(
        &mut self,
        database: &Database,
        comment: &str,
    ) -> Result<(), Failure> {
        let schema = database.schema();
        let mut record = Vec::new();
        write_schema(&mut record, schema);
        self.write(&record)?;
        // Releases before 2.15 cannot read differences. A compacted file has none, so its record is
        // not marked as one.
        let stamp = Stamp {
            date_ms: clock::wall_ms(),
            comment,
            is_diff: false,
            with_defaults: false,
        };
        let snapshot = database.snapshot();
        // Each row is visited twice: to measure its record, and to write it.
        let rows: usize = schema
            .iter()
            .map(|(table, _)| snapshot.row_count(table))
            .sum();
        let progress = Progress::new("Writing rows", 2 * rows as u64);
        write_snapshot(
            schema,
            &stamp,
            |table| snapshot.rows(table).inspect(|_| progress.advance(1)),
            &mut |bytes| self.write(bytes),
        )?;
        Ok(())
    }

    /// Syncs the file and renames it to the target.
    ///
    /// # Errors
    /// Syncing or renaming failed. The target is unchanged, unless only syncing the directory
    /// failed.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Draft {
            file,
            temporary,
            target,
        } = self;
        let _progress = Spinner::new("Bringing the file to disk");
        file.finish().map_err(|error| {
            Failure::new(format!(
                "I/O error: failed to rename \"{}\" to \"{}\" ({})",
                temporary.display(),
                target.display(),
                errno::text(&error)
            ))
        })
    }
}

fn lock(path: &Path, wording: Wording) -> Result<Lockfile, Failure> {
    Lockfile::lock(path).map_err(|error| {
        let (file, what) = (shown(path), "failed to lock lockfile");
        match wording {
            Wording::Bare => Failure::new(format!("{file}: {what} ({})", errno::text(&error))),
            Wording::Tagged => Failure::io(&file, what, &error),
        }
    })
}

/// The temporary name, next to the file that `path` leads to after following all links.
fn temporary(path: &Path) -> PathBuf {
    let mut name = follow_links(path).into_os_string();
    name.push(".tmp");
    name.into()
}
