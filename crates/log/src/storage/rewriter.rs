//! Writes a new file next to the present one: its content, then the records appended in the
//! meantime.
//!
//! Invariant: only the swap needs the lock of the present file. Runs on a rewrite thread; knows no
//! rows, see [`FileContent`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{RewriteNumber, StoreError};
use crate::disk::{Disk, DiskError};
use crate::rewrite::Rewrite;

/// Bytes handed to the disk at a time. Small, so that a concurrent sync of another file on the same
/// disk, on which a commit waits, takes hardly longer.
const WRITE_BACK_BYTES: u64 = 256 * 1024;

/// Bytes written between two syncs, which empty the cache of the disk. Each sync is a transaction
/// of the file system's journal, on which other syncs wait too.
const SYNC_BYTES: u64 = 8 * 1024 * 1024;

/// A swap is due once a pass copied less than this many bytes. More may be left if the database
/// appends faster than they are copied.
const SMALL_BYTES: u64 = 64 * 1024;

/// Passes of copying before a swap is tried with whatever is left.
const PASSES_MAX: usize = 16;

/// How many rows of a content have been written. The thread that writes counts, others look.
#[derive(Debug, Default)]
pub struct RowProgress {
    visits: AtomicU64,
    total: u64,
}

impl RowProgress {
    /// A content of so many rows.
    #[must_use]
    pub fn new(total: u64) -> RowProgress {
        RowProgress {
            visits: AtomicU64::new(0),
            total,
        }
    }

    /// Counts a row that has been visited: once to measure its record, and once to write it.
    pub fn visit(&self) {
        // Only one thread counts, so a load and a store, which are cheaper, count everything.
        let visits = self.visits.load(Ordering::Relaxed);
        self.visits.store(visits + 1, Ordering::Relaxed);
    }

    /// The rows that are done, as far as the work is concerned: measuring is half of it.
    #[must_use]
    pub fn done(&self) -> u64 {
        (self.visits.load(Ordering::Relaxed) / 2).min(self.total)
    }

    /// All rows.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// The content of a new file: a schema, and one record with all rows.
pub trait FileContent: Send + fmt::Debug {
    /// Name of the database, for messages.
    fn database(&self) -> &str;

    /// Whether records appended to the present file during the rewrite belong in the new one too.
    fn with_tail(&self) -> bool {
        false
    }

    /// Counts the rows as they are written, if the content has rows.
    fn progress(&self) -> Option<Arc<RowProgress>> {
        None
    }

    /// Appends the record of the schema, if it is a separate record.
    fn write_schema(&self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Passes the record of all rows to `sink`, in pieces.
    ///
    /// # Errors
    /// The first failure of `sink`.
    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>,
    ) -> Result<(), DiskError>;

    /// Framed records that follow the rows. Growth is measured against the bytes before them.
    fn records(&self) -> &[u8] {
        &[]
    }
}

/// A new file under construction.
#[derive(Debug)]
pub struct Rewriter<D: Disk> {
    number: RewriteNumber,
    /// `None` once the content has been written.
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

    /// The number of this rewrite.
    #[must_use]
    pub fn number(&self) -> RewriteNumber {
        self.number
    }

    /// Bytes of schema and rows; 0 until they are written.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn into_rewrite(self) -> Rewrite<D> {
        assert!(
            self.content.is_none(),
            "a file is put in place with its content"
        );
        self.rewrite
    }

