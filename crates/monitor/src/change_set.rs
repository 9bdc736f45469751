//! A change set: the net effect of consecutive commits on the rows in view of one group
//! (docs/spec/protocol.md 1.10).
//!
//! An entry holds a row as the client has it (`old`) and as it is now (`new`). A version out of
//! view counts as absent. The merge rules follow from keeping the first `old` and the last `new`:
//! insert then modify is an insert of the last content, insert then delete is nothing, delete then
//! insert is a modification. Leaving and entering the view are deletion and insertion.
//!
//! Cost: each change of a single commit is one push; the index by UUID is built when a second
//! commit merges. Memory: one entry per distinct row that differs from the client's, however many
//! commits there were. Invariant: a table has at most one entry per row. Groups fill change sets
//! and the encoders read them. This file knows neither columns nor conditions.

use corvid_data::{Arc, AtomRef, Datum, HashSeed, Row, TableId, Uuid};
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::subscription::Event;

/// A row's net change. At least one version is present.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The row's UUID.
    pub(crate) uuid: Uuid,
    /// The version in view before the first commit.
    pub(crate) old: Option<Arc<Row>>,
    /// The version in view after the last commit.
    pub(crate) new: Option<Arc<Row>>,
    /// Index of the change in its delta. Meaningful only while the set covers that delta alone.
    pub(crate) change: usize,
}

impl Entry {
    /// The event that reports the change.
    pub(crate) fn event(&self) -> Event {
        match (&self.old, &self.new) {
            (None, _) => Event::Insert,
            (_, None) => Event::Delete,
            _ => Event::Modify,
        }
    }

    /// Estimated length of the entry's text in bytes: see [`ChangeSet::text_bytes`]. O(columns).
    fn text_bytes(&self) -> u64 {
        let columns = match (&self.old, &self.new) {
            (None, Some(new)) => new.columns.iter().map(|value| text_bytes(value, 0)).sum(),
            (Some(old), Some(new)) => {
                let both = old.columns.iter().zip(&new.columns);
                let changed = both.filter(|(old, new)| !old.ptr_eq(new));
                changed
                    .map(|(old, new)| text_bytes(new, old.atom_count()))
                    .sum()
            }
            (_, None) => 0,
        };
        ROW_BYTES + columns
    }
}

/// Text of a row without columns, in bytes: its UUID and the event.
const ROW_BYTES: u64 = 64;
/// Text of an atom in bytes, apart from the characters of a string.
const ATOM_BYTES: u64 = 8;

/// Estimates the text, in bytes, of the atoms by which a value's count differs from `known`.
/// Assumes that all atoms are as long as the first. O(1).
fn text_bytes(value: &Datum, known: u64) -> u64 {
    let characters = match value.first() {
        Some(AtomRef::String(text)) => text.len() as u64,
        _ => ATOM_BYTES,
    };
    value.atom_count().abs_diff(known) * (ATOM_BYTES + characters)
}

/// Net changes of one table.
#[derive(Clone, Debug)]
pub(crate) struct TableChanges {
    /// The table.
    pub(crate) table: TableId,
    seed: HashSeed,
    /// In the order of their first change, except that a removal moves the last entry into the gap.
    entries: Vec<Entry>,
    /// Positions in `entries` by UUID; empty until the first merge.
    index: HashTable<usize>,
}

/// Net changes of all tables.
#[derive(Clone, Debug)]
pub(crate) struct ChangeSet {
    seed: HashSeed,
    /// Sorted by table.
    tables: Vec<TableChanges>,
}

impl ChangeSet {
    /// An empty set. Its index hashes UUIDs with `seed`.
    pub(crate) fn new(seed: HashSeed) -> ChangeSet {
        ChangeSet {
            seed,
            tables: Vec::new(),
        }
    }

    /// Adds a change of a row without an entry. Changes of one commit always qualify.
    pub(crate) fn push(&mut self, table: TableId, entry: Entry) {
        self.table_mut(table).push(entry);
    }

    /// Adds a later change of a row that may have an entry.
    pub(crate) fn merge(&mut self, table: TableId, entry: Entry) {
        self.table_mut(table).merge(entry);
    }

    /// Appends `later`, which covers the commits after this set's. O(smaller set).
    pub(crate) fn append(&mut self, later: ChangeSet) {
        for changes in later.tables {
            let own = self.table_mut(changes.table);
            // Walk the smaller set. Either way an entry ends up with the earlier `old` and the
            // later `new`.
            if own.entries.len() >= changes.entries.len() {
                for entry in changes.entries {
                    own.merge(entry);
                }
            } else {
                let earlier = std::mem::replace(own, changes);
                for entry in earlier.entries {
                    own.merge_earlier(entry);
                }
            }
        }
    }

