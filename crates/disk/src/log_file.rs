//! A file of records: opening and locking it, and the disk of a [`LogWriter`] on real files
//! (docs/spec/storage.md 1.3, 6-8).
//!
//! Handles bytes only. The writer decides when to append, cut, sync and replace; this module does
//! it.
//!
//! Invariant: the lock is held from before the file is opened until the value is dropped,
//! replacement included.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use corvid_log::LogWriter;
use corvid_log::disk::{Disk, DiskError, DiskFile, Fault};

use crate::history::Folder;
use crate::lockfile::{Lockfile, follow_links};
use crate::open_file::OpenFile;
use crate::write_back::write_back;
use corvid_net::{clock, errno, os_name};
use corvid_shell::durations::Durations;
use corvid_shell::events;
use corvid_shell::vlog::{self, Module, RateLimit};

/// Mode of database files, before the umask.
const MODE: u32 = 0o660;

/// The purpose of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Read an existing file, without locking it.
    ReadOnly,
    /// Read and append to an existing file.
    ReadWrite,
    /// Create a new file; an existing one is an error. For a dangling symbolic link, the target is
    /// created.
    CreateExclusive,
}

/// Why a file could not be opened: `F: open failed (ERR)`, to be prefixed with `I/O error: ` where
/// tags are shown.
#[derive(Debug, thiserror::Error)]
#[error("{shown}: {what} ({})", errno::text(error))]
pub struct OpenError {
    shown: String,
    what: &'static str,
    /// The system's error.
    pub error: io::Error,
}

/// An open file of records.
pub type LogFile = LogWriter<Location>;

/// Opens a file. Every mode that can write acquires the lock first. The lock is held until the
/// value is dropped, replacement included.
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
    };
    if name.is_empty() {
        return Err(failed(what)(io::Error::from_raw_os_error(libc::ENOENT)));
    }
    let given = os_name::path(name);
    let path = std::path::absolute(&given).map_err(failed(what))?;
    let lock = match mode {
        OpenMode::ReadOnly => None,
        // Lock by the name that the user gave, because warnings about the lock show it.
        _ => Some(Lockfile::lock(&given).map_err(failed("failed to lock lockfile"))?),
    };
    let file = open_file(&path, mode).map_err(failed(what))?;
    let place = Location {
        shown: name.to_owned(),
        history: Folder::new(path.clone()),
        path,
        syncs: Arc::default(),
        writes: Arc::default(),
        unforced: Arc::default(),
        _lock: lock,
    };
    let file = Handle::new(file, &place.syncs);
    Ok(LogWriter::new(place, file))
}

fn open_file(path: &Path, mode: OpenMode) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).mode(MODE);
    match mode {
        OpenMode::ReadOnly => {}
        OpenMode::ReadWrite => drop(options.write(true)),
        // A dangling link cannot be created exclusively, because the link itself exists.
        OpenMode::CreateExclusive if path.is_symlink() && !path.exists() => {
            options.write(true).create(true).truncate(false);
        }
        OpenMode::CreateExclusive => drop(options.write(true).create_new(true)),
    }
    options.open(path)
}

/// An open file. Handles that were [shared](DiskFile::share) use one descriptor. When the last
/// handle on a large nameless file is dropped, another thread closes it: see
/// `crates/disk/src/open_file.rs`.
#[derive(Debug)]
pub struct Handle {
    file: Arc<OpenFile>,
    /// The offset of the next write; `None` if unknown. Only one handle of a file writes.
    position: Option<u64>,
    syncs: Watched,
}

/// The histogram of syncs or of writes, once it is set. All handles of a file share it.
pub(crate) type Watched = Arc<OnceLock<Arc<Durations>>>;

impl Handle {
    pub(crate) fn new(file: File, syncs: &Watched) -> Handle {
        Handle::on(Arc::new(OpenFile::new(file)), syncs)
    }

    fn on(file: Arc<OpenFile>, syncs: &Watched) -> Handle {
        Handle {
            file,
            position: None,
            syncs: Arc::clone(syncs),
        }
    }

