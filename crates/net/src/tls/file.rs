//! A file that is read again when it changes, and waited for when it is not there.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A file that is looked at now and then.
#[derive(Debug, Default)]
pub(super) struct WatchedFile {
    path: Option<PathBuf>,
    /// What it looked like when it was last read.
    seen: Option<Stamp>,
    content: Option<Vec<u8>>,
    /// Its absence, or whatever hinders reading it, has been told.
    is_failure_told: bool,
}

/// Tells one state of a file from another.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    inode: u64,
    size: u64,
}

impl Stamp {
    fn of(data: &Metadata) -> Stamp {
        Stamp {
            modified: (data.mtime(), data.mtime_nsec()),
            inode: data.ino(),
            size: data.size(),
        }
    }
}

/// What a look has found.
#[derive(Debug)]
pub(super) enum Look {
    /// Nothing new.
    Same,
    /// Other content than before.
    Changed,
    /// It cannot be read; told once, until it can.
    Failed(io::Error),
}

impl WatchedFile {
    /// Watches another file from now on; naming the same one again changes nothing. What was read stays until there is more.
    pub(super) fn set(&mut self, path: Option<&str>) {
        let path = path.map(PathBuf::from);
        if self.path != path {
            self.path = path;
            self.seen = None;
            self.is_failure_told = false;
        }
    }

    pub(super) fn path(&self) -> Option<&PathBuf> {
        self.path.as_ref()
    }

    /// What the file held when it was last read.
    pub(super) fn content(&self) -> Option<&[u8]> {
        self.content.as_deref()
    }

    /// Looks whether the file has changed, and reads it if so. A file that is gone keeps its content.
    pub(super) fn look(&mut self) -> Look {
        let Some(path) = &self.path else {
            return Look::Same;
        };
        let read = std::fs::metadata(path).and_then(|data| {
            let stamp = Stamp::of(&data);
            if self.seen.as_ref() == Some(&stamp) {
                return Ok(None);
            }
            std::fs::read(path).map(|content| Some((stamp, content)))
        });
        match read {
            Ok(None) => Look::Same,
            Ok(Some((stamp, content))) => {
                self.is_failure_told = false;
                self.seen = Some(stamp);
                self.content = Some(content);
                Look::Changed
            }
            Err(error) if !std::mem::replace(&mut self.is_failure_told, true) => {
                Look::Failed(error)
            }
            Err(_) => Look::Same,
        }
    }
}
