//! Tracks which rows changed since the program last looked (docs/spec/idl.md 5).
//!
//! Invariant: flags and old values describe only the time since [`crate::Idl::clear_changes`]. A
//! row is listed once, in the order of its first change, with its values before that change. So the
//! listed changes lead from the old contents to the new.

use std::collections::BTreeMap;

use corvid_data::{ColumnId, Datum, Uuid};

use crate::row::Row;

/// A row that was inserted, modified or deleted.
///
/// ```
/// use corvid_idl::{Column, Idl, RowId};
///
/// /// Prints the changes since the last call.
/// fn print_changes(idl: &mut Idl, name: Column) {
///     for change in idl.changes(name.table) {
///         let row = RowId { table: name.table, uuid: change.uuid };
///         let now = idl.read(row, name);          // for a deleted row: its last value
///         match (change.is_new, change.is_deleted) {
///             (true, true) => {}                  // it was inserted and deleted
///             (true, false) => println!("{now:?} was inserted"),
///             (false, true) => println!("{now:?} was deleted"),
///             (false, false) => println!("{:?} became {now:?}", change.old(name.id)),
///         }
///     }
///     idl.clear_changes();
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Tracked {
    /// The row's UUID.
    pub uuid: Uuid,
    /// The row was inserted, perhaps after a deletion since the last clear. Together with
    /// `is_deleted`: the row was inserted and deleted again.
    pub is_new: bool,
    /// The row was deleted.
    pub is_deleted: bool,
    /// The change numbers of the row's last insertion, modification and deletion, in this order; 0
    /// if there was none.
    pub seqnos: [u64; 3],
    /// The row was deleted and inserted again. Its values before that are not listed.
    pub(crate) is_returned: bool,
    /// Tracked columns that changed, with their previous values. For a new row: the columns that
    /// differ from their defaults, without values.
    pub(crate) updated: BTreeMap<ColumnId, Option<Datum>>,
    /// The last contents of a deleted row.
    pub(crate) last: Option<Row>,
}

impl Tracked {
    /// Whether a tracked column changed. If no column of a listed row changed, a row did that this
    /// row refers to, directly or through others.
    #[must_use]
    pub fn is_updated(&self, column: ColumnId) -> bool {
        self.updated.contains_key(&column)
    }

    /// The columns that changed.
    pub fn updated(&self) -> impl Iterator<Item = ColumnId> {
        self.updated.keys().copied()
    }

    /// Whether the row was deleted and inserted again: its previous values are not listed then.
    #[must_use]
    pub fn is_returned(&self) -> bool {
        self.is_returned
    }

    /// The previous value of a changed column; `None` for a new row.
    #[must_use]
    pub fn old(&self, column: ColumnId) -> Option<&Datum> {
        self.updated.get(&column)?.as_ref()
    }
}

/// Kinds of changes, as positions in arrays of change numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A row was inserted.
    Insert = 0,
    /// A row changed.
    Modify = 1,
    /// A row was deleted.
    Delete = 2,
}

/// The room for entries that a cleared list keeps.
const ENTRIES_KEPT: usize = 1024;

/// The changes of one table.
#[derive(Debug, Default)]
pub(crate) struct TrackList {
    entries: Vec<Tracked>,
    by_uuid: BTreeMap<Uuid, usize>,
}

impl TrackList {
    pub(crate) fn entries(&self) -> &[Tracked] {
        &self.entries
    }

    pub(crate) fn get(&self, uuid: Uuid) -> Option<&Tracked> {
        self.by_uuid.get(&uuid).map(|&at| &self.entries[at])
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        // The list of a million arrived rows would keep a hundred megabytes.
        self.entries.shrink_to(ENTRIES_KEPT);
        self.by_uuid.clear();
    }

    fn entry(&mut self, uuid: Uuid) -> &mut Tracked {
        let next = self.entries.len();
        let at = *self.by_uuid.entry(uuid).or_insert(next);
        if at == next {
            self.entries.push(Tracked {
                uuid,
                is_new: false,
                is_deleted: false,
                seqnos: [0; 3],
                is_returned: false,
                updated: BTreeMap::new(),
                last: None,
            });
        }
        &mut self.entries[at]
    }

    /// Records an inserted row, whose tracked `columns` differ from their defaults. A row that was
    /// deleted earlier in the list counts as new and not deleted.
    pub(crate) fn inserted(
        &mut self,
        uuid: Uuid,
        seqno: u64,
        columns: impl Iterator<Item = ColumnId>,
    ) {
        let entry = self.entry(uuid);
        entry.is_returned |= entry.is_deleted;
        (entry.is_new, entry.is_deleted, entry.last) = (true, false, None);
        entry.seqnos[Kind::Insert as usize] = seqno;
        entry.seqnos[Kind::Delete as usize] = 0;
        entry.updated = columns.map(|column| (column, None)).collect();
    }

    /// Records a change of a row's tracked columns, with their previous values. `columns` is empty
    /// if only a referenced row changed. Returns false if the row was already listed.
    pub(crate) fn modified(
        &mut self,
        uuid: Uuid,
        seqno: u64,
        columns: impl Iterator<Item = (ColumnId, Datum)>,
    ) -> bool {
        let before = self.entries.len();
        let entry = self.entry(uuid);
        entry.seqnos[Kind::Modify as usize] = seqno;
        for (column, old) in columns {
            let old = (!entry.is_new).then_some(old);
            // Only the first change counts: the value before it is the one that the program last
            // saw.
            entry.updated.entry(column).or_insert(old);
        }
        self.entries.len() > before
    }

    /// Records a deleted row.
    pub(crate) fn deleted(&mut self, row: Row, seqno: u64) {
        let entry = self.entry(row.uuid);
        entry.is_deleted = true;
        entry.seqnos[Kind::Delete as usize] = seqno;
        entry.last = Some(row);
    }
}
