//! Writes a new file beside the present one: its content, then the records that were appended meanwhile.
//!
//! Invariant: only the swap needs the lock of the present file. Runs on a rewrite thread; knows no rows, see [`FileContent`].

use std::fmt;

use super::{RewriteNumber, StoreError};
use crate::disk::{Disk, DiskError};
use crate::rewrite::Rewrite;

/// Bytes written between two syncs: so few that a sync of another file on the same disk, behind which a commit waits, takes a millisecond or
/// two longer.
const SYNC_BYTES: u64 = 1024 * 1024;

/// Bytes left to be copied in a swap, at most, unless the database appends faster than they are copied.
const SMALL_BYTES: u64 = 64 * 1024;

/// Passes of copying before a swap is tried with whatever remains.
const PASSES_MAX: usize = 16;

/// The content of a new file: a schema, and one record with all rows.
pub trait FileContent: Send + fmt::Debug {
    /// Name of the database, for messages.
    fn database(&self) -> &str;

    /// Whether records appended to the present file meanwhile belong in the new one too.
    fn with_tail(&self) -> bool;

    /// Appends the record of the schema, if it has one of its own.
    fn write_schema(&self, out: &mut Vec<u8>);

    /// Passes the record of all rows to `sink`, in pieces.
    ///
    /// # Errors
    /// The first failure of `sink`.
    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>,
    ) -> Result<(), DiskError>;

    /// Records behind the rows, framed; growth is measured against what is before them.
    fn records(&self) -> &[u8] {
        &[]
    }
}

/// A new file under construction.
#[derive(Debug)]
pub struct Rewriter<D: Disk> {
    number: RewriteNumber,
    /// `None` once it has been written.
    content: Option<Box<dyn FileContent>>,
    rewrite: Rewrite<D>,
    base: u64,
}

impl<D: Disk> Rewriter<D> {
    pub(super) fn new(
        number: RewriteNumber,
        content: Box<dyn FileContent>,
        rewrite: Rewrite<D>,
    ) -> Rewriter<D> {
        Rewriter {
            number,
            content: Some(content),
            rewrite,
            base: 0,
        }
    }

    /// Which rewrite this is.
    #[must_use]
    pub fn number(&self) -> RewriteNumber {
        self.number
    }

    /// Bytes of schema and rows, once they are written.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn into_rewrite(self) -> Rewrite<D> {
        self.rewrite
    }

    /// Writes the content, then copies records from the present file, whose published end `end` returns, until little remains. Syncs
    /// everything. Drops the content as soon as possible, so that the database copies no more pages for its snapshot. Calls `is_wanted` for
    /// each piece.
    ///
    /// # Errors
    /// The disk failed, or the file is no longer wanted; drop the value.
    pub fn run(
        &mut self,
        mut end: impl FnMut() -> u64,
        is_wanted: impl Fn() -> bool,
    ) -> Result<(), StoreError> {
        if let Some(content) = self.content.take() {
            self.write(&*content, is_wanted)?;
            self.base = self.rewrite.written();
            let records = content.records();
            if !records.is_empty() {
                self.rewrite.write(records)?;
            }
            drop(content);
        }
        self.rewrite.sync()?;
        for _ in 0..PASSES_MAX {
            if self.rewrite.catch_up(end())? < SMALL_BYTES {
                break;
            }
            self.rewrite.sync()?;
        }
        Ok(())
    }

    /// Appends records.
    ///
    /// # Errors
    /// The disk failed; drop the value.
    pub fn extend(&mut self, records: &[Vec<u8>]) -> Result<(), StoreError> {
        for record in records {
            self.rewrite.write(record)?;
        }
        Ok(self.rewrite.sync()?)
    }

    fn write(
        &mut self,
        content: &dyn FileContent,
        is_wanted: impl Fn() -> bool,
    ) -> Result<(), DiskError> {
        let mut schema = Vec::new();
        content.write_schema(&mut schema);
        let rewrite = &mut self.rewrite;
        if !schema.is_empty() {
            rewrite.write(&schema)?;
        }
        let mut unsynced = 0;
        content.write_rows(&mut |piece| {
            if !is_wanted() {
                return Err(rewrite.abandoned());
            }
            rewrite.write(piece)?;
            unsynced += piece.len() as u64;
            if unsynced >= SYNC_BYTES {
                unsynced = 0;
                rewrite.sync()?;
            }
            Ok(())
        })
    }
}
