//! A file of records from the outside: opening, locking, appending, cutting back, syncing, replacing (storage.md 1.3, 2, 6-8).
//!
//! Bytes only; what a record is, and where the last good one ends, is told by the reader of the format.
//!
//! Invariants:
//! - Bytes before `end` are never changed; a failed append leaves the file at `end`, at the latest by the next append.
//! - The lock is held from before the file is opened until the value is dropped, replacement included.
//! - After a failed sync nothing is appended any more: the kernel may have dropped pages, so a later success proves nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::errno;
use crate::lockfile::{Lockfile, follow_links};
use crate::vlog::{self, Module, RateLimit};

/// Mode of database files, less the umask.
const MODE: u32 = 0o660;

/// What opening a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Read an existing file, without locking it.
    ReadOnly,
    /// Read and append to an existing file.
    ReadWrite,
    /// Make a new file; an existing one is an error. A dangling symbolic link gets its target made.
    CreateExclusive,
    /// Make a new file or open an existing one.
    CreateOrOpen,
}

/// Why a file could not be opened: `F: open failed (ERR)`, to be tagged `I/O error: ` where that is shown.
#[derive(Debug, thiserror::Error)]
#[error("{shown}: {what} ({})", errno::text(error))]
pub struct OpenError {
    shown: String,
    what: &'static str,
    /// What the system said.
    pub error: io::Error,
}

/// What an operation on an open file was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// reading
    Read,
    /// appending
    Write,
    /// forcing to disk
    Sync,
    /// putting a new file in place
    Replace,
}

/// A failed operation. Displays as `F: write failed`, with F as the user spelled it; the cause is [`DiskError::io_error`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{shown}: {}", match operation {
    Operation::Read => "read failed",
    Operation::Write => "write failed",
    Operation::Sync => "fsync failed",
    Operation::Replace => "replacement failed",
})]
pub struct DiskError {
    shown: String,
    /// What failed.
    pub operation: Operation,
    /// The error number.
    pub code: i32,
}

impl DiskError {
    /// The C library's text for the cause.
    #[must_use]
    pub fn io_error(&self) -> String {
        errno::text_of(self.code)
    }
}

/// An open file of records.
#[derive(Debug)]
pub struct LogFile {
    /// The name as the user gave it, for messages.
    shown: String,
    /// The absolute name: a daemon changes its directory.
    path: PathBuf,
    file: File,
    /// Where the next record goes, bytes from the start.
    end: u64,
    /// Whether bytes may lie beyond `end`: they are cut off before the next append.
    has_tail: bool,
    poison: Option<DiskError>,
    lock: Option<Lockfile>,
}

