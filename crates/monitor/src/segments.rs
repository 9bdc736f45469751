//! The pending changes of one group's members, as segments of the commit sequence.
//!
//! A segment is the net change of consecutive commits. Each commit goes to the last segment only. A
//! member that is behind holds the segment at which its own pending changes begin. Its next update
//! covers that segment and all later ones:
//!
//! ```text
//! commits    1 2 3   4 5   6 7
//! segments  [  a  ] [ b ] [ c ]
//! holders    slow    B     C, D      slow gets a+b+c, B b+c, C and D c
//! ```
//!
//! Invariant: every segment has a holder. Once B has got its update, no member begins at b any
//! more, and b merges into a. So there are at most as many segments as distinct positions of
//! members. The memory for a member that never reads is limited by the number of distinct rows. A
//! group owns its segments, which know no members, only how many members hold each segment.
//!
//! A member whose pending changes are long gets them in steps. An update ends with the first
//! segment that makes it longer than a step, and the member then holds the next segment. So slow
//! members at different positions share the texts that are sent to them. With one update each, the
//! text of a commit would be in memory once for each position before it.

use std::collections::BTreeMap;
use std::sync::Arc as StdArc;

use corvid_data::{Arc, Delta, HashSeed, Uuid};

use crate::change_set::ChangeSet;
use crate::frame::{SharedBody, WeakBody};

/// The id of a segment. Later segments have greater ids. Valid while a member holds the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentId(u64);

/// The net change of consecutive commits.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Shared with updates that are being written.
    changes: StdArc<ChangeSet>,
    /// The commit, if there is only one: its differences need not be computed again.
    delta: Option<Arc<Delta>>,
    /// The id of the last commit.
    txn: Uuid,
    holders: usize,
    /// The last step that was composed from this segment, with its end.
    step: Option<(WeakBody, SegmentId)>,
}

/// Pending changes, with their commit if there is only one.
#[derive(Debug)]
pub(crate) struct Unsent {
    /// The net changes.
    pub(crate) changes: StdArc<ChangeSet>,
    /// The commit, if there is only one.
    pub(crate) delta: Option<Arc<Delta>>,
    /// The segment after the changes; `None` if they are all that is pending.
    pub(crate) next: Option<SegmentId>,
}

/// The segments of a group.
#[derive(Debug)]
pub(crate) struct Segments {
    seed: HashSeed,
    by_id: BTreeMap<SegmentId, Segment>,
    next: u64,
}

impl Segments {
    /// No segments: every member is clean.
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

    /// Begins a segment with the commit `delta`, whose id is `txn`. It is held by `holders` members
    /// (at least one).
    pub(crate) fn open(&mut self, delta: &Arc<Delta>, txn: Uuid, holders: usize) -> SegmentId {
        assert!(holders > 0, "a segment has a holder");
        let id = SegmentId(self.next);
        self.next += 1;
        let segment = Segment {
            changes: StdArc::new(ChangeSet::new(self.seed)),
            delta: Some(delta.clone()),
            txn,
            holders,
            step: None,
        };
        self.by_id.insert(id, segment);
        id
    }

