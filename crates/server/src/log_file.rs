//! An open database file as [`crate::storage`] needs it: append, sync, replace.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that grows at its end.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    path: PathBuf,
    name: String,
    end: u64,
    /// The file may be longer than `end`: cut before the next write.
    is_ragged: bool,
}

impl LogFile {
    /// Opens an existing file for reading and appending.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(name: &str) -> io::Result<LogFile> {
        let file = OpenOptions::new().read(true).write(true).open(name)?;
        let path = std::path::absolute(Path::new(name))?;
        Ok(LogFile { file, path, name: name.to_owned(), end: 0, is_ragged: true })
    }

    /// The open file, to be read from its beginning.
    pub fn reader(&self) -> &File {
        &self.file
    }

    /// Where the good content ends; what follows is cut off by the next write.
    pub fn set_end(&mut self, end: u64) {
        self.end = end;
    }

    /// The name that the user gave.
    #[must_use]
    pub fn display_name(&self) -> &str {
        &self.name
    }

    /// Appends bytes; on failure the file is as long as before.
    ///
    /// # Errors
    /// The operating system's.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_ragged {
            self.file.set_len(self.end)?;
            self.file.seek(SeekFrom::Start(self.end))?;
            self.is_ragged = false;
        }
        if let Err(error) = self.file.write_all(bytes) {
            self.is_ragged = true;
            // Tried again before the next write.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Forces the content to disk.
    ///
    /// # Errors
    /// The operating system's.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Replaces the whole content: `fill` writes the new one to its sink.
    ///
    /// # Errors
    /// The operating system's; the old content stays then.
    pub fn replace(
        &mut self,
        fill: &mut dyn FnMut(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        let resolved = self.path.canonicalize()?;
        let mut temporary = resolved.clone().into_os_string();
        temporary.push(".tmp");
        let _ = std::fs::remove_file(&temporary);
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&temporary)?;
        let mut end = 0;
        fill(&mut |bytes| {
            end += bytes.len() as u64;
            file.write_all(bytes)
        })?;
        file.sync_data()?;
        std::fs::rename(&temporary, &resolved)?;
        if let Some(directory) = resolved.parent() {
            File::open(directory)?.sync_all()?;
        }
        (self.file, self.end, self.is_ragged) = (file, end, false);
        Ok(())
    }
}
