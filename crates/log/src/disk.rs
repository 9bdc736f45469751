//! The disk as this crate sees it: a file of bytes, and the directory entry of a database file.
//!
//! The server implements both traits with files, the simulator with a disk that tears, reorders and
//! loses unsynced bytes. All code that decides about durability uses only these traits, so the
//! simulator can test it.

use std::fmt;

use crate::history::HistoryFolder;

/// Why an operation failed, in the operating system's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The error number (`errno`); 0 if there is none.
    pub code: i32,
    /// For example `No space left on device`.
    pub text: String,
}

impl Fault {
    /// Whether there is no room: the disk is full (`ENOSPC`), or a quota is used up (`EDQUOT`).
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.code, 28 | 122)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The kinds of operation on a database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Reading.
    Read,
    /// Appending.
    Write,
    /// Forcing to disk.
    Sync,
    /// Renaming a new file into place.
    Replace,
}

/// A failed operation. Displays as `F: write failed`, with F as the user spelled it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{shown}: {}", match operation {
    Operation::Read => "read failed",
    Operation::Write => "write failed",
    Operation::Sync => "fsync failed",
    Operation::Replace => "replacement failed",
})]
pub struct DiskError {
    /// The file's name.
    pub shown: String,
    /// The operation that failed.
    pub operation: Operation,
    /// Why.
    pub fault: Fault,
}

/// A file of bytes. Several handles may be open on one file.
pub trait DiskFile: Sized + Send + fmt::Debug {
    /// Fills a prefix of `room` from `offset` and returns its length; 0 at the end of the file.
    ///
    /// # Errors
    /// Reading failed.
    fn read_at(&self, room: &mut [u8], offset: u64) -> Result<usize, Fault>;

    /// Writes all slices at `offset`, one after the other.
    ///
    /// # Errors
    /// The write failed; any part of the slices may have been written.
    fn write_at(&mut self, slices: &[&[u8]], offset: u64) -> Result<(), Fault>;

    /// The file's length in bytes.
    ///
    /// # Errors
    /// The file system cannot report it.
    fn length(&self) -> Result<u64, Fault>;

    /// Cuts the file to `length` bytes, which must not exceed its length.
    ///
    /// # Errors
    /// The cut failed; the file keeps its length.
    fn cut(&mut self, length: u64) -> Result<(), Fault>;

    /// Forces content and length to disk.
    ///
    /// # Errors
    /// The state of bytes that were not yet synced is unknown, and a later successful sync proves
    /// nothing about them.
    fn sync(&mut self) -> Result<(), Fault>;

    /// Starts writing bytes to the disk, so that a later sync has less to do and delays other
    /// files' syncs less. Promises nothing about durability.
    ///
    /// # Errors
    /// As [`DiskFile::sync`].
    fn write_back(&mut self, offset: u64, length: u64) -> Result<(), Fault> {
        let _ = (offset, length);
        Ok(())
    }

    /// Another handle on the same file.
    ///
    /// # Errors
    /// Descriptors are exhausted.
    fn share(&self) -> Result<Self, Fault>;
}

/// The directory entries of one database file, of the temporary file next to it that may replace
/// it, and of a snapshot that is being received.
pub trait Disk: Send + Sync + fmt::Debug {
    /// An open file.
    type Handle: DiskFile;

    /// The folder that keeps replaced files.
    type History: HistoryFolder<Handle = Self::Handle>;

    /// The file's name as the user spelled it, for messages.
    fn shown_name(&self) -> &str;

    /// The folder that keeps replaced files.
    fn history(&self) -> &Self::History;

    /// Creates the temporary file, empty. Replaces one left by a crash.
    ///
    /// # Errors
    /// It cannot be created.
    fn create_temporary(&self) -> Result<Self::Handle, Fault>;

    /// Removes the temporary file, if it exists.
    fn remove_temporary(&self);

    /// Renames the temporary file to the database's name. The rename survives a crash only after
    /// [`Disk::sync_directory`].
    ///
    /// # Errors
    /// The rename failed and nothing has changed.
    fn put_in_place(&self) -> Result<(), Fault>;

    /// Creates the file that receives a snapshot from another member of the cluster, empty.
    /// Replaces one left by a crash.
    ///
    /// # Errors
    /// It cannot be created.
    fn create_received(&self) -> Result<Self::Handle, Fault>;

    /// Removes the file of a received snapshot, if it exists.
    fn remove_received(&self);

    /// Forces directory entries to disk.
    ///
    /// # Errors
    /// After a crash the name may lead to the earlier file again.
    fn sync_directory(&self) -> Result<(), Fault>;

    /// A monotonic clock in ns, used to time appends. A disk whose clock does not advance counts as
    /// fast.
    fn now_ns(&self) -> u64 {
        0
    }

    /// Reports how long an append to the operating system took, ns.
    fn record_append_time(&self, took_ns: u64) {
        let _ = took_ns;
    }

    /// Logs a failure. May be called for every transaction while the condition lasts.
    fn log_failure(&self, error: &DiskError) {
        let _ = error;
    }

    /// Logs that the file accepts no more records, and what the operator can do.
    fn log_poisoned(&self, error: &DiskError) {
        let _ = error;
    }
}

/// Builds the error of a failed operation and logs it.
pub(crate) fn failed<D: Disk>(disk: &D, operation: Operation, fault: Fault) -> DiskError {
    let error = DiskError {
        shown: disk.shown_name().to_owned(),
        operation,
        fault,
    };
    disk.log_failure(&error);
    error
}
