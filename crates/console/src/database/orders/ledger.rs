//! The changes of a table since a moment, for an order that is kept, one that is being made and a
//! page that is being selected.
//!
//! Changes are noted from those that the client has tracked, before these are cleared. A ledger of
//! an order also knows the value by which each changed row has its place, so that the row is found
//! there and moved later.
//!
//! Invariant: every pending row has a value here. A row without one is in the order by the value
//! that it has in the replica, if it is in the order.

use std::collections::{HashMap, HashSet};

use corvid::data::{Datum, TableId, Uuid};
use corvid::{Idl, Tracked};

use super::Sort;

/// An order is made anew rather than changed if more rows than this and an eighth of it change.
const MOVED_MAX: usize = 1000;

/// The changes of a table's rows.
pub(super) struct Ledger {
    table: TableId,
    sort: Sort,
    /// Tables whose rows the filter names, with the state in which it was read.
    named: Vec<(TableId, [u64; 3])>,
    /// The change of the replica up to which changes are noted, and how often the replica has
    /// dropped rows silently.
    at: (u64, u64),
    /// Values by which changed rows have their places; `None` for a row that has none.
    values: HashMap<Uuid, Option<Datum>>,
    /// Rows that have changed and have not been moved.
    pending: HashSet<Uuid>,
    /// All rows have been read. Until then a changed row has no place: it is left out of what was
    /// read, and enters the order later.
    is_read: bool,
    /// The changes are not all known.
    is_lost: bool,
}

impl Ledger {
    /// A ledger of an order that is read from now on. Rows whose changes are listed now are noted,
    /// too: their previous values are older than the order.
    pub(super) fn new(idl: &Idl, table: TableId, sort: Sort, named: &[TableId]) -> Ledger {
        let mut ledger = Ledger::since(idl, table, sort, named);
        for change in idl.changes(table).iter().filter(has_changed) {
            ledger.note_one(idl, change);
        }
        ledger
    }

    /// A ledger of the changes from now on.
    pub(super) fn since(idl: &Idl, table: TableId, sort: Sort, named: &[TableId]) -> Ledger {
        Ledger {
            table,
            sort,
            named: named
                .iter()
                .map(|table| (*table, idl.table_seqnos(*table)))
                .collect(),
            at: (idl.change_seqno(), idl.resync_epoch()),
            values: HashMap::new(),
            pending: HashSet::new(),
            is_read: false,
            is_lost: false,
        }
    }

    /// Notes the changes since the last call. Returns whether they are all known; if not, what was
    /// read is unusable.
    pub(super) fn note(&mut self, idl: &Idl) -> bool {
        let now = (idl.change_seqno(), idl.resync_epoch());
        if self.at == now || self.is_lost {
            return !self.is_lost;
        }
        let is_same = |(table, seqnos): &(TableId, [u64; 3])| idl.table_seqnos(*table) == *seqnos;
        if self.at.1 != now.1 || !self.named.iter().all(is_same) {
            self.lose();
            return false;
        }
        let since = self.at.0;
        let is_newer = |change: &&Tracked| change.seqnos.iter().any(|&seqno| seqno > since);
        for change in idl.changes(self.table).iter().filter(is_newer) {
            if has_changed(&change) {
                self.note_one(idl, change);
            }
        }
        self.at = now;
        if self.pending.len() > MOVED_MAX + idl.row_count(self.table) / 8 {
            self.lose();
        }
        !self.is_lost
    }

    fn note_one(&mut self, idl: &Idl, change: &Tracked) {
        let uuid = change.uuid;
        self.pending.insert(uuid);
        if self.values.contains_key(&uuid) {
            return;
        }
        let value = match (self.is_read, change.is_new) {
            (false, _) => None,
            // The value that the row had before its deletion is not listed.
            (true, _) if change.is_returned() => return self.lose(),
            (true, true) => None,
            (true, false) => Some(match change.old(self.sort.column) {
                Some(old) => old.clone(),
                None => self.sort.value_of(idl, self.table, uuid),
            }),
        };
        self.values.insert(uuid, value);
    }

    /// Forgets all: the order is to be made anew.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
        self.values = HashMap::new();
        self.pending = HashSet::new();
    }

    /// All rows have been read. Returns those that are to be left out, because they have changed
    /// meanwhile.
    pub(super) fn end_reading(&mut self) -> HashSet<Uuid> {
        self.is_read = true;
        self.pending.clone()
    }

    /// The tracked changes are about to be cleared: what is listed from now on begins with the
    /// values that the replica has now.
    pub(super) fn clear(&mut self) {
        let pending = &self.pending;
        self.values.retain(|uuid, _| pending.contains(uuid));
        self.values.shrink_to(MOVED_MAX);
    }

    /// The table.
    pub(super) fn table(&self) -> TableId {
        self.table
    }

    /// The rows that have changed.
    pub(super) fn pending(&self) -> &HashSet<Uuid> {
        &self.pending
    }

    /// The value by which a row has its place; `None` if it has none. The outer `None` stands for
    /// the value that the row has in the replica.
    pub(super) fn value(&self, uuid: Uuid) -> Option<Option<&Datum>> {
        self.values.get(&uuid).map(Option::as_ref)
    }

    /// A pending row has left its place.
    pub(super) fn left(&mut self, uuid: Uuid) {
        self.values.insert(uuid, None);
    }

    /// A pending row has its place by this value, or has none.
    pub(super) fn moved(&mut self, uuid: Uuid, value: Option<Datum>) {
        self.values.insert(uuid, value);
        self.pending.remove(&uuid);
    }
}

/// Whether the row itself has changed, and not only one that it refers to.
fn has_changed(change: &&Tracked) -> bool {
    change.is_new || change.is_deleted || change.updated().next().is_some()
}
