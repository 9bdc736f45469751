//! A new file, written next to the present one, which is still appended to. Then the new file takes
//! the present one's name.
//!
//! ```text
//! old:  [schema][1] ... [n] | [n+1] ... [m] | [m+1]        appended to until the swap
//!                           ^ snapshot      ^ caught up
//! new:  [schema][all rows]    [n+1] ... [m]   [m+1]
//!       written, synced       copied, synced  copied in the swap
//! ```
//!
//! The tail is copied from the old file, so later appends are not kept in memory. Everything that
//! is on disk in the old file is on disk in the new one before the rename
//! ([`Rewrite::holds_synced`]). So after a crash at any instant, the name leads to a file with
//! every durable commit. docs/internals/storage.md draws the cases.

use std::sync::Arc;

use crate::disk::{Disk, DiskError, DiskFile, Fault, Operation, failed};
use crate::history::{self, HistoryFolder};

/// Bytes copied at a time.
const COPY_BYTES: usize = 256 * 1024;

/// A new file under construction. Dropping it removes the file.
#[derive(Debug)]
pub struct Rewrite<D: Disk> {
    disk: Arc<D>,
    /// `None` before the first write, and after the rename.
    file: Option<D::Handle>,
    /// The file's length, bytes.
    written: u64,
    /// How many of the file's bytes have been handed to the disk.
    written_back: u64,
    /// How many of the file's bytes have been forced to disk.
    synced: u64,
    source: Source<D::Handle>,
    generation: u64,
    /// The second name of the present file, which this file will replace.
    kept: Option<u64>,
}

/// The source of the new file's tail.
#[derive(Debug)]
enum Source<F> {
    /// The old file: copied up to one offset, and synced in the new file up to another.
    Old { file: F, copied: u64, synced: u64 },
    /// None: the code that writes the new file writes its tail too.
    None,
}

/// A file that has been renamed into place.
pub(crate) struct Renamed<F> {
    pub(crate) file: F,
    pub(crate) end: u64,
    pub(crate) synced: u64,
    /// The handle on the old file.
    pub(crate) copied_from: Option<F>,
    /// The number of the old file in the history folder.
    pub(crate) kept: Option<u64>,
}

impl<D: Disk> Rewrite<D> {
    pub(crate) fn begin(
        disk: &Arc<D>,
        old: &D::Handle,
        end: u64,
        generation: u64,
    ) -> Result<Rewrite<D>, DiskError> {
        let file = old
            .share()
            .map_err(|fault| failed(&**disk, Operation::Replace, fault))?;
        let source = Source::Old {
            file,
            copied: end,
            synced: 0,
        };
        Ok(Rewrite::new(disk, source, generation))
    }

    pub(crate) fn begin_detached(disk: &Arc<D>, generation: u64) -> Rewrite<D> {
        Rewrite::new(disk, Source::None, generation)
    }

    fn new(disk: &Arc<D>, source: Source<D::Handle>, generation: u64) -> Rewrite<D> {
        Rewrite {
            disk: disk.clone(),
            file: None,
            written: 0,
            written_back: 0,
            synced: 0,
            source,
            generation,
            kept: None,
        }
    }

