//! The files of a history, as `corvid_disk` opens them and `corvid_history` reads them.

use std::path::{Path, PathBuf};

use corvid_disk::history_files::{HistoryFile, HistoryFiles, OpenedFile};
use corvid_history::{Files, Opened, ReadAt};

use crate::failure::shown;

/// A file that is read at any offset.
#[derive(Debug)]
pub(crate) struct DiskFile(HistoryFile);

impl ReadAt for DiskFile {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        self.0.read_at(room, offset)
    }

    fn length(&self) -> Result<u64, String> {
        self.0.length()
    }
}

/// A database file and the folder of its history.
#[derive(Debug)]
pub(crate) struct HistoryFolder(HistoryFiles);

impl HistoryFolder {
    /// Of a database file, which need not exist if there is a folder.
    pub(crate) fn of(path: &Path) -> HistoryFolder {
        HistoryFolder(HistoryFiles::of(path, shown(path)))
    }

    /// The path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }
}

impl Files for HistoryFolder {
    type Handle = DiskFile;

    fn present(&self) -> Result<Option<DiskFile>, String> {
        Ok(self.0.present()?.map(DiskFile))
    }

    fn list(&self) -> Result<Vec<String>, String> {
        self.0.list()
    }

    fn open(&self, name: &str) -> Result<Opened<DiskFile>, String> {
        Ok(match self.0.open(name)? {
            OpenedFile::Open(file) => Opened::Handle(DiskFile(file)),
            OpenedFile::Gone => Opened::Gone,
            OpenedFile::Present => Opened::Present,
        })
    }

    fn shown(&self, name: Option<&str>) -> String {
        self.0.shown(name)
    }
}