impl LogFile {
    /// Opens a file. Every mode that can write takes the lock first.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(name: &str, mode: OpenMode) -> Result<LogFile, OpenError> {
        let failed = |what: &'static str| {
            move |error: io::Error| OpenError {
                shown: name.to_owned(),
                what,
                error,
            }
        };
        let what = match mode {
            OpenMode::ReadOnly | OpenMode::ReadWrite => "open failed",
            OpenMode::CreateExclusive => "create failed",
            OpenMode::CreateOrOpen => "create or open failed",
        };
        let path = std::path::absolute(name).map_err(failed(what))?;
        let lock = match mode {
            OpenMode::ReadOnly => None,
            // By the user's spelling, which the warnings about the lock then show.
            _ => Some(Lockfile::lock(Path::new(name)).map_err(failed("failed to lock lockfile"))?),
        };
        let file = open_file(&path, mode).map_err(failed(what))?;
        // Whatever is there counts as a tail until the reader has told where the last good record ends.
        Ok(LogFile {
            shown: name.to_owned(),
            path,
            file,
            end: 0,
            has_tail: true,
            poison: None,
            lock,
        })
    }

    /// The name as the user gave it.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        &self.shown
    }

    /// The absolute name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode: two names of one file have the same.
    ///
    /// # Errors
    /// The file system does not answer.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|data| (data.dev(), data.ino()))
    }

    /// Where the next record goes, bytes from the start.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Reads the whole file; a pipe (`/dev/stdin`) to its end.
    ///
    /// # Errors
    /// Reading failed.
    pub fn read_all(&mut self) -> Result<Vec<u8>, DiskError> {
        let mut bytes = Vec::new();
        let rewound = match self.file.seek(SeekFrom::Start(0)) {
            Err(error) if error.raw_os_error() != Some(libc::ESPIPE) => Err(error),
            _ => Ok(()),
        };
        rewound
            .and_then(|()| self.file.read_to_end(&mut bytes))
            .map_err(|error| self.error(Operation::Read, &error))?;
        Ok(bytes)
    }

    /// Reads the next bytes, from the start of the file; 0 at its end. For readers that need not hold the whole file.
    ///
    /// # Errors
    /// Reading failed.
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Tells where the last good record ends. Bytes beyond are damaged; they stay until the first append.
    pub fn set_end(&mut self, end: u64) {
        self.end = end;
        self.has_tail = true;
    }

    /// Appends bytes (whole records), handing them to the kernel with one write where it takes them at once.
    ///
    /// # Errors
    /// Nothing was appended; logged. The next append tries again, unless a sync has failed before.
    pub fn append(&mut self, records: &[&[u8]]) -> Result<(), DiskError> {
        if let Some(poison) = &self.poison {
            return Err(poison.clone());
        }
        let added: u64 = records.iter().map(|record| record.len() as u64).sum();
        match self.try_append(records) {
            Ok(()) => {
                self.end += added;
                Ok(())
            }
            Err(error) => {
                let _ = self.file.set_len(self.end);
                self.has_tail = true;
                Err(self.log(self.error(Operation::Write, &error)))
            }
        }
    }

    fn try_append(&mut self, records: &[&[u8]]) -> io::Result<()> {
        if self.has_tail {
            self.file.set_len(self.end)?;
            self.file.seek(SeekFrom::Start(self.end))?;
            self.has_tail = false;
        }
        let mut slices: Vec<IoSlice<'_>> =
            records.iter().map(|record| IoSlice::new(record)).collect();
        let mut slices = &mut slices[..];
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.file.write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut slices, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Forces everything appended to disk.
    ///
    /// # Errors
    /// The file is poisoned: every later append and sync fails with this error. Logged.
    pub fn sync(&mut self) -> Result<(), DiskError> {
        if let Some(poison) = &self.poison {
            return Err(poison.clone());
        }
        self.file.sync_data().map_err(|error| {
            let error = self.log(self.error(Operation::Sync, &error));
            self.poison = Some(error.clone());
            error
        })
    }

    /// Cuts the file back to `end`, which is not beyond its present end: records that must not be replayed.
    ///
    /// # Errors
    /// Cutting failed now; the next append tries again.
    pub fn truncate_to(&mut self, end: u64) -> Result<(), DiskError> {
        assert!(end <= self.end, "cutting a file back beyond its end");
        self.end = end;
        self.has_tail = true;
        self.file
            .set_len(end)
            .map_err(|error| self.error(Operation::Write, &error))
    }

    /// Puts a complete new file in the place of this one, under the same lock, and goes on appending to it. A write error
    /// of the old file is forgotten with it.
    ///
    /// # Errors
    /// Before the rename: the old file stays in use. After it (the directory could not be synced): the file is poisoned,
    /// for nobody knows which of the two a crash would leave.
    pub fn replace_with(&mut self, replacement: Replacement) -> Result<(), DiskError> {
        if let Some(poison) = &self.poison {
            return Err(poison.clone());
        }
        let written = replacement.written;
        let (file, synced) = replacement
            .rename()
            .map_err(|error| self.log(self.error(Operation::Replace, &error)))?;
        self.file = file;
        self.end = written;
        self.has_tail = false;
        synced.map_err(|error| {
            let error = self.log(self.error(Operation::Sync, &error));
            self.poison = Some(error.clone());
            error
        })
    }

    /// Whether other processes are kept from writing.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    fn error(&self, operation: Operation, error: &io::Error) -> DiskError {
        DiskError {
            shown: self.shown.clone(),
            operation,
            code: error.raw_os_error().unwrap_or(libc::EIO),
        }
    }

    /// A condition is logged once and then rarely, although every transaction may meet it.
    fn log(&self, error: DiskError) -> DiskError {
        static LIMIT: RateLimit = RateLimit::new(1, 1);
        let named = DiskError {
            shown: self.path.display().to_string(),
            ..error.clone()
        };
        vlog::warn_limited(
            &LIMIT,
            Module::OvsdbLog,
            format_args!("{named} ({})", error.io_error()),
        );
        error
    }
}

fn open_file(path: &Path, mode: OpenMode) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).mode(MODE);
    match mode {
        OpenMode::ReadOnly => {}
        OpenMode::ReadWrite => drop(options.write(true)),
        OpenMode::CreateOrOpen => drop(options.write(true).create(true).truncate(false)),
        // A dangling link cannot be created exclusively: the link itself exists.
        OpenMode::CreateExclusive if path.is_symlink() && !path.exists() => {
            options.write(true).create(true).truncate(false);
        }
        OpenMode::CreateExclusive => drop(options.write(true).create_new(true)),
    }
    options.open(path)
}

/// A new file that is to replace another: written beside it as `NAME.tmp`, removed again unless it is put in place.
#[derive(Debug)]
pub struct Replacement {
    temporary: PathBuf,
    target: PathBuf,
    /// `None` once it has been renamed.
    file: Option<File>,
    /// Bytes written.
    written: u64,
    _lock: Option<Lockfile>,
}

