//! The folder with the files of a history, next to the database file.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use corvid_disk::history::folder_of;
use corvid_disk::lockfile::follow_links;
use corvid_history::{Files, Opened, ReadAt};
use corvid_net::errno;

use crate::failure::shown;

/// A file that is read at any offset.
#[derive(Debug)]
pub(crate) struct DiskFile(File);

impl ReadAt for DiskFile {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, String> {
        loop {
            match self.0.read_at(room, offset) {
                Ok(got) => return Ok(got),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(errno::text(&error)),
            }
        }
    }

    fn length(&self) -> Result<u64, String> {
        self.0
            .metadata()
            .map(|data| data.len())
            .map_err(|error| errno::text(&error))
    }
}

/// A database file and the folder of its history.
#[derive(Debug)]
pub(crate) struct HistoryFolder {
    shown: String,
    present: PathBuf,
    folder: PathBuf,
    /// Device and inode of the present file that was opened last.
    opened: Cell<Option<(u64, u64)>>,
}

impl HistoryFolder {
    /// Of a database file, which need not exist if there is a folder.
    pub(crate) fn of(path: &Path) -> HistoryFolder {
        // A server replaces the file to which links lead, and keeps its history there.
        HistoryFolder {
            shown: shown(path),
            present: follow_links(path),
            folder: folder_of(path),
            opened: Cell::new(None),
        }
    }

    /// The path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Files for HistoryFolder {
    type Handle = DiskFile;

    fn present(&self) -> Result<Option<DiskFile>, String> {
        let opened = open(&self.present)?;
        let identity = opened.as_ref().and_then(|file| identity(&file.0));
        self.opened.set(identity);
        Ok(opened)
    }

    fn list(&self) -> Result<Vec<String>, String> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(errno::text(&error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| errno::text(&error))?;
            names.extend(entry.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> Result<Opened<DiskFile>, String> {
        let Some(file) = open(&self.path(name))? else {
            return Ok(Opened::Gone);
        };
        let identity = identity(&file.0);
        if identity.is_some() && identity == self.opened.get() {
            return Ok(Opened::Present);
        }
        Ok(Opened::Handle(file))
    }

    fn shown(&self, name: Option<&str>) -> String {
        match name {
            Some(name) => format!("{}.history/{name}", self.shown),
            None => self.shown.clone(),
        }
    }
}

fn open(path: &Path) -> Result<Option<DiskFile>, String> {
    match File::open(path) {
        Ok(file) => Ok(Some(DiskFile(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("open failed ({})", errno::text(&error))),
    }
}

fn identity(file: &File) -> Option<(u64, u64)> {
    let data = file.metadata().ok()?;
    Some((data.dev(), data.ino()))
}
