//! The rows of a table that a filter selects, in the order of a column: texts in their natural
//! order, so that `net2` comes before `net10`. Orders are kept, and each change of a row moves that
//! row alone, so paging through a table sorts it once.
//!
//! An order is brought up to date from the changes that the client has tracked: by a page that is
//! read, and before these changes are cleared ([`Orders::catch_up`]). A changed row is found by the
//! value that it has in the order. That is the one before the tracked changes, or the one with
//! which an earlier page has moved the row since they were cleared last ([`Order::moved`]).

mod runs;

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use corvid::data::{ColumnId, Datum, TableId, Uuid};
use corvid::{Idl, Tracked};
use corvid_filter::Where;

use super::Open;
use super::contents::Contents;
use super::natural;
use crate::filter;
use runs::Runs;

/// The number of orders that are kept for one database.
const ORDERS_MAX: usize = 8;

/// The rows of all orders that are kept, except that one of them may have more alone.
const ROWS_MAX: usize = 1_500_000;

/// An order that no page has used for so long is not kept up to date.
const UNUSED: Duration = Duration::from_secs(60);

/// Tables with more rows are shown in the order of the replica unless a viewer sorts them.
pub(crate) const SORTED_ROWS_MAX: usize = 20_000;

/// The order that a viewer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    /// The column.
    pub(crate) column: ColumnId,
    /// The largest value first.
    pub(crate) is_descending: bool,
}

/// The table, the filter and the column of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The table.
    pub(crate) table: TableId,
    /// The text of the filter.
    pub(crate) filter: String,
    /// The order; `None`: that of UUIDs.
    pub(crate) sort: Option<Sort>,
}

/// The orders that are kept, the last used at the end.
#[derive(Default)]
pub(crate) struct Orders(VecDeque<KeptOrder>);

/// An order that is kept. Only readers of the replica lock it, so the replica does not change
/// meanwhile.
struct KeptOrder {
    key: Key,
    order: Arc<Mutex<Option<Order>>>,
    /// The number of its rows when it was used last.
    rows: usize,
    used: Instant,
}

/// Rows in an order.
struct Order {
    filter: Option<Where>,
    sort: Sort,
    rows: Runs,
    /// Tables whose rows the filter names, with the state in which it was read.
    named: Vec<(TableId, [u64; 3])>,
    /// The change of the replica up to which the order is right, and how often the replica has
    /// dropped rows silently.
    at: (u64, u64),
    /// Rows that have moved since tracked changes were cleared, with their values in the order;
    /// `None` for one that is not in it.
    moved: HashMap<Uuid, Option<Datum>>,
}

/// A page of an order.
pub(crate) struct Page {
    /// The rows.
    pub(crate) uuids: Vec<Uuid>,
    /// The number of rows of the order.
    pub(crate) selected: usize,
}

impl Orders {
    /// The place for an order, which is empty at first.
    fn place(&mut self, key: &Key) -> Arc<Mutex<Option<Order>>> {
        let place = self.0.iter().position(|kept| kept.key == *key);
        let mut kept = match place.and_then(|place| self.0.remove(place)) {
            Some(kept) => kept,
            None => KeptOrder {
                key: key.clone(),
                order: Arc::default(),
                rows: 0,
                used: Instant::now(),
            },
        };
        kept.used = Instant::now();
        let order = kept.order.clone();
        self.0.push_back(kept);
        order
    }

    /// Notes the number of rows of an order, and forgets those that are too many.
    fn used(&mut self, key: &Key, rows: usize) {
        if let Some(kept) = self.0.iter_mut().find(|kept| kept.key == *key) {
            kept.rows = rows;
        }
        let all = |orders: &VecDeque<KeptOrder>| orders.iter().map(|kept| kept.rows).sum::<usize>();
        while self.0.len() > ORDERS_MAX || (self.0.len() > 1 && all(&self.0) > ROWS_MAX) {
            self.0.pop_front();
        }
    }

