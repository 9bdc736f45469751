//! Appending to a database file: where the next record goes, what remains after a failure, what is
//! durable.
//!
//! Handles bytes only. The format's reader finds the end of the last good record.
//!
//! Invariants:
//! - A failed append leaves the file ending at `end`, at the latest when the next append begins, so
//!   a full disk does no harm. The cut is synced before anything is written in its place. No crash
//!   can then bring the cut bytes back, in particular not after a later record.
//! - [`LogWriter::write`] writes and does nothing else. A thread that must not wait for the disk
//!   uses it and, after a failure, leaves [`LogWriter::clean`] to another thread. Every other
//!   method may wait for the disk.
//! - After a failed sync nothing more is appended (the file is *poisoned*): the kernel may have
//!   dropped pages, so a later successful sync proves nothing. The records that the sync covered
//!   are cut off, because their commits are answered with an error. Only a whole new file, written
//!   from memory and synced, ends this state.

use std::sync::Arc;

use crate::disk::{Disk, DiskError, DiskFile, Operation, failed};
use crate::history::KeptFile;
use crate::rewrite::Rewrite;

/// An open database file that is appended to.
#[derive(Debug)]
pub struct LogWriter<D: Disk> {
    disk: Arc<D>,
    file: D::Handle,
    /// Where the next record goes, bytes from the start.
    end: u64,
    /// Whether bytes may lie beyond `end`. They are cut off before the next append.
    has_tail: bool,
    /// Bytes before this offset have been forced to disk since the file was opened.
    synced: u64,
    poison: Option<DiskError>,
    /// Incremented when the file is poisoned: bytes that a running rewrite has copied may have been
    /// cut off.
    generation: u64,
    /// Whether the directory may not have been synced since the file was renamed into place, by
    /// this process or by one that was killed.
    is_name_unsynced: bool,
}

impl<D: Disk> LogWriter<D> {
    /// Starts a writer for `file`. All bytes count as a tail until [`LogWriter::set_end`] says
    /// where the last good record ends.
    pub fn new(disk: D, file: D::Handle) -> LogWriter<D> {
        LogWriter {
            disk: Arc::new(disk),
            file,
            end: 0,
            has_tail: true,
            synced: 0,
            poison: None,
            generation: 0,
            is_name_unsynced: true,
        }
    }

    /// The directory entry and clock of the file.
    #[must_use]
    pub fn disk(&self) -> &Arc<D> {
        &self.disk
    }

    /// The file handle, for reading.
    pub fn file(&mut self) -> &mut D::Handle {
        &mut self.file
    }

    /// Where the next record goes, bytes from the start.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Sets where the last good record ends. Bytes beyond it are damaged; they stay until the first
    /// append.
    pub fn set_end(&mut self, end: u64) {
        assert!(self.synced <= end, "what is on disk is not cut off");
        self.end = end;
        self.has_tail = true;
    }

    /// The failure that blocks every append until a new file is in place.
    #[must_use]
    pub fn poison(&self) -> Option<&DiskError> {
        self.poison.as_ref()
    }