    /// Writes the content, then copies records from the present file until little is left, and
    /// syncs. `end` returns the present file's published end. `is_wanted` is called for each piece
    /// of the content. Drops the content early: while it lives, the database must copy the pages it
    /// changes.
    ///
    /// # Errors
    /// The disk failed, or the file is no longer wanted. Drop the value.
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
        // Sync the bulk now. The swap syncs with the lock of the present file held, and should find
        // only the last few records unsynced.
        self.rewrite.sync()?;
        for _ in 0..PASSES_MAX {
            // Each pass copies what arrived during the pass before, so the remainder shrinks unless
            // the database appends faster than the copy.
            if self.rewrite.catch_up(end())? < SMALL_BYTES {
                break;
            }
            self.rewrite.sync()?;
        }
        Ok(())
    }

    /// Gives the present file a second name in the history folder, before the swap. Call it after
    /// [`Rewriter::run`], on the same thread. A failure is logged, and the new file replaces the
    /// present one without keeping it. `last` is the number of the file that this process has kept
    /// last, 0 for none. Returns whether the file will be kept.
    pub fn keep(&mut self, last: u64) -> bool {
        assert!(self.content.is_none(), "the content is written first");
        self.rewrite.keep(last)
    }

    /// Appends framed records and syncs them.
    ///
    /// # Errors
    /// The disk failed. Drop the value.
    pub fn extend(&mut self, records: &[Vec<u8>]) -> Result<(), StoreError> {
        assert!(self.content.is_none(), "records follow the content");
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
        let (mut unwritten, mut unsynced) = (0, 0);
        content.write_rows(&mut |piece| {
            // Check for each piece, because a large database takes long to write.
            if !is_wanted() {
                return Err(rewrite.abandoned());
            }
            rewrite.write(piece)?;
            unwritten += piece.len() as u64;
            unsynced += piece.len() as u64;
            if unwritten >= WRITE_BACK_BYTES {
                unwritten = 0;
                rewrite.write_back()?;
            }
            if unsynced >= SYNC_BYTES {
                unsynced = 0;
                rewrite.sync()?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::disk::{DiskFile, Fault};
    use crate::history::NoHistory;
    use crate::writer::LogWriter;

    #[derive(Debug, Clone, PartialEq)]
    enum Call {
        WriteBack(u64, u64),
        Sync,
    }

    /// A disk that stores nothing and lists the calls.
    #[derive(Debug, Clone, Default)]
    struct CallList {
        calls: Arc<Mutex<Vec<Call>>>,
        /// Index of the call at which a write-back fails.
        failing: Option<usize>,
        history: NoHistory<CallList>,
    }

    impl DiskFile for CallList {
        fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize, Fault> {
            Ok(0)
        }

        fn write_at(&mut self, _: &[&[u8]], _: u64) -> Result<(), Fault> {
            Ok(())
        }

        fn length(&self) -> Result<u64, Fault> {
            Ok(0)
        }

        fn cut(&mut self, _: u64) -> Result<(), Fault> {
            Ok(())
        }

        fn sync(&mut self) -> Result<(), Fault> {
            self.calls.lock().unwrap().push(Call::Sync);
            Ok(())
        }

        fn write_back(&mut self, offset: u64, length: u64) -> Result<(), Fault> {
            let mut calls = self.calls.lock().unwrap();
            if self.failing == Some(calls.len()) {
                return Err(Fault {
                    code: 5,
                    text: "Input/output error".to_owned(),
                });
            }
            calls.push(Call::WriteBack(offset, length));
            Ok(())
        }

        fn share(&self) -> Result<CallList, Fault> {
            Ok(self.clone())
        }
    }

    impl Disk for CallList {
        type Handle = CallList;
        type History = NoHistory<CallList>;

        fn history(&self) -> &NoHistory<CallList> {
            &self.history
        }

        fn shown_name(&self) -> &'static str {
            "a.db"
        }

        fn create_temporary(&self) -> Result<CallList, Fault> {
            Ok(self.clone())
        }

        fn remove_temporary(&self) {}

        fn put_in_place(&self) -> Result<(), Fault> {
            Ok(())
        }

        fn create_received(&self) -> Result<CallList, Fault> {
            Ok(self.clone())
        }

        fn remove_received(&self) {}

        fn sync_directory(&self) -> Result<(), Fault> {
            Ok(())
        }
    }

    /// Content of this many pieces of 1 MiB.
    #[derive(Debug)]
    struct Pieces(u64);

    const PIECE: u64 = 1024 * 1024;

    impl FileContent for Pieces {
        fn database(&self) -> &'static str {
            "a"
        }

        fn with_tail(&self) -> bool {
            false
        }

        fn write_schema(&self, _: &mut Vec<u8>) {}

        fn write_rows(
            &self,
            sink: &mut dyn FnMut(&[u8]) -> Result<(), DiskError>,
        ) -> Result<(), DiskError> {
            let piece = vec![0; usize::try_from(PIECE).unwrap()];
            (0..self.0).try_for_each(|_| sink(&piece))
        }
    }

    fn run(disk: &CallList, pieces: u64) -> Result<(), StoreError> {
        let writer = LogWriter::new(disk.clone(), disk.clone());
        let content = Box::new(Pieces(pieces));
        Rewriter::new(RewriteNumber(1), content, writer.replace()).run(|| 0, || true)
    }

    #[test]
    fn a_new_file_is_handed_to_the_disk_in_small_pieces_and_synced_in_larger_ones() {
        let disk = CallList::default();
        run(&disk, 17).unwrap();
        let mut expected: Vec<Call> = (0..17)
            .map(|piece| Call::WriteBack(piece * PIECE, PIECE))
            .collect();
        expected.insert(16, Call::Sync);
        expected.insert(8, Call::Sync);
        expected.push(Call::Sync);
        assert_eq!(*disk.calls.lock().unwrap(), expected);
    }

    #[test]
    fn a_piece_that_the_disk_did_not_take_ends_the_rewrite() {
        let disk = CallList {
            failing: Some(3),
            ..CallList::default()
        };
        let error = run(&disk, 17).unwrap_err();
        assert_eq!(error.details, "a.db.tmp: fsync failed");
        assert_eq!(disk.calls.lock().unwrap().len(), 3);
    }
}