    /// Estimates the length of an update with these changes in bytes: the texts of new rows, and
    /// what changed columns have gained or lost. Replaced elements count nothing. Stops at
    /// `enough`. O(rows).
    pub(crate) fn text_bytes(&self, enough: u64) -> u64 {
        let mut bytes = 0;
        for entry in self.tables.iter().flat_map(|table| &table.entries) {
            if bytes >= enough {
                break;
            }
            bytes += entry.text_bytes();
        }
        bytes
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.tables.iter().map(|table| table.entries.len()).sum()
    }

    /// The tables with their changes, by id. A table may have no changes left.
    pub(crate) fn tables(&self) -> &[TableChanges] {
        &self.tables
    }

    /// Checks the order of tables, and that each row has one entry. O(rows): for simulations.
    ///
    /// # Panics
    /// If a check fails.
    pub(crate) fn check(&self) {
        assert!(
            self.tables.is_sorted_by(|one, next| one.table < next.table),
            "each table is there once, in order"
        );
        for changes in &self.tables {
            let entries = &changes.entries;
            assert!(
                changes.index.is_empty() || changes.index.len() == entries.len(),
                "the index has every entry"
            );
            let mut rows: Vec<Uuid> = entries.iter().map(|entry| entry.uuid).collect();
            rows.sort_unstable();
            rows.dedup();
            assert_eq!(rows.len(), entries.len(), "a row has one entry");
            assert!(
                entries
                    .iter()
                    .all(|entry| entry.old.is_some() || entry.new.is_some()),
                "an entry changes something"
            );
        }
    }

    fn table_mut(&mut self, table: TableId) -> &mut TableChanges {
        let found = self
            .tables
            .binary_search_by_key(&table, |changes| changes.table);
        let position = found.unwrap_or_else(|position| {
            let changes = TableChanges::new(table, self.seed);
            self.tables.insert(position, changes);
            position
        });
        &mut self.tables[position]
    }
}

impl TableChanges {
    fn new(table: TableId, seed: HashSeed) -> TableChanges {
        TableChanges {
            table,
            seed,
            entries: Vec::new(),
            index: HashTable::new(),
        }
    }

    /// The changes, one entry per row.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn push(&mut self, entry: Entry) {
        if !self.index.is_empty() {
            let position = self.entries.len();
            let entries = &self.entries;
            self.index
                .insert_unique(hash(self.seed, entry.uuid), position, |&other| {
                    hash(self.seed, entries[other].uuid)
                });
        }
        self.entries.push(entry);
    }

    fn merge(&mut self, entry: Entry) {
        match self.position(entry.uuid) {
            Some(position) => {
                self.entries[position].new = entry.new;
                self.drop_if_void(position);
            }
            None => self.push(entry),
        }
    }

    fn merge_earlier(&mut self, entry: Entry) {
        match self.position(entry.uuid) {
            Some(position) => {
                self.entries[position].old = entry.old;
                self.drop_if_void(position);
            }
            None => self.push(entry),
        }
    }

    /// The position of the row's entry. Builds the index if it is missing.
    fn position(&mut self, uuid: Uuid) -> Option<usize> {
        let entries = &self.entries;
        if self.index.is_empty() {
            self.index
                .reserve(entries.len(), |&other| hash(self.seed, entries[other].uuid));
            for (position, entry) in entries.iter().enumerate() {
                self.index
                    .insert_unique(hash(self.seed, entry.uuid), position, |&other| {
                        hash(self.seed, entries[other].uuid)
                    });
            }
        }
        self.index
            .find(hash(self.seed, uuid), |&other| entries[other].uuid == uuid)
            .copied()
    }

    /// Drops an entry that has neither an old nor a new version. Otherwise short-lived rows would
    /// pile up for a client that never reads.
    fn drop_if_void(&mut self, position: usize) {
        let entry = &self.entries[position];
        if entry.old.is_some() || entry.new.is_some() {
            return;
        }
        self.remove_from_index(entry.uuid, position);
        let last = self.entries.len() - 1;
        if position != last {
            let moved = self.entries[last].uuid;
            self.remove_from_index(moved, last);
            // The removal moves the last entry to `position`, so its index entry has to follow.
            self.entries.swap_remove(position);
            let entries = &self.entries;
            self.index
                .insert_unique(hash(self.seed, moved), position, |&other| {
                    hash(self.seed, entries[other].uuid)
                });
        } else {
            self.entries.pop();
        }
    }

    fn remove_from_index(&mut self, uuid: Uuid, position: usize) {
        if let Ok(occupied) = self
            .index
            .find_entry(hash(self.seed, uuid), |&other| other == position)
        {
            occupied.remove();
        }
    }
}