    /// The segment of the current commit; `None` if there is none.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Segment> {
        self.by_id
            .last_entry()
            .map(std::collections::btree_map::OccupiedEntry::into_mut)
    }

    /// The changes of the next update from `from` on: everything, or a step of at least
    /// `step_bytes`. `None` if no member holds `from`.
    pub(crate) fn unsent(&self, from: SegmentId, step_bytes: u64) -> Option<Unsent> {
        let mut segments = self.by_id.range(from..);
        let (begin, first) = segments.next()?;
        // Starting at a later segment would omit changes that the member has not received.
        assert_eq!(*begin, from, "a member holds a segment that exists");
        let mut unsent = Unsent {
            changes: first.changes.clone(),
            delta: first.delta.clone(),
            next: None,
        };
        // The first segment is always sent whole, and only segments after it are measured. Members
        // that keep up hold the last segment, so they cost nothing here.
        let mut bytes = 0;
        let mut last = first;
        for (id, segment) in segments {
            bytes += last.changes.text_bytes(step_bytes);
            if bytes >= step_bytes {
                unsent.next = Some(*id);
                break;
            }
            StdArc::make_mut(&mut unsent.changes).append(ChangeSet::clone(&segment.changes));
            unsent.delta = None;
            last = segment;
        }
        Some(unsent)
    }

    /// The step from `from` that some message still holds, with its end.
    pub(crate) fn step(&self, from: SegmentId) -> Option<(SharedBody, SegmentId)> {
        let (body, next) = self.by_id.get(&from)?.step.as_ref()?;
        // The changes between two existing segments never change: commits go to the last segment,
        // and a segment that merges stays on its side of `next`.
        self.by_id.contains_key(next).then_some(())?;
        Some((body.upgrade()?, *next))
    }

    /// Keeps a step for other members at `from`.
    pub(crate) fn keep_step(&mut self, from: SegmentId, body: &SharedBody, next: SegmentId) {
        assert!(from < next, "a step goes forward");
        if let Some(segment) = self.by_id.get_mut(&from) {
            segment.step = body.downgrade().map(|body| (body, next));
        }
    }

    /// Moves a member that was sent a step to its end. Returns the id of the last commit in the
    /// step, and whether the first segment is removed.
    ///
    /// # Panics
    /// If the step does not end at a later segment that exists. The member would lose the commits
    /// in between, or on reconnecting would name a commit that it has not seen.
    pub(crate) fn move_on(&mut self, from: SegmentId, to: SegmentId) -> (Uuid, bool) {
        assert!(from < to, "a step goes forward");
        let before = self.by_id.range(from..to).next_back();
        let Some((_, before)) = before else {
            unreachable!("a member holds the segment at which its step begins");
        };
        // Not the newest commit: a client that reconnects with this id must get all later ones.
        let txn = before.txn;
        let Some(segment) = self.by_id.get_mut(&to) else {
            unreachable!("a step ends at a segment that exists");
        };
        // Comes before the release. In the other order `to` could lose its last holder and merge
        // into the segment before.
        segment.holders += 1;
        (txn, self.release(from))
    }

    /// Releases one hold on `id`. Returns whether it was the last one, which removes the segment.
    pub(crate) fn release(&mut self, id: SegmentId) -> bool {
        let Some(segment) = self.by_id.get_mut(&id) else {
            unreachable!("a member holds a segment that exists");
        };
        assert!(segment.holders > 0, "a segment has a holder");
        segment.holders -= 1;
        if segment.holders > 0 {
            return false;
        }
        // No member begins here any more. Members at earlier segments still need these changes, so
        // they merge into the segment before. Without one, every member has them, and they are
        // dropped.
        if let Some(retired) = self.by_id.remove(&id)
            && let Some((_, before)) = self.by_id.range_mut(..id).next_back()
        {
            let changes = StdArc::unwrap_or_clone(retired.changes);
            StdArc::make_mut(&mut before.changes).append(changes);
            before.delta = None;
            before.txn = retired.txn;
        }
        true
    }

    /// Checks every segment. `held` has the number of members that begin at each. O(changes): for
    /// simulations.
    ///
    /// # Panics
    /// If they disagree.
    pub(crate) fn check(&self, held: &BTreeMap<SegmentId, usize>) {
        let own = self
            .by_id
            .iter()
            .map(|(id, segment)| (id, &segment.holders));
        assert!(own.eq(held), "each member that is behind holds a segment");
        for (id, segment) in &self.by_id {
            assert!(id.0 < self.next, "later segments have greater ids");
            segment.changes.check();
        }
    }

    /// Number of segments.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }
}

impl Segment {
    /// Prepares the segment for changes of a further commit.
    pub(crate) fn extend(&mut self, txn: Uuid) {
        self.delta = None;
        self.txn = txn;
    }

    /// Adds a change of the current commit.
    pub(crate) fn add(&mut self, table: corvid_data::TableId, entry: crate::change_set::Entry) {
        let changes = StdArc::make_mut(&mut self.changes);
        // Within its only commit a row changes once, so there is no entry to merge with.
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

    /// Opens a segment with one change.
    fn open(segments: &mut Segments, holders: usize, entry: Entry) -> SegmentId {
        let id = segments.open(
            &Arc::new(Delta::default()),
            Uuid([segments.next as u8; 16]),
            holders,
        );
        segments.last_mut().expect("open").add(TableId(0), entry);
        id
    }

    /// Rows that are pending from `from` on.
    fn pending_rows(segments: &Segments, from: SegmentId) -> Vec<u8> {
        let unsent = segments.unsent(from, u64::MAX).expect("held");
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
        assert!(
            segments
                .unsent(other, u64::MAX)
                .expect("held")
                .delta
                .is_some()
        );
        assert!(
            segments
                .unsent(slow, u64::MAX)
                .expect("held")
                .delta
                .is_none()
        );
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
    fn steps_end_at_segments_and_are_shared_by_those_who_come_later() {
        let mut segments = Segments::new(HashSeed::FIXED);
        let slow = open(&mut segments, 2, insert(1));
        let other = open(&mut segments, 1, insert(2));
        let last = open(&mut segments, 1, insert(3));
        let unsent = segments.unsent(slow, 1).expect("held");
        assert_eq!((unsent.changes.len(), unsent.next), (1, Some(other)));
        assert!(unsent.delta.is_some(), "the only commit");

        let body = SharedBody::Whole(b"text".as_slice().into());
        segments.keep_step(slow, &body, other);
        assert_eq!(segments.move_on(slow, other), (Uuid([0; 16]), false));
        let (found, next) = segments.step(slow).expect("some message has it");
        assert!(found.ptr_eq(&body) && next == other);

        // Both members at `other` move on, so it merges into `slow`, and the step from there has
        // another end.
        assert_eq!(segments.move_on(other, last), (Uuid([1; 16]), false));
        assert!(segments.release(other));
        assert!(segments.step(slow).is_none());
        let unsent = segments.unsent(slow, 1).expect("held");
        assert_eq!((unsent.changes.len(), unsent.next), (2, Some(last)));
        assert_eq!(segments.move_on(slow, last), (Uuid([1; 16]), true));
    }

    #[test]
    fn a_step_is_forgotten_with_the_last_message_that_has_it() {
        let mut segments = Segments::new(HashSeed::FIXED);
        let slow = open(&mut segments, 1, insert(1));
        let last = open(&mut segments, 1, insert(2));
        let body = SharedBody::Whole(b"text".as_slice().into());
        segments.keep_step(slow, &body, last);
        drop(body);
        assert!(segments.step(slow).is_none());
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
