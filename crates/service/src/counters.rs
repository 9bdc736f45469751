//! Counters of one database since it was opened; they never decrease. The driver, which has a
//! clock, measures durations.

use corvid_data::Tag;
use corvid_engine::{OperationKind, Tally};

/// The counters of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transactions that changed rows and were stored, including the server's own.
    pub committed: u64,
    /// Transactions that succeeded and changed nothing.
    pub unchanged: u64,
    /// Failed transactions by their first error; each tag occurs once.
    pub failed: Vec<(Tag, u64)>,
    /// Transactions that blocked, whatever their outcome.
    pub blocked: u64,
    /// Operations of finished transactions, in the order of [`OperationKind::ALL`].
    pub operations: [u64; OperationKind::COUNT],
    /// Records sent to the file.
    pub records: u64,
    /// Bytes of those records.
    pub record_bytes: u64,
    /// Transactions undone because they could not be stored.
    pub store_failures: u64,
    /// `update`, `update2` and `update3` notifications composed.
    pub updates: [u64; 3],
}

impl Counters {
    /// Counts an executed transaction of a client. Commits are counted when they are stored.
    pub(crate) fn executed(&mut self, tally: &Tally, has_changed: bool) {
        for (sum, count) in self.operations.iter_mut().zip(tally.operations) {
            *sum += u64::from(count);
        }
        match tally.error {
            Some(tag) => self.failed(tag),
            None if !has_changed => self.unchanged += 1,
            None => {}
        }
    }

    /// Counts a failed transaction.
    pub(crate) fn failed(&mut self, tag: Tag) {
        match self.failed.iter_mut().find(|(known, _)| *known == tag) {
            Some((_, count)) => *count += 1,
            None => self.failed.push((tag, 1)),
        }
    }

    /// Counts a record that is sent to the file.
    pub(crate) fn recorded(&mut self, bytes: usize) {
        self.records += 1;
        self.record_bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transaction_counts_once_by_its_outcome() {
        let mut counts = Counters::default();
        let mut tally = Tally::default();
        tally.operations[0] = 2;
        counts.executed(&tally, true);
        counts.executed(&tally, false);
        tally.error = Some(Tag::TimedOut);
        counts.executed(&tally, false);
        counts.executed(&tally, false);
        assert_eq!((counts.committed, counts.unchanged), (0, 1));
        assert_eq!(counts.failed, [(Tag::TimedOut, 2)]);
        assert_eq!(counts.operations[..2], [8, 0]);
    }
}
