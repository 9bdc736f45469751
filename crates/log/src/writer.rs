//! Appending to a database file: where the next record goes, what a failure leaves, what may be relied on.
//!
//! Bytes only. What a record is, and where the last good one ends, is told by the reader of the format.
//!
//! Invariants:
//! - A failed append leaves the file at `end`, at the latest by the next append: that is how a full disk is survived. What is cut off is
//!   cut off lastingly before anything is written in its place, so no crash brings it back, least of all behind a later record.
//! - [`LogWriter::write`] writes and does nothing else: whoever may not wait for the disk uses it, and has [`LogWriter::clean`] called
//!   elsewhere after a failure. Everything else may wait.
//! - After a failed sync nothing is appended any more (*poisoned*): the kernel may have dropped pages, so a later success proves
//!   nothing. Records that the sync was to save are cut off, for they are answered with an error. Only a whole new file, written from
//!   memory and synced, ends this state.

use std::sync::Arc;

use crate::disk::{Disk, DiskError, DiskFile, Operation, failed};
use crate::rewrite::Rewrite;

/// An open database file that is appended to.
#[derive(Debug)]
pub struct LogWriter<D: Disk> {
    disk: Arc<D>,
    file: D::Handle,
    /// Where the next record goes, bytes from the start.
    end: u64,
    /// Whether bytes may lie beyond `end`: they are cut off before the next append.
    has_tail: bool,
    /// What is before this offset has been forced to disk since the file was opened.
    synced: u64,
    poison: Option<DiskError>,
    /// Changes when the file is poisoned: what was copied from it until then may have been taken back.
    generation: u64,
    /// The file was renamed into place and the directory not synced since, by this process or, for all it knows, by one that was killed.
    is_name_unsynced: bool,
}

impl<D: Disk> LogWriter<D> {
    /// Appends to `file`. Whatever it holds counts as a tail until [`LogWriter::set_end`] tells where the last good record ends.
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

    /// Where the file lies.
    #[must_use]
    pub fn disk(&self) -> &Arc<D> {
        &self.disk
    }

    /// The file, for reading it.
    pub fn file(&mut self) -> &mut D::Handle {
        &mut self.file
    }

    /// Where the next record goes, bytes from the start.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Tells where the last good record ends. Bytes beyond are damaged; they stay until the first append.
    pub fn set_end(&mut self, end: u64) {
        self.end = end;
        self.has_tail = true;
    }

    /// Why nothing can be appended until a new file is in place.
    #[must_use]
    pub fn poison(&self) -> Option<&DiskError> {
        self.poison.as_ref()
    }

