//! Requests of a database to its file, and the replies. All of them are plain data, so a queue
//! between threads can carry them, and so can a simulator.
//!
//! Invariant: appends are written in the order of their positions. Replies come in the order of the
//! requests, except those about a new file, which are ordered among themselves.

use corvid_data::{Tag, WireError};

use super::{FileContent, RecordText};
use crate::disk::DiskError;

/// Orders the records of one database. If a position is stored, all lower ones are stored too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition(pub u64);

impl LogPosition {
    /// Stands for everything that was in the file when it was opened.
    pub const OPENING: LogPosition = LogPosition(0);
}

/// A request of a database to its file.
#[derive(Debug)]
pub enum StorageRequest {
    /// The database has undone the commit whose append failed and all later ones. Appends submitted
    /// between the failure and this request belong to those undone commits and are refused.
    Recover,
    /// Append one record. Answered by [`StorageReply::Appended`], which also answers all earlier
    /// appends that have no reply yet.
    Append {
        /// The position of its commit.
        position: LogPosition,
        /// Header and body.
        record: RecordText,
        /// Whether to sync before replying.
        durable: bool,
    },
    /// Start writing a new file in the background. Answered by [`RewriteStage::Written`] once
    /// almost everything is in it. One at a time; requested only when every append is answered.
    Rewrite(RewriteNumber, Box<dyn FileContent>),
    /// Append these records to the new file, which does not copy the present one. Answered by
    /// [`RewriteStage::Written`].
    Extend(RewriteNumber, Vec<Vec<u8>>),
    /// Replace the present file by the new one. Answered by [`RewriteStage::InPlace`]; later
    /// appends go to the new file. Answered again by [`RewriteStage::Lasting`] once a crash cannot
    /// bring the old file back.
    Swap(RewriteNumber),
    /// Abandon the new file. Has no reply.
    Abandon(RewriteNumber),
}

/// A reply of the storage to its database.
#[derive(Debug)]
pub enum StorageReply {
    /// All appends up to this position have succeeded, or every one of them without a reply has
    /// failed with this error.
    Appended(LogPosition, Result<(), StoreError>),
    /// A new file has reached this stage, or it failed and is removed.
    Rewrite(RewriteNumber, Result<RewriteStage, StoreError>),
}

/// Numbers the rewrites of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewriteNumber(pub u64);

/// The progress of a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteStage {
    /// Everything requested so far is in the new file.
    Written,
    /// The new file has the database's name.
    InPlace(FileSize),
    /// The new file keeps the name even after a crash.
    Lasting,
}

/// Sizes of a file that was just renamed into place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// Bytes of the schema and the first transaction, against which growth is measured.
    pub base: u64,
    /// The file's length, bytes.
    pub end: u64,
}

/// A failed write, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// For example `a.db: write failed`.
    pub details: String,
    /// The operating system's error text.
    pub io_error: String,
}

impl StoreError {
    /// The error as clients see it.
    #[must_use]
    pub fn to_wire(&self) -> WireError {
        let mut error = WireError::new(Tag::IoError, self.details.clone());
        error.io_error = Some(self.io_error.clone().into_boxed_str());
        error
    }
}

impl From<DiskError> for StoreError {
    fn from(error: DiskError) -> StoreError {
        StoreError {
            details: error.to_string(),
            io_error: error.fault.text,
        }
    }
}
