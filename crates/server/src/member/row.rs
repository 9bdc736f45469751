//! The newest columns of a clustered database's row in `_Server`, on their way from the member's thread to the main thread.
//!
//! Each row that is shown wakes the main thread, the thread of `_Server` and all clients that monitor the row, so the `index`, which changes
//! with each commit, is shown [`INDEX_MS`] after the last row at the earliest. Everything else is shown at once.
//!
//! Invariant: there is at most one message under way for each member, so a main thread that is slower than the commits shows the newest row
//! and skips those between.

use std::sync::{Arc, Mutex, PoisonError};

use corvid_consensus::member::ServerRow;

/// Between two rows that differ in the `index` alone, ms. A client that changes members compares their `index`
/// (docs/spec/distribution.md 1.8), so it must not be long behind.
const INDEX_MS: u64 = 10;

/// The newest row that is not shown yet; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowSlot(Arc<Mutex<Option<ServerRow>>>);

impl RowSlot {
    /// Sets the newest row. True when the main thread must be told: it has shown the one before.
    pub(super) fn set(&self, row: ServerRow) -> bool {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.replace(row).is_none()
    }

    /// The newest row, if it is not shown yet.
    pub(crate) fn take(&self) -> Option<ServerRow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The member's side of the slot.
#[derive(Debug)]
pub(super) struct RowPacer {
    slot: RowSlot,
    /// The row that was set last, and when, monotonic ms.
    last: Option<(ServerRow, u64)>,
    /// A newer row, which differs in its `index`.
    next: Option<ServerRow>,
}

impl RowPacer {
    /// Sets rows of this slot.
    pub(super) fn new(slot: RowSlot) -> RowPacer {
        RowPacer {
            slot,
            last: None,
            next: None,
        }
    }

    /// The row has changed. True when the main thread must be told.
    pub(super) fn changed(&mut self, now_ms: u64, row: ServerRow) -> bool {
        let may_wait = self.last.as_ref().is_some_and(|(last, at_ms)| {
            let other = ServerRow {
                index: last.index,
                ..row
            };
            other == *last && now_ms < at_ms + INDEX_MS
        });
        if may_wait {
            self.next = Some(row);
            return false;
        }
        self.show(now_ms, row)
    }

    /// Time has passed. True when the main thread must be told.
    pub(super) fn time(&mut self, now_ms: u64) -> bool {
        if self.deadline_ms().is_none_or(|at_ms| now_ms < at_ms) {
            return false;
        }
        self.next.take().is_some_and(|row| self.show(now_ms, row))
    }

    /// When [`RowPacer::time`] is due, monotonic ms.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let (_, at_ms) = self.last.as_ref().filter(|_| self.next.is_some())?;
        Some(at_ms + INDEX_MS)
    }

    fn show(&mut self, now_ms: u64, row: ServerRow) -> bool {
        self.next = None;
        self.last = Some((row.clone(), now_ms));
        self.slot.set(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Uuid;
    use corvid_log::cluster::{Index, Sid};

    fn row(index: u64) -> ServerRow {
        ServerRow {
            is_connected: true,
            is_leader: false,
            cid: None,
            sid: Sid(Uuid([1; 16])),
            index: Some(Index(index)),
        }
    }

    #[test]
    fn only_the_index_waits() {
        let slot = RowSlot::default();
        let mut pacer = RowPacer::new(slot.clone());
        assert!(pacer.changed(100, row(1)), "the first one");
        assert_eq!(slot.take(), Some(row(1)));
        for index in 2..9 {
            assert!(!pacer.changed(101, row(index)));
        }
        assert_eq!(pacer.deadline_ms(), Some(100 + INDEX_MS));
        assert!(!pacer.time(99 + INDEX_MS));
        assert_eq!(slot.take(), None);
        assert!(pacer.time(100 + INDEX_MS));
        assert_eq!(slot.take(), Some(row(8)));
        assert_eq!(pacer.deadline_ms(), None);
        assert!(!pacer.changed(101 + INDEX_MS, row(9)));
        let leads = ServerRow {
            is_leader: true,
            ..row(10)
        };
        assert!(pacer.changed(101 + INDEX_MS, leads.clone()));
        assert_eq!(slot.take(), Some(leads.clone()));
        assert_eq!(pacer.deadline_ms(), None, "nothing older follows");
        // After a pause the index is shown at once.
        let later = ServerRow {
            index: Some(Index(11)),
            ..leads
        };
        assert!(pacer.changed(500, later));
    }

    #[test]
    fn rows_that_are_not_shown_in_time_are_skipped() {
        let slot = RowSlot::default();
        assert!(slot.set(row(1)));
        assert!(!slot.set(row(2)), "a message is under way already");
        assert_eq!(slot.take(), Some(row(2)));
        assert_eq!(slot.take(), None);
        assert!(slot.set(row(3)));
    }
}
