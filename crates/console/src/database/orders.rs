//! The rows of a table that a filter selects, in the order of a column. Orders are kept until the
//! table changes, so that paging through a table sorts it once.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use corvid::data::{ColumnId, Datum, TableId, Uuid};
use corvid_filter::Where;

use super::contents::Contents;
use crate::filter;

/// The number of orders that are kept for one database.
const ORDERS_MAX: usize = 8;

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

/// The orders that are kept, the last used at the end.
#[derive(Default)]
pub(crate) struct Orders(VecDeque<(Key, Arc<[Uuid]>)>);

/// Everything that an order depends on.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// The table.
    pub(crate) table: TableId,
    /// The text of the filter.
    pub(crate) filter: String,
    /// The order; `None`: that of the replica.
    pub(crate) sort: Option<Sort>,
    /// The state of the table.
    pub(crate) seqnos: [u64; 3],
}

impl Orders {
    pub(crate) fn get(&mut self, key: &Key) -> Option<Arc<[Uuid]>> {
        let place = self.0.iter().position(|(kept, _)| kept == key)?;
        let found = self.0.remove(place)?;
        let rows = found.1.clone();
        self.0.push_back(found);
        Some(rows)
    }

    pub(crate) fn keep(&mut self, key: Key, rows: Arc<[Uuid]>) {
        // An older state of the same view is never asked for again.
        self.0.retain(|(kept, _)| {
            kept.table != key.table || kept.filter != key.filter || kept.sort != key.sort
        });
        while self.0.len() >= ORDERS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((key, rows));
    }

    /// Forgets the orders of a table.
    pub(crate) fn forget(&mut self, table: TableId) {
        self.0.retain(|(kept, _)| kept.table != table);
    }
}

/// The rows that a filter selects, in order. Rows with equal values are in the order of their
/// UUIDs, so that pages do not overlap.
pub(crate) fn rows(
    contents: Contents<'_>,
    filter: Option<&Where>,
    sort: Option<Sort>,
) -> Arc<[Uuid]> {
    let selected = contents
        .uuids()
        .filter(|uuid| filter.is_none_or(|filter| filter::holds(filter, contents, *uuid)));
    let Some(sort) = sort else {
        return selected.collect();
    };
    let mut keyed: Vec<(Datum, Uuid)> = selected
        .map(|uuid| (contents.value(uuid, sort.column), uuid))
        .collect();
    keyed.sort_unstable_by(|(one, one_uuid), (other, other_uuid)| {
        let order = compare(one, other);
        let order = match sort.is_descending {
            true => order.reverse(),
            false => order,
        };
        order.then_with(|| one_uuid.cmp(other_uuid))
    });
    keyed.into_iter().map(|(_, uuid)| uuid).collect()
}

/// Compares values; an empty one comes last.
fn compare(one: &Datum, other: &Datum) -> Ordering {
    match (one.is_empty(), other.is_empty()) {
        (false, false) => one.iter().cmp(other.iter()),
        (is_empty, other_is_empty) => is_empty.cmp(&other_is_empty),
    }
}
