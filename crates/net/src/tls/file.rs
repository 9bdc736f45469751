//! A file that is reread when it changes, and that may appear later.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::os_name;

/// A file that is checked from time to time.
#[derive(Debug, Default)]
pub(super) struct WatchedFile {
    path: Option<PathBuf>,
    /// Its state when it was last read.
    seen: Option<Stamp>,
    content: Option<Vec<u8>>,
    /// Whether the failure to read it was reported.
    is_failure_told: bool,
}

/// Distinguishes the states of a file.
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

/// The outcome of a check.
#[derive(Debug)]
pub(super) enum Change {
    /// Unchanged.
    Same,
    /// New content.
    Changed,
    /// The file cannot be read; reported once, until it can be.
    Failed(io::Error),
}

impl WatchedFile {
    /// Watches another file from now on; the same name changes nothing. The last content read stays
    /// until new content is read.
    pub(super) fn set(&mut self, path: Option<&str>) {
        let path = path.map(os_name::path);
        if self.path != path {
            self.path = path;
            self.seen = None;
            self.is_failure_told = false;
        }
    }

    pub(super) fn path(&self) -> Option<&PathBuf> {
        self.path.as_ref()
    }

    /// The last content read.
    pub(super) fn content(&self) -> Option<&[u8]> {
        self.content.as_deref()
    }

    /// Reads the file if it has changed. The content of a removed file is kept.
    pub(super) fn look(&mut self) -> Change {
        let Some(path) = &self.path else {
            return Change::Same;
        };
        let read = std::fs::metadata(path).and_then(|data| {
            let stamp = Stamp::of(&data);
            if self.seen.as_ref() == Some(&stamp) {
                return Ok(None);
            }
            std::fs::read(path).map(|content| Some((stamp, content)))
        });
        match read {
            Ok(None) => Change::Same,
            Ok(Some((stamp, content))) => {
                self.is_failure_told = false;
                self.seen = Some(stamp);
                self.content = Some(content);
                Change::Changed
            }
            Err(error) if !std::mem::replace(&mut self.is_failure_told, true) => {
                Change::Failed(error)
            }
            Err(_) => Change::Same,
        }
    }
}
