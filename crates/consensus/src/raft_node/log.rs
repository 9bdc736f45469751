//! The log in memory, as the library reads it: the entries behind a compaction, and the snapshot that stands for those before.
//!
//! Invariant: contiguous; `entries[0]` follows `base`. The term of `base` is kept. It says nothing about what the file has.

use std::collections::VecDeque;

use corvid_log::cluster::{Index, Term};
use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Result, Storage, StorageError};

use super::{LogEntry, convert, raft_entry};

/// See the module.
pub(super) struct MemoryLog {
    /// The entry before the first one in memory.
    base: (u64, u64),
    /// The snapshot of the file, at or behind `base`; index 0: none.
    snapshot: (u64, u64),
    entries: VecDeque<Entry>,
    bytes: u64,
    initial: RaftState,
}

impl MemoryLog {
    pub(super) fn new(
        (index, term): (Index, Term),
        entries: &[LogEntry],
        hard: HardState,
        state: ConfState,
    ) -> MemoryLog {
        let entries: VecDeque<Entry> = entries.iter().map(raft_entry).collect();
        MemoryLog {
            base: (index.0, term.0),
            snapshot: (index.0, term.0),
            bytes: entries.iter().map(size).sum(),
            entries,
            initial: RaftState::new(hard, state),
        }
    }

    pub(super) fn last(&self) -> u64 {
        self.base.0 + self.entries.len() as u64
    }

    /// Appends; entries with the same index and all behind are replaced.
    pub(super) fn append(&mut self, entries: Vec<Entry>) {
        let Some(first) = entries.first() else { return };
        let kept = first.index.saturating_sub(self.base.0 + 1);
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        while self.entries.len() > kept {
            self.bytes -= self.entries.pop_back().as_ref().map_or(0, size);
        }
        self.bytes += entries.iter().map(size).sum::<u64>();
        self.entries.extend(entries);
    }

    /// Forgets everything: the log begins behind this entry.
    pub(super) fn restart(&mut self, index: Index, term: Term) {
        self.entries.clear();
        self.bytes = 0;
        self.base = (index.0, term.0);
        self.snapshot = self.base;
    }

    pub(super) fn compact(&mut self, index: Index) {
        while self.base.0 < index.0 {
            let Some(entry) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= size(&entry);
            self.base = (entry.index, entry.term);
        }
    }

    pub(super) fn set_snapshot(&mut self, index: Index, term: Term) {
        self.snapshot = (index.0, term.0);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn entries_from(&self, index: Index) -> impl Iterator<Item = LogEntry> + '_ {
        let skipped = index.0.saturating_sub(self.base.0 + 1);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        self.entries.iter().skip(skipped).map(convert::entry)
    }
}

/// Bytes of an entry, about.
fn size(entry: &Entry) -> u64 {
    (entry.data.len() + entry.context.len() + size_of::<Entry>()) as u64
}

impl Storage for MemoryLog {
    fn initial_state(&self) -> Result<RaftState> {
        Ok(self.initial.clone())
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> Result<Vec<Entry>> {
        if low <= self.base.0 {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last() + 1 {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let max = max_size.into().unwrap_or(u64::MAX);
        let from = usize::try_from(low - self.base.0 - 1).unwrap_or(usize::MAX);
        let count = usize::try_from(high - low).unwrap_or(usize::MAX);
        let mut sum = 0;
        let fitting = self.entries.iter().skip(from).take(count);
        Ok(fitting
            .take_while(|entry| {
                let is_first = sum == 0;
                sum += size(entry);
                is_first || sum <= max
            })
            .cloned()
            .collect())
    }

    fn term(&self, index: u64) -> Result<u64> {
        if index == self.base.0 {
            return Ok(self.base.1);
        }
        if index < self.base.0 {
            return Err(Error::Store(StorageError::Compacted));
        }
        let at = usize::try_from(index - self.base.0 - 1).unwrap_or(usize::MAX);
        match self.entries.get(at) {
            Some(entry) => Ok(entry.term),
            None => Err(Error::Store(StorageError::Unavailable)),
        }
    }

    fn first_index(&self) -> Result<u64> {
        Ok(self.base.0 + 1)
    }

    fn last_index(&self) -> Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, _to: u64) -> Result<Snapshot> {
        // Any other error, and index 0, end the process.
        if self.snapshot.0 == 0 || self.snapshot.0 < request_index.max(self.base.0) {
            let error = StorageError::SnapshotTemporarilyUnavailable;
            return Err(Error::Store(error));
        }
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = self.snapshot;
        Ok(snapshot)
    }
}