    /// Whether the file accepts a [write](LogWriter::write): no bytes lie beyond the last record,
    /// and the file is not poisoned.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.has_tail && self.poison.is_none()
    }

    /// Cuts off the bytes of a failed append, or damaged ones, so that records can be
    /// [written](LogWriter::write).
    ///
    /// # Errors
    /// Nothing can be appended now. The next call tries again, unless the file is poisoned.
    pub fn clean(&mut self) -> Result<(), DiskError> {
        if let Some(poison) = &self.poison {
            return Err(poison.clone());
        }
        if self.has_tail {
            self.cut_tail()?;
        }
        Ok(())
    }

    /// [Cleans](LogWriter::clean) the file, appends bytes (whole records), and cleans up after a
    /// failure.
    ///
    /// # Errors
    /// Nothing was appended. The next append tries again, unless the file is poisoned.
    pub fn append(&mut self, records: &[&[u8]]) -> Result<(), DiskError> {
        self.clean()?;
        self.write(records).inspect_err(|_| {
            // If this fails too, the next append starts with the cut, or is refused.
            let _ = self.clean();
        })
    }

    /// Appends bytes (whole records) to a [clean](LogWriter::is_clean) file, with one write call if
    /// the system accepts them at once.
    ///
    /// # Errors
    /// Nothing was appended, and the file is no longer clean.
    ///
    /// # Panics
    /// The file is not clean.
    pub fn write(&mut self, records: &[&[u8]]) -> Result<(), DiskError> {
        assert!(self.is_clean(), "a record behind what is to be cut off");
        // `end` moves only after the whole write succeeded. After a short write, part of the
        // records lies beyond `end`: that is the tail, and the next append cuts it off.
        if let Err(fault) = self.file.write_at(records, self.end) {
            self.has_tail = true;
            return Err(failed(&*self.disk, Operation::Write, fault));
        }
        let lengths = records.iter().map(|record| record.len() as u64);
        self.end += lengths.sum::<u64>();
        Ok(())
    }

    /// Forces existing records to disk before the first append: the process that wrote them may
    /// have been killed before its sync. A damaged tail remains until the first append cuts it off.
    /// The records before it are synced regardless, because a member of a cluster acknowledges them
    /// from now on.
    ///
    /// # Errors
    /// The file is poisoned.
    pub fn sync_existing(&mut self) -> Result<(), DiskError> {
        let is_whole = self.file.length().is_ok_and(|length| length == self.end);
        self.file.sync().map_err(|fault| self.poisoned(fault))?;
        self.synced = self.end;
        // Without a tail, the first append needs neither a cut nor a second sync.
        self.has_tail &= !is_whole;
        self.sync_name()
    }

    /// Cuts off bytes beyond `end` and syncs the cut. A commit that was answered with an error must
    /// not reappear after a power loss, and the remains of a failed record must not follow a later
    /// one.
    fn cut_tail(&mut self) -> Result<(), DiskError> {
        let cut = self.file.cut(self.end);
        cut.map_err(|fault| failed(&*self.disk, Operation::Write, fault))?;
        self.file.sync().map_err(|fault| self.poisoned(fault))?;
        self.synced = self.end;
        self.has_tail = false;
        Ok(())
    }

    /// Forces everything appended to disk. If that fails, cuts off the records from `unsafe_from`
    /// on, if the disk still allows it.
    ///
    /// # Errors
    /// The file is poisoned: every later append and sync fails with this error.
    pub fn sync(&mut self, unsafe_from: u64) -> Result<(), DiskError> {
        if let Some(poison) = &self.poison {
            return Err(poison.clone());
        }
        assert!(unsafe_from <= self.end, "taking back what was not appended");
        // Records before `unsafe_from` were acknowledged, perhaps as durable.
        assert!(
            self.synced <= unsafe_from,
            "what was promised is not taken back"
        );
        let synced = match self.file.sync() {
            Ok(()) => {
                self.synced = self.end;
                // The file's bytes are on disk, but they count only once its name leads to them
                // after a crash.
                self.sync_name()
            }
            Err(fault) => Err(self.poisoned(fault)),
        };
        if synced.is_err() {
            // The commits from `unsafe_from` on are answered with an error, so the records must go.
            // The poison set above already refuses appends, so no later record can rely on the cut.
            self.end = unsafe_from;
            self.synced = self.synced.min(unsafe_from);
            self.has_tail = true;
            // Best effort: whether the cut survives a crash is unknown.
            let _ = self.file.cut(unsafe_from).and_then(|()| self.file.sync());
        }
        synced
    }

    /// Forces the directory entry to disk, unless that has happened since the file was renamed into
    /// place.
    ///
    /// # Errors
    /// The file is poisoned: it is unknown which file the name leads to after a crash.
    pub fn sync_name(&mut self) -> Result<(), DiskError> {
        if !self.is_name_unsynced {
            return Ok(());
        }
        let outcome = self.disk.sync_directory();
        self.name_synced(outcome)
    }

    /// Records the outcome of a [`Disk::sync_directory`] that the caller executed without holding
    /// this value.
    ///
    /// # Errors
    /// As [`LogWriter::sync_name`].
    pub fn name_synced(
        &mut self,
        outcome: Result<(), crate::disk::Fault>,
    ) -> Result<(), DiskError> {
        match outcome {
            Ok(()) => {
                self.is_name_unsynced = false;
                Ok(())
            }
            Err(fault) => Err(self.poisoned(fault)),
        }
    }

    fn poisoned(&mut self, fault: crate::disk::Fault) -> DiskError {
        let error = failed(&*self.disk, Operation::Sync, fault);
        self.disk.log_poisoned(&error);
        self.poison = Some(error.clone());
        self.generation += 1;
        error
    }

    /// Begins a new file for the present content in another form, and for the records appended to
    /// this file from now on.
    ///
    /// # Errors
    /// The process has run out of file descriptors.
    pub fn rewrite(&self) -> Result<Rewrite<D>, DiskError> {
        self.rewrite_from(self.end)
    }

    /// Begins a new file for the content before `end` in another form, and for the records of this
    /// file from there on. Bytes before `end` must never be cut off.
    ///
    /// # Errors
    /// As [`LogWriter::rewrite`].
    pub fn rewrite_from(&self, end: u64) -> Result<Rewrite<D>, DiskError> {
        assert!(end <= self.end, "the file became shorter");
        Rewrite::begin(&self.disk, &self.file, end, self.generation)
    }

    /// Begins a new file that will hold only bytes written to it.
    #[must_use]
    pub fn replace(&self) -> Rewrite<D> {
        Rewrite::begin_detached(&self.disk, self.generation)
    }

    /// Replaces this file by a new one and appends to it from now on: copies the records that the
    /// new file lacks, syncs if any of them is durable, renames. Clears the poison, which belongs
    /// to the old file.
    ///
    /// Does not sync the directory: call [`LogWriter::sync_name`], or [`Disk::sync_directory`] and
    /// [`LogWriter::name_synced`], soon. Until then [`LogWriter::sync`] does it.
    ///
    /// Returns open handles on the old file. Closing them frees its space, which may take long for
    /// a large file, so the caller chooses the thread that closes them.
    ///
    /// # Errors
    /// The replacement failed, and the old file stays in use.
    pub fn swap(&mut self, mut rewrite: Rewrite<D>) -> Result<Replaced<D::Handle>, DiskError> {
        if rewrite.generation() != self.generation {
            // The old file was poisoned after the rewrite began: bytes that the rewrite copied have
            // been cut off.
            let poison = self.poison.clone();
            return Err(poison.unwrap_or_else(|| rewrite.stale()));
        }
        // Copy first, so that one sync covers the copied records too. No sync is needed if the old
        // file has nothing on disk that the new one lacks on disk: the rename then loses no
        // promise. A poisoned old file always needs it, because only synced content ends that
        // state.
        rewrite.catch_up(self.end)?;
        if self.poison.is_some() || !rewrite.holds_synced(self.synced) {
            rewrite.sync()?;
        }
        // After the rename a crash leads to the new file.
        assert!(
            rewrite.holds_synced(self.synced),
            "the new file has on disk what the old one had"
        );
        let renamed = rewrite.put_in_place()?;
        assert!(
            renamed.synced <= renamed.end,
            "nothing is on disk before it is written"
        );
        let kept = renamed.kept.map(|number| KeptFile {
            number,
            end: Some(self.end),
        });
        let old = std::mem::replace(&mut self.file, renamed.file);
        self.end = renamed.end;
        self.synced = renamed.synced;
        self.has_tail = false;
        self.poison = None;
        self.is_name_unsynced = true;
        Ok(Replaced {
            _file: old,
            _copied_from: renamed.copied_from,
            kept,
        })
    }

    /// Whether the file was renamed into place without a sync of the directory since, as far as
    /// this process can tell.
    #[must_use]
    pub fn is_name_unsynced(&self) -> bool {
        self.is_name_unsynced
    }
}

/// Open handles on a file that no longer has the database's name.
#[derive(Debug)]
pub struct Replaced<F> {
    _file: F,
    _copied_from: Option<F>,
    kept: Option<KeptFile>,
}

impl<F> Replaced<F> {
    /// The file in the history folder; `None`: it has no name any more.
    #[must_use]
    pub fn kept(&self) -> Option<KeptFile> {
        self.kept
    }
}
