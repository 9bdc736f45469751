//! The files of a database's history on a real disk, opened for reading: by the tools, and by a
//! server on threads of their own. Nothing is locked.
//!
//! A server replaces and removes files meanwhile. Open files stay readable: the thread that frees a
//! removed file in steps leaves one alone that somebody has open. Their contents are read by the
//! crate `history`, which this one does not know.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use corvid_net::errno;

use crate::history::{SUFFIX, folder_of, names_in};
use crate::lockfile::follow_links;
use crate::open_file::OpenFile;

/// A file that is read at any offset.
#[derive(Debug)]
pub struct HistoryFile(OpenFile);

impl HistoryFile {
    /// Fills a prefix of `room` from `offset` and returns its length; 0 at the end of the file.
    ///
    /// # Errors
    /// The operating system's error text, without a file name; so below.
    pub fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        loop {
            match self.0.read_at(room, offset) {
                Ok(got) => return Ok(got),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(errno::text(&error)),
            }
        }
    }

    /// The file's length in bytes.
    ///
    /// # Errors
    /// The file system cannot report it.
    pub fn length(&self) -> Result<u64, String> {
        self.0
            .metadata()
            .map(|data| data.len())
            .map_err(|error| errno::text(&error))
    }
}

/// The outcome of opening a file of the history's folder.
#[derive(Debug)]
pub enum OpenedFile {
    /// The open file.
    Open(HistoryFile),
    /// It does not exist any more.
    Gone,
    /// It is a second name of the present file that was opened last.
    Present,
}

/// A database file and the folder of its history.
#[derive(Debug)]
pub struct HistoryFiles {
    shown: String,
    present: PathBuf,
    folder: PathBuf,
    /// Device and inode of the present file that was opened last.
    opened: Cell<Option<(u64, u64)>>,
    closes_in_steps: bool,
}

impl HistoryFiles {
    /// Of a database file, which need not exist if there is a folder. `shown`: its name in
    /// messages.
    #[must_use]
    pub fn of(path: &Path, shown: String) -> HistoryFiles {
        // A server replaces the file to which links lead, and keeps its history there.
        HistoryFiles {
            shown,
            present: follow_links(path),
            folder: folder_of(path),
            opened: Cell::new(None),
            closes_in_steps: false,
        }
    }

    /// The same files, for a server whose syncs must not wait while a large one is closed that has
    /// been removed.
    #[must_use]
    pub fn closing_in_steps(self) -> HistoryFiles {
        HistoryFiles {
            closes_in_steps: true,
            ..self
        }
    }

    /// The path of a file in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Opens the present file; `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn present(&self) -> Result<Option<HistoryFile>, String> {
        let opened = self.open_file(&self.present)?;
        let identity = opened.as_ref().map(|file| identity(&file.0)).transpose()?;
        self.opened.set(identity);
        Ok(opened)
    }

    /// The names in the folder of the history; none without a folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self) -> Result<Vec<String>, String> {
        names_in(&self.folder).map_err(|error| errno::text(&error))
    }

    /// Opens a file of the folder.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self, name: &str) -> Result<OpenedFile, String> {
        let Some(file) = self.open_file(&self.path(name))? else {
            return Ok(OpenedFile::Gone);
        };
        if self.opened.get() == Some(identity(&file.0)?) {
            return Ok(OpenedFile::Present);
        }
        Ok(OpenedFile::Open(file))
    }

    /// How messages name a file of the folder, or the present file.
    #[must_use]
    pub fn shown(&self, name: Option<&str>) -> String {
        match name {
            Some(name) => format!("{}{SUFFIX}/{name}", self.shown),
            None => self.shown.clone(),
        }
    }

    fn open_file(&self, path: &Path) -> Result<Option<HistoryFile>, String> {
        // Freeing the blocks of a removed file in steps needs a descriptor that may write.
        let opened = match self.closes_in_steps {
            true => File::options().read(true).write(true).open(path),
            false => File::open(path),
        };
        let opened = match opened {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path),
            opened => opened,
        };
        match opened {
            Ok(file) => Ok(Some(HistoryFile(OpenFile::new(file)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("open failed ({})", errno::text(&error))),
        }
    }
}

/// The device and inode of a file.
fn identity(file: &File) -> Result<(u64, u64), String> {
    let data = file.metadata().map_err(|error| errno::text(&error))?;
    Ok((data.dev(), data.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_open_file_stays_readable_when_it_is_replaced_and_its_second_name_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        fs::write(&database, "old").unwrap();
        let files = HistoryFiles::of(&database, "a.db".to_owned()).closing_in_steps();
        assert_eq!(files.list(), Ok(Vec::new()), "there is no folder");
        fs::create_dir(directory.path().join("a.db.history")).unwrap();
        fs::hard_link(&database, files.path("0000000001.db")).unwrap();
        fs::write(files.path("0000000002.db"), "other").unwrap();
        let file = files.present().unwrap().unwrap();
        assert!(matches!(
            files.open("0000000001.db"),
            Ok(OpenedFile::Present)
        ));
        assert!(matches!(
            files.open("0000000002.db"),
            Ok(OpenedFile::Open(_))
        ));
        assert!(matches!(files.open("0000000003.db"), Ok(OpenedFile::Gone)));
        fs::remove_file(files.path("0000000001.db")).unwrap();
        fs::remove_file(&database).unwrap();
        let mut room = [0; 8];
        assert_eq!(file.read_at(&mut room, 1), Ok(2));
        assert_eq!((&room[..2], file.length()), (&b"ld"[..], Ok(3)));
        assert!(files.present().unwrap().is_none());
        assert_eq!(files.shown(Some("1.db")), "a.db.history/1.db");
    }
}
