//! Writing a whole file: beside its place first, for `compact`, `convert` and `cluster-to-standalone`.
//!
//! The file is written beside its place, synced, and only then renamed to it: whatever happens meanwhile, the place holds
//! what it held or the complete new file.

use std::path::{Path, PathBuf};

use corvid_engine::Database;
use corvid_log::{Stamp, write_schema, write_snapshot};
use corvid_net::{clock, errno};
use corvid_shell::lockfile::{Lockfile, follow_links};
use corvid_shell::progress::Progress;
use corvid_shell::replacement::Replacement;

use crate::failure::{Failure, shown};

/// Where a file will be written; locked against everybody else who would write there.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    _lock: Lockfile,
    /// The name beside an existing file could be a database's too: the reference locks it as well.
    _temporary_lock: Option<Lockfile>,
}

/// How a lock that somebody else holds is reported: commands differ in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Without a tag: `compact`, `convert`.
    Bare,
    /// As an `I/O error`: all others.
    Tagged,
}

/// The file to be, beside its place; gone again unless it is finished.
#[derive(Debug)]
pub(crate) struct Draft {
    file: Replacement,
    temporary: PathBuf,
    target: PathBuf,
}

impl Place {
    /// Locks a file that is to be replaced, and the name beside it.
    ///
    /// # Errors
    /// Somebody else holds a lock.
    pub(crate) fn lock(path: &Path) -> Result<Place, Failure> {
        Ok(Place {
            path: path.to_owned(),
            _lock: lock(path, Wording::Bare)?,
            _temporary_lock: Some(lock(&temporary(path), Wording::Bare)?),
        })
    }

    /// Locks the place of a file that does not exist yet.
    ///
    /// # Errors
    /// As [`Place::lock`], and there is a file already: what it holds is not ours to overwrite.
    pub(crate) fn lock_new(path: &Path, wording: Wording) -> Result<Place, Failure> {
        let lock = lock(path, wording)?;
        // A dangling link is a place too: its target will be made.
        if path.exists() {
            return Err(Failure::new(format!(
                "I/O error: {}: create failed (File exists)",
                path.display()
            )));
        }
        Ok(Place {
            path: path.to_owned(),
            _lock: lock,
            _temporary_lock: None,
        })
    }

    /// Begins the file. One left over by a crash is removed.
    ///
    /// # Errors
    /// It cannot be made.
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

    /// Puts the contents of `database` there: schema, and one record with every row.
    ///
    /// # Errors
    /// Nothing was changed, unless only the directory could not be synced.
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
    /// The file system takes no more.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file
            .write(bytes)
            .map_err(|error| Failure::io(&shown(&self.temporary), "write failed", &error))
    }

    /// The file as it stands, for reading.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Appends schema and rows.
    ///
    /// # Errors
    /// As [`Draft::write`].
    pub(crate) fn write_database(
        &mut self,
        database: &Database,
        comment: &str,
    ) -> Result<(), Failure> {
        let schema = database.schema();
        let mut record = Vec::new();
        write_schema(&mut record, schema);
        self.write(&record)?;
        // Releases before 2.15 cannot read differences, and a file of this kind has none: it stays readable for them.
        let stamp = Stamp {
            date_ms: clock::wall_ms(),
            comment,
            is_diff: false,
            with_defaults: false,
        };
        let snapshot = database.snapshot();
        // Rows are walked twice: to measure, and to write.
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

    /// Puts the file in its place, synced.
    ///
    /// # Errors
    /// The place is as it was, unless only the directory could not be synced.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Draft {
            file,
            temporary,
            target,
        } = self;
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

/// The name beside the file that `path` finally leads to.
fn temporary(path: &Path) -> PathBuf {
    let mut name = follow_links(path).into_os_string();
    name.push(".tmp");
    name.into()
}
