//! The log file: appended to line by line, with one write each, and reopened by name after
//! rotation.
//!
//! A failing write is ignored: a full device must not stop the program.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::crash;

/// A log file's name and, unless it is closed, its descriptor.
#[derive(Debug)]
pub(super) struct LogFile {
    /// The name as given, for messages.
    name: PathBuf,
    /// The absolute name: a daemon changes its directory, and the file is reopened by name.
    path: PathBuf,
    file: Option<File>,
}

impl LogFile {
    pub(super) fn open(name: PathBuf) -> io::Result<LogFile> {
        let path = std::path::absolute(&name).unwrap_or_else(|_| name.clone());
        let file = open(&path)?;
        crash::write_to(file.as_raw_fd());
        Ok(LogFile {
            name,
            path,
            file: Some(file),
        })
    }

    /// The name as given.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn close(&mut self) {
        crash::write_to(-1);
        self.file = None;
    }

    /// Changes the owner of the file, for `--user`.
    pub(super) fn chown(&self, user: u32, group: u32) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| {
            std::os::unix::fs::fchown(file, Some(user), Some(group))
        })
    }

    /// Opens the file's name again. `None` if it still leads to the open file.
    pub(super) fn open_again(&self) -> io::Result<Option<File>> {
        let new = open(&self.path)?;
        let same = match &self.file {
            Some(old) => {
                let (old, new) = (old.metadata()?, new.metadata()?);
                (old.dev(), old.ino()) == (new.dev(), new.ino())
            }
            None => false,
        };
        Ok((!same).then_some(new))
    }

    pub(super) fn replace(&mut self, file: File) {
        crash::write_to(file.as_raw_fd());
        self.file = Some(file);
    }

    /// Writes one line, including its newline, with one call.
    pub(super) fn write(&mut self, line: &[u8]) {
        if let Some(file) = &mut self.file {
            let _ = file.write_all(line);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o660)
        .open(path)
}
