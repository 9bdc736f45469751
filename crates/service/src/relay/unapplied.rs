//! Updates that have been read from the source and not yet applied by the database.
//!
//! Invariant: at the limit, nothing more is read from the source. So memory is bounded even if the
//! database is slower than its source. A single message may exceed the limit: contents can have any
//! length.

use std::collections::VecDeque;

use corvid_log::cluster::Index;

/// Bytes of messages with unapplied changes at which reading stops. Messages that have arrived by
/// then are still handled: at most what the session has buffered, and one more.
const UNAPPLIED_BYTES_MAX: usize = 32 << 20;

/// The unapplied changes and their total length.
#[derive(Debug, Default)]
pub(super) struct Unapplied {
    /// The changes in order, each with the length of its message, bytes.
    changes: VecDeque<(Index, usize)>,
    bytes: usize,
}

impl Unapplied {
    /// Counts a change that is about to be passed to the database.
    pub(super) fn push(&mut self, index: Index, bytes: usize) {
        let last = self.changes.back().map(|(last, _)| *last);
        assert!(last < Some(index), "changes come in order");
        self.changes.push_back((index, bytes));
        self.bytes += bytes;
    }

    /// The database has applied the changes through this one, or will not apply them.
    pub(super) fn applied(&mut self, through: Index) {
        while let Some((index, bytes)) = self.changes.front()
            && *index <= through
        {
            self.bytes -= bytes;
            self.changes.pop_front();
        }
        // Bytes left over would stop reading from the source for good.
        assert!(
            !self.changes.is_empty() || self.bytes == 0,
            "the bytes are those of the changes"
        );
    }

    /// Whether the changes through this one have been applied, or will not be.
    pub(super) fn has_applied(&self, through: Index) -> bool {
        self.changes
            .front()
            .is_none_or(|(index, _)| *index > through)
    }

    /// Bytes of the unapplied changes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the relay may read more.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < UNAPPLIED_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_ends_when_changes_are_applied() {
        let mut it = Unapplied::default();
        it.push(Index(1), UNAPPLIED_BYTES_MAX - 1);
        assert!(it.has_room());
        it.push(Index(2), 1);
        assert!(!it.has_room());
        it.applied(Index(1));
        assert!(it.has_applied(Index(1)) && !it.has_applied(Index(2)));
        assert!(it.has_room());
        it.applied(Index(9));
        assert_eq!((it.bytes, it.changes.len()), (0, 0));
    }
}
