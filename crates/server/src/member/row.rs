//! The newest columns of a clustered database's row in `_Server`, on their way from the member's
//! thread to the main thread. The database itself shows the column `index`
//! ([`crate::database::shown_index`]).
//!
//! Invariant: at most one message per member is in flight, so a slow main thread shows the newest
//! row and skips the rows between.

use std::sync::{Arc, Mutex, PoisonError};

use corvid_consensus::member::ServerRow;

/// The newest row that is not shown yet; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowSlot(Arc<Mutex<Option<ServerRow>>>);

impl RowSlot {
    /// Sets the newest row. Returns true if the main thread must be notified, because it has taken
    /// the previous row.
    pub(super) fn set(&self, row: ServerRow) -> bool {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.replace(row).is_none()
    }

    /// Takes the newest row, if it is not shown yet.
    pub(crate) fn take(&self) -> Option<ServerRow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Uuid;
    use corvid_log::cluster::Sid;

    fn row(is_leader: bool) -> ServerRow {
        ServerRow {
            is_connected: true,
            is_leader,
            cid: None,
            sid: Sid(Uuid([1; 16])),
            absence: None,
        }
    }

    #[test]
    fn rows_that_are_not_shown_in_time_are_skipped() {
        let slot = RowSlot::default();
        assert!(slot.set(row(false)));
        assert!(!slot.set(row(true)), "a message is under way already");
        assert_eq!(slot.take(), Some(row(true)));
        assert_eq!(slot.take(), None);
        assert!(slot.set(row(false)));
    }
}
