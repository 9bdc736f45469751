//! Database files, opened for reading and loaded into memory.
//!
//! The first line of a file identifies it. The file is read once from its beginning, so that a pipe
//! can be read too (`/dev/stdin`). Any damage is an error, unlike in a server, which serves the
//! records before the damage: a command that rewrites a file must not lose rows silently.

use std::path::Path;

use corvid_data::{Arc, Schema, Tag, WireError};
use corvid_disk::log_file::{self, LogFile, OpenError, OpenMode};
use corvid_engine::Database;
use corvid_log::header::LINE_BYTES_MAX;
use corvid_log::{Disk, Load, Magic, Source};
use corvid_net::errno;
use corvid_shell::progress::Progress;

use crate::failure::{Failure, shown};
use crate::uuids::RandomUuids;

/// An identified database file, ready to be read from its beginning.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    file: LogFile,
    magic: Magic,
    /// The bytes that identification has read and `read` has not returned yet.
    prefix: Vec<u8>,
    progress: Option<Progress>,
}

/// A standalone file whose schema has been read, but not its records.
#[derive(Debug)]
pub(crate) struct Replay {
    name: String,
    load: Load<DatabaseFile>,
}

impl DatabaseFile {
    /// Opens a file for reading, without locking it. A terminal shows the progress.
    ///
    /// # Errors
    /// The file cannot be opened or is not a database.
    pub(crate) fn open(path: &Path) -> Result<DatabaseFile, Failure> {
        DatabaseFile::open_as(path, OpenMode::ReadOnly)
    }

    /// As [`DatabaseFile::open`]; also locks the file if the mode allows writing.
    ///
    /// # Errors
    /// As for [`DatabaseFile::open`], or another process has locked the file.
    pub(crate) fn open_as(path: &Path, mode: OpenMode) -> Result<DatabaseFile, Failure> {
        // A pipe has no length, and may take long to deliver its first bytes.
        let bytes = std::fs::metadata(path).map_or(0, |data| data.len());
        let progress = Progress::of_bytes("Reading", bytes);
        let file = DatabaseFile::open_quietly(path, mode)?;
        Ok(DatabaseFile {
            progress: Some(progress),
            ..file
        })
    }

    /// As [`DatabaseFile::open_as`] without its own progress display, for commands that show
    /// another one or print as they read.
    ///
    /// # Errors
    /// As for [`DatabaseFile::open_as`].
    pub(crate) fn open_quietly(path: &Path, mode: OpenMode) -> Result<DatabaseFile, Failure> {
        let name = shown(path);
        let mut file = log_file::open(&name, mode).map_err(|error| tagged(&error))?;
        let mut prefix = vec![0; LINE_BYTES_MAX];
        let mut held = 0;
        while held < prefix.len() {
            match file.file().read(&mut prefix[held..]) {
                Ok(0) => break,
                Ok(got) => held += got,
                Err(error) => return Err(Failure::io(&name, "read error", &error)),
            }
        }
        prefix.truncate(held);
        let magic = Magic::identify(&prefix).map_err(|error| Failure::format(&name, error))?;
        Ok(DatabaseFile {
            file,
            magic,
            prefix,
            progress: None,
        })
    }

    /// The kind of the database.
    pub(crate) fn magic(&self) -> Magic {
        self.magic
    }

    /// The file's name, as the user gave it.
    pub(crate) fn name(&self) -> &str {
        self.file.disk().shown_name()
    }

    /// Reads the schema of a standalone database.
    ///
    /// # Errors
    /// The file belongs to a cluster, or its first record is damaged or not a schema.
    pub(crate) fn load(self) -> Result<Replay, Failure> {
        let name = self.name().to_owned();
        if self.magic == Magic::Clustered {
            let details = format!("{name}: cannot apply this operation to clustered database file");
            return Err(WireError::new(Tag::OvsdbError, details).into());
        }
        match Load::open(self) {
            Ok(load) => Ok(Replay { name, load }),
            Err(damage) => Err(Failure::damage(&name, &damage)),
        }
    }
}

impl Replay {
    /// The schema of record 0.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.load.schema().clone()
    }

    /// Applies every record. Also returns the file, positioned to append after its last record.
    ///
    /// # Errors
    /// A record is damaged, does not fit the schema or does not commit.
    pub(crate) fn finish(
        mut self,
        uuids: &mut RandomUuids,
    ) -> Result<(Database, LogFile), Failure> {
        let mut database = Database::new(self.schema(), uuids.hash_seed());
        loop {
            let damage = match self.load.next_transaction() {
                Ok(None) => break,
                Ok(Some(recorded)) => match database.load(recorded, uuids) {
                    Ok(()) => continue,
                    Err(error) => self.load.reject(error),
                },
                Err(damage) => damage,
            };
            return Err(Failure::damage(&self.name, &damage));
        }
        let end = self.load.good_end();
        let mut file = self.load.into_source().file;
        file.set_end(end);
        Ok((database, file))
    }
}

impl Source for DatabaseFile {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, String> {
        if self.prefix.is_empty() {
            let got = self
                .file
                .file()
                .read(room)
                .map_err(|error| errno::text(&error))?;
            if let Some(progress) = &self.progress {
                progress.advance(got as u64);
            }
            return Ok(got);
        }
        let taken = self.prefix.len().min(room.len());
        room[..taken].copy_from_slice(&self.prefix[..taken]);
        self.prefix.drain(..taken);
        Ok(taken)
    }
}

/// The error with its tag, as most commands show it. Commands that replace files show it without
/// the tag.
pub(crate) fn tagged(error: &OpenError) -> Failure {
    Failure::new(format!("{}: {error}", Tag::IoError.text()))
}
