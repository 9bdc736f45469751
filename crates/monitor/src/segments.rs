//! The pending changes of one group's members, as segments of the commit sequence.
//!
//! A segment is the net change of consecutive commits. A commit goes to the last segment only. A member that is behind holds the segment at
//! which its own pending changes begin; its next update covers that segment and all after it:
//!
//! ```text
//! commits    1 2 3   4 5   6 7
//! segments  [  a  ] [ b ] [ c ]
//! holders    slow    B     C, D      slow gets a+b+c, B b+c, C and D c
//! ```
//!
//! Invariant: every segment has a holder. When B has got its update, no member begins at b any more and it merges into a. So the number of
//! segments is at most the number of distinct positions of members, and the memory behind a member that never reads is bounded by the
//! number of distinct rows. Owned by a group; knows no members, only how many hold a segment.

use std::collections::BTreeMap;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, HashSeed};

use crate::change_set::ChangeSet;

/// Names a segment; later ones are greater. Valid while a member holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentId(u64);

/// The net change of consecutive commits.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Shared with updates that are being written.
    changes: StdArc<ChangeSet>,
    /// The commit, if there is only one: its differences need not be computed again.
    delta: Option<Arc<Delta>>,
    holders: usize,
}

/// Pending changes, with their commit if there is only one.
#[derive(Debug)]
pub(crate) struct Unsent {
    /// The net changes.
    pub(crate) changes: StdArc<ChangeSet>,
    /// The only commit among them.
    pub(crate) delta: Option<Arc<Delta>>,
}

/// The segments of a group.
#[derive(Debug)]
pub(crate) struct Segments {
    seed: HashSeed,
    by_id: BTreeMap<SegmentId, Segment>,
    next: u64,
}

impl Segments {
    /// Every member is clean.
    pub(crate) fn new(seed: HashSeed) -> Segments {
        Segments {
            seed,
            by_id: BTreeMap::new(),
            next: 0,
        }
    }

    /// Whether every member is clean.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Begins a segment with the commit `delta`, held by `holders` members (at least one).
    pub(crate) fn open(&mut self, delta: &Arc<Delta>, holders: usize) -> SegmentId {
        debug_assert!(holders > 0);
        let id = SegmentId(self.next);
        self.next += 1;
        let segment = Segment {
            changes: StdArc::new(ChangeSet::new(self.seed)),
            delta: Some(delta.clone()),
            holders,
        };
        self.by_id.insert(id, segment);
        id
    }

    /// The segment of the present commit. `None` when there is none.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Segment> {
        self.by_id
            .last_entry()
            .map(std::collections::btree_map::OccupiedEntry::into_mut)
    }

    /// Everything from `from` on. `None` when no member holds it.
    pub(crate) fn unsent(&self, from: SegmentId) -> Option<Unsent> {
        let mut segments = self.by_id.range(from..).map(|(_, segment)| segment);
        let first = segments.next()?;
        let Some(second) = segments.next() else {
            return Some(Unsent {
                changes: first.changes.clone(),
                delta: first.delta.clone(),
            });
        };
        let mut merged = ChangeSet::clone(&first.changes);
        for segment in std::iter::once(second).chain(segments) {
            merged.append(ChangeSet::clone(&segment.changes));
        }
        Some(Unsent {
            changes: StdArc::new(merged),
            delta: None,
        })
    }

    /// Releases one hold of `id`. Returns whether it was the last, which removes the segment.
    pub(crate) fn release(&mut self, id: SegmentId) -> bool {
        let Some(segment) = self.by_id.get_mut(&id) else {
            debug_assert!(false, "a member holds a segment that does not exist");
            return false;
        };
        segment.holders -= 1;
        if segment.holders > 0 {
            return false;
        }
        if let Some(retired) = self.by_id.remove(&id)
            && let Some((_, before)) = self.by_id.range_mut(..id).next_back()
        {
            let changes = StdArc::unwrap_or_clone(retired.changes);
            StdArc::make_mut(&mut before.changes).append(changes);
            before.delta = None;
        }
        true
    }

    /// Number of segments.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }
}

impl Segment {
    /// Prepares for changes of another commit than the first.
    pub(crate) fn extend(&mut self) {
        self.delta = None;
    }

    /// Adds a change of the present commit.
    pub(crate) fn add(&mut self, table: corvid_data::TableId, entry: crate::change_set::Entry) {
        let changes = StdArc::make_mut(&mut self.changes);
        if self.delta.is_some() {
            changes.push(table, entry);
        } else {
            changes.merge(table, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change_set::Entry;
    use corvid_data::{Row, TableId, Uuid};

    fn row(number: u8) -> Arc<Row> {
        Arc::new(Row {
            uuid: Uuid([number; 16]),
            version: Uuid::ZERO,
            columns: Box::default(),
        })
    }

    fn insert(number: u8) -> Entry {
        Entry {
            uuid: Uuid([number; 16]),
            old: None,
            new: Some(row(number)),
            change: 0,
        }
    }

    fn delete(number: u8) -> Entry {
        Entry {
            old: Some(row(number)),
            new: None,
            ..insert(number)
        }
    }

    /// A segment of one change.
    fn open(segments: &mut Segments, holders: usize, entry: Entry) -> SegmentId {
        let id = segments.open(&Arc::new(Delta::default()), holders);
        segments.last_mut().expect("open").add(TableId(0), entry);
        id
    }

    /// Rows that are pending from `from` on.
    fn pending_rows(segments: &Segments, from: SegmentId) -> Vec<u8> {
        let unsent = segments.unsent(from).expect("held");
        let tables = unsent.changes.tables();
        let mut rows: Vec<u8> = tables
            .iter()
            .flat_map(|table| table.entries().iter().map(|entry| entry.uuid.0[0]))
            .collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn each_holder_gets_changes_from_its_own_segment_on() {
        let mut segments = Segments::new(HashSeed::FIXED);
        let slow = open(&mut segments, 1, insert(1));
        let other = open(&mut segments, 2, insert(2));
        assert_eq!(pending_rows(&segments, slow), [1, 2]);
        assert_eq!(pending_rows(&segments, other), [2]);
        assert!(segments.unsent(other).expect("held").delta.is_some());
        assert!(segments.unsent(slow).expect("held").delta.is_none());
    }

    #[test]
    fn segment_without_holders_merges_into_the_one_before() {
        let mut segments = Segments::new(HashSeed::FIXED);
        let slow = open(&mut segments, 1, insert(1));
        for _ in 0..100 {
            let fast = open(&mut segments, 1, insert(2));
            assert!(segments.release(fast));
            let fast = open(&mut segments, 1, delete(2));
            assert!(segments.release(fast));
            assert_eq!(segments.len(), 1);
        }
        assert_eq!(pending_rows(&segments, slow), [1]);
        assert!(segments.release(slow));
        assert!(segments.is_empty());
    }

    #[test]
    fn the_first_segment_is_dropped_with_its_last_holder() {
        let mut segments = Segments::new(HashSeed::FIXED);
        let first = open(&mut segments, 2, insert(1));
        let second = open(&mut segments, 1, insert(2));
        assert!(!segments.release(first));
        assert!(segments.release(first));
        assert_eq!(segments.len(), 1);
        assert_eq!(pending_rows(&segments, second), [2]);
    }
}
