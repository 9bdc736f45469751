//! Requests of a database to its file, and the replies. All of it is data, so a queue between threads carries it as well as a simulator.
//!
//! Invariant: appends are written in the order of their positions. Replies come in the order of the requests, except those about a new
//! file, which are ordered among themselves.

use corvid_data::{Tag, WireError};

use super::{FileContent, RecordText};
use crate::disk::DiskError;

/// Orders the records of one database. When a position is stored, all lower ones are stored too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition(pub u64);

impl LogPosition {
    /// Of everything that was in the file when it was opened.
    pub const OPENING: LogPosition = LogPosition(0);
}

/// A request of a database to its file.
#[derive(Debug)]
pub enum StorageRequest {
    /// The database has undone the commit whose append failed and all later ones. Appends between the failure and this request are
    /// refused: the database has undone those commits too.
    Recover,
    /// Append one record. Answered by [`StorageReply::Appended`]; a reply holds for all earlier appends that are not answered yet.
    Append {
        /// The position of its commit.
        position: LogPosition,
        /// Header and body.
        record: RecordText,
        /// Sync before replying.
        durable: bool,
    },
    /// Begin to write a new file in the background. Answered by [`RewriteStage::Written`] when next to nothing is missing. One at a
    /// time; requested when every append is answered.
    Rewrite(RewriteNumber, Box<dyn FileContent>),
    /// Append these records to the new file, which does not copy the present one; answered by [`RewriteStage::Written`].
    Extend(RewriteNumber, Vec<Vec<u8>>),
    /// Put the new file in the place of the present one. Answered by [`RewriteStage::InPlace`]; later appends go to the new file. Then,
    /// when a crash cannot bring the old file back any more, by [`RewriteStage::Lasting`].
    Swap(RewriteNumber),
    /// Give the new file up. Has no reply.
    Abandon(RewriteNumber),
}

/// A reply of the storage to its database.
#[derive(Debug)]
pub enum StorageReply {
    /// All appends up to this one have succeeded, or all of them that were not answered before have failed with this error.
    Appended(LogPosition, Result<(), StoreError>),
    /// A new file has reached this stage, or failed and is removed.
    Rewrite(RewriteNumber, Result<RewriteStage, StoreError>),
}

/// Numbers the rewrites of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewriteNumber(pub u64);

/// How far a rewrite has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteStage {
    /// Everything requested so far is in the new file.
    Written,
    /// The new file has the database's name.
    InPlace(FileSize),
    /// The new file keeps the name after a crash.
    Lasting,
}

/// Sizes of a file that has just been put in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// Schema and first transaction: what growth is measured against, bytes.
    pub base: u64,
    /// All of it, bytes.
    pub end: u64,
}

/// A failed write, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// For example `a.db: write failed`.
    pub details: String,
    /// The operating system's words.
    pub io_error: String,
}

impl StoreError {
    /// The error that clients see.
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