    /// Reads the next bytes, starting at the beginning of the file or pipe; 0 at its end.
    ///
    /// # Errors
    /// Reading failed.
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&**self.file).read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    fn try_write_at(&mut self, slices: &[&[u8]], offset: u64) -> io::Result<()> {
        if self.position != Some(offset) {
            (&**self.file).seek(SeekFrom::Start(offset))?;
        }
        self.position = None;
        let end = offset + slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
        let mut slices: Vec<IoSlice<'_>> = slices.iter().map(|slice| IoSlice::new(slice)).collect();
        let mut slices = &mut slices[..];
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match (&**self.file).write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut slices, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.position = Some(end);
        Ok(())
    }
}

impl DiskFile for Handle {
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, Fault> {
        loop {
            match self.file.read_at(room, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome.map_err(|error| fault(&error)),
            }
        }
    }

    fn write_at(&mut self, slices: &[&[u8]], offset: u64) -> Result<(), Fault> {
        events::LOG_WRITE.bump();
        self.try_write_at(slices, offset)
            .map_err(|error| fault(&error))
    }

    fn length(&self) -> Result<u64, Fault> {
        let data = self.file.metadata().map_err(|error| fault(&error))?;
        Ok(data.len())
    }

    fn cut(&mut self, length: u64) -> Result<(), Fault> {
        self.file.set_len(length).map_err(|error| fault(&error))
    }

    fn sync(&mut self) -> Result<(), Fault> {
        let began_ns = self
            .syncs
            .get()
            .map(|durations| (durations, clock::mono_ns()));
        events::LOG_SYNC.bump();
        let outcome = self.file.sync_data().map_err(|error| fault(&error));
        if let Some((durations, began_ns)) = began_ns {
            durations.add(clock::mono_ns() - began_ns);
        }
        outcome
    }

    fn write_back(&mut self, offset: u64, length: u64) -> Result<(), Fault> {
        write_back(&self.file, offset, length).map_err(|error| fault(&error))
    }

    fn share(&self) -> Result<Handle, Fault> {
        Ok(Handle::on(Arc::clone(&self.file), &self.syncs))
    }
}

pub(crate) fn fault(error: &io::Error) -> Fault {
    Fault {
        code: error.raw_os_error().unwrap_or(0),
        text: errno::text(error),
    }
}

/// The location of a database file, and its lock.
#[derive(Debug)]
pub struct Location {
    /// The name that the user gave, for messages.
    shown: String,
    /// The absolute name, because a daemon changes its directory.
    path: PathBuf,
    syncs: Watched,
    writes: Watched,
    unforced: UnforcedName,
    history: Folder,
    _lock: Option<Lockfile>,
}

/// One line that says why the directory entry of a file cannot be synced, and the consequence.
/// Unset until such a sync has failed.
pub type UnforcedName = Arc<OnceLock<String>>;

impl Location {
    /// The absolute name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file under the name once more, for reading. Not read-only: the last descriptor of
    /// a replaced file truncates it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_again(&self) -> io::Result<Handle> {
        open_file(&self.path, OpenMode::ReadWrite).map(|file| Handle::new(file, &self.syncs))
    }

    /// Sets the histogram of syncs of this file and its replacements. Only the first call counts.
    pub fn time_syncs(&self, durations: Arc<Durations>) {
        // A second call has no effect.
        let _ = self.syncs.set(durations);
    }

    /// The warning that durable commits depend on a directory that cannot be synced, if that is so.
    #[must_use]
    pub fn unforced_name(&self) -> &UnforcedName {
        &self.unforced
    }

    /// Logs once that durable commits depend on a directory that cannot be synced.
    fn note_unforced(&self, directory: &Path, error: &io::Error) {
        let words = format!(
            "directory {} cannot be forced to disk ({}): after a loss of power {} may be missing, or be the file from before the last \
             compaction, without durable commits",
            directory.display(),
            errno::text(error),
            self.path.display()
        );
        if self.unforced.set(words.clone()).is_ok() {
            vlog::warn(Module::OvsdbLog, format_args!("{words}"));
        }
    }

    /// Sets the histogram of appends. Only the first call counts.
    pub fn time_writes(&self, durations: Arc<Durations>) {
        let _ = self.writes.set(durations);
    }
}

impl Disk for Location {
    type Handle = Handle;
    type History = Folder;

    fn history(&self) -> &Folder {
        &self.history
    }