/// Clients may choose row UUIDs, so they are hashed with a secret seed.
fn hash(seed: HashSeed, uuid: Uuid) -> u64 {
    seed.hash_one(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::{Atom, Datum};

    const TABLE: TableId = TableId(0);

    fn uuid(number: u8) -> Uuid {
        Uuid([number; 16])
    }

    fn row(number: u8, value: i64) -> Option<Arc<Row>> {
        Some(Arc::new(Row {
            uuid: uuid(number),
            version: Uuid::ZERO,
            columns: Box::new([Datum::one(Atom::Integer(value))]),
        }))
    }

    fn entry(number: u8, old: Option<Arc<Row>>, new: Option<Arc<Row>>) -> Entry {
        Entry {
            uuid: uuid(number),
            old,
            new,
            change: 0,
        }
    }

    fn value(row: Option<&Arc<Row>>) -> Option<i64> {
        row.and_then(|row| row.columns[0].first()?.as_integer())
    }

    /// Row, old value and new value, sorted.
    fn content(set: &ChangeSet) -> Vec<(u8, Option<i64>, Option<i64>)> {
        let mut content: Vec<_> = set
            .tables()
            .iter()
            .flat_map(TableChanges::entries)
            .map(|entry| {
                (
                    entry.uuid.0[0],
                    value(entry.old.as_ref()),
                    value(entry.new.as_ref()),
                )
            })
            .collect();
        content.sort_unstable();
        content
    }

    #[test]
    fn insert_then_modify_is_an_insert_of_the_last_content() {
        let mut set = ChangeSet::new(HashSeed::FIXED);
        set.push(TABLE, entry(1, None, row(1, 1)));
        set.merge(TABLE, entry(1, row(1, 1), row(1, 2)));
        assert_eq!(content(&set), [(1, None, Some(2))]);
    }

    #[test]
    fn insert_then_delete_leaves_nothing_behind() {
        let mut set = ChangeSet::new(HashSeed::FIXED);
        for number in 0..100 {
            set.merge(TABLE, entry(number, None, row(number, 1)));
            if number != 50 {
                set.merge(TABLE, entry(number, row(number, 1), None));
            }
        }
        assert_eq!(content(&set), [(50, None, Some(1))]);
        set.merge(TABLE, entry(50, row(50, 1), row(50, 2)));
        assert_eq!(content(&set), [(50, None, Some(2))]);
    }

    #[test]
    fn modify_then_delete_is_a_delete_of_the_sent_row() {
        let mut set = ChangeSet::new(HashSeed::FIXED);
        set.push(TABLE, entry(1, row(1, 1), row(1, 2)));
        set.merge(TABLE, entry(1, row(1, 2), None));
        assert_eq!(content(&set), [(1, Some(1), None)]);
    }

    #[test]
    fn delete_then_insert_is_a_modification() {
        let mut set = ChangeSet::new(HashSeed::FIXED);
        set.push(TABLE, entry(1, row(1, 1), None));
        set.merge(TABLE, entry(1, None, row(1, 3)));
        assert_eq!(content(&set), [(1, Some(1), Some(3))]);
    }

    #[test]
    fn appending_a_larger_later_set_keeps_first_old_and_last_new() {
        let mut early = ChangeSet::new(HashSeed::FIXED);
        early.push(TABLE, entry(1, row(1, 1), row(1, 2)));
        early.push(TABLE, entry(2, None, row(2, 1)));
        let mut later = ChangeSet::new(HashSeed::FIXED);
        later.push(TABLE, entry(1, row(1, 2), row(1, 3)));
        later.push(TABLE, entry(2, row(2, 1), None));
        later.push(TABLE, entry(3, None, row(3, 1)));
        later.push(TableId(1), entry(4, None, row(4, 1)));
        early.append(later);
        assert_eq!(
            content(&early),
            [
                (1, Some(1), Some(3)),
                (3, None, Some(1)),
                (4, None, Some(1))
            ]
        );
    }

    #[test]
    fn appending_a_smaller_later_set_gives_the_same() {
        let mut early = ChangeSet::new(HashSeed::FIXED);
        for number in 1..=5 {
            early.push(TABLE, entry(number, row(number, 0), row(number, 1)));
        }
        let mut later = ChangeSet::new(HashSeed::FIXED);
        later.push(TABLE, entry(3, row(3, 1), None));
        early.append(later);
        assert_eq!(content(&early)[2], (3, Some(0), None));
        assert_eq!(content(&early).len(), 5);
    }
}