impl Replacement {
    /// Makes the temporary file for `path`, beside the file that the name finally leads to. One left over by a crash is
    /// removed. Tools lock it as well, so that two of them do not remove each other's.
    ///
    /// # Errors
    /// The temporary file cannot be made or locked.
    pub fn create(path: &Path, lock: bool) -> io::Result<Replacement> {
        let target = follow_links(path);
        let temporary = PathBuf::from({
            let mut name = target.clone().into_os_string();
            name.push(".tmp");
            name
        });
        let lock = if lock {
            Some(Lockfile::lock(&temporary)?)
        } else {
            None
        };
        match std::fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&temporary)?;
        Ok(Replacement {
            temporary,
            target,
            file: Some(file),
            written: 0,
            _lock: lock,
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
    /// Writing failed; drop the value.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }

    /// Forces what was written to disk. Worth doing before the writer is stopped for the switch: what is left for the
    /// switch itself is then little.
    ///
    /// # Errors
    /// Syncing failed; drop the value.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Syncs, puts the file in place and syncs the directory, for callers that do not go on appending.
    ///
    /// # Errors
    /// The target is unchanged, unless only the directory could not be synced.
    pub fn finish(self) -> io::Result<()> {
        self.rename()?.1
    }

    /// Syncs and renames. The inner result is that of syncing the directory, when the rename is done already.
    fn rename(mut self) -> io::Result<(File, io::Result<()>)> {
        self.sync()?;
        std::fs::rename(&self.temporary, &self.target)?;
        let Some(file) = self.file.take() else {
            return Err(errno::from_code(libc::EBADF));
        };
        let synced = sync_directory_of(&self.target);
        Ok((file, synced))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Forces the directory entry of a file to disk.
///
/// # Errors
/// The directory cannot be opened or synced.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_dir::TestDir;

    fn name(directory: &TestDir, base: &str) -> String {
        directory.path().join(base).display().to_string()
    }

    #[test]
    fn a_damaged_tail_stays_until_the_first_append() {
        let directory = TestDir::new();
        let path = name(&directory, "a.db");
        std::fs::write(&path, "goodBAD").unwrap();
        let mut log = LogFile::open(&path, OpenMode::ReadWrite).unwrap();
        assert_eq!(log.read_all().unwrap(), b"goodBAD");
        log.set_end(4);
        assert_eq!(std::fs::read(&path).unwrap(), b"goodBAD");
        log.append(&[b"-", b"", b"x"]).unwrap();
        log.append(&[b"y"]).unwrap();
        log.sync().unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap().as_slice(), log.end()),
            (b"good-xy".as_slice(), 7)
        );
        log.truncate_to(4).unwrap();
        log.append(&[b"z"]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"goodz");
    }

    #[test]
    fn open_errors_have_the_words_of_the_reference() {
        let directory = TestDir::new();
        let path = name(&directory, "a.db");
        let text = |mode| LogFile::open(&path, mode).unwrap_err().to_string();
        assert_eq!(
            text(OpenMode::ReadOnly),
            format!("{path}: open failed (No such file or directory)")
        );
        let log = LogFile::open(&path, OpenMode::CreateExclusive).unwrap();
        assert!(log.is_locked());
        let deadlock = format!("{path}: failed to lock lockfile (Resource deadlock avoided)");
        assert_eq!(text(OpenMode::ReadWrite), deadlock);
        drop(log);
        assert_eq!(
            text(OpenMode::CreateExclusive),
            format!("{path}: create failed (File exists)")
        );
    }

    #[test]
    fn replacement_keeps_links_and_the_lock() {
        let directory = TestDir::new();
        let (path, link) = (name(&directory, "a.db"), name(&directory, "link.db"));
        std::fs::write(&path, "old").unwrap();
        std::fs::write(format!("{path}.tmp"), "stale").unwrap();
        std::os::unix::fs::symlink("a.db", &link).unwrap();
        let mut log = LogFile::open(&link, OpenMode::ReadWrite).unwrap();
        log.set_end(3);
        let mut replacement = Replacement::create(log.path(), false).unwrap();
        replacement.write(b"new").unwrap();
        log.append(&[b"er"]).unwrap();
        replacement.write(b"er").unwrap();
        log.replace_with(replacement).unwrap();
        log.append(&[b"!"]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"newer!");
        assert!(Path::new(&link).is_symlink() && log.is_locked());
        drop(Replacement::create(log.path(), true).unwrap());
        assert!(!Path::new(&format!("{path}.tmp")).exists());
    }

    #[test]
    fn a_full_device_fails_the_append_and_nothing_else() {
        let mut log = LogFile::open("/dev/full", OpenMode::ReadOnly).unwrap();
        log.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        log.has_tail = false;
        let error = log.append(&[b"x"]).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.io_error().as_str()),
            ("/dev/full: write failed", "No space left on device")
        );
        assert_eq!(log.end(), 0);
    }
}