    fn shown_name(&self) -> &str {
        &self.shown
    }

    fn create_temporary(&self) -> Result<Handle, Fault> {
        create_temporary(&temporary_of(&follow_links(&self.path)))
            .map(|file| Handle::new(file, &self.syncs))
            .map_err(|error| fault(&error))
    }

    fn remove_temporary(&self) {
        let _ = std::fs::remove_file(temporary_of(&follow_links(&self.path)));
    }

    fn put_in_place(&self) -> Result<(), Fault> {
        let target = follow_links(&self.path);
        std::fs::rename(temporary_of(&target), &target).map_err(|error| fault(&error))
    }

    fn create_received(&self) -> Result<Handle, Fault> {
        create_temporary(&received_of(&follow_links(&self.path)))
            .map(|file| Handle::new(file, &self.syncs))
            .map_err(|error| fault(&error))
    }

    fn remove_received(&self) {
        let _ = std::fs::remove_file(received_of(&follow_links(&self.path)));
    }

    fn sync_directory(&self) -> Result<(), Fault> {
        let target = follow_links(&self.path);
        match sync_directory_of(&target).map_err(|error| fault(&error))? {
            DirectorySync::Done => {}
            DirectorySync::Impossible(error) => self.note_unforced(directory_of(&target), &error),
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        clock::mono_ns()
    }

    fn record_append_time(&self, took_ns: u64) {
        if let Some(durations) = self.writes.get() {
            durations.add(took_ns);
        }
    }

    /// Logs a failure once and then rarely, because every transaction may meet it.
    fn log_failure(&self, error: &DiskError) {
        static LIMIT: RateLimit = RateLimit::new(1, 1);
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let named = DiskError {
            // A relative name would be unclear in the log of a daemon.
            shown: directory
                .join(Path::new(&error.shown).file_name().unwrap_or_default())
                .display()
                .to_string(),
            ..error.clone()
        };
        vlog::warn_limited(
            &LIMIT,
            Module::OvsdbLog,
            format_args!("{named} ({})", error.fault),
        );
    }

    fn log_poisoned(&self, error: &DiskError) {
        vlog::err(
            Module::OvsdbLog,
            format_args!(
                "{}: this file takes no more writes, because a sync has failed and the contents of the disk are \
                 unknown ({}). Repair the disk, then run ovsdb-server/compact, which writes the whole database to a \
                 new file. Do not restart the server before that: the new process would trust data that may not \
                 be on the disk",
                self.path.display(),
                error.fault
            ),
        );
    }
}

pub(crate) fn temporary_of(target: &Path) -> PathBuf {
    with_suffix(target, ".tmp")
}

/// The file of a snapshot that is being received.
fn received_of(target: &Path) -> PathBuf {
    with_suffix(target, ".received")
}

pub(crate) fn with_suffix(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates a temporary file, after removing one left by a crash.
pub(crate) fn create_temporary(temporary: &Path) -> io::Result<File> {
    let _removed = OpenFile::before_removal(temporary);
    match std::fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(temporary)
}

/// The outcome of syncing a directory.
#[derive(Debug)]
pub enum DirectorySync {
    /// Names created before are durable.
    Done,
    /// The directory cannot be synced here, for this reason: it may not be read, or the file system
    /// syncs no directories.
    Impossible(io::Error),
}

/// Syncs the directory entry of a file, if the file system can do that. A directory that cannot be
/// synced is not an error.
///
/// # Errors
/// The directory cannot be opened or synced.
pub fn sync_directory_of(path: &Path) -> io::Result<DirectorySync> {
    let synced = File::open(directory_of(path)).and_then(|directory| directory.sync_all());
    match synced {
        Ok(()) => Ok(DirectorySync::Done),
        Err(error) => match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM | libc::EINVAL | libc::ENOTSUP) => {
                Ok(DirectorySync::Impossible(error))
            }
            _ => Err(error),
        },
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(directory: &tempfile::TempDir, base: &str) -> String {
        directory.path().join(base).display().to_string()
    }

    #[test]
    fn a_damaged_tail_stays_until_the_first_append() {
        let directory = tempfile::tempdir().unwrap();
        let path = name(&directory, "a.db");
        std::fs::write(&path, "goodBAD").unwrap();
        let mut log = open(&path, OpenMode::ReadWrite).unwrap();
        let mut room = [0; 16];
        assert_eq!(log.file().read(&mut room).unwrap(), 7);
        log.set_end(4);
        assert_eq!(std::fs::read(&path).unwrap(), b"goodBAD");
        log.append(&[b"-", b"", b"x"]).unwrap();
        log.append(&[b"y"]).unwrap();
        log.sync(log.end()).unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap().as_slice(), log.end()),
            (b"good-xy".as_slice(), 7)
        );
    }

    #[test]
    fn open_errors_have_the_words_of_the_reference() {
        let directory = tempfile::tempdir().unwrap();
        let path = name(&directory, "a.db");
        let text = |mode| open(&path, mode).unwrap_err().to_string();
        assert_eq!(
            text(OpenMode::ReadOnly),
            format!("{path}: open failed (No such file or directory)")
        );
        let log = open(&path, OpenMode::CreateExclusive).unwrap();
        assert!(log.disk()._lock.is_some());
        let deadlock = format!("{path}: failed to lock lockfile (Resource deadlock avoided)");
        assert_eq!(text(OpenMode::ReadWrite), deadlock);
        drop(log);
        assert_eq!(
            text(OpenMode::CreateExclusive),
            format!("{path}: create failed (File exists)")
        );
    }

    #[test]
    fn a_replacement_keeps_links_and_lock() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (name(&directory, "a.db"), name(&directory, "link.db"));
        std::fs::write(&path, "old").unwrap();
        std::fs::write(format!("{path}.tmp"), "stale").unwrap();
        std::os::unix::fs::symlink("a.db", &link).unwrap();
        let mut log = open(&link, OpenMode::ReadWrite).unwrap();
        log.set_end(3);
        let mut rewrite = log.rewrite().unwrap();
        rewrite.write(b"new").unwrap();
        log.append(&[b"er"]).unwrap();
        log.swap(rewrite).unwrap();
        log.sync_name().unwrap();
        log.append(&[b"!"]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"newer!");
        assert!(Path::new(&link).is_symlink() && log.disk()._lock.is_some());
        drop(log.rewrite().unwrap());
        assert!(!Path::new(&format!("{path}.tmp")).exists());
    }

    #[test]
    fn a_directory_without_sync_is_recognised() {
        let directory = tempfile::tempdir().unwrap();
        let path = name(&directory, "a.db");
        let log = open(&path, OpenMode::CreateExclusive).unwrap();
        log.disk().sync_directory().unwrap();
        assert_eq!(log.disk().unforced_name().get(), None);
        // A file system that cannot sync directories.
        let odd = sync_directory_of(Path::new("/proc/self/status"));
        assert!(matches!(odd, Ok(DirectorySync::Impossible(_))), "{odd:?}");
        assert!(sync_directory_of(Path::new("/nowhere/a.db")).is_err());
        let denied = errno::from_code(libc::EACCES);
        log.disk().note_unforced(directory.path(), &denied);
        let words = log.disk().unforced_name().get().unwrap();
        let begin = format!(
            "directory {} cannot be forced to disk (Permission denied): ",
            directory.path().display()
        );
        assert!(words.starts_with(&begin), "{words}");
    }

    #[test]
    fn a_full_device_fails_the_append_and_nothing_else() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let place = Location {
            shown: "full.db".to_owned(),
            history: Folder::new(PathBuf::from("/dev/full")),
            path: PathBuf::from("/dev/full"),
            syncs: Watched::default(),
            writes: Watched::default(),
            unforced: UnforcedName::default(),
            _lock: None,
        };
        let mut log = LogWriter::new(place, Handle::new(file, &Watched::default()));
        let error = log.append(&[b"x"]).unwrap_err();
        // An append to a file of unknown length begins with a cut, and a device cannot be cut.
        assert_eq!(error.to_string(), "full.db: write failed");
        let mut handle = Handle::new(
            OpenOptions::new().write(true).open("/dev/full").unwrap(),
            &Watched::default(),
        );
        let fault = handle.write_at(&[b"x"], 0).unwrap_err();
        assert_eq!(fault.text, "No space left on device");
        assert_eq!(log.end(), 0);
    }
}
