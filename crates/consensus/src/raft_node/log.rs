//! The log in memory, as the library reads it: the entries after the file's snapshot, and a limited
//! number of entries that the snapshot includes.
//!
//! ```text
//! base   entries for peers that lag   snapshot   entries after it
//! ```
//!
//! Invariant: contiguous. `entries[0]` follows `base`, `base` is at or before the snapshot, and its
//! term is kept. This log does not say which entries the file has.

use std::collections::VecDeque;

use corvid_log::cluster::{Index, Term};
use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Result, Storage, StorageError};

use super::{LogEntry, convert, raft_entry};
use crate::member::KeptEntries;

/// The log in memory.
pub(super) struct MemoryLog {
    /// Index and term of the entry before the first one in memory.
    base: (u64, u64),
    /// Index and term of the file's snapshot, at or after `base`; index 0 if there is none.
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

    /// Index and term of the entry before the first one in memory.
    pub(super) fn boundary(&self) -> (Index, Term) {
        (Index(self.base.0), Term(self.base.1))
    }

    pub(super) fn last(&self) -> u64 {
        self.base.0 + self.entries.len() as u64
    }

    /// Appends entries, which replace entries with the same index and all later ones.
    pub(super) fn append(&mut self, entries: Vec<Entry>) {
        let Some(first) = entries.first() else { return };
        let kept = first.index.saturating_sub(self.base.0 + 1);
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        while self.entries.len() > kept {
            self.bytes -= self.entries.pop_back().as_ref().map_or(0, size);
        }
        // Indexes follow from positions in the queue, so a gap would renumber every later entry.
        assert!(
            first.index > self.base.0 && self.entries.len() == kept,
            "entry {} is appended to {} entries behind {}",
            first.index,
            self.entries.len(),
            self.base.0
        );
        self.bytes += entries.iter().map(size).sum::<u64>();
        self.entries.extend(entries);
    }

    /// Forgets everything: the log now begins after this entry.
    pub(super) fn restart(&mut self, index: Index, term: Term) {
        self.entries.clear();
        self.bytes = 0;
        self.base = (index.0, term.0);
        self.snapshot = self.base;
    }

    /// Forgets entries up to this one, which a snapshot includes, except for the last ones within
    /// these limits.
    pub(super) fn compact(&mut self, index: Index, kept: KeptEntries) {
        let included = usize::try_from(index.0.saturating_sub(self.base.0)).unwrap_or(usize::MAX);
        let behind = self.entries.len().saturating_sub(included);
        let mut sum = 0;
        let last = self.entries.iter().rev().skip(behind);
        let last = last.take(kept.count_max).take_while(|entry| {
            sum += size(entry);
            sum <= kept.bytes_max
        });
        let count = last.count() as u64;
        self.forget(Index(index.0.saturating_sub(count)));
    }

    /// Forgets entries up to this one, as far as the snapshot includes them.
    pub(super) fn forget(&mut self, index: Index) {
        let index = index.0.min(self.snapshot.0);
        while self.base.0 < index {
            let Some(entry) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= size(&entry);
            self.base = (entry.index, entry.term);
        }
    }

    pub(super) fn set_snapshot(&mut self, index: Index, term: Term) {
        // An entry in neither the snapshot nor the log could not be sent to any peer.
        assert!(
            self.base.0 <= index.0 && index.0 <= self.last(),
            "a snapshot through {index}, and entries from {} to {}",
            self.base.0,
            self.last()
        );
        self.snapshot = (index.0, term.0);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Entries from this one on, without those that the snapshot includes.
    pub(super) fn entries_from(&self, index: Index) -> impl Iterator<Item = LogEntry> + '_ {
        let first = index.0.max(self.snapshot.0 + 1);
        let skipped = first.saturating_sub(self.base.0 + 1);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        self.entries.iter().skip(skipped).map(convert::entry)
    }
}

/// Approximate bytes of an entry.
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
                // The first entry is returned even if it is too long. Without it, a follower that
                // lacks it could never advance.
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
        // The library ends the process on any other error, and on index 0.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries 2 to 11 in terms 1 and 2, after a snapshot of entry 1.
    fn log() -> MemoryLog {
        let entries: Vec<LogEntry> = (2..=11)
            .map(|index| LogEntry {
                term: Term(if index < 6 { 1 } else { 2 }),
                index: Index(index),
                body: crate::entry::EntryBody::empty(),
            })
            .collect();
        let base = (Index(1), Term(1));
        MemoryLog::new(base, &entries, HardState::default(), ConfState::default())
    }

    fn compacted(index: u64, count_max: usize, bytes_max: u64) -> MemoryLog {
        let mut log = log();
        log.set_snapshot(Index(index), Term(log.term(index).expect("a term")));
        let kept = KeptEntries {
            count_max,
            bytes_max,
        };
        log.compact(Index(index), kept);
        log
    }

    #[test]
    fn the_last_entries_within_the_limits_are_kept() {
        let one = size_of::<Entry>() as u64;
        for (count_max, bytes_max, base) in [
            (0, u64::MAX, 8),
            (3, u64::MAX, 5),
            (usize::MAX, 3 * one, 5),
            (usize::MAX, 3 * one - 1, 6),
            (usize::MAX, 0, 8),
            (usize::MAX, u64::MAX, 1),
        ] {
            let log = compacted(8, count_max, bytes_max);
            assert_eq!(log.base.0, base, "{count_max} {bytes_max}");
            assert_eq!(log.base.1, if base < 6 { 1 } else { 2 });
            assert_eq!(log.bytes(), (11 - base) * one);
            assert_eq!(log.first_index().expect("first"), base + 1);
            assert_eq!(
                log.term(base).expect("the term before the first"),
                log.base.1
            );
            assert_eq!(log.last(), 11);
        }
    }

    #[test]
    fn a_file_with_the_snapshot_needs_no_entry_that_it_includes() {
        let log = compacted(8, usize::MAX, u64::MAX);
        for from in [2, 5, 8, 9] {
            let first = log.entries_from(Index(from)).next().expect("an entry");
            assert_eq!(first.index, Index(9), "from {from}");
        }
        assert_eq!(log.entries_from(Index(11)).count(), 1);
        // Peers still get them.
        let context = GetEntriesContext::empty(false);
        assert_eq!(
            log.entries(2, 12, None, context).expect("entries").len(),
            10
        );
    }

    #[test]
    fn no_entry_behind_the_snapshot_is_forgotten() {
        let mut log = compacted(8, 3, u64::MAX);
        log.forget(Index(6));
        assert_eq!(log.base, (6, 2));
        log.forget(Index(20));
        assert_eq!(log.base, (8, 2));
        log.compact(Index(3), KeptEntries::NONE);
        assert_eq!(log.base, (8, 2));
    }

    #[test]
    fn a_snapshot_that_is_not_there_yet_is_no_failure() {
        let log = compacted(8, 3, u64::MAX);
        assert_eq!(
            log.snapshot(8, 2)
                .expect("it is there")
                .get_metadata()
                .index,
            8
        );
        let later = log.snapshot(9, 2).expect_err("it is not");
        let expected = Error::Store(StorageError::SnapshotTemporarilyUnavailable);
        assert_eq!(later, expected);
    }
}
