//! When a file is compacted without a command (docs/spec/storage.md 9.3): once it has doubled, and
//! once a day.
//!
//! Entries are counted since the last rewrite, as the reference's manual says, so an unused file is
//! left alone. The reference itself counts all entries since the start.

use corvid_log::storage::FileSize;

const MINUTE_MS: u64 = 60 * 1000;

/// Earliest time for a rewrite after opening or rewriting, ms. A random time of up to the same
/// length is added so that databases do not all rewrite at once.
const MIN_MS: u64 = 10 * MINUTE_MS;

/// Latest time for a rewrite, ms.
const MAX_MS: u64 = 24 * 60 * MINUTE_MS;

/// Delay after a failed rewrite, ms; a random time of up to the same length is added.
const RETRY_MS: u64 = MINUTE_MS;

/// With fewer entries, a rewrite waits for the latest time.
const ENTRIES_MIN: u64 = 100;

/// A file of at most this many bytes waits for the latest time.
const SIZE_MIN: u64 = 10 * 1024 * 1024;

/// The state of a file that has been opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Records, including the schema.
    pub records: u64,
    /// Current size and size right after the last rewrite, bytes.
    pub size: FileSize,
}

/// How much a file has grown since it was last rewritten.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    entries: u64,
    size: u64,
    base: u64,
    next_min_ms: u64,
    next_max_ms: u64,
}

impl Growth {
    /// The growth of a file that has been opened. `chance` is a random number.
    #[must_use]
    pub fn new(file: FileState, now_ms: u64, chance: u64) -> Growth {
        Growth {
            // The schema and the first transaction are presumed to be a snapshot.
            entries: file.records.saturating_sub(2),
            size: file.size.end,
            base: file.size.base,
            next_min_ms: now_ms + MIN_MS + chance % MIN_MS,
            next_max_ms: now_ms + MAX_MS,
        }
    }

    /// Counts a record that is appended.
    pub fn appended(&mut self, bytes: usize) {
        self.entries += 1;
        self.size += bytes as u64;
    }

    /// Takes back the record of an undone commit, which was counted but is not in the file.
    pub fn undone(&mut self, bytes: usize) {
        self.entries = self.entries.saturating_sub(1);
        self.size = self.size.saturating_sub(bytes as u64);
    }

    /// The file's size and its size right after the last rewrite, both bytes, and the number of
    /// records since then.
    #[must_use]
    pub fn figures(&self) -> (u64, u64, u64) {
        (self.size, self.base, self.entries)
    }

    /// Whether to rewrite the file now.
    #[must_use]
    pub fn is_due(&self, now_ms: u64) -> bool {
        if now_ms < self.next_min_ms {
            false
        } else if now_ms < self.next_max_ms {
            self.entries >= ENTRIES_MIN && self.size > SIZE_MIN && self.size / 2 > self.base
        } else {
            self.entries > 0
        }
    }

    /// When [`Growth::is_due`] may change without an append, monotonic ms; `None` if never.
    #[must_use]
    pub fn next_check_ms(&self, now_ms: u64) -> Option<u64> {
        if now_ms < self.next_min_ms {
            Some(self.next_min_ms)
        } else {
            // After the latest time one entry makes a rewrite due, so an unused file needs no check
            // before its next append.
            Some(self.next_max_ms).filter(|max_ms| now_ms < *max_ms || self.entries > 0)
        }
    }

    /// The file has been rewritten, with all records appended meanwhile.
    pub fn rewritten(&mut self, size: FileSize, now_ms: u64, chance: u64) {
        let file = FileState { records: 2, size };
        *self = Growth::new(file, now_ms, chance);
    }

    /// A rewrite has failed: delays the next attempt.
    pub fn failed(&mut self, now_ms: u64, chance: u64) {
        self.next_min_ms = now_ms + RETRY_MS + chance % RETRY_MS;
        // The daily rewrite waits for this delay too.
        self.next_max_ms = self.next_max_ms.max(self.next_min_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 60 * MINUTE_MS;

    fn opened(records: u64, base: u64, end: u64) -> Growth {
        let size = FileSize { base, end };
        Growth::new(FileState { records, size }, 0, MIN_MS / 2)
    }

    #[test]
    fn large_file_is_rewritten_when_it_has_doubled() {
        let mut growth = opened(2, 6 << 20, 6 << 20);
        assert_eq!(growth.next_check_ms(0), Some(15 * MINUTE_MS));
        for _ in 0..100 {
            growth.appended(70_000);
        }
        assert!(!growth.is_due(15 * MINUTE_MS - 1) && growth.is_due(15 * MINUTE_MS));
        growth.rewritten(
            FileSize {
                base: 7 << 20,
                end: 7 << 20,
            },
            HOUR_MS,
            0,
        );
        assert!(!growth.is_due(2 * HOUR_MS));
        assert_eq!(growth.next_check_ms(2 * HOUR_MS), Some(25 * HOUR_MS));
    }

    #[test]
    fn records_of_undone_commits_are_not_counted() {
        let mut growth = opened(3, 100, 150);
        growth.appended(40);
        growth.appended(60);
        growth.undone(60);
        assert_eq!(growth.figures(), (190, 100, 2));
    }

    #[test]
    fn few_records_or_a_small_file_wait_for_a_day_and_an_unused_file_for_ever() {
        let mut growth = opened(2, 100, 100);
        assert!(!growth.is_due(25 * HOUR_MS));
        growth.appended(50 << 20);
        assert!(!growth.is_due(23 * HOUR_MS) && growth.is_due(24 * HOUR_MS));
        assert!(opened(500, 1 << 20, 11 << 20).is_due(HOUR_MS));
        assert!(!opened(500, 1 << 20, 9 << 20).is_due(HOUR_MS));
        assert!(!opened(500, 6 << 20, 11 << 20).is_due(HOUR_MS));
    }

    #[test]
    fn an_unused_file_has_no_next_check() {
        let mut growth = opened(2, 100, 100);
        assert_eq!(growth.next_check_ms(23 * HOUR_MS), Some(24 * HOUR_MS));
        assert_eq!(growth.next_check_ms(24 * HOUR_MS), None);
        growth.appended(1);
        assert_eq!(growth.next_check_ms(25 * HOUR_MS), Some(24 * HOUR_MS));
    }

    #[test]
    fn after_a_failure_compaction_waits_a_minute_or_two() {
        let mut growth = opened(500, 1 << 20, 11 << 20);
        growth.failed(HOUR_MS, 7);
        assert!(!growth.is_due(HOUR_MS + MINUTE_MS) && growth.is_due(HOUR_MS + 2 * MINUTE_MS));
    }
}
