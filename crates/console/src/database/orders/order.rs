//! An order that is kept: UUIDs in runs, and the changes that have not reached them yet.

use std::ops::Range;

use corvid::data::{Datum, TableId, Uuid};
use corvid::{Idl, RowId};
use corvid_filter::Where;

use super::ledger::Ledger;
use super::{Page, Runs, Sort, is_selected};

/// Rows in an order.
pub(super) struct Order {
    table: TableId,
    filter: Option<Where>,
    sort: Sort,
    rows: Runs,
    ledger: Ledger,
}

impl Order {
    /// An order of sorted rows, without those that the ledger has as pending.
    pub(super) fn new(
        table: TableId,
        filter: Option<Where>,
        sort: Sort,
        rows: Runs,
        ledger: Ledger,
    ) -> Order {
        Order {
            table,
            filter,
            sort,
            rows,
            ledger,
        }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Notes what has changed. Returns whether the order is usable.
    pub(super) fn note(&mut self, idl: &Idl) -> bool {
        self.ledger.note(idl)
    }

    /// Tracked changes are about to be cleared.
    pub(super) fn clear(&mut self) {
        self.ledger.clear();
    }

    /// Whether each row has its place.
    pub(super) fn is_complete(&self) -> bool {
        self.ledger.pending().is_empty()
    }

    /// The rows at these places.
    pub(super) fn page(&self, places: Range<usize>) -> Page {
        Page {
            uuids: self.rows.page(places.start, places.len()),
            selected: self.rows.len(),
            is_counted: true,
            is_ready: true,
        }
    }

    /// Moves at most `rows_max` of the rows that have changed. Returns whether the order is usable;
    /// if not, it is to be made anew.
    pub(super) fn move_changed(&mut self, idl: &Idl, rows_max: usize) -> bool {
        let pending = self.ledger.pending().iter().copied();
        let moved: Vec<Uuid> = pending.take(rows_max).collect();
        // All rows leave the places that they have before one gets its new place: until then the
        // order holds for the values of the ledger.
        for uuid in &moved {
            if !self.remove(idl, *uuid) {
                return false;
            }
        }
        for uuid in &moved {
            self.insert(idl, *uuid);
        }
        let is_everything = self.filter.is_none() && self.is_complete();
        !is_everything || self.rows.len() == idl.row_count(self.table)
    }

    /// Removes a row from the place that it has. A row that the filter does not select has none.
    /// Returns false if the row should have one.
    fn remove(&mut self, idl: &Idl, uuid: Uuid) -> bool {
        let Some(Some(value)) = self.ledger.value(uuid) else {
            return true;
        };
        let place = self.rows.position(|other| {
            let is_before = |other_value: &Datum| {
                let order = self.sort.compare((other_value, other), (value, uuid));
                order.is_lt()
            };
            self.with_value(idl, other, is_before)
        });
        let is_there = self.rows.get(place) == Some(uuid);
        if is_there {
            self.rows.remove(place);
        }
        self.ledger.left(uuid);
        is_there || self.filter.is_some()
    }

    /// Gives a row its place, if it is there and selected.
    fn insert(&mut self, idl: &Idl, uuid: Uuid) {
        let table = self.table;
        let view = idl.view(RowId { table, uuid });
        let Some(view) = view.filter(|view| is_selected(self.filter.as_ref(), *view)) else {
            self.ledger.moved(uuid, None);
            return;
        };
        let value = self.sort.value(view);
        let place = self.rows.position(|other| {
            let is_before = |other_value: &Datum| {
                let order = self.sort.compare((other_value, other), (value, uuid));
                order.is_lt()
            };
            self.with_value(idl, other, is_before)
        });
        self.rows.insert(place, uuid);
        self.ledger.moved(uuid, Some(value.clone()));
    }

    /// Calls `look` with the value by which a row has its place.
    fn with_value<T>(&self, idl: &Idl, uuid: Uuid, look: impl FnOnce(&Datum) -> T) -> T {
        if let Some(Some(value)) = self.ledger.value(uuid) {
            return look(value);
        }
        let table = self.table;
        match idl.view(RowId { table, uuid }) {
            Some(view) => look(self.sort.value(view)),
            None => look(&Datum::empty()),
        }
    }
}