    /// Gives the present file a second name in the history folder, durably. A failure is logged.
    /// Returns whether the file will be kept. `last` is the last number that this process has used.
    pub(crate) fn keep(&mut self, last: u64) -> bool {
        assert!(self.kept.is_none(), "a file is kept once");
        let folder = self.disk.history();
        self.kept = history::keep(folder, last)
            .inspect_err(|fault| {
                folder.warn(&format!(
                    "the file that this rewrite replaces is not kept ({fault})"
                ));
            })
            .ok();
        self.kept.is_some()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The file's length so far, bytes.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Appends bytes. The first call creates the temporary file, so until then an earlier rewrite
    /// may still own it and be abandoned.
    ///
    /// # Errors
    /// Writing failed. Drop the value.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(
                self.disk
                    .create_temporary()
                    .map_err(|fault| failed_beside(&*self.disk, Operation::Replace, fault))?,
            ),
        };
        let mut outcome = file.write_at(&[bytes], self.written);
        // A file that cannot be compacted, because the disk is full, would grow until writes are
        // refused.
        while outcome.as_ref().is_err_and(Fault::is_full)
            && history::give_way(self.disk.history()).is_some()
        {
            outcome = file.write_at(&[bytes], self.written);
        }
        outcome.map_err(|fault| failed_beside(&*self.disk, Operation::Write, fault))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Copies the bytes that were appended to the old file, up to `end`. Returns their number.
    ///
    /// # Errors
    /// Reading or writing failed. Drop the value.
    pub fn catch_up(&mut self, end: u64) -> Result<u64, DiskError> {
        let mut room = Vec::new();
        let mut total = 0;
        loop {
            let Source::Old { file, copied, .. } = &mut self.source else {
                return Ok(0);
            };
            assert!(*copied <= end, "the old file became shorter");
            let left = end - *copied;
            if left == 0 {
                return Ok(total);
            }
            room.resize(
                usize::try_from(left).unwrap_or(COPY_BYTES).min(COPY_BYTES),
                0,
            );
            let got = match file.read_at(&mut room, *copied) {
                Ok(0) => Err(Fault {
                    code: 0,
                    text: "End of file".to_owned(),
                }),
                outcome => outcome,
            }
            .map_err(|fault| failed_beside(&*self.disk, Operation::Read, fault))?;
            *copied += got as u64;
            total += got as u64;
            self.write(&room[..got])?;
        }
    }

    /// Starts writing everything to the disk, without forcing it.
    ///
    /// # Errors
    /// The disk failed. Drop the value.
    pub fn write_back(&mut self) -> Result<(), DiskError> {
        let from = self.written_back.max(self.synced);
        assert!(
            from <= self.written,
            "the disk has no more than was written"
        );
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.write_back(from, self.written - from)
            .map_err(|fault| failed_beside(&*self.disk, Operation::Sync, fault))?;
        self.written_back = self.written;
        Ok(())
    }

    /// Forces everything written to disk.
    ///
    /// # Errors
    /// Syncing failed. Drop the value.
    pub fn sync(&mut self) -> Result<(), DiskError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.sync()
            .map_err(|fault| failed_beside(&*self.disk, Operation::Sync, fault))?;
        self.synced = self.written;
        if let Source::Old { copied, synced, .. } = &mut self.source {
            *synced = *copied;
        }
        Ok(())
    }

    /// Whether everything that is on disk in the old file before `offset` is also on disk in this
    /// file.
    pub(crate) fn holds_synced(&self, offset: u64) -> bool {
        match &self.source {
            Source::Old { synced, .. } => *synced >= offset,
            Source::None => self.synced == self.written,
        }
    }

    /// Renames the file into place.
    pub(crate) fn put_in_place(mut self) -> Result<Renamed<D::Handle>, DiskError> {
        self.disk
            .put_in_place()
            .map_err(|fault| failed_beside(&*self.disk, Operation::Replace, fault))?;
        let Some(file) = self.file.take() else {
            panic!("a file is put in place once");
        };
        let copied_from = match std::mem::replace(&mut self.source, Source::None) {
            Source::Old { file, .. } => Some(file),
            Source::None => None,
        };
        Ok(Renamed {
            file,
            end: self.written,
            synced: self.synced,
            copied_from,
            // Taken: from the rename on, this is the old file's only name.
            kept: self.kept.take(),
        })
    }

    /// The error of a rewrite that copied bytes which were later cut off the old file.
    pub(crate) fn stale(&self) -> DiskError {
        self.refused("a write to the present file failed meanwhile")
    }

    /// The error of an abandoned rewrite.
    #[must_use]
    pub fn abandoned(&self) -> DiskError {
        self.refused("given up")
    }

    fn refused(&self, why: &str) -> DiskError {
        DiskError {
            shown: self.disk.shown_name().to_owned(),
            operation: Operation::Replace,
            fault: Fault {
                code: 0,
                text: why.to_owned(),
            },
        }
    }
}

/// Builds the error of a failed operation on the temporary file and logs it.
fn failed_beside<D: Disk>(disk: &D, operation: Operation, fault: Fault) -> DiskError {
    let error = DiskError {
        shown: format!("{}.tmp", disk.shown_name()),
        operation,
        fault,
    };
    disk.log_failure(&error);
    error
}

impl<D: Disk> Drop for Rewrite<D> {
    fn drop(&mut self) {
        if let Some(number) = self.kept {
            history::forget(self.disk.history(), number);
        }
        if self.file.is_some() {
            self.disk.remove_temporary();
        }
    }
}
