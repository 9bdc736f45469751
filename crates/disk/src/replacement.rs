//! Replacing a file by a complete new one, for programs that do not append to it afterwards:
//! written next to it, synced, renamed (docs/spec/storage.md 8).

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::lockfile::follow_links;
use crate::log_file::{create_temporary, sync_directory_of, temporary_of};
use crate::open_file::OpenFile;
use crate::write_back::write_back;

/// A new file that will replace another. It is written next to it as `NAME.tmp`, and removed again
/// unless it is put in place.
#[derive(Debug)]
pub struct Replacement {
    temporary: PathBuf,
    target: PathBuf,
    /// `None` after the rename.
    file: Option<File>,
    /// Number of bytes written, handed to the disk, and forced to it.
    written: u64,
    written_back: u64,
    synced: u64,
}

/// Bytes that [`Replacement::write_back`] leaves in the cache of the disk before it syncs.
const SYNC_BYTES: u64 = 8 * 1024 * 1024;

impl Replacement {
    /// Creates the temporary file for `path`, next to the file to which the name finally leads.
    /// Removes a temporary file left by a crash. If several processes may replace the same name,
    /// the caller must hold the lock of its temporary file.
    ///
    /// # Errors
    /// The temporary file cannot be created.
    pub fn create(path: &Path) -> io::Result<Replacement> {
        let target = follow_links(path);
        let temporary = temporary_of(&target);
        let file = create_temporary(&temporary)?;
        Ok(Replacement {
            temporary,
            target,
            file: Some(file),
            written: 0,
            written_back: 0,
            synced: 0,
        })
    }

    /// The name of the temporary file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// Writing failed. Drop the value.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }

    /// Hands the written bytes to the disk. Called after each piece of a large file, so that syncs
    /// of other files need not wait for all of it.
    ///
    /// # Errors
    /// The disk did not accept them. Drop the value.
    pub fn write_back(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        write_back(file, self.written_back, self.written - self.written_back)?;
        self.written_back = self.written;
        if self.written - self.synced >= SYNC_BYTES {
            file.sync_data()?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Syncs, renames the file into place, and syncs the directory.
    ///
    /// # Errors
    /// The target is unchanged, unless only the directory could not be synced.
    pub fn finish(mut self) -> io::Result<()> {
        // Content before name: a crash after the rename must find a complete file.
        if let Some(file) = &self.file {
            file.sync_data()?;
        }
        let _replaced = OpenFile::before_removal(&self.target);
        std::fs::rename(&self.temporary, &self.target)?;
        self.file = None;
        sync_directory_of(&self.target).map(drop)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