    /// Brings all orders up to date. Called with the replica before its tracked changes are
    /// cleared.
    pub(super) fn catch_up(&mut self, idl: &Idl) {
        self.0.retain(|kept| {
            let mut order = kept.order.lock().unwrap_or_else(PoisonError::into_inner);
            let table = kept.key.table;
            let is_current = order
                .as_mut()
                .is_some_and(|order| kept.used.elapsed() < UNUSED && order.catch_up(idl, table));
            match order.as_mut() {
                Some(order) if is_current => order.moved = HashMap::new(),
                _ => *order = None,
            }
            is_current
        });
    }

    /// Forgets the orders of a table.
    pub(crate) fn forget(&mut self, table: TableId) {
        self.0.retain(|kept| kept.key.table != table);
    }
}

impl Open {
    /// The rows of an order at these places. The order is kept if changes of its table are
    /// tracked.
    ///
    /// # Errors
    /// The filter is malformed.
    pub(crate) fn ordered(
        &self,
        idl: &Idl,
        key: &Key,
        places: Range<usize>,
    ) -> Result<Page, String> {
        let make = || {
            let contents = Contents::Now(idl, key.table);
            let (filter, named) = filter::parse_named(idl, &self.naming, key.table, &key.filter)?;
            let mut order = Order::new(contents, filter, key.sort);
            order.at = (idl.change_seqno(), idl.resync_epoch());
            order.named = named
                .into_iter()
                .map(|table| (table, idl.table_seqnos(table)))
                .collect();
            Ok::<_, String>(order)
        };
        if !self.looks.is_tracked(key.table) {
            return Ok(make()?.page(places));
        }
        let order = self.orders().place(key);
        let mut order = order.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = order
            .as_mut()
            .is_some_and(|order| order.catch_up(idl, key.table));
        if !is_current {
            *order = None;
        }
        let order = match order.as_mut() {
            Some(order) => order,
            None => order.insert(make()?),
        };
        let page = order.page(places);
        self.orders().used(key, page.selected);
        Ok(page)
    }
}

/// The rows of an earlier moment that a filter selects, in order.
pub(crate) fn of_past(
    contents: Contents<'_>,
    filter: Option<Where>,
    sort: Option<Sort>,
    places: Range<usize>,
) -> Page {
    Order::new(contents, filter, sort).page(places)
}

impl Order {
    /// Reads and sorts all rows. Rows with equal values are in the order of their UUIDs, so that
    /// pages do not overlap.
    fn new(contents: Contents<'_>, filter: Option<Where>, sort: Option<Sort>) -> Order {
        let sort = sort.unwrap_or(Sort {
            column: ColumnId::UUID,
            is_descending: false,
        });
        let selected = contents.uuids().filter(|uuid| {
            let filter = filter.as_ref();
            filter.is_none_or(|filter| filter::holds(filter, contents, *uuid))
        });
        let rows = match sort.column {
            ColumnId::UUID => {
                let mut uuids: Vec<Uuid> = selected.collect();
                uuids.sort_unstable();
                if sort.is_descending {
                    uuids.reverse();
                }
                Runs::of_sorted(uuids.into_iter())
            }
            column => {
                let mut keyed: Vec<(Datum, Uuid)> = selected
                    .map(|uuid| (contents.value(uuid, column), uuid))
                    .collect();
                keyed.sort_unstable_by(|one, other| {
                    sort.compare((&one.0, one.1), (&other.0, other.1))
                });
                Runs::of_sorted(keyed.into_iter().map(|(_, uuid)| uuid))
            }
        };
        Order {
            filter,
            sort,
            rows,
            named: Vec::new(),
            at: (0, 0),
            moved: HashMap::new(),
        }
    }

    fn page(&self, places: Range<usize>) -> Page {
        Page {
            uuids: self.rows.page(places.start, places.len()),
            selected: self.rows.len(),
        }
    }

