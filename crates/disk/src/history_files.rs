//! The files of a database's history on a real disk, opened for reading: by the tools, and by a
//! server on threads of their own. Nothing is locked.
//!
//! A server replaces and removes files meanwhile. Whatever is open stays readable: the thread that
//! frees a removed file in steps leaves one alone that somebody has open.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use corvid_history::{Files, Opened, ReadAt};
use corvid_net::errno;

use crate::history::folder_of;
use crate::lockfile::follow_links;
use crate::open_file::OpenFile;

/// A file that is read at any offset.
#[derive(Debug)]
pub struct DiskFile(OpenFile);

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

    fn open_file(&self, path: &Path) -> Result<Option<DiskFile>, String> {
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
            Ok(file) => Ok(Some(DiskFile(OpenFile::new(file)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("open failed ({})", errno::text(&error))),
        }
    }
}

impl Files for HistoryFiles {
    type Handle = DiskFile;

    fn present(&self) -> Result<Option<DiskFile>, String> {
        let opened = self.open_file(&self.present)?;
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
        let Some(file) = self.open_file(&self.path(name))? else {
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

fn identity(file: &File) -> Option<(u64, u64)> {
    let data = file.metadata().ok()?;
    Some((data.dev(), data.ino()))
}