    /// Whether nothing lies beyond the last record and the file takes records: a record may be [written](LogWriter::write).
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.has_tail && self.poison.is_none()
    }

    /// Cuts off what a failed append has left, or what was damaged, so that a record may be [written](LogWriter::write).
    ///
    /// # Errors
    /// Nothing can be appended now. The next call tries again, unless a sync has failed.
    pub fn clean(&mut self) -> Result<(), DiskError> {
        if let Some(poison) = &self.poison {
            return Err(poison.clone());
        }
        if self.has_tail {
            self.take_back()?;
        }
        Ok(())
    }

    /// Appends bytes (whole records) after [cleaning](LogWriter::clean), and cleans up after a failure.
    ///
    /// # Errors
    /// Nothing was appended. The next append tries again, unless a sync has failed before.
    pub fn append(&mut self, records: &[&[u8]]) -> Result<(), DiskError> {
        self.clean()?;
        self.write(records).inspect_err(|_| {
            // Should this fail too, the next append begins with it, or is refused.
            let _ = self.clean();
        })
    }

    /// Appends bytes (whole records) to a [clean](LogWriter::is_clean) file, handing them to the system with one write where it takes
    /// them at once.
    ///
    /// # Errors
    /// Nothing was appended, and the file is not clean any more.
    ///
    /// # Panics
    /// The file is not clean.
    pub fn write(&mut self, records: &[&[u8]]) -> Result<(), DiskError> {
        assert!(self.is_clean(), "a record behind what is to be cut off");
        if let Err(fault) = self.file.write_at(records, self.end) {
            self.has_tail = true;
            return Err(failed(&*self.disk, Operation::Write, fault));
        }
        let lengths = records.iter().map(|record| record.len() as u64);
        self.end += lengths.sum::<u64>();
        Ok(())
    }

    /// Makes sure that what was found in the file is there to stay, so that the first append need not: whoever wrote it may have been
    /// killed before it was forced to disk. A damaged tail stays for the first append to cut off.
    ///
    /// # Errors
    /// The file is poisoned.
    pub fn settle(&mut self) -> Result<(), DiskError> {
        if self.file.length().is_ok_and(|length| length == self.end) {
            self.file.sync().map_err(|fault| self.poisoned(fault))?;
            self.synced = self.end;
            self.has_tail = false;
        }
        self.sync_name()
    }

    /// Cuts off what lies beyond `end`, lastingly: whoever is told that a commit failed must not find it after a power loss, and a later
    /// record must not be followed by what is left of an earlier one.
    fn take_back(&mut self) -> Result<(), DiskError> {
        let cut = self.file.cut(self.end);
        cut.map_err(|fault| failed(&*self.disk, Operation::Write, fault))?;
        self.file.sync().map_err(|fault| self.poisoned(fault))?;
        self.synced = self.end;
        self.has_tail = false;
        Ok(())
    }

    /// Forces everything appended to disk. If that fails, what was appended from `unsafe_from` on is taken back, as far as
    /// the disk still does what it is told.
    ///
    /// # Errors
    /// The file is poisoned: every later append and sync fails with this error.
    pub fn sync(&mut self, unsafe_from: u64) -> Result<(), DiskError> {
        if let Some(poison) = &self.poison {
            return Err(poison.clone());
        }
        assert!(unsafe_from <= self.end, "taking back what was not appended");
        let synced = match self.file.sync() {
            Ok(()) => {
                self.synced = self.end;
                self.sync_name()
            }
            Err(fault) => Err(self.poisoned(fault)),
        };
        if synced.is_err() {
            self.end = unsafe_from;
            self.synced = self.synced.min(unsafe_from);
            self.has_tail = true;
            // Whether that lasts is anybody's guess.
            let _ = self.file.cut(unsafe_from).and_then(|()| self.file.sync());
        }
        synced
    }

    /// Forces the name to disk when the file was put in place since.
    ///
    /// # Errors
    /// The file is poisoned: nobody knows which file a crash would leave.
    pub fn sync_name(&mut self) -> Result<(), DiskError> {
        if !self.is_name_unsynced {
            return Ok(());
        }
        let outcome = self.disk.sync_directory();
        self.name_synced(outcome)
    }

    /// Takes note of a [`Disk::sync_directory`] that was called without holding this value.
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
        self.disk.poisoned(&error);
        self.poison = Some(error.clone());
        self.generation += 1;
        error
    }

    /// Begins a new file that will hold what this one holds now, in another form, and what is appended to this one meanwhile.
    ///
    /// # Errors
    /// Descriptors are exhausted.
    pub fn rewrite(&self) -> Result<Rewrite<D>, DiskError> {
        self.rewrite_from(self.end)
    }

    /// Begins a new file that will hold, in another form, what this one holds before `end`, and what is appended to this one from there
    /// on. What lies before `end` must be past being taken back.
    ///
    /// # Errors
    /// As [`LogWriter::rewrite`].
    pub fn rewrite_from(&self, end: u64) -> Result<Rewrite<D>, DiskError> {
        assert!(end <= self.end, "the file became shorter");
        Rewrite::begin(&self.disk, &self.file, end, self.generation)
    }

    /// Begins a new file that will hold what it is given and nothing else.
    #[must_use]
    pub fn replace(&self) -> Rewrite<D> {
        Rewrite::begin_detached(&self.disk, self.generation)
    }

    /// Puts a new file in the place of this one and goes on appending to it: copies what was appended since it last caught up, syncs if
    /// somebody relies on any of that, renames. Errors of the old file are forgotten with it.
    ///
    /// The name is not synced here: call [`LogWriter::sync_name`], or [`Disk::sync_directory`] and [`LogWriter::name_synced`], soon.
    /// Until then [`LogWriter::sync`] does it.
    ///
    /// Returns what is left of the old file: closing it frees its space, which takes long for a large file, so the caller decides on
    /// which thread that happens.
    ///
    /// # Errors
    /// The old file stays in use.
    pub fn swap(&mut self, mut rewrite: Rewrite<D>) -> Result<Replaced<D::Handle>, DiskError> {
        if rewrite.generation() != self.generation {
            // What it copied has been taken back since.
            let poison = self.poison.clone();
            return Err(poison.unwrap_or_else(|| rewrite.stale()));
        }
        rewrite.catch_up(self.end)?;
        if self.poison.is_some() || !rewrite.holds_synced(self.synced) {
            rewrite.sync()?;
        }
        let placed = rewrite.put_in_place()?;
        let old = std::mem::replace(&mut self.file, placed.file);
        self.end = placed.end;
        self.synced = placed.synced;
        self.has_tail = false;
        self.poison = None;
        self.is_name_unsynced = true;
        Ok(Replaced {
            _file: old,
            _copied_from: placed.copied_from,
        })
    }

    /// Whether the file was put in place and its name not synced since, as far as this process knows.
    #[must_use]
    pub fn is_name_unsynced(&self) -> bool {
        self.is_name_unsynced
    }
}

/// Open handles on a file that has lost its name.
#[derive(Debug)]
pub struct Replaced<F> {
    _file: F,
    _copied_from: Option<F>,
}