    /// Moves the rows that have changed. Returns whether the order is right; if not, it is to be
    /// made anew.
    fn catch_up(&mut self, idl: &Idl, table: TableId) -> bool {
        let now = (idl.change_seqno(), idl.resync_epoch());
        if self.at == now {
            return true;
        }
        let is_named = |(table, seqnos): &(TableId, [u64; 3])| idl.table_seqnos(*table) == *seqnos;
        if self.at.1 != now.1 || !self.named.iter().all(is_named) {
            return false;
        }
        let is_newer = |change: &&Tracked| {
            let has_changed =
                change.is_new || change.is_deleted || change.updated().next().is_some();
            has_changed && change.seqnos.iter().any(|&seqno| seqno > self.at.0)
        };
        let changed: Vec<&Tracked> = idl.changes(table).iter().filter(is_newer).collect();
        // Sorting all rows is faster than to move most of them.
        if changed.len() > 1000 + self.rows.len() / 8 || changed.iter().any(|one| one.is_returned())
        {
            return false;
        }
        // All rows leave the places that they have before one gets its new place: until then the
        // order holds for the values that `value_in_order` returns.
        for change in &changed {
            let is_there = match self.moved.get(&change.uuid) {
                Some(value) => value.is_some(),
                None => !change.is_new,
            };
            if is_there && !self.remove(idl, table, change.uuid) {
                return false;
            }
        }
        for change in &changed {
            self.insert(idl, table, change);
        }
        self.at = now;
        let is_everything = self.filter.is_none();
        !is_everything || self.rows.len() == idl.row_count(table)
    }

    /// The value by which a row has its place.
    fn value_in_order(&self, idl: &Idl, table: TableId, uuid: Uuid) -> Datum {
        if let Some(Some(value)) = self.moved.get(&uuid) {
            return value.clone();
        }
        let change = idl.change_of(table, uuid);
        match change.and_then(|change| change.old(self.sort.column)) {
            Some(old) => old.clone(),
            None => Contents::Now(idl, table).value(uuid, self.sort.column),
        }
    }

    /// Removes a row from the place that it has. A row that the filter does not select has none.
    /// Returns false if the row should have one.
    fn remove(&mut self, idl: &Idl, table: TableId, uuid: Uuid) -> bool {
        let value = self.value_in_order(idl, table, uuid);
        let place = self.rows.position(|other| {
            let other_value = self.value_in_order(idl, table, other);
            self.sort
                .compare((&other_value, other), (&value, uuid))
                .is_lt()
        });
        let is_there = self.rows.get(place) == Some(uuid);
        if is_there {
            self.rows.remove(place);
        }
        is_there || self.filter.is_some()
    }

    /// Gives a row its place, if it is there and selected.
    fn insert(&mut self, idl: &Idl, table: TableId, change: &Tracked) {
        let uuid = change.uuid;
        let contents = Contents::Now(idl, table);
        let is_selected = !change.is_deleted
            && self
                .filter
                .as_ref()
                .is_none_or(|filter| filter::holds(filter, contents, uuid));
        if !is_selected {
            self.moved.insert(uuid, None);
            return;
        }
        let value = contents.value(uuid, self.sort.column);
        let place = self.rows.position(|other| {
            let other_value = self.value_in_order(idl, table, other);
            self.sort
                .compare((&other_value, other), (&value, uuid))
                .is_lt()
        });
        self.rows.insert(place, uuid);
        self.moved.insert(uuid, Some(value));
    }
}

impl Sort {
    fn compare(
        self,
        (one, one_uuid): (&Datum, Uuid),
        (other, other_uuid): (&Datum, Uuid),
    ) -> Ordering {
        let order = match self.is_descending {
            false => compare(one, other),
            true => compare(other, one),
        };
        // With the UUIDs themselves compared, this adds nothing.
        order.then_with(|| one_uuid.cmp(&other_uuid))
    }
}

/// Compares values; an empty one comes last.
fn compare(one: &Datum, other: &Datum) -> Ordering {
    match (one.is_empty(), other.is_empty()) {
        (false, false) => {
            let mut pairs = one.iter().zip(other.iter());
            let order = pairs.find_map(|((key, value), (other_key, other_value))| {
                let by_value = || match (value, other_value) {
                    (Some(value), Some(other)) => natural::atoms(value, other),
                    _ => Ordering::Equal,
                };
                let order = natural::atoms(key, other_key).then_with(by_value);
                (order != Ordering::Equal).then_some(order)
            });
            order.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (is_empty, other_is_empty) => is_empty.cmp(&other_is_empty),
    }
}
